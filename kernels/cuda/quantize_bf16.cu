// Codes and scales of groups of bf16: ternary, int8, int4.
//
// `quantize_*` does all of a group in one launch: statistics, plan, codes, scale, by one team, so that a row comes from memory once and
// from a cache the second time. Long groups take four launches, the passes over values by as many blocks as there is room for:
// `stats_*`, `quantize_plan`, `quantize_apply_*`, `quantize_finish`.
//
// Roofline: moves 3 bytes a value, for about 20 instructions, or 30 where a mean decides. An H200 has time for 18 while they move: both are near the limit.

#include "tercet/device.cuh"
#include "tercet/quantize.cuh"

using namespace tercet;

// A block a group, by any rule but the optimal one.
QUANTIZE(quantize_bf16, BF16, BlockTeam, false)
// A warp a group; of at most 256 values where the rule is the optimal one.
QUANTIZE(quantize_short_bf16, BF16, WarpTeam, true)
// Codes alone.
APPLY(quantize_apply_bf16, BF16)
