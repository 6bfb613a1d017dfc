// Rows of GGUF's blocks of several parts (K-quants), as they lie in a file, by one to four rows of int8 activations: the exact sums, or the
// outputs in f32.
//
// Roofline: reads 0.56 (Q4_K) or 0.82 bytes a weight once for four rows of activations, and those from the caches. A lane has four weights
// at a time, whose scale it finds anew: about 40 instructions for 128 weights a warp, and 8 for each row of activations, so instructions
// are the limit, as of the formats that go by passes.

#include "tercet/device.cuh"
#include "tercet/blocks.cuh"
#include "tercet/linear.cuh"

using namespace tercet;

template <class Format, u32 M>
TERCET_FN void product(const u8 *weights, u64 row_bytes, u32 stripes, const i8 *x, u64 x_stride, u64 count, const Finish &finish) {
    u32 lane = threadIdx.x % WARP;
    u32 row = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    // Whole warps.
    if (row >= finish.rows) return;
    const u8 *blocks = weights + row * row_bytes;
    for (u64 first = (u64)blockIdx.y * M; first < count; first += (u64)gridDim.y * M) {
        i64 sums[M];
#pragma unroll
        for (u32 m = 0; m < M; m++) sums[m] = 0;
        for (u32 stripe = 0; stripe < stripes; stripe++) {
            const u8 *block = Format::of_lane(blocks, stripe);
            u32 codes = Format::stored(block, stripe);
            // Below 2⁴⁷: an f16 in units of 2⁻²⁴ times at most 2⁷. A row's sum fits, as core has made sure.
            FixedScale scale, min;
            scale.read(Format::scale(block));
            min.read(Format::min(block));
            i64 unit = scale.times(Format::of_scale(block, stripe)), least = min.times(Format::of_min(block, stripe));
#pragma unroll
            for (u32 m = 0; m < M; m++) {
                // Past the last row the first one again, whose sums are left out.
                const i8 *from = x + (first + (first + m < count ? m : 0)) * x_stride;
                i32 four = *reinterpret_cast<const i32 *>(from + (u64)stripe * STRIPE + lane * 4);
                // Less the offset from each code.
                const i32 OFFSETS = (i32)((u32)(u8)-Format::OFFSET * 0x01010101u);
                sums[m] += unit * dp4a_unsigned_signed(codes, four, dp4a(four, OFFSETS, 0));
                if (Format::HAS_MIN) sums[m] -= least * dp4a(four, 0x01010101, 0);
            }
        }
        // Lane m finishes one output.
        i64 mine = 0;
#pragma unroll
        for (u32 m = 0; m < M; m++) {
            i64 sum = warp_sum(sums[m]);
            if (lane == m) mine = sum;
        }
        if (lane < M && first + lane < count) finish.put(row, first + lane, mine);
    }
}

#define PRODUCT(NAME, FORMAT, M)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const u8 *weights, u64 row_bytes, u32 stripes, u32 rows, const i8 *x, u64 x_stride, u64 count, const i64 *bias,       \
             f32 unit, const f32 *x_scales, i64 *sums, f32 *out) {                                                                 \
        product<FORMAT, M>(weights, row_bytes, stripes, x, x_stride, count,                                                        \
                           Finish{bias, nullptr, 1.0f, unit, x_scales, sums, out, rows});                                          \
    }

// Rows of activations: 1, up to 4 at a time.
#define PRODUCTS(NAME, FORMAT)                                                                                                     \
    PRODUCT(linear_##NAME##_1, FORMAT, 1)                                                                                          \
    PRODUCT(linear_##NAME##_4, FORMAT, 4)

TERCET_FORMATS_OF_PARTS(PRODUCTS)
