// The k-th largest of keys, and what reaches it: one block a query.
//
// Roofline: keys are read five times, but they are the tens of thousands of a sample or the candidates of a scan and lie in the second
// cache: a few microseconds, of latencies.

#include "tercet/device.cuh"
#include "tercet/search.cuh"

using namespace tercet;

const u32 DIGITS = 256;

struct Keys {
    const u32 *keys;
    __device__ __forceinline__ u32 operator[](u32 index) const { return keys[index]; }
};

struct CandidateKeys {
    const u64 *candidates;
    __device__ __forceinline__ u32 operator[](u32 index) const { return (u32)(candidates[index] >> 32); }
};

// The k-th largest of `count` keys less `slack`, digit by digit from the top, in every thread of the block; 0 where there are fewer.
template <class List>
TERCET_FN u32 bar_of(List list, u32 count, u32 k, u32 slack) {
    __shared__ u32 histogram[DIGITS];
    __shared__ u32 chosen, left;
    if (k == 0 || k > count) return 0;
    u32 prefix = 0, mask = 0;
    for (i32 shift = 24; shift >= 0; shift -= 8) {
        for (u32 digit = threadIdx.x; digit < DIGITS; digit += blockDim.x) histogram[digit] = 0;
        __syncthreads();
        for (u32 at = threadIdx.x; at < count; at += blockDim.x) {
            u32 key = list[at];
            if ((key & mask) == prefix) atomicAdd(histogram + (key >> shift & (DIGITS - 1)), 1u);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 digit = DIGITS - 1, above = 0;
            while (above + histogram[digit] < k) above += histogram[digit--];
            chosen = digit;
            left = k - above;
        }
        __syncthreads();
        prefix |= chosen << shift;
        mask |= (DIGITS - 1) << shift;
        k = left;
        // Before thread 0 writes them again.
        __syncthreads();
    }
    return prefix > slack ? prefix - slack : 0;
}

// The bar that rows must reach to be among the best `k`, by the keys of some of them.
extern "C" __global__ void __launch_bounds__(1024) search_bar(const u32 *keys, u32 count, u32 k, u32 slack, u32 *bars) {
    u32 bar = bar_of(Keys{keys + (u64)blockIdx.x * count}, count, k, slack);
    if (threadIdx.x == 0) bars[blockIdx.x] = bar;
}

// Keeps of a query's candidates those that may be among its best `k`: their rows go to `rows[query * room ..]`, in no order; `kept`,
// which is 0 before, counts them, also those without room. Where a scan found more than `capacity`, `kept` is its count.
extern "C" __global__ void __launch_bounds__(1024)
    search_keep(const u64 *candidates, const u32 *counts, u32 capacity, u32 k, u32 slack, u32 *rows, u32 room, u32 *kept) {
    u32 query = blockIdx.x, count = counts[query];
    if (count > capacity) {
        if (threadIdx.x == 0) kept[query] = count;
        return;
    }
    const u64 *list = candidates + (u64)query * capacity;
    u32 bar = bar_of(CandidateKeys{list}, count, k, slack);
    for (u32 at = threadIdx.x; at < count; at += blockDim.x) {
        if ((u32)(list[at] >> 32) >= bar) {
            u32 place = atomicAdd(kept + query, 1u);
            if (place < room) rows[(u64)query * room + place] = (u32)list[at];
        }
    }
}
