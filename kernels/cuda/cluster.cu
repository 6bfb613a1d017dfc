// k-means over int8 rows: assignment by dp4a, sums of members, and centroids from sums.
//
// Roofline: assignment does n·k·d multiply-adds, four an instruction, for n·d bytes: from k = 64 on arithmetic is the limit. Sums
// read d bytes of each point whose label changed and add as many integers to a table in L2 (in shared memory where it fits): the
// atomics are the limit until few labels change. All else is k·d.

#include "tercet/cluster.cuh"

using namespace tercet;

// Points and centroids of a tile, bytes of each that are in shared memory at a time, and bytes from row to row there: 80, so that
// eight rows' vectors of 16 bytes lie in different banks.
const u32 TILE = 64, PART = 64, PITCH = 80;

// Every point's nearest centroid, by tiles of 64 points and 64 centroids; a thread has 4 by 4 of them.
//
// With `indices`, the i-th point is the row of that index, and only labels are written. Then `previous` is null.
extern "C" __global__ void __launch_bounds__(256) cluster_assign(const i8 *points, u32 stride, u32 count, const u32 *indices,
                                                                 const u32 *weights, const u32 *lengths, const i8 *centroids,
                                                                 const i32 *norms, u32 clusters, u32 *labels, u32 *previous,
                                                                 u32 *distances, u64 *result) {
    alignas(16) __shared__ u8 rows[TILE * PITCH];
    alignas(16) __shared__ u8 columns[TILE * PITCH];
    __shared__ i32 column_norms[TILE];
    const u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    // The vector that this thread brings of each part.
    const u32 line = threadIdx.x / 4, vector = threadIdx.x % 4 * 16;
    const u64 first = (u64)blockIdx.x * TILE;
    const i8 *row = nullptr;
    if (first + line < count) {
        u64 index = indices == nullptr ? first + line : indices[first + line];
        row = points + index * stride;
    }
    const u32x4 zeros = {0, 0, 0, 0};
    u64 best[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) best[i] = ~0ull;
    for (u32 base = 0; base < clusters; base += TILE) {
        const i8 *column = base + line < clusters ? centroids + (u64)(base + line) * stride : nullptr;
        i32 dots[4][4] = {};
        for (u32 part = 0; part < stride; part += PART) {
            bool there = part + vector < stride;
            __syncthreads();
            store16(rows + line * PITCH + vector, there && row != nullptr ? load16(row + part + vector) : zeros);
            store16(columns + line * PITCH + vector, there && column != nullptr ? load16(column + part + vector) : zeros);
            if (part == 0 && threadIdx.x < TILE && base + threadIdx.x < clusters) {
                column_norms[threadIdx.x] = norms[base + threadIdx.x];
            }
            __syncthreads();
            u32 bytes = stride - part < PART ? stride - part : PART;
            for (u32 at = 0; at < bytes; at += 16) {
                u32x4 a[4], b[4];
#pragma unroll
                for (u32 i = 0; i < 4; i++) {
                    a[i] = load16(rows + (ty * 4 + i) * PITCH + at);
                    b[i] = load16(columns + (tx + 16 * i) * PITCH + at);
                }
#pragma unroll
                for (u32 i = 0; i < 4; i++) {
#pragma unroll
                    for (u32 j = 0; j < 4; j++) dots[i][j] = dot16(a[i], b[j], dots[i][j]);
                }
            }
        }
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 label = base + tx + 16 * j;
            if (label < clusters) {
                i32 norm = column_norms[tx + 16 * j];
#pragma unroll
                for (u32 i = 0; i < 4; i++) best[i] = least(best[i], ranked(norm - 2 * dots[i][j], label));
            }
        }
    }
    Labels state = {weights, lengths, labels, previous, distances, 0, 0};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
#pragma unroll
        for (u32 step = 8; step > 0; step /= 2) best[i] = least(best[i], __shfl_xor_sync(FULL_WARP, best[i], step));
        u64 point = first + ty * 4 + i;
        if (tx == i && point < count) state.settle(point, best[i]);
    }
    if (previous != nullptr) {
        block_add(state.inertia, result + INERTIA);
        block_add(state.changed, result + CHANGED);
    }
}

// Squared lengths of rows, eight threads a row.
extern "C" __global__ void __launch_bounds__(256) cluster_norms(const i8 *rows, u32 stride, u32 count, u32 *norms) {
    u64 row = (u64)blockIdx.x * 32 + threadIdx.x / 8;
    i32 norm = 0;
    if (row < count) {
        for (u32 at = threadIdx.x % 8 * 16; at < stride; at += 128) {
            u32x4 x = load16(rows + row * stride + at);
            norm = dot16(x, x, norm);
        }
    }
#pragma unroll
    for (u32 step = 4; step > 0; step /= 2) norm += __shfl_xor_sync(FULL_WARP, norm, step);
    if (row < count && threadIdx.x % 8 == 0) norms[row] = (u32)norm;
}

// Rows of `dims` bytes one after another as rows of `stride` bytes; a thread makes 16 of them.
extern "C" __global__ void __launch_bounds__(256) cluster_pack(const i8 *from, u32 dims, u32 count, i8 *to, u32 stride) {
    u32 vectors = stride / 16;
    u64 all = (u64)count * vectors;
    for (u64 index = (u64)blockIdx.x * 256 + threadIdx.x; index < all; index += (u64)gridDim.x * 256) {
        u64 row = index / vectors;
        u32 at = (u32)(index % vectors) * 16;
        u32 words[4] = {0, 0, 0, 0};
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            if (at + i < dims) words[i / 4] |= (u32)(u8)from[row * dims + at + i] << (i % 4 * 8);
        }
        store16(to + row * stride + at, u32x4{words[0], words[1], words[2], words[3]});
    }
}

// What a point's change of cluster is: none to leave where all points are added anew, no weight where nothing changes.
struct Move {
    u32 from, to, row, weight;
};

// Points that a warp looks at together, four a lane, and how many of those that move it reads the rows of at once; a macro, so that others can be
// tried.
#ifndef TERCET_MOVES_AT_ONCE
#define TERCET_MOVES_AT_ONCE 4
#endif
const u32 WARPS = 256 / WARP, EACH = 4, LOOK = WARP * EACH, AT_ONCE = TERCET_MOVES_AT_ONCE;

// The labels of a lane's four points, or none before any and past the last.
TERCET_FN void load_labels(u32 (&out)[EACH], const u32 *labels, u64 first, u32 count) {
    if (labels != nullptr && first + EACH <= count) {
        const u32x4 found = load16(labels + first);
        out[0] = found.x, out[1] = found.y, out[2] = found.z, out[3] = found.w;
    } else {
#pragma unroll
        for (u32 i = 0; i < EACH; i++) out[i] = labels != nullptr && first + i < count ? labels[first + i] : UNLABELLED;
    }
}

// Calls `counted(move)` by one lane for each point whose cluster changes, and `added(move, coordinate, value)` for all its coordinates that
// are not 0.
//
// Most points of most steps stay where they are, so a warp looks at 128 labels before and after in two loads. Rows of those that move are then
// read four at a time, by as many lanes each as they have coordinates, a power of two up to 32.
template <class Counted, class Added>
TERCET_FN void for_each_move(const i8 *points, u32 stride, u32 dims, u32 count, const u32 *indices, const u32 *weights,
                             const u32 *previous, const u32 *labels, Counted counted, Added added) {
    __shared__ u32 movers[WARPS][WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 team = dims >= WARP ? WARP : 1u << (32 - leading_zeros(dims - 1)), teams = WARP / team;
    for (u64 first = ((u64)blockIdx.x * WARPS + warp) * LOOK; first < count; first += (u64)gridDim.x * WARPS * LOOK) {
        u32 from[EACH], to[EACH];
        load_labels(from, previous, first + lane * EACH, count);
        load_labels(to, labels, first + lane * EACH, count);
        bool any = false;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) any |= from[i] != to[i];
        if (__ballot_sync(FULL_WARP, any) == 0) continue;
#pragma unroll 1
        for (u32 i = 0; i < EACH; i++) {
            Move move = {from[0], to[0], 0, 0};
            // The next in its place: an index that is not known would move them to memory.
#pragma unroll
            for (u32 j = 1; j < EACH; j++) from[j - 1] = from[j], to[j - 1] = to[j];
            if (move.from != move.to) {
                const u64 point = first + lane * EACH + i;
                move.row = indices == nullptr ? (u32)point : indices[point];
                move.weight = weight_of(weights, move.row);
            }
            const bool moves = move.weight > 0;
            const u32 all = __ballot_sync(FULL_WARP, moves), moved = popcount(all);
            if (moves) {
                movers[warp][popcount(all & ((1u << lane) - 1))] = lane;
                counted(move);
            }
            __syncwarp();
            for (u32 next = lane / team; next < (moved + teams - 1) / teams * teams; next += teams * AT_ONCE) {
                Move taken[AT_ONCE];
                const i8 *rows[AT_ONCE];
#pragma unroll
                for (u32 j = 0; j < AT_ONCE; j++) {
                    const bool there = next + j * teams < moved;
                    const u32 mover = there ? movers[warp][next + j * teams] : 0;
                    taken[j].from = __shfl_sync(FULL_WARP, move.from, mover);
                    taken[j].to = __shfl_sync(FULL_WARP, move.to, mover);
                    taken[j].row = __shfl_sync(FULL_WARP, move.row, mover);
                    taken[j].weight = __shfl_sync(FULL_WARP, move.weight, mover);
                    rows[j] = there ? points + (u64)taken[j].row * stride : nullptr;
                }
                for (u32 at = lane % team; at < dims; at += team) {
                    i32 values[AT_ONCE];
#pragma unroll
                    for (u32 j = 0; j < AT_ONCE; j++) values[j] = rows[j] == nullptr ? 0 : rows[j][at];
#pragma unroll
                    for (u32 j = 0; j < AT_ONCE; j++) {
                        if (values[j] != 0) added(taken[j], at, values[j]);
                    }
                }
            }
            __syncwarp();
        }
    }
}

// Adds the points whose labels changed to the sums and counts of their clusters, and takes them from their previous ones'; with no
// `previous`, adds all. Integers wrap where a sum falls below 0, and come out as what they are.
extern "C" __global__ void __launch_bounds__(256) cluster_accumulate(const i8 *points, u32 stride, u32 dims, u32 count,
                                                                     const u32 *indices, const u32 *weights, const u32 *previous,
                                                                     const u32 *labels, u64 *sums, u64 *counts) {
    auto counted = [&](const Move &move) {
        atomicAdd(counts + move.to, (u64)move.weight);
        if (move.from != UNLABELLED) atomicAdd(counts + move.from, (u64)0 - move.weight);
    };
    auto added = [&](const Move &move, u32 at, i32 coordinate) {
        const i64 value = (i64)coordinate * (i64)move.weight;
        atomicAdd(sums + (u64)move.to * dims + at, (u64)value);
        if (move.from != UNLABELLED) atomicAdd(sums + (u64)move.from * dims + at, (u64)-value);
    };
    for_each_move(points, stride, dims, count, indices, weights, previous, labels, counted, added);
}

// The same without weights and indices, for tables of sums and counts that fit shared memory as i32, which the launch gives.
//
// A block takes fewer than 2^24 points, so no sum leaves 32 bits.
extern "C" __global__ void __launch_bounds__(256) cluster_accumulate_shared(const i8 *points, u32 stride, u32 dims, u32 count,
                                                                            const u32 *previous, const u32 *labels, u32 clusters,
                                                                            u64 *sums, u64 *counts) {
    TERCET_SHARED(i32, table);
    const u32 cells = clusters * dims;
    for (u32 cell = threadIdx.x; cell < cells + clusters; cell += 256) table[cell] = 0;
    __syncthreads();
    auto counted = [&](const Move &move) {
        atomicAdd(table + cells + move.to, 1);
        if (move.from != UNLABELLED) atomicAdd(table + cells + move.from, -1);
    };
    auto added = [&](const Move &move, u32 at, i32 value) {
        atomicAdd(table + move.to * dims + at, value);
        if (move.from != UNLABELLED) atomicAdd(table + move.from * dims + at, -value);
    };
    for_each_move(points, stride, dims, count, nullptr, nullptr, previous, labels, counted, added);
    __syncthreads();
    for (u32 cell = threadIdx.x; cell < cells + clusters; cell += 256) {
        i64 value = table[cell];
        if (value != 0) atomicAdd(cell < cells ? sums + cell : counts + (cell - cells), (u64)value);
    }
}
