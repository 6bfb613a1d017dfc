// Palettes: values and products from packed indices, each entry looked up where it is used.
//
// Roofline: decoding reads BITS / 8 of a byte a value and writes 4, and looks each up once in shared memory: writing is the limit. A product
// reads BITS / 8 of a byte a value once, and looks each up for one product: 32 look-ups a clock and multiprocessor at best, so that the
// look-up is the limit below 8 bits.

#include "tercet/device.cuh"
#include "tercet/palette.cuh"

using namespace tercet;

const u32 WARPS_OF_BLOCK = 8;
const u32 MOST_ENTRIES = 256;

// fl(entry · scale) of every value. A warp goes through parts of 256 values of a row; each row's table is made by its warp.
extern "C" __global__ void __launch_bounds__(256) palette_decode(const u8 *indices, const i8 *codebooks, const f32 *scales, u32 bits,
                                                                 u64 rows, u64 cols, u64 group_rows, u64 row_bytes, f32 *out) {
    __shared__ f32 tables[WARPS_OF_BLOCK][MOST_ENTRIES];
    PaletteShape shape = {bits, rows, cols, group_rows, row_bytes};
    u32 lane = threadIdx.x % WARP;
    f32 *table = tables[threadIdx.x / WARP];
    u64 parts = (cols + 255) / 256, group = ~0ull;
    u64 all = rows * parts, warps = (u64)gridDim.x * WARPS_OF_BLOCK;
    // Neighbours in a block of rows, so that a table serves for long.
    u64 share = (all + warps - 1) / warps;
    u64 begin = ((u64)blockIdx.x * WARPS_OF_BLOCK + threadIdx.x / WARP) * share;
    u64 end = begin + share < all ? begin + share : all;
    for (u64 part = begin; part < end; part++) {
        u64 row = part / parts, first = (part - row * parts) * 256;
        if (row / group_rows != group) {
            group = row / group_rows;
            __syncwarp();
            for (u32 i = lane; i <= shape.mask(); i += WARP) table[i] = (f32)codebooks[(group << bits) + i] * scales[group];
            __syncwarp();
        }
        u64 run = shape.run(indices + row * row_bytes, first / 8 + lane);
        f32 *to = out + row * cols + first;
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            // Value i · 32 + lane is the (lane % 8)-th of the run that lane 4 i + lane / 8 has.
            u64 its_run = __shfl_sync(FULL_WARP, run, (i32)(4 * i + lane / 8));
            u32 index = (u32)(its_run >> (lane % 8 * bits)) & shape.mask();
            u64 at = i * WARP + lane;
            if (first + at < cols) to[at] = table[index];
        }
    }
}

// fl(fl(f32(Σ entry · x) · scale) · x_scale) of every row; `x` has 0 up to a multiple of eight columns. Any sum of 2¹⁷ − 1 products of int8
// fits 32 bits.
extern "C" __global__ void __launch_bounds__(256)
    palette_product(const u8 *indices, const i8 *codebooks, const f32 *scales, u32 bits, u64 rows, u64 cols, u64 group_rows,
                    u64 row_bytes, const i8 *x, f32 x_scale, f32 *out) {
    __shared__ u8 tables[WARPS_OF_BLOCK][MOST_ENTRIES];
    PaletteShape shape = {bits, rows, cols, group_rows, row_bytes};
    u32 lane = threadIdx.x % WARP;
    u8 *table = tables[threadIdx.x / WARP];
    u64 group = ~0ull, warps = (u64)gridDim.x * WARPS_OF_BLOCK;
    u64 share = (rows + warps - 1) / warps;
    u64 begin = ((u64)blockIdx.x * WARPS_OF_BLOCK + threadIdx.x / WARP) * share;
    u64 end = begin + share < rows ? begin + share : rows;
    for (u64 row = begin; row < end; row++) {
        if (row / group_rows != group) {
            group = row / group_rows;
            __syncwarp();
            for (u32 i = lane; i <= shape.mask(); i += WARP) table[i] = (u8)codebooks[(group << bits) + i];
            __syncwarp();
        }
        i32 sum = 0;
        for (u64 number = lane; number < shape.runs(); number += WARP) {
            u64 run = shape.run(indices + row * row_bytes, number);
            u32x2 pair = load8(x + number * 8);
            u32 entries[2] = {0, 0};
#pragma unroll
            for (u32 i = 0; i < 8; i++) {
                u32 index = (u32)(run >> (i * bits)) & shape.mask();
                entries[i / 4] |= (u32)table[index] << (8 * (i % 4));
            }
            sum = dp4a((i32)entries[0], (i32)pair.x, sum);
            sum = dp4a((i32)entries[1], (i32)pair.y, sum);
        }
        sum = warp_sum(sum);
        if (lane == 0) out[row] = (f32)sum * scales[group] * x_scale;
    }
}
