// Statistics of groups: extremes, the first value that is not finite, and, where it is asked for, the exact Σ|x|.
//
// Roofline: reads every value once (4 or 2 bytes) and writes 64 bytes a group. With the sum about 12 instructions a value, of which 6 are
// additions of floats and 4 the ALU's, on devices that compare three numbers at once (5 on others). An H200's multiprocessor issues 128 a
// clock, 64 of them to the ALU, while 18 bytes arrive: time for 28 and 14 a value of 4 bytes, for 14 and 7 a half. Memory is the limit.

#include "tercet/device.cuh"
#include "tercet/stats.cuh"

using namespace tercet;

// Adds a team's statistics of group `group` to its record.
TERCET_FN void add_to_record(const GroupStats<Extremes> &stats, StatsRecord *record, bool with_sum) {
    if (stats.bad != NO_INDEX) atomicMax(&record->not_bad, ~stats.bad);
    atomicMax(&record->not_low, ~ordered(stats.extremes.low()));
    atomicMax(&record->high, ordered(stats.extremes.high()));
    if (with_sum) stats.sum.add_to(record->sum);
}

// Of `groups` groups of `len` values, from group `first` on. `pieces` teams share a group, each a stretch of `piece` values; there
// is a record for each of these groups, zeros before.
template <class Element, class Team>
TERCET_FN void stats(const typename Element::Bits *values, u64 first, u64 groups, u64 len, u64 pieces, u64 piece, u32 with_sum,
                     StatsRecord *records) {
    for (u64 turn = Team::number(); turn < groups * pieces; turn += Team::count()) {
        u64 group = turn / pieces, from = turn % pieces * piece;
        u64 start = (first + group) * len, begin = start + from, end = start + (len - from < piece ? len : from + piece);
        GroupStats<Extremes> found = group_stats<Element, Team, Extremes>(values, begin, end, with_sum != 0);
        if (Team::thread() == 0) add_to_record(found, records + group, with_sum != 0);
    }
}

// Blocks that a multiprocessor has registers for; a macro, so that others can be tried.
#ifndef TERCET_STATS_BLOCKS
#define TERCET_STATS_BLOCKS 4
#endif

#define STATS(NAME, ELEMENT, TEAM)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256, TERCET_STATS_BLOCKS)                                                         \
        NAME(const ELEMENT::Bits *values, u64 first, u64 groups, u64 len, u64 pieces, u64 piece, u32 with_sum,                     \
             StatsRecord *records) {                                                                                               \
        stats<ELEMENT, TEAM>(values, first, groups, len, pieces, piece, with_sum, records);                                        \
    }

// A block a piece; for long groups.
STATS(stats_f32, F32, BlockTeam)
STATS(stats_f16, F16, BlockTeam)
STATS(stats_bf16, BF16, BlockTeam)
// A warp a piece; for short groups.
STATS(stats_short_f32, F32, WarpTeam)
STATS(stats_short_f16, F16, WarpTeam)
STATS(stats_short_bf16, BF16, WarpTeam)
