// Codes and scales of groups: ternary, int8, int4.
//
// `quantize_*` does all of a group in one launch: statistics, plan, codes, scale, by one team, so that a row comes from memory once and
// from a cache the second time. Long groups take four launches, the passes over values by as many blocks as there is room for:
// `stats_*`, `quantize_plan`, `quantize_apply_*`, `quantize_finish`.
//
// Roofline: `quantize_*` moves 5 bytes a value (f32) or 3 (f16, bf16), for about 20 instructions; `quantize_apply_*` the same. An H200 has time
// for 30 while 5 bytes move, 18 for 3: memory is the limit for f32, and nearly for halves.

#include "tercet/device.cuh"
#include "tercet/quantize.cuh"

using namespace tercet;

// A block a group; not the optimum.
QUANTIZE(quantize_f32, F32, BlockTeam, false)
QUANTIZE(quantize_f16, F16, BlockTeam, false)
QUANTIZE(quantize_bf16, BF16, BlockTeam, false)
// A warp a group of at most 256 values, any rule.
QUANTIZE(quantize_short_f32, F32, WarpTeam, true)
QUANTIZE(quantize_short_f16, F16, WarpTeam, true)
QUANTIZE(quantize_short_bf16, BF16, WarpTeam, true)

// A record's extremes as patterns.
TERCET_FN u32 from_ordered(u32 key) { return key >> 31 ? key & 0x7FFFFFFF : ~key; }

TERCET_FN Wide wide_of(const u64 *limbs) {
    Wide wide;
#pragma unroll
    for (u32 i = 0; i < LIMBS; i++) wide.limbs[i] = limbs[i];
    return wide;
}

// Plans of groups from their records, a thread each; `thresholds` are the optimum's, where that is the rule. Groups with a value that
// is not finite are reported, and get a plan that codes nothing.
extern "C" __global__ void __launch_bounds__(256)
    quantize_plan(const StatsRecord *records, u64 groups, u64 len, u32 method, f32 grid_scale, u32 grid, const u32 *thresholds, Plan *plans,
         ReportRecord *report) {
    const Method how = Method::unpack(method, grid_scale, grid);
    for (u64 group = (u64)blockIdx.x * BLOCK + threadIdx.x; group < groups; group += (u64)gridDim.x * BLOCK) {
        const StatsRecord *record = records + group;
        if (record->not_bad != 0) {
            atomicMax(&report->not_bad, record->not_bad);
            plans[group] = Plan{NO_THRESHOLD, 1, 0, 0.0f, 0, -1, 1};
            continue;
        }
        u32 threshold = thresholds == nullptr ? NO_THRESHOLD : thresholds[group];
        plans[group] = make_plan(how, from_ordered(~record->not_low), from_ordered(record->high), wide_of(record->sum), len, threshold);
    }
}

// Codes by plans, from group `first` on; pieces as in `stats`. There is a plan for each of these groups, and a record, zeros before.
template <class Element>
TERCET_FN void apply(const typename Element::Bits *values, u64 first, u64 groups, u64 len, u64 pieces, u64 piece, const Plan *plans, i8 *codes,
                     AppliedRecord *records) {
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

#define APPLY(NAME, ELEMENT)                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const ELEMENT::Bits *values, u64 first, u64 groups, u64 len, u64 pieces, u64 piece, const Plan *plans, i8 *codes,     \
             AppliedRecord *records) {                                                                                             \
        apply<ELEMENT>(values, first, groups, len, pieces, piece, plans, codes, records);                                          \
    }

APPLY(quantize_apply_f32, F32)
APPLY(quantize_apply_f16, F16)
APPLY(quantize_apply_bf16, BF16)

// Scales of groups once their codes stand, a thread each.
extern "C" __global__ void __launch_bounds__(256)
    quantize_finish(const StatsRecord *stats, const AppliedRecord *records, const Plan *plans, u64 groups, u64 len, u32 method, f32 grid_scale,
           u32 grid, f32 *scales, i8 *zero_points, ReportRecord *report) {
    const Method how = Method::unpack(method, grid_scale, grid);
    const Results results = {0, scales, zero_points, report};
    ReportRecord counts = {};
    for (u64 group = (u64)blockIdx.x * BLOCK + threadIdx.x; group < groups; group += (u64)gridDim.x * BLOCK) {
        const AppliedRecord *record = records + group;
        if (stats[group].not_bad != 0) continue;
        Plan plan = plans[group];
        u32 largest =
            larger(magnitude(from_ordered(~stats[group].not_low)), magnitude(from_ordered(stats[group].high)));
        f32 scale = final_scale(how, plan, largest, wide_of(stats[group].sum), len, wide_of(record->sum), record->coded);
        results.set(group, scale, plan.zero_point, largest, &counts);
        counts.coded += record->coded;
        counts.clipped += record->clipped;
    }
    results.add(counts);
}
