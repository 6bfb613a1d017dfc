// The k-th largest of keys, and what reaches it: one block a query.
//
// Roofline: latencies and instructions of one multiprocessor. A block loads up to 16,384 keys once, from the second cache, and keeps them in
// registers over four passes of eight bits each. A pass is 14 instructions a key, of which one is an atomic in shared memory (equal digits
// of a warp are one), then two barriers and the sum over 256 digits by one warp, some 400 clocks: with the launch's own time some 4 us for
// the 4,096 keys of most samples, 2 us more for each 8,192 after them. Beyond 16,384 keys are loaded in each pass, sixteen at a time.

#include "tercet/device.cuh"
#include "tercet/search.cuh"

using namespace tercet;

const u32 THREADS = 1024;
const u32 DIGITS = 256, PASSES = 4;
// Digits of a lane of the warp that adds them up.
const u32 LANE_DIGITS = DIGITS / WARP;
// Keys that a thread keeps, or loads at a time.
const u32 HELD = 16;

struct Keys {
    const u32 *keys;
    __device__ __forceinline__ u32 operator[](u32 index) const { return keys[index]; }
};

struct CandidateKeys {
    const u64 *candidates;
    __device__ __forceinline__ u32 operator[](u32 index) const { return (u32)(candidates[index] >> 32); }
};

// Some of `count` keys: those of this thread from the number `first` on, of as many threads in turn. The loads of all of them are under way
// together.
template <class List>
TERCET_FN void hold(u32 (&held)[HELD], const List &list, u32 first, u32 count) {
#pragma unroll
    for (u32 i = 0; i < HELD; i++) {
        u32 at = first + i * THREADS + threadIdx.x;
        held[i] = at < count ? list[at] : 0;
    }
}

// Calls `each` with every key of these that there is, and its number. Whole turns that there are not are skipped by all threads.
template <class Each>
TERCET_FN void each_held(const u32 (&held)[HELD], u32 first, u32 count, Each each) {
#pragma unroll
    for (u32 i = 0; i < HELD; i++) {
        if (first + i * THREADS >= count) break;
        u32 at = first + i * THREADS + threadIdx.x;
        if (at < count) each(held[i], at);
    }
}

// Calls `each` with every key and its number: first those that are held, then the others.
template <class List, class Each>
TERCET_FN void each_key(const u32 (&held)[HELD], const List &list, u32 count, Each each) {
    each_held(held, 0, count, each);
#pragma unroll 1
    for (u32 first = HELD * THREADS; first < count; first += HELD * THREADS) {
        u32 more[HELD];
        hold(more, list, first, count);
        each_held(more, first, count, each);
    }
}

// The k-th largest of `count` keys less `slack`, digit by digit from the top, in every thread of the block; 0 where there are fewer.
template <class List>
TERCET_FN u32 bar_of(const u32 (&held)[HELD], const List &list, u32 count, u32 k, u32 slack) {
    // A histogram and a choice of each pass, so that none waits until the one before is read.
    alignas(16) __shared__ u32 histograms[PASSES][DIGITS];
    __shared__ u32 chosen[PASSES], left[PASSES];
    if (k == 0 || k > count) return 0;
    for (u32 at = threadIdx.x; at < PASSES * DIGITS; at += THREADS) histograms[at / DIGITS][at % DIGITS] = 0;
    __syncthreads();
    u32 prefix = 0, mask = 0;
    // One copy of the code: what runs once waits for its instructions longer than for its data.
#pragma unroll 1
    for (u32 pass = 0; pass < PASSES; pass++) {
        const u32 shift = 8 * (PASSES - 1 - pass);
        u32 *const histogram = histograms[pass];
        each_key(held, list, count, [&](u32 key, u32) {
            if ((key & mask) == prefix) atomicAdd(histogram + (key >> shift & (DIGITS - 1)), 1u);
        });
        __syncthreads();
        if (threadIdx.x < WARP) {
            u32 counts[LANE_DIGITS], sum = 0;
#pragma unroll
            for (u32 i = 0; i < LANE_DIGITS; i += 4) {
                u32x4 four = load16(histogram + threadIdx.x * LANE_DIGITS + i);
                counts[i] = four.x, counts[i + 1] = four.y, counts[i + 2] = four.z, counts[i + 3] = four.w;
                sum += four.x + four.y + four.z + four.w;
            }
            // Keys with these digits or larger ones.
            u32 reach = sum;
#pragma unroll
            for (u32 step = 1; step < WARP; step *= 2) {
                u32 other = __shfl_down_sync(FULL_WARP, reach, step);
                if (threadIdx.x + step < WARP) reach += other;
            }
            // Of one lane alone.
            u32 above = reach - sum;
            if (above < k && k <= reach) {
                u32 digit = 0;
#pragma unroll
                for (u32 i = LANE_DIGITS; i-- > 0;) {
                    // Digits are passed from the largest on as long as all keys that have them are among the k.
                    bool passed = above + counts[i] < k && digit == 0;
                    if (passed) {
                        above += counts[i];
                    } else if (digit == 0) {
                        digit = i + 1;
                    }
                }
                chosen[pass] = threadIdx.x * LANE_DIGITS + digit - 1;
                left[pass] = k - above;
            }
        }
        __syncthreads();
        prefix |= chosen[pass] << shift;
        mask |= (DIGITS - 1) << shift;
        k = left[pass];
    }
    return prefix > slack ? prefix - slack : 0;
}

// The bar that rows must reach to be among the best `k`, by the keys of some of them.
extern "C" __global__ void __launch_bounds__(1024) search_bar(const u32 *keys, u32 count, u32 k, u32 slack, u32 *bars) {
    Keys list = {keys + (u64)blockIdx.x * count};
    u32 held[HELD];
    hold(held, list, 0, count);
    u32 bar = bar_of(held, list, count, k, slack);
    if (threadIdx.x == 0) bars[blockIdx.x] = bar;
}

// Raises the bar of each query that more than `capacity` rows have reached, by the keys of those that were kept, and lets their count begin
// anew. No row reaches the bar of another query: it needs no further scan.
extern "C" __global__ void __launch_bounds__(1024)
    search_tighten(const u64 *candidates, u32 *counts, u32 capacity, u32 k, u32 slack, u32 *bars) {
    u32 query = blockIdx.x, bar = ~0u;
    bool over = counts[query] > capacity;
    if (over) {
        CandidateKeys list = {candidates + (u64)query * capacity};
        u32 held[HELD];
        hold(held, list, 0, capacity);
        bar = bar_of(held, list, capacity, k, slack);
    }
    // All have read the count.
    __syncthreads();
    if (threadIdx.x == 0) {
        if (over) counts[query] = 0;
        // What was kept reached the old one, except for the slack.
        bars[query] = bar > bars[query] ? bar : bars[query];
    }
}

// Keeps of a query's candidates those that may be among its best `k`: their rows go to `rows[query * room ..]`, in no order, with zeros
// up to `room`; `kept` counts them, also those without room. Where a scan found more than `capacity`, none.
extern "C" __global__ void __launch_bounds__(1024)
    search_keep(const u64 *candidates, const u32 *counts, u32 capacity, u32 k, u32 slack, u32 *rows, u32 room, u32 *kept) {
    __shared__ u32 taken;
    u32 query = blockIdx.x, count = counts[query];
    if (count > capacity) count = 0;
    CandidateKeys list = {candidates + (u64)query * capacity};
    u32 held[HELD];
    hold(held, list, 0, count);
    if (threadIdx.x == 0) taken = 0;
    u32 bar = bar_of(held, list, count, k, slack);
    // Where there is no bar nothing has waited for the 0.
    __syncthreads();
    each_key(held, list, count, [&](u32 key, u32 at) {
        if (key < bar) return;
        u32 place = atomicAdd(&taken, 1u);
        if (place < room) rows[(u64)query * room + place] = (u32)list.candidates[at];
    });
    __syncthreads();
    for (u32 at = taken + threadIdx.x; at < room; at += THREADS) rows[(u64)query * room + at] = 0;
    if (threadIdx.x == 0) kept[query] = taken;
}
