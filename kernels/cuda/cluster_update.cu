// Centroids from sums and counts: rounded means, sums on a sphere, and running sums that fade. Exact.
//
// Roofline: reads 8 bytes a coordinate of k·d and does a 64-bit division each; next to an assignment it takes no time.

#include "tercet/cluster.cuh"

using namespace tercet;

// The first empty cluster, as k less its index, so that 0 is none.
TERCET_FN void note_empty(u64 *result, u32 clusters, u32 cluster) { atomicMax(result + EMPTY, (u64)(clusters - cluster)); }

// sum / count, half away from zero, where the count is positive.
extern "C" __global__ void __launch_bounds__(256) cluster_means(const i64 *sums, const u64 *counts, u32 clusters, u32 dims,
                                                                i8 *centroids, u32 stride, u64 *result) {
    u64 all = (u64)clusters * dims;
    for (u64 cell = (u64)blockIdx.x * 256 + threadIdx.x; cell < all; cell += (u64)gridDim.x * 256) {
        u32 cluster = (u32)(cell / dims), at = (u32)(cell % dims);
        u64 count = counts[cluster];
        if (count == 0) {
            if (at == 0) note_empty(result, clusters, cluster);
            continue;
        }
        i64 sum = sums[cell];
        u64 magnitude = sum < 0 ? (u64)0 - (u64)sum : (u64)sum;
        u64 whole = magnitude / count, rest = magnitude - whole * count;
        // The rest is below the count, so it is at least half of it where its double is: compared without doubling.
        i32 mean = (i32)(whole + (rest >= count - rest ? 1 : 0));
        centroids[(u64)cluster * stride + at] = (i8)(sum < 0 ? -mean : mean);
    }
}

// An integer of 128 bits.
struct Long {
    u64 high, low;
};

TERCET_FN Long times(u64 a, u64 b) { return {__umul64hi(a, b), a * b}; }
// For products below 2^128.
TERCET_FN Long times(Long a, u64 b) { return {a.high * b + __umul64hi(a.low, b), a.low * b}; }
TERCET_FN Long plus(Long a, Long b) {
    u64 low = a.low + b.low;
    return {a.high + b.high + (low < a.low ? 1 : 0), low};
}
TERCET_FN bool at_most(Long a, Long b) { return a.high < b.high || (a.high == b.high && a.low <= b.low); }

// The sum scaled to the length R of the sphere, R² = numerator / denominator: R · s / ‖sum‖, half away from zero, clipped to ±127.
// A block a cluster.
//
// The code of a coordinate is the largest c with c − 1/2 ≤ R · |s| / ‖sum‖, which squared is (2c − 1)² · ‖sum‖² · denominator ≤
// 4 · s² · numerator. |s| is at most 2^40, the numerator below 2^44 and the denominator at most 2^14, and ‖sum‖² is at most
// 43,690 · 2^80: both sides are below 2^127.
extern "C" __global__ void __launch_bounds__(256) cluster_sphere(const i64 *sums, const u64 *counts, u32 clusters, u32 dims,
                                                                 i8 *centroids, u32 stride, u64 numerator, u64 denominator,
                                                                 u64 *result) {
    __shared__ Long parts[256];
    const u32 cluster = blockIdx.x;
    if (counts[cluster] == 0) {
        if (threadIdx.x == 0) note_empty(result, clusters, cluster);
        return;
    }
    const i64 *sum = sums + (u64)cluster * dims;
    Long length = {0, 0};
    for (u32 at = threadIdx.x; at < dims; at += 256) {
        u64 magnitude = sum[at] < 0 ? (u64)0 - (u64)sum[at] : (u64)sum[at];
        length = plus(length, times(magnitude, magnitude));
    }
    parts[threadIdx.x] = length;
    __syncthreads();
    for (u32 half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] = plus(parts[threadIdx.x], parts[threadIdx.x + half]);
        __syncthreads();
    }
    length = parts[0];
    // A sum of zeros leaves the centroid as it is.
    if (length.high == 0 && length.low == 0) return;
    const Long unit = times(length, denominator);
    for (u32 at = threadIdx.x; at < dims; at += 256) {
        u64 magnitude = sum[at] < 0 ? (u64)0 - (u64)sum[at] : (u64)sum[at];
        const Long square = times(times(magnitude, magnitude), 4 * numerator);
        i32 code = 0;
#pragma unroll
        for (i32 step = 64; step > 0; step /= 2) {
            u64 odd = (u64)(2 * (code + step) - 1);
            if (at_most(times(unit, odd * odd), square)) code += step;
        }
        centroids[(u64)cluster * stride + at] = (i8)(sum[at] < 0 ? -code : code);
    }
}

// Halves counts, and sums with them so that means stay, while a count is `cap` or more. A block a cluster.
extern "C" __global__ void __launch_bounds__(256) cluster_fade(i64 *sums, u64 *counts, u32 dims, u64 cap) {
    const u32 cluster = blockIdx.x;
    const u64 before = counts[cluster];
    u64 after = before;
    for (u32 at = threadIdx.x; at < dims; at += 256) {
        i64 sum = sums[(u64)cluster * dims + at];
        u64 count = before;
        for (; count >= cap; count /= 2) {
            // At most 2^28 points of magnitude 128 by half of their count: below 2^63.
            i64 scaled = sum * (i64)(count / 2);
            u64 magnitude = (scaled < 0 ? (u64)0 - (u64)scaled : (u64)scaled) + count / 2;
            i64 halved = (i64)(magnitude / count);
            sum = scaled < 0 ? -halved : halved;
        }
        sums[(u64)cluster * dims + at] = sum;
    }
    while (after >= cap) after /= 2;
    // Every thread has read the count.
    __syncthreads();
    if (threadIdx.x == 0) counts[cluster] = after;
}

// The lowest empty cluster from `first` on.
extern "C" __global__ void __launch_bounds__(256) cluster_next_empty(const u64 *counts, u32 clusters, u32 first, u64 *result) {
    for (u64 cluster = first + (u64)blockIdx.x * 256 + threadIdx.x; cluster < clusters; cluster += (u64)gridDim.x * 256) {
        if (counts[cluster] == 0) note_empty(result, clusters, (u32)cluster);
    }
}
