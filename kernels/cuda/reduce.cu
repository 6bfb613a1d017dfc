// Sums of counts that several devices have made, each of its own share of the points. Exact: integers in any order.
//
// Roofline: reads 8 bytes a cell of each device and writes 8; next to an assignment it takes no time.

#include "tercet/device.cuh"

// out[i] = own[i] + the i-th of each of `parts` runs of `count` numbers; where `running` is not 0, what `out` held is added. Modulo
// 2^64, so for signed numbers as well.
extern "C" __global__ void __launch_bounds__(256) reduce_sum(const u64 *own, const u64 *others, u32 parts, u64 count, u32 running,
                                                             u64 *out) {
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < count; i += (u64)gridDim.x * 256) {
        u64 sum = own[i] + (running ? out[i] : 0);
        for (u32 part = 0; part < parts; part++) sum += others[part * count + i];
        out[i] = sum;
    }
}
