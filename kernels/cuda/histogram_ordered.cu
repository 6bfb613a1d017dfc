// Counts of floats by the top bits of their ordered patterns, with their exact extremes, up to the first that is not finite: what
// calibration chooses a range by. As core/src/quant/histogram.rs. One launch looks for that first one, the next counts.
//
// Roofline: both read every value once (4 or 2 bytes), about 4 and 12 instructions a value. Counting adds once for a stretch of equal
// buckets of a thread's 16 values, in shared memory, which takes 32 additions to as many banks at a time, and one after another those
// to the same counter: 16 M values of 64 MB that meet in one bucket in random order take 132 multiprocessors of 1.7 GHz about 75 µs, a
// memory of 3.3 TB/s 20 µs for each pass. Both hide behind the copy from the host (64 GB/s: 1 ms), which these values came by.

#include "tercet/device.cuh"
#include "tercet/stats.cuh"

using namespace tercet;

// What was found of a stream so far; all bytes 0 mean no values, and every field is a maximum. The engine reads it.
struct Found {
    // The complement of the first bad value's place in the stream; 0 for none.
    u64 not_bad;
    // The complement of the smallest counted value's key, and the largest one's key.
    u32 not_low, high;
    // The largest finite magnitude that was looked at.
    u32 largest;
    u32 unused;
};

// Buckets of each sign that a block counts by itself, from the largest magnitude's down: all of them up to 13 bits, and with 16 bits
// 32 octaves, which of most data is all but zeros. Those, with all else in their bucket, have the last counter; what lies between is
// rare, and added in global memory. One counter more than a multiple of 32 keeps the signs' counters in different banks.
const u32 WINDOW = 4096;

struct Table {
    u32 counts[2][WINDOW + 1];
};

// Looks at values, the first of which is number `first` of the stream; a block takes a piece of them at a time.
template <class Element>
TERCET_FN void find_in(const typename Element::Bits *values, u64 first, u64 count, u64 piece, Found *found) {
    for (u64 from = blockIdx.x * piece; from < count; from += gridDim.x * piece) {
        u64 to = count - from < piece ? count : from + piece;
        GroupStats<Largest> stats = group_stats<Element, BlockTeam, Largest>(values, from, to, false);
        if (threadIdx.x == 0) {
            if (stats.bad != NO_INDEX) atomicMax(&found->not_bad, ~(first + stats.bad));
            atomicMax(&found->largest, smaller(stats.extremes.largest(), INFINITE - 1));
        }
    }
}

// Counts the same values up to the first bad one of the stream: each in the bucket of its key >> shift.
template <class Element>
TERCET_FN void count_in(const typename Element::Bits *values, u64 first, u64 count, u64 piece, u32 shift, Found *found,
                        u32 *counts) {
    __shared__ Table table;
    u64 not_bad = found->not_bad, finite = count;
    if (not_bad != 0) {
        u64 before = ~not_bad > first ? ~not_bad - first : 0;
        finite = before < count ? before : count;
    }
    // The whole block has nothing to do.
    if (blockIdx.x * piece >= finite) return;
    u32 *slots = &table.counts[0][0];
    for (u32 slot = threadIdx.x; slot < 2 * (WINDOW + 1); slot += BLOCK) slots[slot] = 0;
    __syncthreads();
    u32 half = 1u << (31 - shift), top = found->largest >> shift;
    u32 lowest = top < WINDOW ? 0 : top - (WINDOW - 1);
    // The bucket of a sign and a magnitude.
    auto bucket_of = [&](u32 negative, u32 place) { return negative ? half - 1 - place : half + place; };
    auto add = [&](u32 prefix, u32 run) {
        u32 negative = prefix >> (31 - shift), place = prefix & (half - 1);
        // Places under the lowest wrap to beyond the window.
        u32 slot = place == 0 ? WINDOW : place - lowest;
        if (slot <= WINDOW) {
            atomicAdd(&table.counts[negative][slot], run);
        } else {
            atomicAdd(&counts[bucket_of(negative, place)], run);
        }
    };
    Extremes all;
    all.clear();
    for (u64 from = blockIdx.x * piece; from < finite; from += gridDim.x * piece) {
        u64 to = finite - from < piece ? finite : from + piece;
        walk<Element>(values, from, to, threadIdx.x, BLOCK, [&](const Tile<Element> &tile) {
            u32 prefix = tile.patterns[0] >> shift, run = 0;
#pragma unroll
            for (u32 i = 0; i < 16; i++) {
                all.add(tile.patterns[i]);
                if (i < tile.count) {
                    u32 next = tile.patterns[i] >> shift;
                    if (next != prefix) {
                        add(prefix, run);
                        prefix = next;
                        run = 0;
                    }
                    run++;
                }
            }
            add(prefix, run);
        });
    }
    __syncthreads();
    for (u32 slot = threadIdx.x; slot < 2 * (WINDOW + 1); slot += BLOCK) {
        if (slots[slot] == 0) continue;
        u32 negative = slot > WINDOW ? 1 : 0, place = slot - negative * (WINDOW + 1);
        atomicAdd(&counts[bucket_of(negative, place == WINDOW ? 0 : lowest + place)], slots[slot]);
    }
    Extremes extremes = BlockTeam::all(all);
    if (threadIdx.x == 0) {
        atomicMax(&found->not_low, ~ordered(extremes.low()));
        atomicMax(&found->high, ordered(extremes.high()));
    }
}

#define HISTOGRAM(SUFFIX, ELEMENT)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        histogram_find_##SUFFIX(const ELEMENT::Bits *values, u64 first, u64 count, u64 piece, Found *found) {                      \
        find_in<ELEMENT>(values, first, count, piece, found);                                                                      \
    }                                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) histogram_count_##SUFFIX(                                                    \
        const ELEMENT::Bits *values, u64 first, u64 count, u64 piece, u32 shift, Found *found, u32 *counts) {                      \
        count_in<ELEMENT>(values, first, count, piece, shift, found, counts);                                                      \
    }

HISTOGRAM(f32, F32)
HISTOGRAM(f16, F16)
HISTOGRAM(bf16, BF16)
