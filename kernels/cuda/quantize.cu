// What quantizing long groups needs beside `stats_*` and `quantize_apply_*`: plans from statistics, and scales from what was coded.
//
// Roofline: a thread a group, 150 bytes and about 500 instructions each; groups are few where these run.

#include "tercet/device.cuh"
#include "tercet/quantize.cuh"

using namespace tercet;

TERCET_FN Wide wide_of(const u64 *limbs) {
    Wide wide;
#pragma unroll
    for (u32 i = 0; i < LIMBS; i++) wide.limbs[i] = limbs[i];
    return wide;
}

// Plans of groups from their records, a thread each, by any rule but the optimal one. Groups with a value that is not finite are
// reported, and get a plan that codes nothing.
extern "C" __global__ void __launch_bounds__(256)
    quantize_plan(const StatsRecord *records, u64 groups, u64 len, u32 method, f32 grid_scale, u32 grid, Plan *plans,
                  ReportRecord *report) {
    const Method how = Method::unpack(method, grid_scale, grid);
    for (u64 group = (u64)blockIdx.x * BLOCK + threadIdx.x; group < groups; group += (u64)gridDim.x * BLOCK) {
        const StatsRecord *record = records + group;
        if (record->not_bad != 0) {
            atomicMax(&report->not_bad, record->not_bad);
            plans[group] = Plan{NO_THRESHOLD, 0.0f, 0, -1, 1};
            continue;
        }
        u32 low = from_ordered(~record->not_low), high = from_ordered(record->high);
        plans[group] = make_plan(how, low, high, wide_of(record->sum), len, NO_THRESHOLD);
    }
}

// Scales of groups once their codes stand, a thread each.
extern "C" __global__ void __launch_bounds__(256)
    quantize_finish(const StatsRecord *stats, const AppliedRecord *records, const Plan *plans, u64 groups, u64 len, u32 method,
                    f32 grid_scale, u32 grid, f32 *scales, i8 *zero_points, ReportRecord *report) {
    const Method how = Method::unpack(method, grid_scale, grid);
    const Results results = {0, scales, zero_points, report};
    Tally tally = {};
    for (u64 group = (u64)blockIdx.x * BLOCK + threadIdx.x; group < groups; group += (u64)gridDim.x * BLOCK) {
        const AppliedRecord *record = records + group;
        if (stats[group].not_bad != 0) continue;
        Plan plan = plans[group];
        u32 low = from_ordered(~stats[group].not_low), high = from_ordered(stats[group].high);
        u32 largest = larger(magnitude(low), magnitude(high));
        f32 scale = final_scale(how, plan, largest, wide_of(stats[group].sum), len, wide_of(record->sum), record->coded);
        results.set(group, scale, plan.zero_point, largest, &tally);
        // A group may be too long for a thread's tally.
        if (record->coded != 0) atomicAdd(&report->coded, record->coded);
        if (record->clipped != 0) atomicAdd(&report->clipped, record->clipped);
    }
    results.add(tally);
}
