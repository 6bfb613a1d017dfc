// The exact product of GGUF's blocks with int8 activations, in units of 2⁻²⁴: Σ over blocks, or their parts, of scale · 2²⁴ · Σ code · x +
// minimum · 2²⁴ · Σ x.
//
// Roofline: reads 0.21 to 1.06 bytes of weights and 1 of activations a value, for 8 (TQ2_0) to 22 (Q5_1) instructions, for 9 of which
// an H200 has time meanwhile: instructions are the limit of most formats, or nearly so.

#include "tercet/device.cuh"
#include "tercet/blocks.cuh"
#include "tercet/team.cuh"

using namespace tercet;

// A signed integer of 128 bits. A finite f16 times 2²⁴ is an integer of 11 bits moved by at most 29. A lane's eight products sum to at most
// 2¹⁷, its activations, where there is a minimum, to less: with a scale's or a minimum's bits both stay below 2²⁸, moved below 2⁵⁷, and a
// turn's eight terms of both kinds below 2⁶⁰. In blocks of parts the products of a lane's four codes, at most 2¹⁴, are multiplied by the
// largest f16, less than 2⁴⁰, and then by at most 2⁷ (63, and 15 for a code, where there is a minimum): four terms stay below 2⁶³. 2⁶⁴ of
// these have room.
struct Fixed {
    u64 words[2];

    __device__ __forceinline__ void add(i64 term) { add_words(words, (u64)term, (u64)(term >> 63)); }

    __device__ __forceinline__ void merge(const Fixed &other) { add_words(words, other.words[0], other.words[1]); }

    __device__ __forceinline__ Fixed exchange(u32 distance) const {
        return Fixed{{__shfl_xor_sync(FULL_WARP, words[0], distance), __shfl_xor_sync(FULL_WARP, words[1], distance)}};
    }
};

// The product's two words, and what `name_not_finite` says; all bytes 0 before. It counts from the start of the vectors, `before` values of
// which came earlier. The engine reads it.
struct DotRecord {
    u64 low, high, not_bad;
};

// Stripes of a warp's turn.
const u32 STRIPES = 4;

// `sum` times a finite f16 times 2²⁴.
TERCET_FN i64 times_fixed(u32 half, i32 sum) {
    u32 field = half >> 10 & 31, mantissa = (half & 0x3FF) | (field == 0 ? 0 : 0x400);
    i32 product = (i32)mantissa * (half >> 15 ? -sum : sum);
    return (i64)((u64)(i64)product << (field == 0 ? 0 : field - 1));
}

template <class Format>
TERCET_FN void dot(const u8 *bytes, const i8 *x, u64 before, u64 count, DotRecord *record) {
    const u64 TURN = STRIPES * STRIPE;
    Fixed sum = {{0, 0}};
    u32 lane = threadIdx.x % WARP;
    u64 warp = (u64)blockIdx.x * WARPS + threadIdx.x / WARP, warps = (u64)gridDim.x * WARPS;
    for (u64 start = warp * TURN; start < count; start += warps * TURN) {
        const u8 *blocks = bytes + start / Format::LEN * Format::BYTES;
        const i8 *beside = x + start;
        u32 left = count - start < TURN ? (u32)(count - start) : (u32)TURN;
        u32 stored[STRIPES], four[STRIPES], scale[STRIPES], min[STRIPES];
        i32 of_scale[STRIPES], of_min[STRIPES];
        bool finite = true;
#pragma unroll
        for (u32 stripe = 0; stripe < STRIPES; stripe++) {
            // A block is there as a whole or not at all; where it is not, the first one stands for it, with activations of 0.
            u32 within = stripe * STRIPE + lane * 4;
            bool here = within < left;
            const u8 *block = here ? Format::of_lane(blocks, stripe) : blocks;
            stored[stripe] = Format::stored(block, stripe);
            four[stripe] = here ? *reinterpret_cast<const u32 *>(beside + within) : 0;
            scale[stripe] = Format::scale(block);
            min[stripe] = Format::min(block);
            of_scale[stripe] = Format::of_scale(block, stripe);
            of_min[stripe] = Format::of_min(block, stripe);
            finite = finite && is_finite_f16(scale[stripe]) && (!Format::HAS_MIN || is_finite_f16(min[stripe]));
        }
        if (!finite) {
            // The product is refused.
#pragma unroll
            for (u32 stripe = 0; stripe < STRIPES; stripe++) {
                u64 first = start + stripe * STRIPE + lane * 4;
                if (first < count && first % Format::LEN == 0) {
                    name_not_finite(&record->not_bad, (before + first) / Format::LEN, scale[stripe], min[stripe]);
                }
            }
        }
        i64 terms = 0;
        i32 product = 0, of_x = 0;
#pragma unroll
        for (u32 stripe = 0; stripe < STRIPES; stripe++) {
            // Less the offset from each code.
            const i32 OFFSETS = (i32)((u32)(u8)-Format::OFFSET * 0x01010101u);
            product = dp4a_unsigned_signed(stored[stripe], (i32)four[stripe], dp4a((i32)four[stripe], OFFSETS, product));
            if (Format::HAS_MIN) of_x = dp4a((i32)four[stripe], 0x01010101, of_x);
            if (Format::PARTS) {
                terms += times_fixed(scale[stripe], product) * of_scale[stripe];
                if (Format::HAS_MIN) terms -= times_fixed(min[stripe], of_x) * of_min[stripe];
                product = of_x = 0;
                continue;
            }
            // Two stripes of one block have one scale.
            if (Format::LEN > STRIPE && stripe % 2 == 0) continue;
            terms += times_fixed(scale[stripe], product);
            if (Format::HAS_MIN) terms += times_fixed(min[stripe], of_x);
            product = of_x = 0;
        }
        sum.add(terms);
    }
    sum = block_all(warp_all(sum));
    if (threadIdx.x == 0) {
        // As in Wide::add_to: each wrap carries once.
        u64 low = sum.words[0], before_low = atomicAdd(&record->low, low);
        atomicAdd(&record->high, sum.words[1] + (before_low + low < low ? 1 : 0));
    }
}

#define DOT(NAME, FORMAT)                                                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        block_dot_##NAME(const u8 *bytes, const i8 *x, u64 before, u64 count, DotRecord *record) {                                 \
        dot<FORMAT>(bytes, x, before, count, record);                                                                              \
    }

TERCET_BLOCK_FORMATS(DOT)
