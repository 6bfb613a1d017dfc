// Counts of floats by the top bits of their ordered patterns, with their exact extremes: what calibration chooses a range by. As
// core/src/quant/histogram.rs. All values are counted as if they were finite; where one is not, the engine counts those before the first
// such again.
//
// Roofline: reads every value once (4 or 2 bytes), for about 13 instructions, 8 of them the ALU pipe's, and one addition of 1 in shared
// memory, which takes 32 of them to as many banks at a time: memory is the limit where f32 values spread over buckets.

#include "tercet/device.cuh"
#include "tercet/stats.cuh"

using namespace tercet;

// What was found of a stream so far; all bytes 0 mean no values, and every field is a maximum. The engine reads it.
struct Found {
    // The complement of the first bad value's place in the stream; 0 for none.
    u64 not_bad;
    // The complement of the smallest value's key, and the largest one's key, where none is bad.
    u32 not_low, high;
};

// Buckets of each sign that a block counts by itself, from a little above the largest magnitude of a sample down: all of them up to 13
// bits, and with 16 bits 32 octaves, two of them above, which of most data is all but zeros. Those, with all else in their bucket, have a
// counter of their own; what lies outside is rare, and added in global memory. The last counter takes it meanwhile, and is not looked at.
// The signs' counters lie in different banks.
const u32 WINDOW = 4096, ABOVE = 256;
const u32 ZERO = WINDOW, OUTSIDE = WINDOW + 1;

struct Table {
    u32 counts[2][WINDOW + 2];
};

// Counts values, the first of which is number `first` of the stream, each in the bucket of its key >> shift; a block takes a piece of
// them at a time.
template <class Element>
TERCET_FN void count_in(const typename Element::Bits *values, u64 first, u64 count, u64 piece, u32 shift, Found *found,
                        u32 *counts) {
    __shared__ Table table;
    __shared__ u32 sampled;
    u64 begin = blockIdx.x * piece;
    // The whole block has nothing to do.
    if (begin >= count) return;
    u32 *slots = &table.counts[0][0];
    for (u32 slot = threadIdx.x; slot < 2 * (WINDOW + 2); slot += BLOCK) slots[slot] = 0;
    if (threadIdx.x == 0) sampled = 0;
    __syncthreads();
    u64 share = count - begin < piece ? count - begin : piece;
    u32 sample = magnitude(Element::widen(values[begin + share * threadIdx.x / BLOCK]));
    // One that is not finite would leave the others below the window.
    sample = warp_max(sample < INFINITE ? sample : 0);
    if (threadIdx.x % WARP == 0) atomicMax(&sampled, sample);
    __syncthreads();
    u32 half = 1u << (31 - shift), top = (sampled >> shift) + ABOVE;
    u32 lowest = top < WINDOW ? 0 : top - (WINDOW - 1);
    // The bucket of a sign and a magnitude.
    auto bucket_of = [&](u32 negative, u32 place) { return negative ? half - 1 - place : half + place; };
    // Of patterns with their signs.
    auto slot_of = [&](u32 pattern) {
        u32 place = pattern >> shift & (half - 1);
        // Places under the lowest wrap to beyond the window.
        return place == 0 ? ZERO : smaller(place - lowest, OUTSIDE);
    };
    auto count_slot = [&](u32 pattern, u32 slot) { atomicAdd(slots + (slot + (pattern >> 31) * (WINDOW + 2)), 1u); };
    auto count_outside = [&](u32 pattern) {
        u32 place = magnitude(pattern) >> shift;
        if (place != 0 && (place < lowest || place - lowest >= WINDOW)) atomicAdd(&counts[bucket_of(pattern >> 31, place)], 1u);
    };
    Extremes all;
    all.clear();
    First bad = {NO_INDEX};
    for (u64 from = begin; from < count; from += gridDim.x * piece) {
        u64 to = count - from < piece ? count : from + piece;
        walk<Element>(values, from, to, threadIdx.x, BLOCK, [&](const Tile<Element> &tile) {
            u32 farthest = 0;
#pragma unroll
            for (u32 i = 0; i < 16; i++) all.add(tile.patterns[i]);
            if (tile.count == 16) {
#pragma unroll
                for (u32 i = 0; i < 16; i++) {
                    u32 slot = slot_of(tile.patterns[i]);
                    farthest = larger(farthest, slot);
                    count_slot(tile.patterns[i], slot);
                }
                if (farthest == OUTSIDE) {
#pragma unroll
                    for (u32 i = 0; i < 16; i++) count_outside(tile.patterns[i]);
                }
            } else {
                // At the ends.
#pragma unroll
                for (u32 i = 0; i < Tile<Element>::EACH; i++) {
                    if (i >= tile.count) break;
                    count_slot(tile.patterns[i], slot_of(tile.patterns[i]));
                    count_outside(tile.patterns[i]);
                }
            }
            if (all.largest() >= INFINITE) {
#pragma unroll
                for (u32 i = 0; i < 16; i++) {
                    const bool found = i < tile.count && magnitude(tile.patterns[i]) >= INFINITE;
                    if (found) bad.merge(First{tile.place(i)});
                }
            }
        });
    }
    __syncthreads();
    for (u32 slot = threadIdx.x; slot < 2 * (WINDOW + 2); slot += BLOCK) {
        u32 negative = slot >= WINDOW + 2 ? 1 : 0, place = slot - negative * (WINDOW + 2);
        if (slots[slot] == 0 || place == OUTSIDE) continue;
        atomicAdd(&counts[bucket_of(negative, place == ZERO ? 0 : lowest + place)], slots[slot]);
    }
    Extremes extremes = BlockTeam::all(all);
    bad = BlockTeam::all(bad);
    if (threadIdx.x == 0) {
        if (bad.index != NO_INDEX) atomicMax(&found->not_bad, ~(first + bad.index));
        atomicMax(&found->not_low, ~ordered(extremes.low()));
        atomicMax(&found->high, ordered(extremes.high()));
    }
}

#define HISTOGRAM(NAME, ELEMENT)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256, 4) NAME(const ELEMENT::Bits *values, u64 first, u64 count, u64 piece,           \
                                                           u32 shift, Found *found, u32 *counts) {                                 \
        count_in<ELEMENT>(values, first, count, piece, shift, found, counts);                                                      \
    }

HISTOGRAM(histogram_f32, F32)
HISTOGRAM(histogram_f16, F16)
HISTOGRAM(histogram_bf16, BF16)
