// The k-th largest of keys, and what reaches it: one block a query.
//
// Roofline: keys are read five times, but they are the 65,536 of a sample or the candidates of a scan and lie in the second cache: a
// few microseconds, bound by latencies.
#include "tercet/search.cuh"

constexpr u32 DIGITS = 256;

// The key at `at` of a list.
struct Keys {
    const u32 *keys;
    __device__ u32 at(u32 index) const { return keys[index]; }
};
struct CandidateKeys {
    const Candidate *candidates;
    __device__ u32 at(u32 index) const { return candidates[index].key; }
};

// The k-th largest of `count` keys, for k from 1 to `count`: digit by digit, from the top. Every thread of the block has it.
template <typename List>
__device__ u32 kth_largest(List list, u32 count, u32 k) {
    __shared__ u32 histogram[DIGITS];
    __shared__ u32 chosen, left;
    u32 prefix = 0, mask = 0;
    for (u32 shift = 32; shift > 0;) {
        shift -= 8;
        for (u32 digit = threadIdx.x; digit < DIGITS; digit += blockDim.x) {
            histogram[digit] = 0;
        }
        __syncthreads();
        for (u32 at = threadIdx.x; at < count; at += blockDim.x) {
            u32 key = list.at(at);
            if ((key & mask) == prefix) {
                atomicAdd(histogram + (key >> shift & (DIGITS - 1)), 1u);
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 digit = DIGITS - 1, above = 0;
            while (above + histogram[digit] < k) {
                above += histogram[digit];
                digit--;
            }
            chosen = digit;
            left = k - above;
        }
        __syncthreads();
        prefix |= chosen << shift;
        mask |= 0xFFu << shift;
        k = left;
        // Before thread 0 writes them again.
        __syncthreads();
    }
    return prefix;
}

// Writes the bar that rows must reach to be among the best `k`, by the keys of some of them: `slack` below the k-th best of these, 0
// where they are fewer. Block q does query q.
extern "C" __global__ void search_bar(const u32 *keys, u32 count, u32 k, u32 slack, u32 *bars) {
    u32 bar = 0;
    if (k > 0 && k <= count) {
        u32 kth = kth_largest(Keys{keys + (u64)blockIdx.x * count}, count, k);
        bar = kth > slack ? kth - slack : 0;
    }
    if (threadIdx.x == 0) {
        bars[blockIdx.x] = bar;
    }
}

// Keeps of a query's candidates those that may be among its best `k`: their rows go to `rows[query * room ..]`, in no order, and
// `kept` counts them, also those without room. Where a scan found more than `capacity`, `kept` is its count, and rows are left open.
extern "C" __global__ void search_keep(const Candidate *candidates, const u32 *counts, u32 capacity, u32 k, u32 slack, u32 *rows, u32 room,
                                       u32 *kept) {
    u32 query = blockIdx.x;
    u32 count = counts[query];
    if (count > capacity) {
        if (threadIdx.x == 0) {
            kept[query] = count;
        }
        return;
    }
    const Candidate *list = candidates + (u64)query * capacity;
    u32 bar = 0;
    if (k > 0 && k <= count) {
        u32 kth = kth_largest(CandidateKeys{list}, count, k);
        bar = kth > slack ? kth - slack : 0;
    }
    __shared__ u32 total;
    if (threadIdx.x == 0) {
        total = 0;
    }
    __syncthreads();
    for (u32 at = threadIdx.x; at < count; at += blockDim.x) {
        if (list[at].key >= bar) {
            u32 place = atomicAdd(&total, 1u);
            if (place < room) {
                rows[(u64)query * room + place] = list[at].row;
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        kept[query] = total;
    }
}
