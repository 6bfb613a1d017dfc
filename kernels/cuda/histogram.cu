// Counts and exact sums of magnitudes by bit pattern: what the optimal ternary rule searches.
//
// Roofline: reads every value once (4 or 2 bytes), for about 8 instructions and three additions in shared memory: those are the limit
// where many values meet in one bin, memory where they spread.

#include "tercet/device.cuh"
#include "tercet/access.cuh"
#include "tercet/team.cuh"

using namespace tercet;

// As core's `MagnitudeBin`. The engine reads it.
struct Bin {
    u64 count, mantissas;
};

// Bins that a block keeps to itself. A mantissa is summed as two halves of 12 bits, so that additions of 32 bits, which hardware has
// in shared memory, hold 2²⁰ values; a piece has fewer.
const u32 OWN_BINS = 2048;

struct Table {
    u32 counts[OWN_BINS], low[OWN_BINS], high[OWN_BINS];
};

// Adds the magnitudes of begin..end that lie in first..last to their bins; a block takes a piece of them at a time, at most 2²⁰ − 1
// values.
template <class Element>
TERCET_FN void magnitudes(const typename Element::Bits *values, u64 begin, u64 end, u64 piece, u32 first, u32 last, u32 shift,
                          u32 bin_count, Bin *bins) {
    __shared__ Table table;
    bool own = bin_count <= OWN_BINS;
    u32 width = last > first ? last - first : 0;
    auto add = [&](u32 pattern) {
        // Patterns under the first wrap to beyond any width.
        u32 offset = magnitude(pattern) - first;
        if (offset >= width) return;
        u32 bin = offset >> shift, integer = mantissa(magnitude(pattern));
        if (own) {
            atomicAdd(&table.counts[bin], 1u);
            atomicAdd(&table.low[bin], integer & 0xFFF);
            atomicAdd(&table.high[bin], integer >> 12);
        } else {
            atomicAdd(&bins[bin].count, 1ull);
            atomicAdd(&bins[bin].mantissas, (u64)integer);
        }
    };
    for (u64 from = begin + blockIdx.x * piece; from < end; from += gridDim.x * piece) {
        u64 to = end - from < piece ? end : from + piece;
        for (u32 bin = threadIdx.x; own && bin < bin_count; bin += BLOCK) {
            table.counts[bin] = table.low[bin] = table.high[bin] = 0;
        }
        __syncthreads();
        walk<Element>(values, from, to, threadIdx.x, BLOCK, [&](const Tile<Element> &tile) {
#pragma unroll
            for (u32 i = 0; i < 16; i++) {
                if (i < tile.count) add(tile.patterns[i]);
            }
        });
        __syncthreads();
        for (u32 bin = threadIdx.x; own && bin < bin_count; bin += BLOCK) {
            if (table.counts[bin] == 0) continue;
            atomicAdd(&bins[bin].count, (u64)table.counts[bin]);
            atomicAdd(&bins[bin].mantissas, ((u64)table.high[bin] << 12) + table.low[bin]);
        }
        __syncthreads();
    }
}

#define MAGNITUDES(NAME, ELEMENT)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) NAME(const ELEMENT::Bits *values, u64 begin, u64 end, u64 piece, u32 first,  \
                                                           u32 last, u32 shift, u32 bin_count, Bin *bins) {                        \
        magnitudes<ELEMENT>(values, begin, end, piece, first, last, shift, bin_count, bins);                                       \
    }

MAGNITUDES(magnitudes_f32, F32)
MAGNITUDES(magnitudes_f16, F16)
MAGNITUDES(magnitudes_bf16, BF16)
