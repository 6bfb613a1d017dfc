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

// Where results go; there may be no zero points. `before` groups of the tensor came earlier: its values and codes are those of a part
// that is on the device, all else is the whole tensor's.
struct Results {
    u64 before;
    f32 *scales;
    i8 *zero_points;
    ReportRecord *report;

    // Writes what a group needs beside its codes, and counts it.
    __device__ __forceinline__ void set(u64 group, f32 scale, i32 zero_point, u32 largest, ReportRecord *counts) const {
        scales[before + group] = scale;
        if (zero_points != nullptr) {
            zero_points[before + group] = (i8)zero_point;
        } else if (zero_point != 0) {
            atomicMax(&report->not_placed, ~(before + group));
        }
        counts->zero += largest == 0 ? 1 : 0;
        counts->flushed += scale == 0.0f && largest != 0 ? 1 : 0;
    }

    __device__ __forceinline__ void add(const ReportRecord &counts) const {
        if (counts.zero != 0) atomicAdd(&report->zero, counts.zero);
        if (counts.flushed != 0) atomicAdd(&report->flushed, counts.flushed);
        if (counts.coded != 0) atomicAdd(&report->coded, counts.coded);
        if (counts.clipped != 0) atomicAdd(&report->clipped, counts.clipped);
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

// `OPTIMUM`: the method is the optimal rule, or may be.
template <class Element, class Team, bool OPTIMUM>
TERCET_FN void quantize(const typename Element::Bits *values, u64 groups, u64 len, const Method &method, i8 *codes,
                        const Results &results) {
    ReportRecord counts = {};
    for (u64 group = Team::number(); group < groups; group += Team::count()) {
        u64 begin = group * len, end = begin + len;
        bool optimal = OPTIMUM && method.kind == TERNARY && method.rule == OPTIMAL;
        // A search begins at half the mean; a sort needs none.
        bool with_sum = method.mean_of_all() || (optimal && Team::SIZE > WARP);
        GroupStats stats = group_stats<Element, Team>(values, begin, end, with_sum);
        if (stats.extremes.bad != NO_INDEX) {
            if (Team::thread() == 0) atomicMax(&results.report->not_bad, ~(results.before * len + stats.extremes.bad));
            continue;
        }
        u32 low = stats.extremes.low(), high = stats.extremes.high(), largest = stats.extremes.largest();
        u32 threshold = NO_THRESHOLD;
        if (optimal) threshold = optimum<Element>(Team(), values, begin, end, largest, with_sum ? stats.sum.mean(len) : 0.0f);
        Plan plan = make_plan(method, low, high, stats.sum, len, threshold);
        Applied applied = apply_plan<Element, Team>(values, begin, end, plan, codes);
        f32 scale = final_scale(method, plan, largest, stats.sum, len, applied.sum, applied.counts.coded);
        if (Team::thread() == 0) {
            results.set(group, scale, plan.zero_point, largest, &counts);
            counts.coded += applied.counts.coded;
            counts.clipped += applied.counts.clipped;
        }
    }
    if (Team::thread() == 0) results.add(counts);
}

// Codes by plans, from group `first` on; pieces as in `stats`. There is a plan for each of these groups, and a record, zeros before.
template <class Element>
TERCET_FN void apply(const typename Element::Bits *values, u64 first, u64 groups, u64 len, u64 pieces, u64 piece,
                     const Plan *plans, i8 *codes, AppliedRecord *records) {
    for (u64 turn = blockIdx.x; turn < groups * pieces; turn += gridDim.x) {
        u64 group = turn / pieces, from = turn % pieces * piece;
        u64 start = (first + group) * len, begin = start + from, end = start + (len - from < piece ? len : from + piece);
        Plan plan = plans[group];
        Applied applied = apply_plan<Element, BlockTeam>(values, begin, end, plan, codes);
        if (threadIdx.x == 0) {
            AppliedRecord *record = records + group;
            if (applied.counts.coded != 0) atomicAdd(&record->coded, (u64)applied.counts.coded);
            if (applied.counts.clipped != 0) atomicAdd(&record->clipped, (u64)applied.counts.clipped);
            if (plan.ternary && plan.sum) applied.sum.add_to(record->sum);
        }
    }
}

}  // namespace tercet

#define QUANTIZE(NAME, ELEMENT, TEAM, OPTIMUM)                                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const ELEMENT::Bits *values, u64 before, u64 groups, u64 len, u32 method, f32 grid_scale, u32 grid, i8 *codes,        \
             f32 *scales, i8 *zero_points, ReportRecord *report) {                                                                 \
        quantize<ELEMENT, TEAM, OPTIMUM>(values, groups, len, Method::unpack(method, grid_scale, grid), codes,                     \
                                         Results{before, scales, zero_points, report});                                            \
    }

#define APPLY(NAME, ELEMENT)                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const ELEMENT::Bits *values, u64 first, u64 groups, u64 len, u64 pieces, u64 piece, const Plan *plans, i8 *codes,     \
             AppliedRecord *records) {                                                                                             \
        apply<ELEMENT>(values, first, groups, len, pieces, piece, plans, codes, records);                                          \
    }
