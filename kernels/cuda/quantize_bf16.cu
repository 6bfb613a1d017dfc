// Codes and scales of groups of bf16: ternary, int8, int4.
//
// `quantize_*` does all of a group in one launch: statistics, plan, codes, scale, by one team, so that a row comes from memory once and
// from a cache the second time. Long groups take four launches, the passes over values by as many blocks as there is room for:
// `stats_*`, `quantize_plan`, `quantize_apply_*`, `quantize_finish`. There is a kernel for each kind of method, since the
// registers of one for all would be those of the most demanding.
//
// Roofline: moves 3 bytes a value. A grid takes 4 instructions a value to find its scale and 14 for the codes, 3 and 7 of them the ALU's, and
// about 300 a warp for each group: 9 a value of a row of 1,024. One tile of a warp in 16 has a value beside a tie and is divided: 2 more.
// Ternary codes take 15, and 12 more for a mean. An H200 has time for 21, of which the ALU takes 11: both are near the limit.

#include "tercet/device.cuh"
#include "tercet/quantize.cuh"

using namespace tercet;

QUANTIZERS(bf16, BF16)
