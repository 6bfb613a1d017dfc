// What clustering's kernels share: rows of bytes, the order of centroids, and what a pass finds.
//
// Rows begin every `stride` bytes, a multiple of 16, and end in zeros, which change no product. As core/src/scalar/cluster.
#pragma once

#include "tercet/device.cuh"

namespace tercet {

// A label that stands for none.
const u32 UNLABELLED = 0xFFFFFFFFu;

// Where passes leave what they find, all of it 0 before: the inertia, how many labels changed, `k` less the lowest empty cluster,
// and one number more.
enum { INERTIA = 0, CHANGED = 1, EMPTY = 2, FOUND = 3 };

// A centroid's score and label as one number that orders as they do: least score first, of equals the lowest label.
TERCET_FN u64 ranked(i32 score, u32 label) { return (u64)((u32)score ^ 0x80000000u) << 32 | label; }
TERCET_FN i32 score_of(u64 rank) { return (i32)((u32)(rank >> 32) ^ 0x80000000u); }

TERCET_FN u64 least(u64 a, u64 b) { return a < b ? a : b; }

// Two lanes `STEP` apart share 2 · HALF points: each gives its keys of half of them, and keeps the best of both for the other half.
template <u32 HALF, u32 STEP, u32 COUNT>
TERCET_FN void share(i32 (&best)[COUNT]) {
    static_assert(2 * HALF <= COUNT, "there are so many points");
    const bool upper = (threadIdx.x & STEP) != 0;
#pragma unroll
    for (u32 i = 0; i < HALF; i++) {
        const i32 own = upper ? best[i + HALF] : best[i], given = upper ? best[i] : best[i + HALF];
        const i32 got = __shfl_xor_sync(FULL_WARP, given, STEP);
        best[i] = got > own ? got : own;
    }
}

// Sixteen products.
TERCET_FN i32 dot16(const u32x4 &a, const u32x4 &b, i32 sum) {
    sum = dp4a((i32)a.x, (i32)b.x, sum);
    sum = dp4a((i32)a.y, (i32)b.y, sum);
    sum = dp4a((i32)a.z, (i32)b.z, sum);
    return dp4a((i32)a.w, (i32)b.w, sum);
}

TERCET_FN u32 weight_of(const u32 *weights, u64 point) { return weights == nullptr ? 1 : weights[point]; }

// Adds what all threads of a block of 256 found to a number that others add to. Called by all of them.
TERCET_FN void block_add(u64 value, u64 *to) {
    __shared__ u64 parts[8];
    value = warp_sum(value);
    __syncthreads();
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
        u64 all = 0;
        for (u32 i = 0; i < 8; i++) all += parts[i];
        if (all != 0) atomicAdd(to, all);
    }
}

// Where an assignment reads and writes what belongs to a point. Null: weights that are all 1; what is not wanted.
struct Labels {
    const u32 *weights, *lengths;
    u32 *labels, *previous, *distances;
    u64 inertia, changed;

    // The point's best centroid is known.
    __device__ __forceinline__ void settle(u64 point, u64 rank) {
        u32 label = (u32)rank;
        if (previous != nullptr) {
            u32 weight = weight_of(weights, point), old = labels[point];
            // ‖x − c‖² = ‖x‖² + score: below 2^32, whatever wraps on the way.
            u32 distance = lengths[point] + (u32)score_of(rank);
            inertia += (u64)weight * distance;
            changed += weight > 0 && old != label ? 1 : 0;
            previous[point] = old;
            distances[point] = distance;
        }
        labels[point] = label;
    }
};

}  // namespace tercet
