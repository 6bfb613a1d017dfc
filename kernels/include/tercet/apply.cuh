// Codes of a group by its plan. As core/src/scalar/ternary.rs and affine.rs.
#pragma once

#include "tercet/plan.cuh"

namespace tercet {

// What a thread or a team counted.
struct Counts {
    u32 coded, clipped;

    __device__ __forceinline__ void merge(const Counts &other) {
        coded += other.coded;
        clipped += other.clipped;
    }

    __device__ __forceinline__ Counts exchange(u32 distance) const {
        return Counts{__shfl_xor_sync(FULL_WARP, coded, distance), __shfl_xor_sync(FULL_WARP, clipped, distance)};
    }
};

struct Applied {
    // Of this thread.
    Counts counts;
    // Of its team.
    Wide sum;
};

// Applied plans in memory; all bytes 0 mean nothing yet, and any number of blocks may add. The engine reads it.
struct AppliedRecord {
    u64 coded, clipped;
    u64 sum[LIMBS];
};

// The low bytes of a tile's codes, four a word.
TERCET_FN void pack_codes(const u32 (&found)[16], u32 (&words)[4]) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        const u32 *four = found + 4 * i;
        words[i] = byte_permute(byte_permute(four[0], four[1], 0x40), byte_permute(four[2], four[3], 0x40), 0x5410);
    }
}

// Writes the codes of a tile.
template <class Element>
TERCET_FN void store_codes(i8 *codes, const Tile<Element> &tile, const u32 (&words)[4]) {
    const u32 EACH = Element::COUNT;
    if (tile.count == 1) {
        codes[tile.index] = (i8)words[0];
        return;
    }
#pragma unroll
    for (u32 vector = 0; vector < 16 / EACH; vector++) {
        if (vector * EACH >= tile.count) break;
        u64 at = tile.place(vector * EACH);
        if (EACH == 4) {
            *reinterpret_cast<u32 *>(codes + at) = words[vector];
        } else {
            store8(codes + at, u32x2{words[vector * 2 % 4], words[vector * 2 % 4 + 1]});
        }
    }
}

// sign(x) where |x| has at least the threshold's pattern, else 0.
TERCET_FN u32 ternary_code(u32 pattern, u32 threshold) {
    u32 sign = (u32)((i32)pattern >> 31) | 1;
    return magnitude(pattern) >= threshold ? sign : 0;
}

// With `with_sum` the coded magnitudes are summed.
//
// One loop for both: with a loop for each, ptxas of CUDA 13.0 had lanes that had left the one without a sum set registers of the whole warp to its
// zeros while others, still inside, read an address from one of them (seen on an H200).
template <class Element, class Team>
TERCET_FN Applied apply_ternary(const typename Element::Bits *values, u64 begin, u64 end, const Plan &plan, i8 *codes, bool with_sum) {
    u32 threshold = plan.threshold;
    u32 coded = 0;
    ExactSum sum;
    sum.clear();
    walk<Element>(values, begin, end, Team::thread(), Team::SIZE, [&](const Tile<Element> &tile) {
        u32 found[16], words[4], count = 0;
#pragma unroll
        for (u32 i = 0; i < 16; i++) found[i] = ternary_code(tile.patterns[i], threshold);
        pack_codes(found, words);
        store_codes(codes, tile, words);
        // ±1 are odd. Of a tile with fewer values all 16 are copies, equally many of each.
#pragma unroll
        for (u32 i = 0; i < 4; i++) count = dp4a(words[i] & 0x01010101, 0x01010101u, count);
        coded += count * tile.count / 16;
        if (with_sum) {
            u32 kept[16], largest = 0;
#pragma unroll
            for (u32 i = 0; i < 16; i++) {
                kept[i] = found[i] != 0 ? magnitude(tile.patterns[i]) : 0;
                largest = larger(largest, kept[i]);
            }
            sum.add(kept, largest, tile.count);
        }
    });
    Applied applied;
    applied.counts = Counts{coded, 0};
    if (with_sum) {
        applied.sum = Team::sum(sum);
    } else {
        applied.sum.clear();
    }
    return applied;
}

// A grid as codes are found by it. 1.5 · 2²³ + x lies where floats are the integers, so the addition rounds, half to even, and the
// patterns count them.
//
// No division: with inverse = fl(1/scale) a value x is about q = fl(x · inverse) steps from zero. Let s = fl(x / scale), whose nearest
// integer is the code's. Three roundings lie between q and s, each off by 2⁻²⁴ of the result at most, so where |q| < 256 they are within
// 256 · 3.1 · 2⁻²⁴ < 2⁻¹⁴ of each other (an underflow's 2⁻¹⁵⁰ has room in that). A reciprocal that is subnormal is off by 2⁻²² of itself at
// most, but then the scale exceeds 2¹²⁶, and |q| is below 4. If now n is an integer of the grid and |q − n| < ½ − 2⁻¹⁴, then |q| < 256 and
// |s − n| < ½: the nearest integer to s is n, and nothing is clipped. The rest are values near a tie, beyond the grid, or not finite, and all
// of a scale whose reciprocal is infinite, for which q is infinite or NaN: their tile is divided.
struct Steps {
    f32 scale, inverse;
    // The grid's ends in steps from zero, and 1.5 · 2²³ + zero_point.
    f32 least, most, shift;
    i32 zero_point;

    static __device__ __forceinline__ f32 middle() { return 12582912.0f; }

    TERCET_FN Steps of(const Plan &plan) {
        Steps steps = {plan.scale, 1.0f / plan.scale, (f32)(plan.low - plan.zero_point), (f32)(plan.high - plan.zero_point),
                       middle() + (f32)plan.zero_point, plan.zero_point};
        // A scale of 0 sends all to the zero point.
        if (plan.scale == 0.0f) steps.inverse = steps.least = steps.most = 0.0f;
        return steps;
    }

    // What has the code in its low byte, where it is sure: then the highest bit of `sure` stays, else it goes. It has to stay for all of a
    // tile, or all are divided.
    __device__ __forceinline__ u32 near_code(u32 pattern, u32 *sure) const {
        const f32 BOUND = 0.5f - 1.0f / 16384;
        f32 steps = float_of(pattern) * inverse;
        f32 shifted = fminf(fmaxf(steps, least), most) + shift;
        // Exact where it is below the bound; a rounding does not bring it there. NaN has no sign here.
        *sure &= bits_of(fabsf(steps - (shifted - shift)) - BOUND);
        return bits_of(shifted);
    }

    // The code by division, before it is clipped.
    __device__ __forceinline__ i32 code(u32 pattern) const {
        if (scale == 0.0f) return zero_point;
        // One step beyond each end: far enough to tell what is clipped, near enough to be exact below.
        f32 below = least - 1.0f, above = most + 1.0f;
        f32 steps = float_of(pattern) / scale;
        steps = steps > below ? steps : below;
        steps = steps < above ? steps : above;
        return (i32)(bits_of(steps + middle()) - bits_of(middle())) + zero_point;
    }
};

template <class Element, class Team>
TERCET_FN Applied apply_grid(const typename Element::Bits *values, u64 begin, u64 end, const Plan &plan, i8 *codes) {
    const Steps steps = Steps::of(plan);
    // The zero point in each byte.
    const u32 zeros = ((u32)plan.zero_point & 0xFF) * 0x01010101;
    u32 coded = 0, clipped = 0;
    walk<Element>(values, begin, end, Team::thread(), Team::SIZE, [&](const Tile<Element> &tile) {
        u32 found[16], words[4], count = 0, sure = ~0u;
#pragma unroll
        for (u32 i = 0; i < 16; i++) found[i] = steps.near_code(tile.patterns[i], &sure);
        if (sure >> 31 == 0) {
#pragma unroll
            for (u32 i = 0; i < 16; i++) {
                i32 code = steps.code(tile.patterns[i]);
                i32 kept = code < plan.low ? plan.low : code > plan.high ? plan.high : code;
                clipped += kept != code && i < tile.count ? 1 : 0;
                found[i] = (u32)kept;
            }
        }
        pack_codes(found, words);
        store_codes(codes, tile, words);
        // A carry tells of seven bits that are not all 0. Of a tile with fewer values all 16 are copies, equally many of each.
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 other = words[i] ^ zeros;
            count = dp4a((((other & 0x7F7F7F7F) + 0x7F7F7F7F) | other) & 0x80808080, 0x01010101u, count);
        }
        coded += count / 128 * tile.count / 16;
    });
    Applied applied;
    applied.counts = Counts{coded, clipped};
    applied.sum.clear();
    return applied;
}

// What a kernel makes of plans: ternary codes, those with the sum of what they stand for, codes of a grid.
struct TernaryCodes {
    template <class Element, class Team>
    TERCET_FN Applied run(const typename Element::Bits *values, u64 begin, u64 end, const Plan &plan, i8 *codes) {
        return apply_ternary<Element, Team>(values, begin, end, plan, codes, false);
    }
};

struct SummedCodes {
    template <class Element, class Team>
    TERCET_FN Applied run(const typename Element::Bits *values, u64 begin, u64 end, const Plan &plan, i8 *codes) {
        return apply_ternary<Element, Team>(values, begin, end, plan, codes, true);
    }
};

struct GridCodes {
    template <class Element, class Team>
    TERCET_FN Applied run(const typename Element::Bits *values, u64 begin, u64 end, const Plan &plan, i8 *codes) {
        return apply_grid<Element, Team>(values, begin, end, plan, codes);
    }
};

// All of a group by a method of this kind.
template <class Element, class Team, u32 KIND>
TERCET_FN Applied apply_plan(const typename Element::Bits *values, u64 begin, u64 end, const Method &method, const Plan &plan,
                             i8 *codes) {
    if (KIND != TERNARY) return apply_grid<Element, Team>(values, begin, end, plan, codes);
    return apply_ternary<Element, Team>(values, begin, end, plan, codes, method.mean_of_coded());
}

}  // namespace tercet
