// Rows of weights by rows of int8 activations on tensor cores (m16n8k32), from 8.0: up to eight rows of activations, and many.
//
// Roofline, `linear_mma_rows`: reads BITS / 8 of a byte a weight once and serves eight rows of activations with it; four weights take a
// shift and a mask, and the products nothing that shows, so memory is the limit for any number of rows from 1 to 8. `linear_mma_tile`:
// 2 · rows · cols · count operations at the tensor cores' rate; a block reads 128 rows of both sides for 128 · 128 outputs.
//
// Sums of integers have no order, so a lane takes 16 bytes of weights as they lie: which columns stand for which k of a product is free as
// long as weights and activations agree.

#include "tercet/device.cuh"
#include "tercet/linear.cuh"

using namespace tercet;

// Warps of a block.
const u32 WARPS_OF_BLOCK = 8;

TERCET_FN void unpack(u32x4 vector, u32 *words) {
    words[0] = vector.x;
    words[1] = vector.y;
    words[2] = vector.z;
    words[3] = vector.w;
}

// ---- Up to eight rows of activations.

// Rows of weights of a block: two tiles, which share the activations.
const u32 TILES = 2;
const u32 ROWS_OF_BLOCK = 16 * TILES;

// With BLOCKS a scale stands for what the four lanes of a row load at once: 256 weights of 2 bits.
template <u32 BITS, bool BLOCKS>
TERCET_FN void product_of_rows(const u8 *weights, u64 row_bytes, const u16 *scales, u32 blocks, const i8 *x, u64 x_stride, u32 count,
                               const Finish &finish) {
    typedef Packed<BITS> Codes;
    const u32 QUADS = 4 * Codes::QUADS;
    __shared__ i64 parts[WARPS_OF_BLOCK][ROWS_OF_BLOCK * 8];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, group = lane / 4, t = lane % 4;
    u32 first = blockIdx.x * ROWS_OF_BLOCK;
    u32 rows[TILES][2];
    i64 sums[TILES][4];
    i32 dots[TILES][4], of_x[4];
#pragma unroll
    for (u32 tile = 0; tile < TILES; tile++) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            // Past the last row the last one again, whose sums are left out.
            u32 row = first + 16 * tile + 8 * half + group;
            rows[tile][half] = row < finish.rows ? row : finish.rows - 1;
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            sums[tile][i] = 0;
            dots[tile][i] = 0;
        }
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) of_x[i] = 0;
    const i8 *x_row = x + (group < count ? group : 0) * x_stride;
    u32 chunks = (u32)(row_bytes / 16);
    // Each warp takes every eighth step of four chunks.
    for (u32 step = warp; step * 4 < chunks; step += WARPS_OF_BLOCK) {
        u32 chunk = step * 4 + t;
        u32 words[TILES][2][4], quads[QUADS];
#pragma unroll
        for (u32 tile = 0; tile < TILES; tile++) {
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                u32x4 vector = {0, 0, 0, 0};
                if (chunk < chunks) vector = load16_once(weights + rows[tile][half] * row_bytes + chunk * 16);
                unpack(vector, words[tile][half]);
            }
        }
#pragma unroll
        for (u32 i = 0; i < QUADS / 4; i++) {
            u32x4 vector = {0, 0, 0, 0};
            if (chunk < chunks) vector = load16(x_row + (u64)chunk * Codes::COLS + 16 * i);
            unpack(vector, quads + 4 * i);
        }
#pragma unroll
        for (u32 pair = 0; pair < QUADS; pair += 2) {
            const u32 b[2] = {quads[pair], quads[pair + 1]};
#pragma unroll
            for (u32 tile = 0; tile < TILES; tile++) {
                u32 a[4];
#pragma unroll
                for (u32 i = 0; i < 4; i++) {
                    u32 quad = pair + i / 2;
                    a[i] = Codes::quad(words[tile][i % 2][quad / Codes::QUADS], quad % Codes::QUADS);
                }
                mma_m16n8k32(dots[tile], a, b);
            }
            if (Codes::OFFSET != 0) {
                // The offset times every activation, in each row.
                const u32 ones[4] = {0x01010101, 0x01010101, 0x01010101, 0x01010101};
                mma_m16n8k32(of_x, ones, b);
            }
        }
        if (BLOCKS) {
#pragma unroll
            for (u32 tile = 0; tile < TILES; tile++) {
#pragma unroll
                for (u32 half = 0; half < 2; half++) {
                    FixedScale scale;
                    scale.read(scales[(u64)rows[tile][half] * blocks + step]);
#pragma unroll
                    for (u32 i = 2 * half; i < 2 * half + 2; i++) {
                        sums[tile][i] += scale.times(dots[tile][i] - Codes::OFFSET * of_x[i]);
                        dots[tile][i] = 0;
                    }
                }
            }
#pragma unroll
            for (u32 i = 0; i < 4; i++) of_x[i] = 0;
        }
    }
#pragma unroll
    for (u32 tile = 0; tile < TILES; tile++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            // Row `group`, or eight below it; column 2t or the next.
            u32 at = (16 * tile + 8 * (i / 2) + group) * 8 + 2 * t + i % 2;
            parts[warp][at] = BLOCKS ? sums[tile][i] : (i64)(dots[tile][i] - Codes::OFFSET * of_x[i]);
        }
    }
    __syncthreads();
    i64 sum = 0;
#pragma unroll
    for (u32 i = 0; i < WARPS_OF_BLOCK; i++) sum += parts[i][threadIdx.x];
    u32 row = first + threadIdx.x / 8, column = threadIdx.x % 8;
    if (row < finish.rows && column < count) finish.put(row, column, sum);
}

#define ROWS(NAME, BITS, BLOCKS)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const u8 *weights, u64 row_bytes, const u16 *scales, u32 blocks, u32 rows, const i8 *x, u64 x_stride, u32 count,      \
             const i64 *bias, const f32 *row_scales, f32 scale, f32 unit, const f32 *x_scales, i64 *sums, f32 *out) {              \
        product_of_rows<BITS, BLOCKS>(weights, row_bytes, scales, blocks, x, x_stride, count,                                      \
                                      Finish{bias, row_scales, scale, unit, x_scales, sums, out, rows});                           \
    }

ROWS(linear_mma_rows_2, 2, false)
ROWS(linear_mma_rows_2_blocks, 2, true)
ROWS(linear_mma_rows_4, 4, false)
ROWS(linear_mma_rows_8, 8, false)

// ---- Many rows of activations.

// Columns of a step, and bytes of a row of a tile in shared memory: 16 more, so that the rows of a matrix load meet no bank twice.
const u32 STEP = 64;
const u32 PITCH = STEP + 16;
// Rows of weights of a block.
const u32 TILE_ROWS = 128;

// A step's 32 columns of a row of weights, as int8, into shared memory: thread 2r + h takes half h of row r.
template <u32 BITS>
TERCET_FN void decode_weights(const u8 *row, u64 row_bytes, u32 step, u32 half, u8 *to) {
    typedef Packed<BITS> Codes;
    const u32 BYTES = 32 * BITS / 8;
    u64 at = (u64)step * (STEP * BITS / 8) + half * BYTES;
    u32 words[BYTES / 4];
#pragma unroll
    for (u32 i = 0; i < BYTES / 4; i++) words[i] = 0;
    if (BITS == 2) {
        u32x2 vector = {0, 0};
        if (at < row_bytes) vector = load8(row + at);
        words[0] = vector.x;
        words[1] = vector.y;
    } else {
#pragma unroll
        for (u32 i = 0; i < BYTES / 4; i += 4) {
            if (at + 4 * i < row_bytes) unpack(load16(row + at + 4 * i), words + i);
        }
    }
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
        u32 quads[4];
#pragma unroll
        for (u32 q = 0; q < 4; q++) {
            u32 quad = 4 * i + q;
            u32 codes = Codes::quad(words[quad / Codes::QUADS], quad % Codes::QUADS);
            // With the top bit of each byte set no borrow leaves it.
            const u32 TOP = 0x80808080u;
            quads[q] = Codes::OFFSET == 0 ? codes : ((codes | TOP) - 0x01010101u * Codes::OFFSET) ^ TOP;
        }
        store16(to + 16 * i, u32x4{quads[0], quads[1], quads[2], quads[3]});
    }
}

// A block of 128 rows of weights by COUNT rows of activations; a warp has 16 · DOWN by 32 of them.
template <u32 BITS, bool BLOCKS, u32 COUNT, u32 DOWN>
TERCET_FN void product_of_tile(const u8 *weights, u64 row_bytes, const u16 *scales, u32 blocks, const i8 *x, u64 x_stride, u32 count,
                               const Finish &finish) {
    const u32 ACROSS = 4;
    const u32 WARPS_DOWN = TILE_ROWS / (16 * DOWN);
    alignas(16) __shared__ u8 of_weights[2][TILE_ROWS * PITCH];
    alignas(16) __shared__ u8 of_x[2][COUNT * PITCH];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, group = lane / 4, t = lane % 4;
    u32 first = blockIdx.x * TILE_ROWS, first_x = blockIdx.y * COUNT;
    u32 down = warp % WARPS_DOWN * 16 * DOWN, across = warp / WARPS_DOWN * 8 * ACROSS;
    u32 own_row = first + threadIdx.x / 2, half = threadIdx.x % 2;
    const u8 *row = weights + (u64)(own_row < finish.rows ? own_row : finish.rows - 1) * row_bytes;
    i32 dots[DOWN][ACROSS][4];
    i64 sums[DOWN][ACROSS][4];
#pragma unroll
    for (u32 i = 0; i < DOWN; i++) {
#pragma unroll
        for (u32 j = 0; j < ACROSS; j++) {
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                dots[i][j][k] = 0;
                sums[i][j][k] = 0;
            }
        }
    }
    // The activations of a step, beside the code; zeros past the last column and the last row.
    auto fetch_x = [&](u32 step, u32 slot) {
        for (u32 i = threadIdx.x; i < COUNT * (STEP / 16); i += WARPS_OF_BLOCK * WARP) {
            u32 x_row = first_x + i / 4;
            u64 at = (u64)step * STEP + i % 4 * 16;
            bool inside = x_row < count && at < x_stride;
            copy_async16(of_x[slot] + i / 4 * PITCH + i % 4 * 16, inside ? x + x_row * x_stride + at : x, inside ? 16 : 0);
        }
        copy_async_commit();
    };
    u32 steps = (u32)((x_stride + STEP - 1) / STEP);
    fetch_x(0, 0);
    decode_weights<BITS>(row, row_bytes, 0, half, of_weights[0] + threadIdx.x / 2 * PITCH + half * 32);
    for (u32 step = 0; step < steps; step++) {
        u32 slot = step % 2;
        copy_async_wait<0>();
        // What was fetched is there, and nobody reads the other slot any more.
        __syncthreads();
        if (step + 1 < steps) {
            fetch_x(step + 1, 1 - slot);
            decode_weights<BITS>(row, row_bytes, step + 1, half, of_weights[1 - slot] + threadIdx.x / 2 * PITCH + half * 32);
        }
#pragma unroll
        for (u32 k = 0; k < STEP; k += 32) {
            u32 b[ACROSS][2];
#pragma unroll
            for (u32 j = 0; j < ACROSS; j += 2) {
                // Matrices: columns 0..16 and 16..32 of eight rows of activations, then those of the next eight.
                u32 at = (across + 8 * j + lane / 16 * 8 + lane % 8) * PITCH + k + lane / 8 % 2 * 16;
                u32 loaded[4];
                load_matrices(loaded, of_x[slot] + at);
                b[j][0] = loaded[0];
                b[j][1] = loaded[1];
                b[j + 1][0] = loaded[2];
                b[j + 1][1] = loaded[3];
            }
#pragma unroll
            for (u32 i = 0; i < DOWN; i++) {
                // Matrices: rows 0..8 and 8..16, columns 0..16; then columns 16..32.
                u32 at = (down + 16 * i + lane / 8 % 2 * 8 + lane % 8) * PITCH + k + lane / 16 * 16;
                u32 a[4];
                load_matrices(a, of_weights[slot] + at);
#pragma unroll
                for (u32 j = 0; j < ACROSS; j++) mma_m16n8k32(dots[i][j], a, b[j]);
            }
        }
        if (BLOCKS && step % 4 == 3) {
#pragma unroll
            for (u32 i = 0; i < DOWN; i++) {
#pragma unroll
                for (u32 k = 0; k < 4; k += 2) {
                    u32 at = first + down + 16 * i + 8 * (k / 2) + group;
                    FixedScale scale;
                    scale.read(scales[(u64)(at < finish.rows ? at : finish.rows - 1) * blocks + step / 4]);
#pragma unroll
                    for (u32 j = 0; j < ACROSS; j++) {
                        sums[i][j][k] += scale.times(dots[i][j][k]);
                        sums[i][j][k + 1] += scale.times(dots[i][j][k + 1]);
                        dots[i][j][k] = 0;
                        dots[i][j][k + 1] = 0;
                    }
                }
            }
        }
    }
    // The rows of a lane, eight apart; what they share is read once for all their outputs.
#pragma unroll
    for (u32 pair = 0; pair < 2 * DOWN; pair++) {
        u32 i = pair / 2, k = pair % 2 * 2;
        u32 at = first + down + 8 * pair + group;
        if (at >= finish.rows) continue;
        i64 bias = finish.bias != nullptr ? finish.bias[at] : 0;
        f32 by = finish.scale_of(at);
#pragma unroll
        for (u32 j = 0; j < ACROSS; j++) {
#pragma unroll
            for (u32 l = 0; l < 2; l++) {
                u32 x_row = first_x + across + 8 * j + 2 * t + l;
                i64 sum = bias + (BLOCKS ? sums[i][j][k + l] : (i64)dots[i][j][k + l]);
                u64 to = (u64)x_row * finish.rows + at;
                if (x_row >= count) continue;
                if (finish.sums != nullptr) {
                    finish.sums[to] = sum;
                } else {
                    finish.out[to] = (f32)sum * finish.unit * by * finish.x_scales[x_row];
                }
            }
        }
    }
}

#define TILE(NAME, BITS, BLOCKS, COUNT, DOWN)                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const u8 *weights, u64 row_bytes, const u16 *scales, u32 blocks, u32 rows, const i8 *x, u64 x_stride, u32 count,      \
             const i64 *bias, const f32 *row_scales, f32 scale, f32 unit, const f32 *x_scales, i64 *sums, f32 *out) {              \
        product_of_tile<BITS, BLOCKS, COUNT, DOWN>(weights, row_bytes, scales, blocks, x, x_stride, count,                         \
                                                   Finish{bias, row_scales, scale, unit, x_scales, sums, out, rows});              \
    }

TILE(linear_mma_tile_2, 2, false, 128, 4)
// The exact sums of blocks take two registers each: half as many outputs.
TILE(linear_mma_tile_2_blocks, 2, true, 64, 2)
TILE(linear_mma_tile_4, 4, false, 128, 4)
TILE(linear_mma_tile_8, 8, false, 128, 4)
