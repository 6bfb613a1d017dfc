// Rows of weights by up to sixteen rows of int8 activations on tensor cores (m16n8k32), from 8.0.
//
// Roofline: reads BITS / 8 of a byte a weight once (and 2 bytes a block for its scale) and serves eight rows of activations with it. Four
// weights take a shift and a mask, and the products nothing that shows, so memory is the limit for any number of rows from 1 to 8, and for
// up to 16 with two products of each decoded weight: a step's 2 KiB take an H200 (4.8 TB/s, 132 multiprocessors at 1.7 GHz) some 400 clocks of each of four schedulers, and issue 90 to 310
// instructions. With blocks of 32 or 64 columns they are 210 (8 bits), 380 (4 bits) and 480 (2 bits), since the words of four lanes change
// places (4 shuffles a vector), scales go round (1 each) and a block's products are added up in 64 bits (1 an output): issue is then as
// much the limit as memory.
//
// Sums of integers have no order, so a lane takes 16 bytes of weights as they lie: which columns stand for which k of a product is free as
// long as weights and activations agree, and all columns of a product have one scale.

#include "tercet/device.cuh"
#include "tercet/linear.cuh"

using namespace tercet;

// Warps of a block.
const u32 WARPS_OF_BLOCK = 8;
// Rows of weights of a block: two tiles, which share the activations.
const u32 TILES = 2;
const u32 ROWS_OF_BLOCK = 16 * TILES;

// How a step of four lanes' vectors falls into blocks of BLOCK columns (0: none).
template <u32 BITS, u32 BLOCK>
struct Step {
    typedef Packed<BITS> Codes;
    static const u32 COLS = 4 * Codes::COLS;
    // Blocks of a step; at least one, which then may be a part of one or of a row.
    static const u32 BLOCKS = BLOCK == 0 || BLOCK >= COLS ? 1 : COLS / BLOCK;
    static_assert(BLOCKS * BLOCK == COLS || BLOCK == 0, "a step is whole blocks");
    // Of a lane: words, and columns by fours, of each.
    static const u32 WORDS = 4 / BLOCKS;
    static const u32 QUADS = WORDS * Codes::QUADS;

    // A lane's vector becomes its part of each block: WORDS words of the first, then of the next.
    static __device__ __forceinline__ void deal(u32 (&words)[4]) {
        const u32 t = threadIdx.x % 4;
        if (BLOCKS >= 2) {
            // Of each two lanes the lower one keeps its first half, the upper one its second.
            const bool upper = t >= 2;
#pragma unroll
            for (u32 i = 0; i < 2; i++) {
                u32 got = __shfl_xor_sync(FULL_WARP, upper ? words[i] : words[2 + i], 2);
                words[i] = upper ? got : words[i];
                words[2 + i] = upper ? words[2 + i] : got;
            }
        }
        if (BLOCKS == 4) {
            const bool odd = t % 2 == 1;
#pragma unroll
            for (u32 i = 0; i < 4; i += 2) {
                u32 got = __shfl_xor_sync(FULL_WARP, odd ? words[i] : words[i + 1], 1);
                words[i] = odd ? got : words[i];
                words[i + 1] = odd ? words[i + 1] : got;
            }
        }
    }

    // The column, within a step, of the first of those that `deal` gives this lane of block `block`; they follow one another.
    static __device__ __forceinline__ u32 column(u32 block) {
        const u32 t = threadIdx.x % 4;
        if (BLOCKS == 1) return t * Codes::COLS;
        // With two blocks lane 2u + c has half u of vector c of each.
        const u32 place = BLOCKS == 2 ? t % 2 * 2 + t / 2 : t;
        return block * BLOCK + place * 4 * QUADS;
    }
};

// Four codes or activations at a time of a block, at a column that is a multiple of as many.
template <u32 QUADS>
TERCET_FN void load_quads(const i8 *from, u32 *quads) {
    if (QUADS == 2) {
        u32x2 pair = load8(from);
        quads[0] = pair.x;
        quads[1] = pair.y;
    } else {
#pragma unroll
        for (u32 i = 0; i < QUADS; i += 4) unpack(load16(from + 4 * i), quads + i);
    }
}

// With BLOCK, scales are below 128 and there is one for each BLOCK columns. Rows of activations are at most 8 · EIGHTS.
template <u32 BITS, u32 BLOCK, u32 EIGHTS>
TERCET_FN void product_of_rows(const u8 *weights, u64 row_bytes, const u16 *scales, u32 blocks, const i8 *x, u64 x_stride, u32 count,
                               const Finish &finish) {
    typedef Packed<BITS> Codes;
    typedef Step<BITS, BLOCK> Of;
    __shared__ i64 parts[WARPS_OF_BLOCK][ROWS_OF_BLOCK * 8 * EIGHTS];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, group = lane / 4, t = lane % 4;
    u32 first = blockIdx.x * ROWS_OF_BLOCK;
    u32 rows[TILES][2];
    i64 sums[EIGHTS][TILES][4];
    i32 dots[EIGHTS][TILES][4], of_x[EIGHTS][4];
#pragma unroll
    for (u32 tile = 0; tile < TILES; tile++) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            // Past the last row the last one again, whose sums are left out.
            u32 row = first + 16 * tile + 8 * half + group;
            rows[tile][half] = row < finish.rows ? row : finish.rows - 1;
        }
    }
    const i8 *x_rows[EIGHTS];
#pragma unroll
    for (u32 eight = 0; eight < EIGHTS; eight++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
#pragma unroll
            for (u32 tile = 0; tile < TILES; tile++) sums[eight][tile][i] = dots[eight][tile][i] = 0;
            of_x[eight][i] = 0;
        }
        const u32 row = eight * 8 + group;
        x_rows[eight] = x + (row < count ? row : 0) * x_stride;
    }
    u32 chunks = (u32)(row_bytes / 16);
    // Each warp takes every eighth step of four chunks.
    for (u32 step = warp; step * 4 < chunks; step += WARPS_OF_BLOCK) {
        u32 chunk = step * 4 + t, first_block = step * Of::BLOCKS;
        u32 words[TILES][2][4], quads[EIGHTS][Of::BLOCKS][Of::QUADS];
        // This lane's block of each row; the other lanes of the row have the others.
        i32 own[TILES][2];
#pragma unroll
        for (u32 tile = 0; tile < TILES; tile++) {
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                u32x4 vector = {0, 0, 0, 0};
                if (chunk < chunks) vector = load16_once(weights + rows[tile][half] * row_bytes + chunk * 16);
                unpack(vector, words[tile][half]);
                u32 block = first_block + t % Of::BLOCKS;
                u32 bits = BLOCK != 0 && block < blocks ? scales[(u64)rows[tile][half] * blocks + block] : 0;
                own[tile][half] = narrow_scale(bits);
            }
        }
#pragma unroll
        for (u32 block = 0; block < Of::BLOCKS; block++) {
            u64 column = (u64)step * Of::COLS + Of::column(block);
#pragma unroll
            for (u32 eight = 0; eight < EIGHTS; eight++) {
#pragma unroll
                for (u32 i = 0; i < Of::QUADS; i++) quads[eight][block][i] = 0;
                // Rows of activations are whole vectors of weights long.
                if (column < x_stride) load_quads<Of::QUADS>(x_rows[eight] + column, quads[eight][block]);
            }
        }
#pragma unroll
        for (u32 tile = 0; tile < TILES; tile++) {
            Of::deal(words[tile][0]);
            Of::deal(words[tile][1]);
        }
#pragma unroll
        for (u32 block = 0; block < Of::BLOCKS; block++) {
#pragma unroll
            for (u32 pair = 0; pair < Of::QUADS; pair += 2) {
                const bool anew = BLOCK != 0 && pair == 0;
#pragma unroll
                for (u32 tile = 0; tile < TILES; tile++) {
                    u32 a[4];
#pragma unroll
                    for (u32 i = 0; i < 4; i++) {
                        u32 quad = block * Of::QUADS + pair + i / 2;
                        a[i] = Codes::quad(words[tile][i % 2][quad / Codes::QUADS], quad % Codes::QUADS);
                    }
#pragma unroll
                    for (u32 eight = 0; eight < EIGHTS; eight++) {
                        const u32 b[2] = {quads[eight][block][pair], quads[eight][block][pair + 1]};
                        if (anew) {
                            mma_m16n8k32_first(dots[eight][tile], a, b);
                        } else {
                            mma_m16n8k32(dots[eight][tile], a, b);
                        }
                    }
                }
                if (Codes::OFFSET != 0) {
                    // The offset times every activation, in each row.
                    const u32 ones[4] = {0x01010101, 0x01010101, 0x01010101, 0x01010101};
#pragma unroll
                    for (u32 eight = 0; eight < EIGHTS; eight++) {
                        const u32 b[2] = {quads[eight][block][pair], quads[eight][block][pair + 1]};
                        if (anew) {
                            mma_m16n8k32_first(of_x[eight], ones, b);
                        } else {
                            mma_m16n8k32(of_x[eight], ones, b);
                        }
                    }
                }
            }
            if (BLOCK != 0) {
#pragma unroll
                for (u32 tile = 0; tile < TILES; tile++) {
#pragma unroll
                    for (u32 i = 0; i < 4; i++) {
                        i32 scale = own[tile][i / 2];
                        if (Of::BLOCKS > 1) scale = __shfl_sync(FULL_WARP, scale, lane - t + block);
#pragma unroll
                        for (u32 eight = 0; eight < EIGHTS; eight++) {
                            sums[eight][tile][i] += (i64)(dots[eight][tile][i] - Codes::OFFSET * of_x[eight][i]) * scale;
                        }
                    }
                }
            }
        }
    }
#pragma unroll
    for (u32 tile = 0; tile < TILES; tile++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
#pragma unroll
            for (u32 eight = 0; eight < EIGHTS; eight++) {
                // Row `group`, or eight below it; column 2t or the next.
                const u32 at = (16 * tile + 8 * (i / 2) + group) * 8 * EIGHTS + 8 * eight + 2 * t + i % 2;
                parts[warp][at] = BLOCK != 0 ? sums[eight][tile][i] : (i64)(dots[eight][tile][i] - Codes::OFFSET * of_x[eight][i]);
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 at = threadIdx.x; at < ROWS_OF_BLOCK * 8 * EIGHTS; at += 256) {
        i64 sum = 0;
#pragma unroll
        for (u32 i = 0; i < WARPS_OF_BLOCK; i++) sum += parts[i][at];
        const u32 row = first + at / (8 * EIGHTS), column = at % (8 * EIGHTS);
        if (row < finish.rows && column < count) finish.put(row, column, sum);
    }
}

#define ROWS(NAME, BITS, BLOCK, EIGHTS)                                                                                            \
    extern "C" __global__ void __launch_bounds__(256, EIGHTS)                                                                      \
        NAME(const u8 *weights, u64 row_bytes, const u16 *scales, u32 blocks, u32 rows, const i8 *x, u64 x_stride, u32 count,      \
             const i64 *bias, const f32 *row_scales, f32 scale, f32 unit, const f32 *x_scales, i64 *sums, f32 *out) {              \
        product_of_rows<BITS, BLOCK, EIGHTS>(weights, row_bytes, scales, blocks, x, x_stride, count,                               \
                                             Finish{bias, row_scales, scale, unit, x_scales, sums, out, rows});                    \
    }
ROWS(linear_mma_rows_2, 2, 0, 1)
ROWS(linear_mma_rows_2_64, 2, 64, 1)
ROWS(linear_mma_rows_2_256, 2, 256, 1)
ROWS(linear_mma_rows_4, 4, 0, 1)
ROWS(linear_mma_rows_4_32, 4, 32, 1)
ROWS(linear_mma_rows_8, 8, 0, 1)
ROWS(linear_mma_rows_8_32, 8, 32, 1)
ROWS(linear_mma_rows16_2, 2, 0, 2)
ROWS(linear_mma_rows16_2_64, 2, 64, 2)
ROWS(linear_mma_rows16_2_256, 2, 256, 2)
ROWS(linear_mma_rows16_4, 4, 0, 2)
ROWS(linear_mma_rows16_4_32, 4, 32, 2)
ROWS(linear_mma_rows16_8, 8, 0, 2)
ROWS(linear_mma_rows16_8_32, 8, 32, 2)
