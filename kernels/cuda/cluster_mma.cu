// Assignment of k-means by tensor cores: int8 products of 16 x 8 x 32, from compute capability 8.0.
//
// Roofline: n·k·d multiply-adds for n·d bytes: from k = 256 on arithmetic is the limit. A block of 128 points goes through all centroids in
// tiles of 128; short points stay in shared memory, and centroids come in beside the products. Of Hopper's int8 rate mma.sync reaches about
// 0.62: 2,600 products a clock and multiprocessor, 20 scores of 128 coordinates. A score takes two instructions more, the norm among
// them (`Nearest`), each 64 a clock on a pipe of its own: 32 to 64 scores. So tensor cores are the limit from 128 coordinates on; for 32 it
// is the scores.

#include "tercet/cluster.cuh"

using namespace tercet;

// Points and centroids of a tile; bytes of a row that are brought at a time; from row to row in shared memory 16 more, so that eight
// rows' vectors of 16 bytes lie in different banks.
const u32 TILE = 128, PART = 64, PITCH = PART + 16;
const u32 PANEL = TILE * PITCH;

// The longest rows whose scores times 16 fit 32 bits: ‖c‖² − 2 x·c is at most 3 · 2¹⁴ in magnitude for each coordinate.
const u32 SHORT = 2720;
static_assert(48ull * (SHORT << 14) + 15 < 1ull << 31, "a score times 16 and a column fit");

// A lane's best centroid so far for one of its points, by 2 x·c − ‖c‖²: the larger, of equals the lower label.
struct Nearest {
    i32 score;
    u32 label;

    __device__ __forceinline__ void offer(i32 found, u32 column) {
        if (found > score) {
            score = found;
            label = column;
        }
    }

    __device__ __forceinline__ u64 rank() const { return ranked(-score, label); }
};

// What a lane's column adds to 32 x·c: the key of a short score, 16 times the score and 15 less the column's number among the lane's 16,
// so that one shift and addition makes a key and one maximum keeps it. A column past the last centroid is below all.
TERCET_FN i32 column_key(bool there, i32 norm, u32 column) {
    u32 number = column % 64 / 8 * 2 + column % 2;
    return there ? (i32)(15 - number) - 16 * norm : (i32)0x80000000;
}

// 128 rows' bytes from `part` on, as an asynchronous group's part; zeros past a row's end and past the last row.
TERCET_FN void bring(u8 *shared, const i8 *rows, u32 stride, u64 first, u64 count, u32 part) {
#pragma unroll
    for (u32 i = threadIdx.x; i < TILE * (PART / 16); i += 256) {
        u32 line = i / (PART / 16), at = i % (PART / 16) * 16;
        bool there = first + line < count && part + at < stride;
        copy_async16(shared + line * PITCH + at, there ? rows + (first + line) * stride + part + at : rows, there ? 16 : 0);
    }
}

// The place of a step: the tile of points, the first centroid, the part of rows.
struct Place {
    u32 tile, base, part;

    __device__ __forceinline__ void advance(u32 parts, u32 clusters) {
        if (++part < parts) return;
        part = 0;
        base += TILE;
        if (base < clusters) return;
        base = 0;
        tile += gridDim.x;
    }
};

// As `cluster_assign` without indices. Blocks take tiles of points in turn; each has one at least. Dynamic shared memory: `point_panels` panels
// of points (all parts of a row and two at least, or two) and two of centroids.
//
// Warps lie four by two over the tile: each has 32 points by 64 centroids, two by eight products. A step's parts come in while the step before is
// worked on, the first of a tile of points while the last of the tile before is.
extern "C" __global__ void __launch_bounds__(256, 2) cluster_assign_mma(const i8 *points, u32 stride, u32 count, const u32 *weights,
                                                                        const u32 *lengths, const i8 *centroids, const i32 *norms,
                                                                        u32 clusters, u32 *labels, u32 *previous, u32 *distances,
                                                                        u32 point_panels, u64 *result) {
    TERCET_SHARED(u8, panels);
    // Of short rows each column's key, of others its norm.
    __shared__ i32 column_terms[TILE];
    __shared__ u64 halves[2][TILE];
    u8 *const rows = panels, *const columns = panels + point_panels * PANEL;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 row_base = warp % 4 * 32, column_base = warp / 4 * 64;
    const u32 parts = (stride + PART - 1) / PART, tiles = count / TILE + (count % TILE != 0);
    // Whether all parts of the points are there at once: then they come in with the first centroids. A row's only part takes turns with the next
    // tile's; of several, the first's place is free in the step of the last.
    const bool resident = point_panels >= parts;
    Place next = {blockIdx.x, 0, 0};
    u32 next_step = 0, next_turn = 0;
    i32 next_norm = 0;
    auto bring_next = [&]() {
        if (next.tile < tiles) {
            bring(columns + next_step % 2 * PANEL, centroids, stride, next.base, clusters, next.part * PART);
            if (!resident || next.base == 0) {
                const u32 panel = !resident ? next_step % 2 : parts == 1 ? next_turn % 2 : next.part;
                bring(rows + panel * PANEL, points, stride, (u64)next.tile * TILE, count, next.part * PART);
            }
            if (next.part == 0 && threadIdx.x < TILE) {
                next_norm = next.base + threadIdx.x < clusters ? norms[next.base + threadIdx.x] : 0;
            }
            const u32 tile = next.tile;
            next.advance(parts, clusters);
            next_turn += next.tile != tile;
            next_step++;
        }
        copy_async_commit();
    };
    bring_next();
    const bool is_short = stride <= SHORT;
    Labels state = {weights, lengths, labels, previous, distances, 0, 0};
    Nearest best[2][2];
    i32 dots[2][8][4];
#pragma unroll
    for (u32 m = 0; m < 2; m++) best[m][0] = best[m][1] = Nearest{-0x7FFFFFFF, UNLABELLED};
    Place at = {blockIdx.x, 0, 0};
    u32 turn = 0;
    for (u32 step = 0; at.tile < tiles; step++) {
        const u32 part = at.part, base = at.base;
        if (part == 0 && threadIdx.x < TILE) {
            // The last tile's were read before the barrier that ended its step.
            column_terms[threadIdx.x] = is_short ? column_key(base + threadIdx.x < clusters, next_norm, threadIdx.x) : next_norm;
        }
        // The next part comes in while this one is worked on.
        bring_next();
        copy_async_wait<1>();
        __syncthreads();
        const u32 panel = !resident ? step % 2 : parts == 1 ? turn % 2 : part;
        const u8 *a_panel = rows + panel * PANEL, *b_panel = columns + step % 2 * PANEL;
        const u32 bytes = stride - part * PART < PART ? stride - part * PART : PART;
        // 32 bytes of a row, into products that begin with them where it is the first.
        auto multiply = [&](u32 at, bool first_of_row) {
            // Lane 8i + r names row r of the i-th 8 x 16 bytes: rows 0 and 8 of the first half, then of the second.
            u32 a[2][4];
#pragma unroll
            for (u32 m = 0; m < 2; m++) {
                load_matrices(a[m], a_panel + (row_base + m * 16 + lane % 16) * PITCH + at + lane / 16 * 16);
            }
#pragma unroll
            for (u32 n = 0; n < 8; n += 2) {
                // Both halves of eight centroids, then of the next eight.
                u32 b[4];
                load_matrices(b, b_panel + (column_base + n * 8 + lane / 16 * 8 + lane % 8) * PITCH + at + lane / 8 % 2 * 16);
                const u32 low[2] = {b[0], b[1]}, high[2] = {b[2], b[3]};
#pragma unroll
                for (u32 m = 0; m < 2; m++) {
                    if (first_of_row) {
                        mma_m16n8k32_first(dots[m][n], a[m], low);
                        mma_m16n8k32_first(dots[m][n + 1], a[m], high);
                    } else {
                        mma_m16n8k32(dots[m][n], a[m], low);
                        mma_m16n8k32(dots[m][n + 1], a[m], high);
                    }
                }
            }
        };
        if (part == 0) {
            multiply(0, true);
        } else {
            multiply(0, false);
        }
        if (bytes > 32) multiply(32, false);
        if (part + 1 == parts && is_short) {
#pragma unroll
            for (u32 m = 0; m < 2; m++) {
#pragma unroll
                for (u32 half = 0; half < 2; half++) {
                    i32 key = (i32)0x80000000;
#pragma unroll
                    for (u32 n = 0; n < 8; n++) {
#pragma unroll
                        for (u32 i = 0; i < 2; i++) {
                            const i32 other = 32 * dots[m][n][2 * half + i] + column_terms[column_base + n * 8 + lane % 4 * 2 + i];
                            key = other > key ? other : key;
                        }
                    }
                    const u32 number = 15 - (u32)(key & 15);
                    best[m][half].offer(key >> 4, base + column_base + number / 2 * 8 + lane % 4 * 2 + number % 2);
                }
            }
        } else if (part + 1 == parts) {
#pragma unroll
            for (u32 n = 0; n < 8; n++) {
#pragma unroll
                for (u32 i = 0; i < 2; i++) {
                    const u32 column = column_base + n * 8 + lane % 4 * 2 + i, label = base + column;
                    if (label < clusters) {
#pragma unroll
                        for (u32 m = 0; m < 2; m++) {
                            best[m][0].offer(2 * dots[m][n][i] - column_terms[column], label);
                            best[m][1].offer(2 * dots[m][n][2 + i] - column_terms[column], label);
                        }
                    }
                }
            }
        }
        const u32 tile = at.tile;
        at.advance(parts, clusters);
        if (at.tile != tile) {
            turn++;
            // The four lanes of a row; the two warps beside each other meet in `halves`, whose last use a step's first barrier ended.
#pragma unroll
            for (u32 m = 0; m < 2; m++) {
#pragma unroll
                for (u32 i = 0; i < 2; i++) {
                    u64 rank = best[m][i].rank();
                    rank = least(rank, __shfl_xor_sync(FULL_WARP, rank, 1));
                    rank = least(rank, __shfl_xor_sync(FULL_WARP, rank, 2));
                    if (lane % 4 == 0) halves[warp / 4][row_base + m * 16 + i * 8 + lane / 4] = rank;
                    best[m][i] = Nearest{-0x7FFFFFFF, UNLABELLED};
                }
            }
        }
        // Before the next step writes where this one read.
        __syncthreads();
        const u64 point = (u64)tile * TILE + threadIdx.x;
        if (at.tile != tile && threadIdx.x < TILE && point < count) {
            state.settle(point, least(halves[0][threadIdx.x], halves[1][threadIdx.x]));
        }
    }
    block_add(state.inertia, result + INERTIA);
    block_add(state.changed, result + CHANGED);
}
