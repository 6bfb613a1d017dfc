// Teams of threads that share a group of values: a warp or a block. Every reduction leaves its result in all of them.
#pragma once

#include "tercet/exact_sum.cuh"

namespace tercet {

const u32 BLOCK = 256;
const u32 WARPS = BLOCK / 32;

TERCET_FN u32 larger(u32 a, u32 b) { return a > b ? a : b; }
TERCET_FN u32 smaller(u32 a, u32 b) { return a < b ? a : b; }

template <class T>
TERCET_FN T warp_all(T value) {
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) value.merge(value.exchange(distance));
    return value;
}

// What each warp found, merged by every thread. Two barriers, so that the next call may use the memory again.
template <class T>
TERCET_FN T block_all(const T& value) {
    __shared__ T parts[WARPS];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    T all = parts[0];
#pragma unroll 1
    for (u32 i = 1; i < WARPS; i++) all.merge(parts[i]);
    __syncthreads();
    return all;
}

struct WarpTeam {
    static const u32 SIZE = 32;
    static __device__ __forceinline__ u32 thread() { return threadIdx.x % 32; }
    // The team's number and how many there are, over the whole grid.
    static __device__ __forceinline__ u64 number() { return (u64)blockIdx.x * WARPS + threadIdx.x / 32; }
    static __device__ __forceinline__ u64 count() { return (u64)gridDim.x * WARPS; }
    template <class T>
    static __device__ __forceinline__ T all(const T& value) {
        return warp_all(value);
    }
    static __device__ __forceinline__ Wide sum(ExactSum& sum) { return sum.warp_sum(); }
};

struct BlockTeam {
    static const u32 SIZE = BLOCK;
    static __device__ __forceinline__ u32 thread() { return threadIdx.x; }
    static __device__ __forceinline__ u64 number() { return blockIdx.x; }
    static __device__ __forceinline__ u64 count() { return gridDim.x; }
    template <class T>
    static __device__ __forceinline__ T all(const T& value) {
        return block_all(warp_all(value));
    }
    static __device__ __forceinline__ Wide sum(ExactSum& sum) { return block_all(sum.warp_sum()); }
};

}  // namespace tercet
