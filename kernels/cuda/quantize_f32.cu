// Codes and scales of groups of f32: ternary, int8, int4.
//
// `quantize_*` does all of a group in one launch: statistics, plan, codes, scale, by one team, so that a row comes from memory once and
// from a cache the second time. Long groups take four launches, the passes over values by as many blocks as there is room for:
// `stats_*`, `quantize_plan`, `quantize_apply_*`, `quantize_finish`.
//
// Roofline: moves 5 bytes a value, for about 20 instructions, or 30 where a mean decides. An H200 has time for 30 while they move: memory is the limit.

#include "tercet/device.cuh"
#include "tercet/quantize.cuh"

using namespace tercet;

// A block a group, by any rule but the optimal one.
QUANTIZE(quantize_f32, F32, BlockTeam, false)
// A warp a group; of at most 256 values where the rule is the optimal one.
QUANTIZE(quantize_short_f32, F32, WarpTeam, true)
// Codes alone.
APPLY(quantize_apply_f32, F32)
