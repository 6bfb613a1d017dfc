// GGUF's blocks from floats.
//
// Roofline: reads 4 or 2 bytes a value and writes 0.21 (TQ1_0) to 1.06 (Q8_0), for 19 (TQ2_0) to 26 (Q5_1) instructions, of which less than
// half are the ALU pipe's. While f32 is read an H200 has time for 30 and 15 a value: memory is the limit; for halves instructions are. A
// warp waits for no other: it has its own bytes in shared memory, and loads its next 256 values before it looks at those that it has. Means
// and the optimum, which sorts 256 values a warp, have kernels of their own, so that the others do not carry their registers; instructions
// limit them.

#include "tercet/device.cuh"
#include "tercet/block_quantize.cuh"

using namespace tercet;

// What happened; all bytes 0 before. The engine reads it.
struct EncodeRecord {
    u64 flushed;
    // The complement of the first value that is not finite, and the first block whose scale or minimum overflows f16, as
    // `name_not_finite` says it; 0 for none. They count from the tensor's start, `before` values of which came earlier.
    u64 not_bad, not_overflow;
};

// Which type values are of. A kernel takes all three, since only its loads differ.
enum Type { TYPE_F32 = 0, TYPE_F16 = 1, TYPE_BF16 = 2 };

// Eight neighbours as they are in memory; halves fill the first vector.
struct Eight {
    u32x4 vectors[2];

    __device__ __forceinline__ void load(const u8 *from, u32 type, bool here) {
        vectors[0] = vectors[1] = u32x4{0, 0, 0, 0};
        if (!here) return;
        vectors[0] = load16(from);
        if (type == TYPE_F32) vectors[1] = load16(from + 16);
    }

    __device__ __forceinline__ void unpack(u32 type, u32 (&patterns)[8]) const {
        if (type == TYPE_F32) {
            F32::unpack(vectors[0], patterns);
            F32::unpack(vectors[1], patterns + 4);
        } else if (type == TYPE_F16) {
            F16::unpack(vectors[0], patterns);
        } else {
            BF16::unpack(vectors[0], patterns);
        }
    }
};

// Shares of a warp's turn: the fewest whose bytes are a multiple of 8 in every format.
const u32 SHARES = 4;

// A warp's bytes to where they belong: whole vectors, then what is left. `count` is a multiple of 2.
template <bool SIXTEEN>
TERCET_FN void write_out(u8 *bytes, const u8 *own, u32 count) {
    const u32 EACH = SIXTEEN ? 16 : 8;
    u32 lane = threadIdx.x % WARP;
#pragma unroll 1
    for (u32 at = lane * EACH; at + EACH <= count; at += WARP * EACH) {
        if (SIXTEEN) {
            store16(bytes + at, load16(own + at));
        } else {
            store8(bytes + at, load8(own + at));
        }
    }
#pragma unroll 1
    for (u32 at = count / EACH * EACH + lane * 2; at < count; at += WARP * 2) put16(bytes + at, get16(own + at));
}

// Codes and scales of a warp's values, eight neighbours a lane, of which the lane's first is number `first` of the tensor; 0 where there are
// none.
template <class Format, Way WAY>
TERCET_FN void encode_share(const Eight &eight, u32 type, u64 first, u32 rule, u32 least_squares, u8 *bytes, u8 *digits, u32 *sorted,
                            EncodeRecord *record) {
    u32 patterns[8];
    eight.unpack(type, patterns);
    Extremes extremes;
    extremes.clear();
#pragma unroll
    for (u32 i = 0; i < 8; i++) extremes.add(patterns[i]);
    bool bad = extremes.largest() >= INFINITE;
    merge_lanes<Format::LANES, Quantizer<Format, WAY>::NEED>(extremes);
    if (extremes.largest() >= INFINITE) {
        u32 of_lane = 0;
#pragma unroll
        for (u32 i = 8; i-- > 0;) of_lane = magnitude(patterns[i]) >= INFINITE ? i : of_lane;
        if (bad) atomicMax(&record->not_bad, ~(first + of_lane));
        // Refused; what comes out of it does not matter.
#pragma unroll
        for (u32 i = 0; i < 8; i++) patterns[i] = 0;
        extremes.top = extremes.bottom = 0;
        extremes.positive = 0;
    }
    Decision decision = Quantizer<Format, WAY>::of(patterns, extremes, rule, least_squares != 0, sorted);
    u32 scale = f32_to_f16(decision.scale), min = f32_to_f16(decision.min);
    if (decision.flushed || !is_finite_f16(scale) || !is_finite_f16(min)) {
        if (threadIdx.x % Format::LANES == 0) {
            if (decision.flushed) atomicAdd(&record->flushed, 1ull);
            name_not_finite(&record->not_overflow, first / Format::LEN, scale, min);
        }
    }
    Format::pack(decision.codes, bytes, digits);
    Format::set_scales(bytes, scale, min);
}

template <class Format, Way WAY>
TERCET_FN void encode(const u8 *values, u32 type, u64 before, u64 count, u32 rule, u32 least_squares, u8 *out, EncodeRecord *record) {
    const u64 TURN = SHARES * SHARE;
    alignas(16) __shared__ u8 turns[WARPS * SHARES * Format::SHARE_BYTES];
    alignas(16) __shared__ u8 digits[Format::LEN == SHARE ? WARPS * SHARE : 16];
    __shared__ u32 sorted[WAY == BEST ? WARPS * SHARE : 1];
    u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, size = type == TYPE_F32 ? 4 : 2;
    u8 *own = turns + warp * (SHARES * Format::SHARE_BYTES), *mixed = digits + (Format::LEN == SHARE ? warp * SHARE : 0);
    u64 begin = (blockIdx.x * (u64)WARPS + warp) * TURN, stride = gridDim.x * (WARPS * TURN);
    // Values of a turn that begins at `at`; blocks lie in one warp, and are there for all of their lanes or none.
    auto values_at = [&](u64 at) { return at < count ? count - at < TURN ? (u32)(count - at) : (u32)TURN : 0; };
    u32 left = values_at(begin);
    const u8 *from = values + (begin + lane * 8) * size;
    Eight now, next;
    now.load(from, type, lane * 8 < left);
    while (left != 0) {
        u64 following = begin + stride;
        u32 then = values_at(following);
        auto encode = [&](const Eight &eight, u32 share) {
            u64 first = before + begin + share * SHARE + lane * 8;
            encode_share<Format, WAY>(eight, type, first, rule, least_squares, own + share * Format::SHARE_BYTES, mixed, sorted, record);
        };
        if (WAY == PLAIN) {
            // Two shares, so that what was loaded ahead stays where it is.
#pragma unroll 1
            for (u32 share = 0; share < SHARES && share * SHARE < left; share += 2) {
                next.load(from + SHARE * size, type, (share + 1) * SHARE + lane * 8 < left);
                encode(now, share);
                bool last = (share + 2) * SHARE >= left;
                from = last ? values + (following + lane * 8) * size : from + 2 * SHARE * size;
                now.load(from, type, last ? lane * 8 < then : (share + 2) * SHARE + lane * 8 < left);
                encode(next, share + 1);
            }
        } else {
#pragma unroll 1
            for (u32 share = 0; share < SHARES && share * SHARE < left; share++) {
                encode(now, share);
                bool last = (share + 1) * SHARE >= left;
                from = last ? values + (following + lane * 8) * size : from + SHARE * size;
                now.load(from, type, last ? lane * 8 < then : (share + 1) * SHARE + lane * 8 < left);
            }
        }
        __syncwarp();
        write_out<SHARES * Format::SHARE_BYTES % 16 == 0>(out + begin / Format::LEN * Format::BYTES, own, left / Format::LEN * Format::BYTES);
        __syncwarp();
        begin = following;
        left = then;
    }
}

#define ENCODE_BY(NAME, FORMAT, WAY)                                                                                               \
    extern "C" __global__ void __launch_bounds__(256, WAY == PLAIN ? 5 : 3)                                                        \
        NAME(const u8 *values, u32 type, u64 before, u64 count, u32 rule, u32 least_squares, u8 *out, EncodeRecord *record) {      \
        encode<FORMAT, WAY>(values, type, before, count, rule, least_squares, out, record);                                        \
    }

#define ENCODE(NAME, FORMAT) ENCODE_BY(block_encode_##NAME, FORMAT, PLAIN)
#define ENCODE_TERNARY(NAME, FORMAT)                                                                                               \
    ENCODE_BY(block_encode_means_##NAME, FORMAT, MEANS)                                                                            \
    ENCODE_BY(block_encode_best_##NAME, FORMAT, BEST)

TERCET_ENCODED_FORMATS(ENCODE)
TERCET_TERNARY_FORMATS(ENCODE_TERNARY)
