// Codes of a group by its plan. As core/src/scalar/ternary.rs and affine.rs.
#pragma once

#include "tercet/plan.cuh"

namespace tercet {

// What a team counted.
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
    Counts counts;
    Wide sum;
};

// Applied plans in memory; all bytes 0 mean nothing yet, and any number of blocks may add. The engine reads it.
struct AppliedRecord {
    u64 coded, clipped;
    u64 sum[LIMBS];
};

// Writes the codes of a tile.
template <class Element>
TERCET_FN void store_codes(i8 *codes, const Tile<Element> &tile, const i32 (&found)[16]) {
    const u32 EACH = Element::COUNT;
    if (tile.count == 1) {
        codes[tile.index] = (i8)found[0];
        return;
    }
#pragma unroll
    for (u32 vector = 0; vector < 16 / EACH; vector++) {
        if (vector * EACH >= tile.count) break;
        u32 words[EACH / 4];
#pragma unroll
        for (u32 i = 0; i < EACH / 4; i++) {
            const i32 *four = found + vector * EACH + 4 * i;
            words[i] = (four[0] & 0xFF) | (four[1] & 0xFF) << 8 | (four[2] & 0xFF) << 16 | (u32)four[3] << 24;
        }
        u64 at = tile.place(vector * EACH);
        if (EACH == 4) {
            *reinterpret_cast<u32 *>(codes + at) = words[0];
        } else {
            store8(codes + at, u32x2{words[0], words[EACH / 4 - 1]});
        }
    }
}

// sign(x) where |x| has at least the threshold's pattern, else 0.
TERCET_FN i32 ternary_code(u32 pattern, u32 threshold) {
    i32 sign = ((i32)pattern >> 31) | 1;
    return magnitude(pattern) >= threshold ? sign : 0;
}

template <class Element, class Team>
TERCET_FN Applied apply_ternary(const typename Element::Bits *values, u64 begin, u64 end, const Plan &plan, i8 *codes) {
    u32 threshold = plan.threshold;
    bool with_sum = plan.sum != 0;
    u32 coded = 0;
    ExactSum sum;
    sum.clear();
    walk<Element>(values, begin, end, Team::thread(), Team::SIZE, [&](const Tile<Element> &tile) {
        i32 found[16];
        u32 kept[16], largest = 0;
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            found[i] = ternary_code(tile.patterns[i], threshold);
            bool counts = found[i] != 0 && i < tile.count;
            coded += counts ? 1 : 0;
            kept[i] = counts ? magnitude(tile.patterns[i]) : 0;
            largest = larger(largest, kept[i]);
        }
        store_codes(codes, tile, found);
        if (with_sum) sum.add(kept, largest);
    });
    Applied applied;
    applied.counts = Team::all(Counts{coded, 0});
    if (with_sum) {
        applied.sum = Team::sum(sum);
    } else {
        applied.sum.clear();
    }
    return applied;
}

// A grid as `code` wants it.
struct Steps {
    f32 scale, below, above;
    i32 zero_point, low, high;

    TERCET_FN Steps of(const Plan &plan) {
        // One step beyond each end: far enough to tell what is clipped, near enough to be exact below.
        return Steps{plan.scale,      (f32)(plan.low - plan.zero_point - 1), (f32)(plan.high - plan.zero_point + 1),
                     plan.zero_point, plan.low,                               plan.high};
    }

    // The code before it is clipped. 1.5 · 2²³ + x lies where floats are the integers, so the addition rounds, half to even, and
    // the patterns count them.
    __device__ __forceinline__ i32 code(u32 pattern) const {
        const f32 SHIFT = 12582912.0f;
        f32 steps = float_of(pattern) / scale;
        steps = steps > below ? steps : below;
        steps = steps < above ? steps : above;
        return (i32)(bits_of(steps + SHIFT) - bits_of(SHIFT)) + zero_point;
    }
};

template <class Element, class Team>
TERCET_FN Applied apply_grid(const typename Element::Bits *values, u64 begin, u64 end, const Plan &plan, i8 *codes) {
    const Steps steps = Steps::of(plan);
    // A scale of 0 sends all to the zero point.
    bool flat = plan.scale == 0.0f;
    u32 coded = 0, clipped = 0;
    walk<Element>(values, begin, end, Team::thread(), Team::SIZE, [&](const Tile<Element> &tile) {
        i32 found[16];
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            i32 code = flat ? steps.zero_point : steps.code(tile.patterns[i]);
            found[i] = code < steps.low ? steps.low : code > steps.high ? steps.high : code;
            coded += found[i] != steps.zero_point && i < tile.count ? 1 : 0;
            clipped += found[i] != code && i < tile.count ? 1 : 0;
        }
        store_codes(codes, tile, found);
    });
    Applied applied;
    applied.counts = Team::all(Counts{coded, clipped});
    applied.sum.clear();
    return applied;
}

template <class Element, class Team>
TERCET_FN Applied apply_plan(const typename Element::Bits *values, u64 begin, u64 end, const Plan &plan, i8 *codes) {
    return plan.ternary ? apply_ternary<Element, Team>(values, begin, end, plan, codes)
                        : apply_grid<Element, Team>(values, begin, end, plan, codes);
}

}  // namespace tercet
