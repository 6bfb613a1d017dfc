// From a group's statistics to what becomes of its values, and from what became of them to its scale. As core/src/quant:
// threshold.rs, grid.rs, driver.rs.
#pragma once

#include "tercet/stats.cuh"

namespace tercet {

enum Kind { TERNARY = 0, SYMMETRIC = 1, AFFINE = 2, FIXED = 3 };
enum Rule { ABS_MAX = 0, ABS_MEAN = 1, TWN = 2, OPTIMAL = 3 };

// Sends every value to 0.
const u32 NO_THRESHOLD = ~0u;

// How to quantize every group, as the engine packs it: kind, rule and whether the scale is the least-squares one, a byte each; a
// grid's zero point, low and high, a byte each (a symmetric limit stands in high).
struct Method {
    u32 kind, rule;
    bool least_squares;
    f32 scale;
    i32 zero_point, low, high;

    TERCET_FN Method unpack(u32 method, f32 scale, u32 grid) {
        Method unpacked;
        unpacked.kind = method & 0xFF;
        unpacked.rule = method >> 8 & 0xFF;
        unpacked.least_squares = (method >> 16 & 0xFF) != 0;
        unpacked.scale = scale;
        unpacked.zero_point = (i8)(grid & 0xFF);
        unpacked.low = (i8)(grid >> 8 & 0xFF);
        unpacked.high = (i8)(grid >> 16 & 0xFF);
        return unpacked;
    }

    // The same of a kernel that is compiled for some kinds: one of them, or where KIND is AFFINE that or a given grid.
    template <u32 KIND>
    TERCET_FN Method of_kind(const Method &method) {
        Method same = method;
        same.kind = KIND == AFFINE && method.kind == FIXED ? (u32)FIXED : KIND;
        return same;
    }

    // Whether the mean of all magnitudes decides something, and whether that of the coded ones is the scale.
    __device__ __forceinline__ bool mean_of_all() const { return kind == TERNARY && (rule == ABS_MEAN || rule == TWN); }
    __device__ __forceinline__ bool mean_of_coded() const {
        return kind == TERNARY && (least_squares || rule == TWN || rule == OPTIMAL);
    }
};

// What to do with a group. The engine reads and writes it.
struct Plan {
    // A ternary plan's; the rest is a grid's.
    u32 threshold;
    f32 scale;
    i32 zero_point, low, high;
};

// The first pattern of a finite magnitude that `coded` accepts; infinity's when there is none. `coded` never falls as |x|
// grows. The answer is sought within 4 patterns of the estimate, and by bisection of all where it is not there.
template <class Coded>
TERCET_FN u32 first_coded(u32 estimate, Coded coded) {
    auto accepts = [&](u32 pattern) { return pattern >= INFINITE || coded(float_of(pattern)); };
    u32 low = estimate < 4 ? 0 : estimate - 4, high = estimate + 4;
    if (accepts(low)) {
        if (low == 0) return 0;
        low = 0;
    }
    if (!accepts(high)) high = INFINITE;
    if (accepts(low)) return low;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (accepts(middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high;
}

// The smallest pattern that a rule sends to ±1, by max|x| and mean|x|; the optimum's is found elsewhere.
TERCET_FN u32 threshold_of(u32 rule, u32 largest, f32 mean) {
    if (largest == 0) return NO_THRESHOLD;
    if (rule == TWN) return magnitude(bits_of(0.7f * mean)) + 1;
    f32 scale = rule == ABS_MAX ? float_of(largest) : mean;
    u32 pattern = bits_of(scale);
    if (pattern == 0) return NO_THRESHOLD;
    f32 inverse = 1.0f / scale;
    // Where the reciprocal overflows, scale and half of it are subnormal, and a subnormal's pattern is its integer.
    if (bits_of(inverse) == INFINITE) return rule == ABS_MAX ? (pattern + 1) / 2 : pattern / 2 + 1;
    u32 estimate = bits_of(scale * 0.5f);
    if (rule == ABS_MAX) return first_coded(estimate, [=](f32 x) { return x * inverse >= 0.5f; });
    return first_coded(estimate, [=](f32 x) { return x * inverse > 0.5f; });
}

// x rounded to the nearest integer, ties to even; larger than 2²³ as it is.
TERCET_FN f32 half_even(f32 x) {
    const f32 WHOLE = 8388608.0f;
    u32 pattern = bits_of(x), size = magnitude(pattern);
    if (size >= bits_of(WHOLE)) return x;
    f32 rounded = (float_of(size) + WHOLE) - WHOLE;
    return float_of(bits_of(rounded) | (pattern & 0x80000000));
}

// An integral x as an i8, saturated; not NaN.
TERCET_FN i32 saturate_i8(f32 x) { return x <= -128.0f ? -128 : x >= 127.0f ? 127 : (i32)x; }

// The int8 grid over min..max, widened to hold 0, as ONNX's DynamicQuantizeLinear has it.
TERCET_FN Plan affine_grid(f32 least, f32 greatest) {
    f32 low = least < 0.0f ? least : 0.0f, high = greatest > 0.0f ? greatest : 0.0f;
    f32 width = high - low;
    f32 scale = bits_of(width) < INFINITE ? width / 255.0f : high / 255.0f - low / 255.0f;
    i32 zero_point = scale > 0.0f ? saturate_i8(half_even(-128.0f - low / scale)) : 0;
    return Plan{NO_THRESHOLD, scale, zero_point, -128, 127};
}

// The plan of a group of `count` finite values; `threshold` is the optimum's, where that is the rule.
TERCET_FN Plan make_plan(const Method &method, u32 low, u32 high, const Wide &sum, u64 count, u32 threshold) {
    u32 largest = larger(magnitude(low), magnitude(high));
    if (method.kind == TERNARY) {
        if (method.rule != OPTIMAL) {
            f32 mean = method.mean_of_all() ? sum.mean(count) : 0.0f;
            threshold = threshold_of(method.rule, largest, mean);
        }
        return Plan{threshold, 0.0f, 0, -1, 1};
    }
    if (method.kind == SYMMETRIC) {
        return Plan{NO_THRESHOLD, float_of(largest) / (f32)method.high, 0, -method.high, method.high};
    }
    if (method.kind == AFFINE) return affine_grid(float_of(low), float_of(high));
    return Plan{NO_THRESHOLD, method.scale, method.zero_point, method.low, method.high};
}

// A group's scale once its codes stand.
TERCET_FN f32 final_scale(const Method &method, const Plan &plan, u32 largest, const Wide &sum, u64 count, const Wide &coded_sum,
                          u64 coded) {
    if (method.kind != TERNARY) return plan.scale;
    if (coded == 0) return 0.0f;
    bool of_coded = method.mean_of_coded();
    if (!of_coded && method.rule != ABS_MEAN) return float_of(largest);
    Wide whole;
#pragma unroll
    for (u32 i = 0; i < LIMBS; i++) whole.limbs[i] = of_coded ? coded_sum.limbs[i] : sum.limbs[i];
    return whole.mean(of_coded ? coded : count);
}

}  // namespace tercet
