// The exact product of GGUF's blocks with int8 activations, in units of 2⁻²⁴: Σ over blocks of scale · 2²⁴ · Σ code · x + minimum ·
// 2²⁴ · Σ x.
//
// Roofline: reads 0.21 to 1.06 bytes of weights and 1 of activations a value, for about 6 instructions: memory is the limit.

#include "tercet/device.cuh"
#include "tercet/blocks.cuh"
#include "tercet/team.cuh"

using namespace tercet;

// A signed integer of 128 bits. A finite f16 times 2²⁴ is below 2⁴⁰, and a block's sum of products at most 2¹⁹, its sum of
// activations at most 2¹² where it has a minimum, so a block's term is below 2⁶⁰ and 2⁶⁷ of them have room.
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

template <class Format>
TERCET_FN void dot(const u8 *bytes, const i8 *x, u64 before, u64 count, DotRecord *record) {
    alignas(16) __shared__ u8 tile[Format::TILE_BYTES];
    const u8 *share = tile + threadIdx.x / WARP * Format::SHARE_BYTES;
    Fixed sum = {{0, 0}};
    for (u64 start = (u64)blockIdx.x * TILE; start < count; start += (u64)gridDim.x * TILE) {
        u64 left = (count - start) / Format::LEN * Format::BYTES;
        tile_in(tile, bytes + start / Format::LEN * Format::BYTES, left < Format::TILE_BYTES ? (u32)left : Format::TILE_BYTES);
        __syncthreads();
        u64 first = start + threadIdx.x * 8;
        i32 product = 0, of_x = 0;
        u32 scale = 0, min = 0;
        if (first < count) {
            scale = Format::scale(share);
            min = Format::min(share);
            Codes codes = Format::unpack(share);
            u32x2 pair = load8(x + first);
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                product += codes.codes[i] * (i8)(pair.x >> 8 * i) + codes.codes[i + 4] * (i8)(pair.y >> 8 * i);
            }
            if (Format::HAS_MIN) of_x = dp4a((i32)pair.x, 0x01010101, dp4a((i32)pair.y, 0x01010101, 0));
        }
#pragma unroll
        for (u32 distance = Format::LANES / 2; distance > 0; distance /= 2) {
            product += __shfl_xor_sync(FULL_WARP, product, distance);
            if (Format::HAS_MIN) of_x += __shfl_xor_sync(FULL_WARP, of_x, distance);
        }
        if (threadIdx.x % Format::LANES == 0) {
            if (is_finite_f16(scale) && is_finite_f16(min)) {
                i64 term = (i64)(f16_to_f32((u16)scale) * 16777216.0f) * product;
                if (Format::HAS_MIN) term += (i64)(f16_to_f32((u16)min) * 16777216.0f) * of_x;
                sum.add(term);
            } else {
                name_not_finite(&record->not_bad, (before + first) / Format::LEN, scale, min);
            }
        }
        __syncthreads();
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
