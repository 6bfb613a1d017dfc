// Codes and scales of GGUF's blocks, eight values a lane. As core/src/block: ternary.rs, q8_0.rs, nibbles.rs.
#pragma once

#include "tercet/blocks.cuh"
#include "tercet/optimal.cuh"
#include "tercet/stats.cuh"

namespace tercet {

// What a lane decided with the others of its block. `flushed`: too small for the reciprocal of its scale, so what zeros become.
struct Decision {
    Codes codes;
    f32 scale;
    // 0 for formats that have none.
    f32 min = 0.0f;
    bool flushed;
};

// What a format's quantizer looks at of a block's values: the largest magnitude, that of each sign, or both ends too.
enum Need { LARGEST, SIGNS, ENDS };

// The extremes of a block's values from those of its lanes, as far as they are needed.
template <u32 LANES, Need NEED>
TERCET_FN void merge_lanes(Extremes &extremes) {
    if (NEED == LARGEST) {
        extremes.positive = (i32)extremes.largest();
        extremes.top = 0;
    }
#pragma unroll
    for (u32 distance = LANES / 2; distance > 0; distance /= 2) {
        i32 other = __shfl_xor_sync(FULL_WARP, extremes.positive, distance);
        extremes.positive = other > extremes.positive ? other : extremes.positive;
        if (NEED != LARGEST) extremes.top = larger(extremes.top, __shfl_xor_sync(FULL_WARP, extremes.top, distance));
        if (NEED == ENDS) extremes.bottom = smaller(extremes.bottom, __shfl_xor_sync(FULL_WARP, extremes.bottom, distance));
    }
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

// Codes plus what is stored for 0, a byte each; a sum of bytes, none of which is negative.
template <class Format>
TERCET_FN Codes stored(const i32 (&codes)[8]) {
    Codes out;
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
        const i32 *four = codes + 4 * i;
        out.words[i] = (u32)four[0] + ((u32)four[1] << 8) + ((u32)four[2] << 16) + ((u32)four[3] << 24) + Format::OFFSET * 0x01010101u;
    }
    return out;
}

// The ternary rules that decide by means or by the optimum.
template <class Format, bool BEST>
TERCET_FN Decision quantize_ternary(const u32 (&patterns)[8], u32 largest, u32 rule, bool least_squares, u32 *sorted) {
    u32 magnitudes[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) magnitudes[i] = magnitude(patterns[i]);
    // All lanes take part, also where their blocks are missing, since rule and scale are the same for all.
    f32 mean = !BEST && (rule == ABS_MEAN || rule == TWN) ? block_mean<Format::LANES>(magnitudes, largest, Format::LEN) : 0.0f;
    u32 threshold;
    if (BEST) {
        u32 *own = sorted + threadIdx.x / WARP * SHARE;
#pragma unroll
        for (u32 i = 0; i < 8; i++) own[threadIdx.x % WARP * 8 + i] = magnitudes[i];
        threshold = optimal_threshold<Format::LEN>(own);
    } else {
        threshold = threshold_of(rule, largest, mean);
    }
    Decision decision;
    i32 codes[8];
    u32 count = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        bool coded = magnitudes[i] >= threshold;
        codes[i] = coded ? ((i32)patterns[i] >> 31) | 1 : 0;
        magnitudes[i] = coded ? magnitudes[i] : 0;
        count += coded ? 1 : 0;
    }
    if (BEST || rule == TWN || least_squares) {
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
        for (u32 i = 0; i < 8; i++) codes[i] = 0;
    }
    decision.codes = stored<Format>(codes);
    return decision;
}

// The reciprocal of a scale, and 0, which makes all codes 0, of the scale 0 and of one that is too small for it.
TERCET_FN f32 inverse_of(f32 scale, bool &flushed) {
    f32 inverse = 1.0f / scale;
    bool none = magnitude(bits_of(inverse)) >= INFINITE;
    flushed = none && scale != 0.0f;
    return none ? 0.0f : inverse;
}

// x rounded half away from zero, for |x| < 2²²: what is added is the float below a half, so that only a sum with a half or more reaches the
// next integer.
TERCET_FN i32 half_away(f32 x) { return (i32)(x + float_of(0x3EFFFFFF | (bits_of(x) & 0x80000000))); }

// The nearest multiples of a scale that no value is farther from 0 than 127 times. Of ternary codes too: those of at least half the scale.
template <class Format>
TERCET_FN Decision quantize_symmetric(const u32 (&patterns)[8], f32 scale) {
    Decision decision;
    f32 inverse = inverse_of(scale, decision.flushed);
    decision.scale = decision.flushed ? 0.0f : scale;
    i32 codes[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) codes[i] = half_away(float_of(patterns[i]) * inverse);
    decision.codes = stored<Format>(codes);
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
template <class Format>
TERCET_FN Decision quantize_extreme(const u32 (&patterns)[8], const Extremes &extremes) {
    const i32 HALF = Format::OFFSET;
    u32 largest = extremes.largest();
    bool negative = extremes.top >> 31 && magnitude(extremes.top) == largest;
    bool both = negative && extremes.positive == (i32)largest;
    if (__any_sync(FULL_WARP, both)) {
        u32 sign = first_sign<Format::LANES>(patterns, [largest](u32 pattern) { return magnitude(pattern) == largest; });
        negative = both ? sign != 0 : negative;
    }
    // Zeros count as +0 whatever their signs, so their scale is −0.
    f32 scale = float_of(largest | (negative && largest != 0 ? 0x80000000 : 0)) / (f32)-HALF;
    Decision decision;
    f32 inverse = inverse_of(scale, decision.flushed);
    decision.scale = decision.flushed ? -0.0f : scale;
    i32 codes[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        // x · inverse lies in −HALF..=HALF up to rounding, so the sum is positive.
        i32 up = (i32)(float_of(patterns[i]) * inverse + ((f32)HALF + 0.5f));
        codes[i] = (up < 2 * HALF - 1 ? up : 2 * HALF - 1) - HALF;
    }
    decision.codes = stored<Format>(codes);
    return decision;
}

// Codes 0 to MOST, from the first of the smallest values on.
template <class Format, i32 MOST>
TERCET_FN Decision quantize_minimum(const u32 (&patterns)[8], const Extremes &extremes) {
    u32 least = extremes.low();
    // Of zeros, which are equal, the first counts.
    if (__any_sync(FULL_WARP, magnitude(least) == 0)) {
        u32 zero = first_sign<Format::LANES>(patterns, [](u32 pattern) { return magnitude(pattern) == 0; });
        least = magnitude(least) == 0 ? zero : least;
    }
    f32 min = float_of(least);
    f32 scale = (float_of(extremes.high()) - min) / (f32)MOST;
    Decision decision;
    f32 inverse = inverse_of(scale, decision.flushed);
    decision.scale = decision.flushed ? 0.0f : scale;
    decision.min = decision.flushed ? 0.0f : min;
    // Under an infinite scale, which is refused, differences may be infinite: from 0 they are not.
    f32 from = inverse == 0.0f ? 0.0f : min;
    i32 codes[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        i32 code = (i32)((float_of(patterns[i]) - from) * inverse + 0.5f);
        codes[i] = code < MOST ? code : MOST;
    }
    decision.codes = stored<Format>(codes);
    return decision;
}

// How a lane's eight values become codes, once its block's extremes are known. `rule` and what follows are for ternary formats.
enum Way { PLAIN, MEANS, BEST };

template <class Format, Way WAY>
struct Quantizer {
    static const Need NEED = LARGEST;
    static __device__ __forceinline__ Decision of(const u32 (&patterns)[8], const Extremes &extremes, u32 rule, bool least_squares,
                                                  u32 *sorted) {
        u32 largest = extremes.largest();
        if (WAY == PLAIN) return quantize_symmetric<Format>(patterns, float_of(largest));
        return quantize_ternary<Format, WAY == BEST>(patterns, largest, rule, least_squares, sorted);
    }
};

#define TERCET_QUANTIZER(FORMAT, NEEDED, DECISION)                                                                                         \
    template <>                                                                                                                    \
    struct Quantizer<FORMAT, PLAIN> {                                                                                              \
        static const Need NEED = NEEDED;                                                                                           \
        static __device__ __forceinline__ Decision of(const u32 (&patterns)[8], const Extremes &extremes, u32, bool, u32 *) {      \
            return DECISION;                                                                                                       \
        }                                                                                                                          \
    };

TERCET_QUANTIZER(Q8_0, LARGEST, quantize_symmetric<Q8_0>(patterns, float_of(extremes.largest()) / 127.0f))
TERCET_QUANTIZER(Q4_0, SIGNS, quantize_extreme<Q4_0>(patterns, extremes))
TERCET_QUANTIZER(Q4_1, ENDS, (quantize_minimum<Q4_1, 15>(patterns, extremes)))
TERCET_QUANTIZER(Q5_0, SIGNS, quantize_extreme<Q5_0>(patterns, extremes))
TERCET_QUANTIZER(Q5_1, ENDS, (quantize_minimum<Q5_1, 31>(patterns, extremes)))

}  // namespace tercet
