// Codes and scales of GGUF's blocks, eight values a lane. As core/src/block: ternary.rs, q8_0.rs, nibbles.rs.
#pragma once

#include "tercet/blocks.cuh"
#include "tercet/optimal.cuh"

namespace tercet {

// What a lane decided with the others of its block. `flushed`: too small for the reciprocal of its scale, so what zeros become.
struct Decision {
    Codes codes;
    f32 scale;
    // 0 for formats that have none.
    f32 min = 0.0f;
    bool flushed;
};

template <u32 LANES>
TERCET_FN u32 block_largest(u32 value) {
#pragma unroll
    for (u32 distance = LANES / 2; distance > 0; distance /= 2) {
        value = larger(value, __shfl_xor_sync(FULL_WARP, value, distance));
    }
    return value;
}

// The mean of the magnitudes of a block, `count` of which are not left out as zeros. At 24 bits moved by at most 32, 256 of them
// stay below 2⁶⁴; a warp in which some value lies further down sums in 384 bits.
template <u32 LANES>
TERCET_FN f32 block_mean(const u32 (&magnitudes)[8], u32 largest, u32 count) {
    u32 top = shift_of(largest), floor = top > 32 ? top - 32 : 0;
    u64 sum = 0;
    bool outside = false;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        u32 integer = mantissa(magnitudes[i]), place = shift_of(magnitudes[i]);
        bool inside = place >= floor;
        sum += inside ? (u64)integer << ((place - floor) & 63) : 0;
        outside = outside || (!inside && integer != 0);
    }
#pragma unroll
    for (u32 distance = LANES / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, distance);
    Wide wide;
    wide.clear();
    if (__any_sync(FULL_WARP, outside)) {
#pragma unroll 1
        for (u32 turn = 0; turn < 8; turn++) {
            u32 found = 0;
#pragma unroll
            for (u32 i = 0; i < 8; i++) found = i == turn ? magnitudes[i] : found;
            if (shift_of(found) < floor) wide.add_shifted(mantissa(found), 0, shift_of(found));
        }
#pragma unroll 1
        for (u32 distance = LANES / 2; distance > 0; distance /= 2) wide.merge(wide.exchange(distance));
    }
    wide.add_shifted(sum, 0, floor);
    return wide.mean(count);
}

// The ternary rules.
template <class Format>
TERCET_FN Decision quantize_ternary(const u32 (&patterns)[8], u32 largest, u32 rule, bool least_squares, u32 *sorted) {
    u32 magnitudes[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) magnitudes[i] = magnitude(patterns[i]);
    // All lanes take part, also where their blocks are missing, since rule and scale are the same for all.
    f32 mean = rule == ABS_MEAN || rule == TWN ? block_mean<Format::LANES>(magnitudes, largest, Format::LEN) : 0.0f;
    u32 threshold;
    if (rule == OPTIMAL) {
        u32 *own = sorted + threadIdx.x / WARP * SHARE;
#pragma unroll
        for (u32 i = 0; i < 8; i++) own[threadIdx.x % WARP * 8 + i] = magnitudes[i];
        threshold = optimal_threshold<Format::LEN>(own);
    } else {
        threshold = threshold_of(rule, largest, mean);
    }
    Decision decision;
    u32 count = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        bool coded = magnitudes[i] >= threshold;
        decision.codes.codes[i] = coded ? ((i32)patterns[i] >> 31) | 1 : 0;
        magnitudes[i] = coded ? magnitudes[i] : 0;
        count += coded ? 1 : 0;
    }
    if (rule == TWN || rule == OPTIMAL || least_squares) {
#pragma unroll
        for (u32 distance = Format::LANES / 2; distance > 0; distance /= 2) {
            count += __shfl_xor_sync(FULL_WARP, count, distance);
        }
        decision.scale = block_mean<Format::LANES>(magnitudes, largest, count);
    } else {
        decision.scale = rule == ABS_MAX ? float_of(largest) : mean;
    }
    bool empty = decision.scale == 0.0f || threshold > largest;
    decision.flushed = !empty && bits_of(1.0f / decision.scale) >= INFINITE;
    if (empty || decision.flushed) {
        decision.scale = 0.0f;
#pragma unroll
        for (u32 i = 0; i < 8; i++) decision.codes.codes[i] = 0;
    }
    return decision;
}

// x rounded half away from zero, for |x| < 128: 2²³ + |x| rounds half to even, and a half that went down goes up by one.
TERCET_FN i32 round_byte(f32 x) {
    const f32 SHIFT = 8388608.0f;
    f32 size = float_of(magnitude(bits_of(x)));
    f32 shifted = size + SHIFT;
    i32 rounded = (i32)(bits_of(shifted) & 0xFF) + (size - (shifted - SHIFT) == 0.5f ? 1 : 0);
    return x < 0.0f ? -rounded : rounded;
}

TERCET_FN Decision quantize_q8_0(const u32 (&patterns)[8], u32 largest) {
    f32 scale = float_of(largest) / 127.0f;
    f32 inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
    Decision decision;
    decision.flushed = bits_of(inverse) >= INFINITE;
    decision.scale = decision.flushed ? 0.0f : scale;
    bool zeros = decision.scale == 0.0f;
#pragma unroll
    for (u32 i = 0; i < 8; i++) decision.codes.codes[i] = zeros ? 0 : round_byte(float_of(patterns[i]) * inverse);
    return decision;
}

// The sign of the first of a block's values that `is` holds for, as a float's highest bit: 0 where there is none.
template <u32 LANES, class Is>
TERCET_FN u32 first_sign(const u32 (&patterns)[8], Is is) {
    // The first has the lowest key; its sign is the key's last bit.
    u32 key = ~1u, lane = threadIdx.x % LANES;
#pragma unroll
    for (u32 i = 8; i-- > 0;) key = is(patterns[i]) ? (lane * 8 + i) * 2 | patterns[i] >> 31 : key;
#pragma unroll
    for (u32 distance = LANES / 2; distance > 0; distance /= 2) {
        key = smaller(key, __shfl_xor_sync(FULL_WARP, key, distance));
    }
    return (key & 1) << 31;
}

// Codes −HALF to HALF − 1: the first value of the largest magnitude gets the lowest.
template <i32 HALF>
TERCET_FN Decision quantize_extreme(const u32 (&patterns)[8], u32 largest) {
    u32 sign = first_sign<4>(patterns, [largest](u32 pattern) { return magnitude(pattern) == largest; });
    // Zeros count as +0 whatever their signs, so their scale is −0.
    f32 scale = float_of(largest | (largest != 0 ? sign : 0)) / (f32)-HALF;
    f32 inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
    Decision decision;
    decision.flushed = magnitude(bits_of(inverse)) >= INFINITE;
    decision.scale = decision.flushed ? -0.0f : scale;
    bool zeros = decision.scale == 0.0f;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        // x · inverse lies in −HALF..=HALF up to rounding, so the sum is positive.
        i32 stored = (i32)(float_of(patterns[i]) * inverse + ((f32)HALF + 0.5f));
        decision.codes.codes[i] = zeros ? 0 : (stored < 2 * HALF - 1 ? stored : 2 * HALF - 1) - HALF;
    }
    return decision;
}

// Codes 0 to MOST, from the first of the smallest values on.
template <i32 MOST>
TERCET_FN Decision quantize_minimum(const u32 (&patterns)[8]) {
    u32 lowest = ~0u, highest = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        lowest = smaller(lowest, ordered(patterns[i]));
        highest = larger(highest, ordered(patterns[i]));
    }
#pragma unroll
    for (u32 distance = 2; distance > 0; distance /= 2) {
        lowest = smaller(lowest, __shfl_xor_sync(FULL_WARP, lowest, distance));
        highest = larger(highest, __shfl_xor_sync(FULL_WARP, highest, distance));
    }
    // Of zeros, which are equal, the first counts.
    u32 zero = first_sign<4>(patterns, [](u32 pattern) { return magnitude(pattern) == 0; });
    u32 least = from_ordered(lowest);
    f32 min = float_of(magnitude(least) == 0 ? zero : least);
    f32 scale = (float_of(from_ordered(highest)) - min) / (f32)MOST;
    f32 inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
    Decision decision;
    decision.flushed = bits_of(inverse) >= INFINITE;
    decision.scale = decision.flushed ? 0.0f : scale;
    decision.min = decision.flushed ? 0.0f : min;
    // Codes under an infinite scale do not matter: it is refused.
    bool zeros = decision.scale == 0.0f || bits_of(scale) >= INFINITE;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        i32 code = zeros ? 0 : (i32)((float_of(patterns[i]) - min) * inverse + 0.5f);
        decision.codes.codes[i] = code < MOST ? code : MOST;
    }
    return decision;
}

// How the blocks of a format are quantized; a ternary one by any rule.
template <class Format>
struct Quantizer;

template <class Format>
struct AnyRule {
    static __device__ __forceinline__ Decision of(const u32 (&patterns)[8], u32 largest, u32 rule, bool least_squares, u32 *sorted) {
        return quantize_ternary<Format>(patterns, largest, rule, least_squares, sorted);
    }
};

template <>
struct Quantizer<Tq1_0> : AnyRule<Tq1_0> {};
template <>
struct Quantizer<Tq2_0> : AnyRule<Tq2_0> {};
template <>
struct Quantizer<Q2_0> : AnyRule<Q2_0> {};

#define TERCET_QUANTIZER(FORMAT, DECISION)                                                                                         \
    template <>                                                                                                                    \
    struct Quantizer<FORMAT> {                                                                                                     \
        static __device__ __forceinline__ Decision of(const u32 (&patterns)[8], u32 largest, u32, bool, u32 *) {                   \
            return DECISION;                                                                                                       \
        }                                                                                                                          \
    };

TERCET_QUANTIZER(Q8_0, quantize_q8_0(patterns, largest))
TERCET_QUANTIZER(Q4_0, quantize_extreme<8>(patterns, largest))
TERCET_QUANTIZER(Q4_1, quantize_minimum<15>(patterns))
TERCET_QUANTIZER(Q5_0, quantize_extreme<16>(patterns, largest))
TERCET_QUANTIZER(Q5_1, quantize_minimum<31>(patterns))

}  // namespace tercet
