// Kernels for the tests of the emulated device itself.
#include "tercet/device.cuh"

extern "C" __global__ void __launch_bounds__(256) test_add(const i32 *a, const i32 *b, i32 *out, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a[i] + b[i];
    }
}

// The sum of 256 values by a tree in shared memory.
extern "C" __global__ void test_block_sum(const i32 *in, i32 *out) {
    __shared__ i32 part[256];
    u32 t = threadIdx.x;
    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (u32 step = 128; step > 0; step /= 2) {
        if (t < step) {
            part[t] += part[t + step];
        }
        __syncthreads();
    }
    if (t == 0) {
        out[blockIdx.x] = part[0];
    }
}

// Multiplies and adds, which do not commute: what streams and graphs are told apart with.
extern "C" __global__ void test_scale_add(u32 *values, u32 times, u32 plus, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        values[i] = values[i] * times + plus;
    }
}

// Dynamic shared memory, all of it.
extern "C" __global__ void test_dynamic(u32 *out, u32 words) {
    TERCET_SHARED(u32, all);
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) {
        all[i] = i;
    }
    __syncthreads();
    u32 sum = 0;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) {
        sum += all[words - 1 - i];
    }
    atomicAdd(out, sum);
}

// Where each thread of a grid of three dimensions is.
extern "C" __global__ void test_places(u32 *out) {
    u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}
