// Rows of activations normalized by their root mean square and quantized to 8 or 16 bits. As core/src/quant/activations.rs.
//
// Roofline: reads 4 bytes a value twice, the second time from the caches, as gains always, and writes 1 or 2; about 8 instructions a value, and in
// the first warp 2 more for each 8 of a row's values: memory is the limit of many rows, latency of a few.

#include "tercet/device.cuh"
#include "tercet/float.cuh"
#include "tercet/lanes.cuh"
#include "tercet/team.cuh"

using namespace tercet;

template <class Code>
struct Limit;
template <>
struct Limit<i8> {
    static __device__ __forceinline__ f32 value() { return 127.0f; }
};
template <>
struct Limit<i16> {
    static __device__ __forceinline__ f32 value() { return 32512.0f; }
};

const u32 THREADS = 256;

// A block takes a row at a time; without `gains` there is no norm. The scale of a row that is not finite is NaN, its codes 0.
template <class Code>
TERCET_FN void norm_quantize(const f32 *x, u64 rows, u64 cols, const f32 *gains, f32 eps, Code *codes, f32 *scales) {
    __shared__ u32 largest_of[THREADS / WARP];
    __shared__ f32 factor;
    const f32 LIMIT = Limit<Code>::value();
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const f32 *own = x + row * cols;
        auto y = [&](u64 at) { return gains != nullptr ? own[at] * gains[at] : own[at]; };
        u32 largest = 0;
        for (u64 at = threadIdx.x; at < cols; at += THREADS) largest = larger(largest, magnitude(bits_of(y(at))));
        largest = warp_max(largest);
        if (threadIdx.x % WARP == 0) largest_of[threadIdx.x / WARP] = largest;
        f32 root = 1.0f;
        if (gains != nullptr && threadIdx.x < WARP) {
            f32 sum[1];
            sums_of(cols, sum, [&](u64 at, u32) { return own[at] * own[at]; });
            root = __fsqrt_rn(sum[0] / (f32)cols + eps);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
#pragma unroll
            for (u32 warp = 1; warp < THREADS / WARP; warp++) largest = larger(largest, largest_of[warp]);
            f32 most = float_of(largest), scale = most / root / LIMIT;
            factor = LIMIT / most;
            bool finite = largest < INFINITE && magnitude(bits_of(root)) < INFINITE;
            if (finite && magnitude(bits_of(factor)) >= INFINITE) {
                factor = scale = 0.0f;
            } else if (!finite || magnitude(bits_of(scale)) >= INFINITE) {
                // Not finite: what that makes codes 0 below.
                factor = float_of(0x7FC00000);
                scale = factor;
            }
            scales[row] = scale;
        }
        __syncthreads();
        // As core's half_even_small: the addition rounds.
        const f32 ONE_AND_HALF = 12582912.0f;
        f32 steps = factor;
        bool none = magnitude(bits_of(steps)) > INFINITE;
        for (u64 at = threadIdx.x; at < cols; at += THREADS) {
            f32 shifted = y(at) * steps + ONE_AND_HALF;
            codes[row * cols + at] = none ? (Code)0 : (Code)(i32)(bits_of(shifted) - bits_of(ONE_AND_HALF));
        }
        // The next row writes what this one read.
        __syncthreads();
    }
}

#define NORM_QUANTIZE(NAME, CODE)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const f32 *x, u64 rows, u64 cols, const f32 *gains, f32 eps, CODE *codes, f32 *scales) {                              \
        norm_quantize<CODE>(x, rows, cols, gains, eps, codes, scales);                                                             \
    }

NORM_QUANTIZE(activations_a8, i8)
NORM_QUANTIZE(activations_a16, i16)
