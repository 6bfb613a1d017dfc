// All of a group by one team: statistics, plan, codes, scale; and codes alone, by plans that were made before.
#pragma once

#include "tercet/apply.cuh"
#include "tercet/optimal_search.cuh"

namespace tercet {

// What happened to all groups; all bytes 0 before. The engine reads it.
struct ReportRecord {
    u64 zero, flushed, coded, clipped;
    // The complements of the first value that is not finite and of the first group whose zero point has no place to go; 0 for none.
    u64 not_bad, not_placed;
};

// What a thread counts of all its groups. A device holds fewer than 2³⁹ values, and at least 256 threads share them.
struct Tally {
    u32 coded, clipped, zero, flushed;

    __device__ __forceinline__ void add(const Counts &counts) {
        coded += counts.coded;
        clipped += counts.clipped;
    }
};

// Where results go; there may be no zero points. `before` groups of the tensor came earlier: its values and codes are those of a part
// that is on the device, all else is the whole tensor's.
struct Results {
    u64 before;
    f32 *scales;
    i8 *zero_points;
    ReportRecord *report;

    // Writes what a group needs beside its codes, and counts it.
    __device__ __forceinline__ void set(u64 group, f32 scale, i32 zero_point, u32 largest, Tally *tally) const {
        scales[before + group] = scale;
        if (zero_points != nullptr) {
            zero_points[before + group] = (i8)zero_point;
        } else if (zero_point != 0) {
            atomicMax(&report->not_placed, ~(before + group));
        }
        tally->zero += largest == 0 ? 1 : 0;
        tally->flushed += scale == 0.0f && largest != 0 ? 1 : 0;
    }

    // Counts what the threads of a warp have.
    __device__ __forceinline__ void add(const Tally &tally) const {
        u64 zero = warp_sum((u64)tally.zero), flushed = warp_sum((u64)tally.flushed);
        u64 coded = warp_sum((u64)tally.coded), clipped = warp_sum((u64)tally.clipped);
        if (threadIdx.x % WARP != 0) return;
        if (zero != 0) atomicAdd(&report->zero, zero);
        if (flushed != 0) atomicAdd(&report->flushed, flushed);
        if (coded != 0) atomicAdd(&report->coded, coded);
        if (clipped != 0) atomicAdd(&report->clipped, clipped);
    }
};

// Writes the magnitudes of begin..end, at most 256, and zeros after them, for a warp.
template <class Element>
TERCET_FN void read_patterns(const typename Element::Bits *values, u64 begin, u64 end, u32 *patterns) {
    for (u32 i = threadIdx.x % WARP; i < 256; i += WARP) {
        patterns[i] = begin + i < end ? magnitude(Element::widen(values[begin + i])) : 0;
    }
}

// The optimum's threshold, by a warp of at most 256 values; by a block of at most 2¹⁶.
template <class Element>
TERCET_FN u32 optimum(WarpTeam, const typename Element::Bits *values, u64 begin, u64 end, u32, f32) {
    __shared__ u32 patterns[BLOCK * 8];
    u32 *own = patterns + threadIdx.x / WARP * 256;
    read_patterns<Element>(values, begin, end, own);
    return optimal_threshold<256>(own);
}

template <class Element>
TERCET_FN u32 optimum(BlockTeam, const typename Element::Bits *values, u64 begin, u64 end, u32 largest, f32 mean) {
    return search_threshold<Element>(values, begin, end, largest, mean);
}

// `KIND`: see Method::of_kind. `OPTIMUM`: the rule is the optimal one, else it is another.
template <class Element, class Team, u32 KIND, bool OPTIMUM>
TERCET_FN void quantize(const typename Element::Bits *values, u64 groups, u64 len, const Method &unpacked, i8 *codes,
                        const Results &results) {
    const Method method = Method::of_kind<KIND>(unpacked);
    Tally tally = {};
    for (u64 group = Team::number(); group < groups; group += Team::count()) {
        u64 begin = group * len, end = begin + len;
        // A search begins at half the mean; a sort needs none.
        bool with_sum = OPTIMUM ? Team::SIZE > WARP : method.mean_of_all();
        // Only the affine grid asks for both ends.
        typedef typename Choose<KIND == AFFINE, Extremes, Largest>::Type Kept;
        GroupStats<Kept> stats = group_stats<Element, Team, Kept>(values, begin, end, with_sum);
        if (stats.bad != NO_INDEX) {
            if (Team::thread() == 0) atomicMax(&results.report->not_bad, ~(results.before * len + stats.bad));
            continue;
        }
        u32 low = stats.extremes.low(), high = stats.extremes.high(), largest = stats.extremes.largest();
        u32 threshold = NO_THRESHOLD;
        if (OPTIMUM) threshold = optimum<Element>(Team(), values, begin, end, largest, with_sum ? stats.sum.mean(len) : 0.0f);
        Plan plan = make_plan(method, low, high, stats.sum, len, threshold);
        Applied applied = apply_plan<Element, Team, KIND>(values, begin, end, method, plan, codes);
        tally.add(applied.counts);
        // A ternary scale may be a mean of what was coded.
        u32 coded = KIND == TERNARY ? Team::all(applied.counts).coded : 0;
        f32 scale = final_scale(method, plan, largest, stats.sum, len, applied.sum, coded);
        if (Team::thread() == 0) results.set(group, scale, plan.zero_point, largest, &tally);
    }
    results.add(tally);
}

// Codes by plans, from group `first` on; pieces as in `stats`. There is a plan for each of these groups, and a record, zeros before.
template <class Element, class Work>
TERCET_FN void apply(const typename Element::Bits *values, u64 first, u64 groups, u64 len, u64 pieces, u64 piece,
                     const Plan *plans, i8 *codes, AppliedRecord *records) {
    for (u64 turn = blockIdx.x; turn < groups * pieces; turn += gridDim.x) {
        u64 group = turn / pieces, from = turn % pieces * piece;
        u64 start = (first + group) * len, begin = start + from, end = start + (len - from < piece ? len : from + piece);
        Plan plan = plans[group];
        Applied applied = Work::template run<Element, BlockTeam>(values, begin, end, plan, codes);
        Counts counts = BlockTeam::all(applied.counts);
        if (threadIdx.x == 0) {
            AppliedRecord *record = records + group;
            if (counts.coded != 0) atomicAdd(&record->coded, (u64)counts.coded);
            if (counts.clipped != 0) atomicAdd(&record->clipped, (u64)counts.clipped);
            // Zeros where nothing was summed.
            applied.sum.add_to(record->sum);
        }
    }
}

}  // namespace tercet

#define QUANTIZE(NAME, ELEMENT, TEAM, KIND, OPTIMUM)                                                                               \
    extern "C" __global__ void __launch_bounds__(256, OPTIMUM ? 2 : KIND == TERNARY ? 3 : 4)                                       \
        NAME(const ELEMENT::Bits *values, u64 before, u64 groups, u64 len, u32 method, f32 grid_scale, u32 grid, i8 *codes,        \
             f32 *scales, i8 *zero_points, ReportRecord *report) {                                                                 \
        quantize<ELEMENT, TEAM, KIND, OPTIMUM>(values, groups, len, Method::unpack(method, grid_scale, grid), codes,               \
                                               Results{before, scales, zero_points, report});                                      \
    }

#define APPLY(NAME, ELEMENT, WORK, BLOCKS)                                                                                         \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS)                                                                      \
        NAME(const ELEMENT::Bits *values, u64 first, u64 groups, u64 len, u64 pieces, u64 piece, const Plan *plans, i8 *codes,     \
             AppliedRecord *records) {                                                                                             \
        apply<ELEMENT, WORK>(values, first, groups, len, pieces, piece, plans, codes, records);                                    \
    }

// All kernels of an element type but the optimal rule's: a block a group, a warp a group, and codes alone by a block a piece.
#define QUANTIZERS(SUFFIX, ELEMENT)                                                                                                \
    QUANTIZE(quantize_ternary_##SUFFIX, ELEMENT, BlockTeam, TERNARY, false)                                                        \
    QUANTIZE(quantize_symmetric_##SUFFIX, ELEMENT, BlockTeam, SYMMETRIC, false)                                                    \
    QUANTIZE(quantize_affine_##SUFFIX, ELEMENT, BlockTeam, AFFINE, false)                                                          \
    QUANTIZE(quantize_short_ternary_##SUFFIX, ELEMENT, WarpTeam, TERNARY, false)                                                   \
    QUANTIZE(quantize_short_symmetric_##SUFFIX, ELEMENT, WarpTeam, SYMMETRIC, false)                                               \
    QUANTIZE(quantize_short_affine_##SUFFIX, ELEMENT, WarpTeam, AFFINE, false)                                                     \
    APPLY(quantize_apply_ternary_##SUFFIX, ELEMENT, TernaryCodes, 6)                                                               \
    APPLY(quantize_apply_summed_##SUFFIX, ELEMENT, SummedCodes, 4)                                                                 \
    APPLY(quantize_apply_grid_##SUFFIX, ELEMENT, GridCodes, 4)
