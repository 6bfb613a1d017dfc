// Rows of weights by many rows of int8 activations on tensor cores (m16n8k32), from 8.0.
//
// Roofline: 2 · rows · cols · count operations; a block reads 128 rows of both sides for 128 · 128 outputs (64 rows of activations with
// blocks), so arithmetic is the limit. Without blocks that is the tensor cores', of whose int8 rate mma.sync reaches about 0.62 on Hopper.
// With blocks each of a block's sums takes one multiplication of 32 by 32 bits with an addition of 64, of which a multiprocessor does 32 to
// 64 a clock: for 32, 64 or 256 columns that is 1,024 to 2,048 products a clock and multiprocessor, twice and eight times as many; an H200's
// mma.sync does about 2,600. By dp4a it would be 256 at most.

#include "tercet/device.cuh"
#include "tercet/linear.cuh"

using namespace tercet;

// Warps of a block.
const u32 WARPS_OF_BLOCK = 8;
// Columns of a step, and bytes of a row of a tile in shared memory: 16 more, so that the rows of a matrix load meet no bank twice.
const u32 STEP = 64;
const u32 PITCH = STEP + 16;
// Rows of weights of a block.
const u32 TILE_ROWS = 128;

// Half a step of a row of weights on its way to shared memory: thread 2r + h brings half h of row r. It is loaded before the products of
// the step before, and decoded after them; bytes need no decoding and are copied beside the code.
template <u32 BITS, u32 BLOCK>
struct Bringer {
    typedef Packed<BITS> Codes;
    // The row, its scales, and how many bytes and blocks it has.
    const u8 *row;
    const u16 *scales;
    u32 row_bytes, blocks, half;
    // 32 columns, and the scale of their block.
    u32 words[BITS == 8 ? 1 : BITS], scale;

    __device__ __forceinline__ void load(u32 step, u8 *to) {
        u32 at = step * (STEP * BITS / 8) + half * (32 * BITS / 8);
        bool there = at < row_bytes;
        if (BITS == 8) {
            // Rows are multiples of 16 bytes, which may be half of this.
            bool more = at + 16 < row_bytes;
            copy_async16(to, there ? row + at : row, there ? 16 : 0);
            copy_async16(to + 16, more ? row + at + 16 : row, more ? 16 : 0);
        } else if (BITS == 4) {
            unpack(there ? load16(row + at) : u32x4{0, 0, 0, 0}, words);
        } else {
            u32x2 vector = there ? load8(row + at) : u32x2{0, 0};
            words[0] = vector.x;
            words[1] = vector.y;
        }
        if (BLOCK != 0) {
            u32 block = (step * STEP + half * 32) / (BLOCK != 0 ? BLOCK : 1);
            scale = block < blocks ? scales[block] : 0;
        }
    }

    // As int8.
    __device__ __forceinline__ void store(u8 *to) const {
        if constexpr (BITS != 8) {
            u32 quads[8];
#pragma unroll
            for (u32 q = 0; q < 8; q++) {
                // With the top bit of each byte set no borrow leaves it.
                const u32 TOP = 0x80808080u;
                u32 codes = Codes::quad(words[q / Codes::QUADS], q % Codes::QUADS);
                quads[q] = ((codes | TOP) - 0x01010101u * Codes::OFFSET) ^ TOP;
            }
            store16(to, u32x4{quads[0], quads[1], quads[2], quads[3]});
            store16(to + 16, u32x4{quads[4], quads[5], quads[6], quads[7]});
        }
    }
};

// A block of 128 rows of weights by COUNT rows of activations; a warp has 16 · DOWN by 32 of them. With BLOCK, scales are below 128 and
// there is one for each BLOCK columns.
template <u32 BITS, u32 BLOCK, u32 COUNT, u32 DOWN>
TERCET_FN void product_of_tile(const u8 *weights, u64 row_bytes, const u16 *scales, u32 blocks, const i8 *x, u64 x_stride, u32 count,
                               const Finish &finish) {
    const u32 ACROSS = 4;
    const u32 WARPS_DOWN = TILE_ROWS / (16 * DOWN);
    alignas(16) __shared__ u8 of_weights[2][TILE_ROWS * PITCH];
    alignas(16) __shared__ u8 of_x[2][COUNT * PITCH];
    __shared__ i32 of_scales[2][2][BLOCK != 0 ? TILE_ROWS : 1];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, group = lane / 4, t = lane % 4;
    u32 first = blockIdx.x * TILE_ROWS, first_x = blockIdx.y * COUNT;
    u32 down = warp % WARPS_DOWN * 16 * DOWN, across = warp / WARPS_DOWN * 8 * ACROSS;
    u32 own = threadIdx.x / 2, half = threadIdx.x % 2;
    u64 row = first + own < finish.rows ? first + own : finish.rows - 1;
    // Below 2³² bytes, by core's bound on columns.
    Bringer<BITS, BLOCK> bringer = {weights + row * row_bytes, scales + row * blocks, (u32)row_bytes, blocks, half, {}, 0};
    const u32 place = own * PITCH + half * 32;
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
    // The weights of a step, and its activations beside the code; zeros past the last column and the last row.
    auto fetch = [&](u32 step, u32 slot) {
        bringer.load(step, of_weights[slot] + place);
#pragma unroll
        for (u32 turn = 0; turn < COUNT * (STEP / 16) / (WARPS_OF_BLOCK * WARP); turn++) {
            u32 i = turn * WARPS_OF_BLOCK * WARP + threadIdx.x;
            u32 x_row = first_x + i / 4;
            u32 at = step * STEP + i % 4 * 16;
            bool inside = x_row < count && at < (u32)x_stride;
            copy_async16(of_x[slot] + i / 4 * PITCH + i % 4 * 16, inside ? x + x_row * x_stride + at : x, inside ? 16 : 0);
        }
        copy_async_commit();
    };
    auto put_weights = [&](u32 slot) {
        bringer.store(of_weights[slot] + place);
        if (BLOCK != 0) of_scales[slot][half][own] = narrow_scale(bringer.scale);
    };
    u32 steps = ((u32)x_stride + STEP - 1) / STEP;
    fetch(0, 0);
    put_weights(0);
    for (u32 step = 0; step < steps; step++) {
        u32 slot = step % 2;
        copy_async_wait<0>();
        // What was fetched is there, and nobody reads the other slot any more.
        __syncthreads();
        if (step + 1 < steps) fetch(step + 1, 1 - slot);
        // One at a time where both would take more registers than there are.
#pragma unroll(BLOCK == 32 ? 1 : 2)
        for (u32 k = 0; k < STEP; k += 32) {
            // Whether a block begins here, and whether it ends.
            const bool anew = BLOCK == 32 || (BLOCK == STEP && k == 0);
            const bool ends = BLOCK == 32 || (k == 32 && (BLOCK == STEP || (BLOCK > STEP && (step + 1) % (BLOCK / STEP) == 0)));
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
                for (u32 j = 0; j < ACROSS; j++) {
                    if (anew) {
                        mma_m16n8k32_first(dots[i][j], a, b[j]);
                    } else {
                        mma_m16n8k32(dots[i][j], a, b[j]);
                    }
                }
                if (!ends) continue;
#pragma unroll
                for (u32 l = 0; l < 4; l++) {
                    i32 scale = of_scales[slot][k / 32][BLOCK != 0 ? down + 16 * i + 8 * (l / 2) + group : 0];
#pragma unroll
                    for (u32 j = 0; j < ACROSS; j++) {
                        sums[i][j][l] += (i64)dots[i][j][l] * scale;
                        if (BLOCK > STEP) dots[i][j][l] = 0;
                    }
                }
            }
        }
        if (step + 1 < steps) put_weights(1 - slot);
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
                i64 sum = bias + (BLOCK != 0 ? sums[i][j][k + l] : (i64)dots[i][j][k + l]);
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

#define TILE(NAME, BITS, BLOCK, COUNT, DOWN)                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 2)                                                                            \
        NAME(const u8 *weights, u64 row_bytes, const u16 *scales, u32 blocks, u32 rows, const i8 *x, u64 x_stride, u32 count,      \
             const i64 *bias, const f32 *row_scales, f32 scale, f32 unit, const f32 *x_scales, i64 *sums, f32 *out) {              \
        product_of_tile<BITS, BLOCK, COUNT, DOWN>(weights, row_bytes, scales, blocks, x, x_stride, count,                          \
                                                  Finish{bias, row_scales, scale, unit, x_scales, sums, out, rows});               \
    }

TILE(linear_tile_2, 2, 0, 128, 4)
// The exact sums of blocks take two registers each: half as many outputs.
TILE(linear_tile_2_64, 2, 64, 64, 2)
TILE(linear_tile_2_256, 2, 256, 64, 2)
TILE(linear_tile_4, 4, 0, 128, 4)
TILE(linear_tile_4_32, 4, 32, 64, 2)
TILE(linear_tile_8, 8, 0, 128, 4)
TILE(linear_tile_8_32, 8, 32, 64, 2)
