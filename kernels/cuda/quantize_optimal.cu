// Codes and scales of groups by the ternary rule of least squared error, in one launch.
//
// Roofline: moves 5 bytes a value (f32) or 3 (halves) if a row stays in a cache, for about 20 instructions and then 10 in each pass of
// the search, of which a million normal values take two or three: instructions are the limit.

#include "tercet/device.cuh"
#include "tercet/quantize.cuh"

using namespace tercet;

// A block a group of at most 2¹⁶ values.
QUANTIZE(quantize_optimal_f32, F32, BlockTeam, TERNARY, true)
QUANTIZE(quantize_optimal_f16, F16, BlockTeam, TERNARY, true)
QUANTIZE(quantize_optimal_bf16, BF16, BlockTeam, TERNARY, true)
// A warp a group of at most 256 values.
QUANTIZE(quantize_short_optimal_f32, F32, WarpTeam, TERNARY, true)
QUANTIZE(quantize_short_optimal_f16, F16, WarpTeam, TERNARY, true)
QUANTIZE(quantize_short_optimal_bf16, BF16, WarpTeam, TERNARY, true)
