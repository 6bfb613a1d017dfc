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
