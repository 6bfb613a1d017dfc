// Assignment of k-means to few centroids, which stay in registers: int8 products of 16 x 8 x 32, from compute capability 8.0.
//
// Roofline: a point's bytes and its 20 of labels, lengths and distances are the limit. A warp takes 32 points at a time: 2 to 8 loads of 16
// bytes a lane, straight from memory into the places of products; for 64 centroids of 32 bytes 16 products, 64 multiply-adds and as many maxima that make
// and compare keys, 28 instructions to share them, 30 for what belongs to a point. So some 210 instructions for 1,664 bytes: of Hopper's 4
// instructions a clock 53 clocks, where its memory takes 90 (4.3 TB/s of 132 multiprocessors at 1.8 GHz, 18 bytes a clock each).

#include "tercet/cluster.cuh"

using namespace tercet;

// Points that a warp has at a time: a column of products each, eight a product.
const u32 COLUMNS = 8, GROUPS = WARP / COLUMNS;

// The bits of a key below the score, and its least value. In rows of at most 128 bytes a score is below 3 · 2²¹ in magnitude.
const u32 BITS = 7, MASK = (1 << BITS) - 1;
const i32 NO_KEY = (i32)0x80000000;
static_assert((3ull << 21) * (1 << BITS) + MASK < 1ull << 31, "a key fits");

// The bytes of a row that a lane gives to products: of each 32 bytes two words. Which of a row's words are first does not matter to a product, as
// long as points and centroids have them in one order: so a lane's lie together. Zeros past the row's end.
template <u32 STEPS>
TERCET_FN void load_words(u32 (&words)[STEPS][2], const i8 *row, u32 stride) {
    const u32 part = threadIdx.x % 4;
    if constexpr (STEPS == 1) {
        const u32x2 found = row != nullptr && part * 8 < stride ? load8(row + part * 8) : u32x2{0, 0};
        words[0][0] = found.x, words[0][1] = found.y;
    } else {
#pragma unroll
        for (u32 step = 0; step < STEPS; step += 2) {
            const u32 at = step * 32 + part * 16;
            const u32x4 found = row != nullptr && at < stride ? load16(row + at) : u32x4{0, 0, 0, 0};
            words[step][0] = found.x, words[step][1] = found.y, words[step + 1][0] = found.z, words[step + 1][1] = found.w;
        }
    }
}

// As `cluster_assign` without indices, for at most 16 · TILES centroids in rows of at most 32 · STEPS bytes. Warps take points in turn.
template <u32 TILES, u32 STEPS>
TERCET_FN void assign(const i8 *points, u32 stride, u32 count, Labels &state, const i8 *centroids, const i32 *norms, u32 clusters) {
    const u32 lane = threadIdx.x % WARP, row = lane / 4;
    u32 tiles[TILES][STEPS][4];
    i32 terms[TILES][2];
#pragma unroll
    for (u32 m = 0; m < TILES; m++) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            const u32 label = m * 16 + half * 8 + row;
            u32 words[STEPS][2];
            load_words<STEPS>(words, label < clusters ? centroids + label * stride : nullptr, stride);
#pragma unroll
            for (u32 step = 0; step < STEPS; step++) tiles[m][step][half] = words[step][0], tiles[m][step][half + 2] = words[step][1];
            // A centroid past the last has zeros, and below all keys what is added to these.
            terms[m][half] = label < clusters ? (i32)(MASK - label) - norms[label] * (1 << BITS) : NO_KEY;
        }
    }
    for (u64 first = ((u64)blockIdx.x * 8 + threadIdx.x / WARP) * WARP; first < count; first += (u64)gridDim.x * 8 * WARP) {
        u32 columns[GROUPS][STEPS][2];
#pragma unroll
        for (u32 group = 0; group < GROUPS; group++) {
            const u64 point = first + group * COLUMNS + row;
            load_words<STEPS>(columns[group], point < count ? points + point * stride : nullptr, stride);
        }
        // Of each group the lane's two points.
        i32 best[2 * GROUPS];
#pragma unroll
        for (u32 group = 0; group < GROUPS; group++) {
            i32 low = NO_KEY, high = NO_KEY;
#pragma unroll
            for (u32 m = 0; m < TILES; m++) {
                i32 dots[4];
                mma_m16n8k32_first(dots, tiles[m][0], columns[group][0]);
#pragma unroll
                for (u32 step = 1; step < STEPS; step++) mma_m16n8k32(dots, tiles[m][step], columns[group][step]);
#pragma unroll
                for (u32 half = 0; half < 2; half++) {
                    const i32 one = dots[2 * half] * (2 << BITS) + terms[m][half], other = dots[2 * half + 1] * (2 << BITS) + terms[m][half];
                    low = one > low ? one : low;
                    high = other > high ? other : high;
                }
            }
            best[2 * group] = low, best[2 * group + 1] = high;
        }
        share<4, 16>(best);
        share<2, 8>(best);
        share<1, 4>(best);
        // In three steps of `share` the lane kept what its own bits name: two of them the group, the third which of its two columns.
        const u64 point = first + lane / 8 * COLUMNS + lane % 4 * 2 + lane / 4 % 2;
        if (point < count) state.settle(point, ranked(-(best[0] >> BITS), MASK - ((u32)best[0] & MASK)));
        __syncwarp();
    }
}

// TILES · 16 centroids of STEPS · 32 bytes take TILES · STEPS · 4 registers: as many blocks fit a multiprocessor.
#define ASSIGN(clusters_up_to, bytes_up_to, blocks)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, blocks) cluster_assign_few_##clusters_up_to##x##bytes_up_to(                          \
        const i8 *points, u32 stride, u32 count, const u32 *weights, const u32 *lengths, const i8 *centroids, const i32 *norms,             \
        u32 clusters, u32 *labels, u32 *previous, u32 *distances, u64 *result) {                                                            \
        Labels state = {weights, lengths, labels, previous, distances, 0, 0};                                                               \
        assign<clusters_up_to / 16, bytes_up_to / 32>(points, stride, count, state, centroids, norms, clusters);                            \
        block_add(state.inertia, result + INERTIA);                                                                                         \
        block_add(state.changed, result + CHANGED);                                                                                         \
    }

ASSIGN(16, 32, 6)
ASSIGN(16, 64, 4)
ASSIGN(16, 128, 3)
ASSIGN(64, 32, 4)
ASSIGN(64, 64, 2)
ASSIGN(64, 128, 2)
ASSIGN(128, 32, 3)
ASSIGN(128, 64, 2)
