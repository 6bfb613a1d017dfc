// Rows of weights by one to eight rows of int8 activations, by dp4a: the exact sums, or the outputs in f32.
//
// Roofline: reads BITS / 8 of a byte a weight (and 2 bytes a block for its scale), once for up to eight rows of activations, and those
// from the caches. Four weights take 1 dp4a a row of activations, and a shift and a mask where they have fewer than 8 bits. On an H200 a
// matrix of 2-bit weights is limited by memory for one and two rows of activations, by dp4a (64 a clock and multiprocessor) from there on:
// `linear_mma.cu` serves those.

#include "tercet/device.cuh"
#include "tercet/linear.cuh"

using namespace tercet;

// The rows of weights that a warp goes along together, so that activations are loaded once for all of them.
TERCET_FN constexpr u32 rows_of_a_warp(u32 m) { return m == 1 ? 4 : 2; }

// Weights of a layer: rows of `row_bytes`, a multiple of 16; with BLOCKS a scale for every `chunks_per_block` times 16 bytes, in rows of
// `blocks`.
struct Weights {
    const u8 *bytes;
    u64 row_bytes;
    const u16 *scales;
    u32 blocks, chunks_per_block;
};

template <u32 BITS, bool BLOCKS, u32 M>
TERCET_FN void product(const Weights &weights, const i8 *x, u64 x_stride, u32 count, const Finish &finish) {
    typedef Packed<BITS> Codes;
    const u32 ROWS = rows_of_a_warp(M);
    u32 lane = threadIdx.x % WARP;
    u32 first = (blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP) * ROWS;
    // Whole warps: no lane of one that goes on has left.
    if (first >= finish.rows) return;
    const u8 *rows[ROWS];
    const u16 *scales[ROWS];
#pragma unroll
    for (u32 r = 0; r < ROWS; r++) {
        // Past the last row the last one again, whose sums are left out.
        u64 row = first + r < finish.rows ? first + r : finish.rows - 1;
        rows[r] = weights.bytes + row * weights.row_bytes;
        scales[r] = BLOCKS ? weights.scales + row * weights.blocks : nullptr;
    }
    i64 sums[ROWS][M];
    i32 narrow[ROWS][M];
#pragma unroll
    for (u32 r = 0; r < ROWS; r++) {
#pragma unroll
        for (u32 m = 0; m < M; m++) {
            sums[r][m] = 0;
            narrow[r][m] = 0;
        }
    }
    for (u32 chunk = lane; chunk < weights.row_bytes / 16; chunk += WARP) {
        u32 words[ROWS][4];
        FixedScale fixed[ROWS];
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) {
            u32x4 vector = load16_once(rows[r] + chunk * 16);
            words[r][0] = vector.x;
            words[r][1] = vector.y;
            words[r][2] = vector.z;
            words[r][3] = vector.w;
            if (BLOCKS) fixed[r].read(scales[r][chunk / weights.chunks_per_block]);
        }
#pragma unroll
        for (u32 m = 0; m < M; m++) {
            const i8 *from = x + (m < count ? m : 0) * x_stride + (u64)chunk * Codes::COLS;
            i32 dots[ROWS], of_x = 0;
#pragma unroll
            for (u32 r = 0; r < ROWS; r++) dots[r] = 0;
#pragma unroll
            for (u32 i = 0; i < Codes::COLS / 16; i++) {
                u32x4 vector = load16(from + 16 * i);
                const u32 quads[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
                for (u32 q = 0; q < 4; q++) {
                    u32 at = 4 * i + q;
                    if (Codes::OFFSET != 0) of_x = dp4a((i32)quads[q], 0x01010101, of_x);
#pragma unroll
                    for (u32 r = 0; r < ROWS; r++) {
                        u32 codes = Codes::quad(words[r][at / Codes::QUADS], at % Codes::QUADS);
                        dots[r] = dp4a((i32)codes, (i32)quads[q], dots[r]);
                    }
                }
            }
#pragma unroll
            for (u32 r = 0; r < ROWS; r++) {
                i32 dot = dots[r] - Codes::OFFSET * of_x;
                if (BLOCKS) {
                    sums[r][m] += fixed[r].times(dot);
                } else {
                    // A row's sum is at most 2¹⁴ · 2¹⁶ in magnitude (core's MAX_COLS), and so is any part of it.
                    narrow[r][m] += dot;
                }
            }
        }
    }
    // Lane r · M + m finishes one output.
    i64 mine = 0;
#pragma unroll
    for (u32 r = 0; r < ROWS; r++) {
#pragma unroll
        for (u32 m = 0; m < M; m++) {
            i64 sum = BLOCKS ? warp_sum(sums[r][m]) : (i64)warp_sum(narrow[r][m]);
            if (lane == r * M + m) mine = sum;
        }
    }
    u32 row = first + lane / M, x_row = lane % M;
    if (lane < ROWS * M && row < finish.rows && x_row < count) finish.put(row, x_row, mine);
}

#define PRODUCT(NAME, BITS, BLOCKS, M)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const u8 *weights, u64 row_bytes, const u16 *scales, u32 blocks, u32 chunks_per_block, u32 rows, const i8 *x,         \
             u64 x_stride, u32 count, const i64 *bias, const f32 *row_scales, f32 scale, f32 unit,                 \
             const f32 *x_scales, i64 *sums, f32 *out) {                                                                           \
        product<BITS, BLOCKS, M>(Weights{weights, row_bytes, scales, blocks, chunks_per_block}, x, x_stride, count,                \
                                 Finish{bias, row_scales, scale, unit, x_scales, sums, out, rows});                    \
    }

// Rows of activations: 1, up to 4, up to 8.
#define PRODUCTS(NAME, BITS, BLOCKS)                                                                                               \
    PRODUCT(NAME##_1, BITS, BLOCKS, 1)                                                                                             \
    PRODUCT(NAME##_4, BITS, BLOCKS, 4)                                                                                             \
    PRODUCT(NAME##_8, BITS, BLOCKS, 8)

PRODUCTS(linear_2, 2, false)
PRODUCTS(linear_2_blocks, 2, true)
PRODUCTS(linear_4, 4, false)
PRODUCTS(linear_4_blocks, 4, true)
PRODUCTS(linear_8, 8, false)
PRODUCTS(linear_8_blocks, 8, true)

// Adds to sums of products what blocks' minima are worth, Σ minimum · 2²⁴ · Σ x, and finishes them: in place, or to `out`. Weights were packed
// less `origin`, so that times a block's scale is added to its minimum. A warp a sum.
//
// Roofline: 4 bytes of scales and minima and 32 activations a block, which the caches hold, for 8 dp4a: about as long as the product of a row,
// for formats that are not the fastest ones.
extern "C" __global__ void __launch_bounds__(256)
    linear_minima(const u16 *scales, const u16 *mins, u32 blocks, i32 origin, u32 rows, const i8 *x, u64 x_stride, u64 count, f32 unit,
                  const f32 *x_scales, i64 *sums, f32 *out) {
    u32 lane = threadIdx.x % WARP;
    u32 row = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    // Whole warps.
    if (row >= rows) return;
    Finish finish = {nullptr, nullptr, 1.0f, unit, x_scales, out == nullptr ? sums : nullptr, out, rows};
    for (u64 x_row = blockIdx.y; x_row < count; x_row += gridDim.y) {
        i64 sum = 0;
        for (u32 block = lane; block < blocks; block += WARP) {
            const i8 *from = x + x_row * x_stride + (u64)block * 32;
            i32 of_x = 0;
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                u32 words[4];
                unpack(load16(from + 16 * half), words);
#pragma unroll
                for (u32 i = 0; i < 4; i++) of_x = dp4a((i32)words[i], 0x01010101, of_x);
            }
            FixedScale scale, min;
            u64 at = (u64)row * blocks + block;
            scale.read(scales[at]);
            min.read(mins[at]);
            sum += min.times(of_x) + scale.times(origin * of_x);
        }
        sum = warp_sum(sum);
        if (lane == 0) finish.put(row, x_row, sums[x_row * rows + row] + sum);
    }
}
