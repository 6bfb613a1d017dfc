// Assignment of k-means by the warpgroup products of Hopper: int8 products of 64 x 128 x 32, for compute capability 9.0 alone.
//
// Roofline: as `cluster_mma.cu`, n·k·d multiply-adds for n·d bytes, so arithmetic is the limit from k = 256 on. These products alone reach
// Hopper's int8 rate of 4,096 a clock and multiprocessor; mma.sync has at most 0.62 of it. A block, one a multiprocessor, has 256 points and goes
// through all centroids in tiles of 128. A step, 128 bytes of all their rows, takes 1,024 clocks of products, and meanwhile
//   - 16 KiB of centroids from L2: 16 bytes a clock, 3.7 TB/s of all 132 multiprocessors at 1.755 GHz;
//   - 96 KiB that products read of shared memory, and 16 KiB written: 112 bytes a clock of 128.
// A tile has 32,768 scores of a multiply-add and half a maximum: 512 clocks of the former's pipe. Half of them run beside products; the
// others, 256 clocks, and the barrier, some 80, are where nothing multiplies. So 0.75 of the rate is expected at d = 128, 0.86 at 256, 0.92 at
// 512: there it should win against mma.sync, from some hundred clusters on. At 64 it is 0.6, and below scores are the limit of both. Beyond 512
// bytes points would not stay in shared memory: 48 bytes a clock from L2 would be the limit.
// Measured on an H200 is a whole step over 1M points of 128 coordinates with 1,024 clusters: 0.44 ms, where cluster_mma.cu takes 0.75.

#include "tercet/cluster.cuh"
#include "tercet/warpgroup.cuh"

using namespace tercet;

const u32 THREADS = 256, WARPS = THREADS / WARP;
// Points and centroids of a tile, and bytes of their rows that are worked on at a time: a row of the swizzle's pattern. A step.
const u32 POINTS = 256, CENTROIDS = 128, PART = 128;
// A product's centroids, its rows, and a warpgroup's points, its columns.
const u32 ROWS = 64, COLUMNS = 128;
// Parts of points and of centroids that there is room for, and how many steps ahead of their use parts are asked for. Then what they take the
// place of was last used two steps ago or earlier, four before their own use. For centroids, each used in one step, that is plain. Points
// of p parts use each in all T tiles of centroids: the part four places on, m tiles of points later, is first used 4 + (m - 1) · p · (T - 1) steps
// after the last use of this one.
const u32 SLOTS = 4, AHEAD = 2;
const u32 POINT_BYTES = POINTS * PART, CENTROID_BYTES = CENTROIDS * PART;
static_assert(SLOTS == AHEAD + 2, "a slot is free two steps after its use");

// The longest rows: all parts of points stay.
const u32 LONGEST = SLOTS * PART;
static_assert((3ull << 14) * LONGEST < 1ull << 25, "a score and six bits fit");

// Below every key.
const i32 NO_KEY = (i32)0x80000000;

// How a score 2 x·c − ‖c‖² becomes a key: shifted up by `bits`, and below it the complement of the centroid's number among those that a
// warp's eight lanes of a point see, in the order of labels: of keys the largest is the best. In rows of `stride` bytes a score is at most
// 3 · 2¹⁴ · stride in magnitude, so keys fit 32 bits: 11 bits are left for rows of 16, 6 for rows of 512.
struct Keys {
    u32 bits, mask;
    i32 factor;

    static __device__ __forceinline__ Keys of(u32 stride) {
        Keys keys;
        keys.bits = leading_zeros(stride * (3u << 14)) - 1;
        keys.mask = (1u << keys.bits) - 1;
        keys.factor = (i32)(2u << keys.bits);
        return keys;
    }

    // The centroids of a window, in which numbers are: a tile of 128 has 32, as 16 rows of each warp are in each half of it.
    __device__ __forceinline__ u32 window() const { return CENTROIDS << (bits - 5); }

    // What is added to `factor` times a product. Past the last centroid the product is 0 and the key none.
    __device__ __forceinline__ i32 term(const i32 *norms, u32 label, u32 clusters, u32 number) const {
        return label < clusters ? (i32)(mask - number) - norms[label] * (1 << bits) : NO_KEY;
    }

    // The key's rank, for the sixteen rows from `first` on of each 64. No key ranks behind all.
    __device__ __forceinline__ u64 rank(i32 key, u32 first) const {
        const u32 number = mask - ((u32)key & mask);
        return ranked(-(key >> bits), first + number / 16 * ROWS + number % 16);
    }
};

// The place of a step: the tile of points, the first centroid, the part of rows, and the slot of the points' first part.
struct Cursor {
    u32 tile, base, part, slot;

    __device__ __forceinline__ void advance(u32 parts, u32 clusters) {
        if (++part < parts) return;
        part = 0;
        base += CENTROIDS;
        if (base < clusters) return;
        base = 0;
        tile += gridDim.x;
        slot += parts;
    }
};

// A part of `LINES` rows, in the order that products read, as an asynchronous group's part; zeros past a row's end and past the last row. Of a
// part as many bytes as `PRODUCTS` products take.
template <u32 LINES, u32 PRODUCTS>
TERCET_FN void bring(u8 *shared, const i8 *rows, u32 stride, u64 first, u64 count, u32 part) {
    const u32 vector = threadIdx.x % 8, at = part + vector * 16;
    if (vector >= PRODUCTS * 2) return;
#pragma unroll
    for (u32 i = 0; i < LINES; i += THREADS / 8) {
        const u32 line = i + threadIdx.x / 8;
        const bool there = first + line < count && at < stride;
        copy_async16(shared + line * PART + (vector ^ line % 8) * 16, there ? rows + (first + line) * stride + at : rows, there ? 16 : 0);
    }
}

// 64 rows by 128 columns over a part, as a group; `first` where sums begin.
//
// Straight-line code: with a branch between products ptxas counts each stretch as a group of its own, and a wait for this one waits for what was
// begun after it too.
template <u32 PRODUCTS>
TERCET_FN void multiply(i32 (&sums)[64], u64 rows, u64 columns, bool first) {
    if (first) {
        wgmma_m64n128k32_first(sums, rows, columns);
    } else {
        wgmma_m64n128k32(sums, rows, columns);
    }
#pragma unroll
    for (u32 i = 1; i < PRODUCTS; i++) wgmma_m64n128k32(sums, matrix_at(rows, i * 32), matrix_at(columns, i * 32));
    wgmma_commit();
}

// The best keys of a lane's 32 points so far, with those of the lane's two rows.
TERCET_FN void take(i32 (&best)[32], const i32 (&sums)[64], const Keys &keys, const i32 (&terms)[2]) {
#pragma unroll
    for (u32 point = 0; point < 32; point++) {
        const u32 at = point / 2 * 4 + point % 2;
        const i32 one = sums[at] * keys.factor + terms[0], other = sums[at + 2] * keys.factor + terms[1];
        const i32 better = one > other ? one : other;
        best[point] = better > best[point] ? better : best[point];
    }
}

// Ends a window that began at a centroid: its keys become ranks of the four points that are left to each lane.
TERCET_FN void close_window(u64 (&ranks)[4], i32 (&best)[32], const Keys &keys, u32 window) {
    share<16, 16>(best);
    share<8, 8>(best);
    share<4, 4>(best);
#pragma unroll
    for (u32 i = 0; i < 4; i++) ranks[i] = least(ranks[i], keys.rank(best[i], window + threadIdx.x / WARP % 4 * 16));
#pragma unroll
    for (u32 i = 0; i < 32; i++) best[i] = NO_KEY;
}

// Ends a tile of points: of the four warps that saw a point, the least rank. `table` is free when the block has met since it was last used.
TERCET_FN void close_tile(Labels &state, u64 (&ranks)[4], u64 (&table)[WARPS][COLUMNS], u64 first, u32 count) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        // In three steps of `share` the lane kept the half that its own bits name.
        const u32 point = (threadIdx.x & 28) + i;
        table[threadIdx.x / WARP][point / 2 * 8 + threadIdx.x % 4 * 2 + point % 2] = ranks[i];
        ranks[i] = ~0ull;
    }
    __syncthreads();
    u64 rank = ~0ull;
#pragma unroll
    for (u32 i = 0; i < 4; i++) rank = least(rank, table[threadIdx.x / COLUMNS * 4 + i][threadIdx.x % COLUMNS]);
    if (first + threadIdx.x < count) state.settle(first + threadIdx.x, rank);
    __syncwarp();
}

// As `cluster_assign` without indices, for rows of at most 512 bytes: of every part of 128 bytes `PRODUCTS` times 32 are worked on. Blocks take tiles
// of points in turn; each has one at least. Dynamic shared memory: four parts of points, four of centroids, and 1,008 bytes, for they begin at a
// multiple of 1024.
//
// A warpgroup has 128 points, the columns of its products, and all centroids as their rows: 64 in `low`, then 64 in `high`. Sums of one are
// taken while the products of the other run. The compiler is known to wait for products in the right places where none runs over the end
// of a loop that reads its sums.
template <u32 PRODUCTS>
TERCET_FN void assign(const i8 *points, u32 stride, u32 count, const u32 *weights, const u32 *lengths, const i8 *centroids, const i32 *norms,
                      u32 clusters, u32 *labels, u32 *previous, u32 *distances, u64 *result) {
    TERCET_SHARED(u8, memory);
    __shared__ u64 table[WARPS][COLUMNS];
    u8 *const point_slots = memory + (0u - shared_address(memory)) % 1024, *const centroid_slots = point_slots + SLOTS * POINT_BYTES;
    const u64 columns = matrix_128(point_slots + threadIdx.x / COLUMNS * COLUMNS * PART), rows = matrix_128(centroid_slots);
    const u32 parts = (stride + PART - 1) / PART, tiles = count / POINTS + (count % POINTS != 0);
    const Keys keys = Keys::of(stride);

    // What comes in, in the order of steps.
    Cursor next = {blockIdx.x, 0, 0, 0};
    u32 next_slot = 0;
    auto bring_next = [&]() {
        if (next.tile < tiles) {
            const u32 part = next.part * PART;
            bring<CENTROIDS, PRODUCTS>(centroid_slots + next_slot % SLOTS * CENTROID_BYTES, centroids, stride, next.base, clusters, part);
            if (next.base == 0) {
                u8 *const to = point_slots + (next.slot + next.part) % SLOTS * POINT_BYTES;
                bring<POINTS, PRODUCTS>(to, points, stride, (u64)next.tile * POINTS, count, part);
            }
            next.advance(parts, clusters);
            next_slot++;
        }
        copy_async_commit();
        // Short rows part the lanes of a warp, and what products do is for whole warps.
        __syncwarp();
    };
    for (u32 i = 0; i < AHEAD; i++) bring_next();

    Labels state = {weights, lengths, labels, previous, distances, 0, 0};
    i32 low[64], high[64], best[32];
    u64 ranks[4] = {~0ull, ~0ull, ~0ull, ~0ull};
#pragma unroll
    for (u32 i = 0; i < 32; i++) best[i] = NO_KEY;
    Cursor at = {blockIdx.x, 0, 0, 0};
    u32 slot = 0, window = 0;
    // The products of a step, when all threads have their part of what it needs there.
    auto step = [&](bool first) {
        copy_async_wait<AHEAD - 1>();
        fence_proxy_async();
        __syncthreads();
        const u64 a = matrix_at(rows, slot++ % SLOTS * CENTROID_BYTES), b = matrix_at(columns, (at.slot + at.part) % SLOTS * POINT_BYTES);
        wgmma_fence();
        multiply<PRODUCTS>(low, a, b, first);
        multiply<PRODUCTS>(high, matrix_at(a, ROWS * PART), b, first);
    };
    while (at.tile < tiles) {
        step(true);
        // What is left to do of the tiles before, beside the products.
        if (at.base == 0 || at.base - window == keys.window()) {
            close_window(ranks, best, keys, window);
            window = at.base;
            if (at.base == 0 && at.tile != blockIdx.x) close_tile(state, ranks, table, (u64)(at.tile - gridDim.x) * POINTS, count);
        }
        const u32 row = threadIdx.x / WARP % 4 * 16 + threadIdx.x % WARP / 4;
        const u32 label = at.base + row, number = (at.base - window) / CENTROIDS * 32 + threadIdx.x % WARP / 4;
        i32 low_terms[2], high_terms[2];
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            low_terms[i] = keys.term(norms, label + i * 8, clusters, number + i * 8);
            high_terms[i] = keys.term(norms, label + ROWS + i * 8, clusters, number + 16 + i * 8);
        }
        while (at.part + 1 < parts) {
            bring_next();
            at.part++;
            step(false);
            // The part before is done with, so that its slot is free two steps after it.
            wgmma_wait<2>();
        }
        wgmma_wait<1>(low);
        take(best, low, keys, low_terms);
        bring_next();
        wgmma_wait<0>(high);
        take(best, high, keys, high_terms);
        at.advance(parts, clusters);
    }
    close_window(ranks, best, keys, window);
    __syncthreads();
    close_tile(state, ranks, table, (u64)(at.tile - gridDim.x) * POINTS, count);
    block_add(state.inertia, result + INERTIA);
    block_add(state.changed, result + CHANGED);
}

#define ASSIGN(name, products)                                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) name(                                                                          \
        const i8 *points, u32 stride, u32 count, const u32 *weights, const u32 *lengths, const i8 *centroids, const i32 *norms,             \
        u32 clusters, u32 *labels, u32 *previous, u32 *distances, u64 *result) {                                                            \
        assign<products>(points, stride, count, weights, lengths, centroids, norms, clusters, labels, previous, distances, result);         \
    }

// For rows of up to 32, 64 and 512 bytes.
ASSIGN(cluster_assign_wgmma_32, 1)
ASSIGN(cluster_assign_wgmma_64, 2)
ASSIGN(cluster_assign_wgmma, 4)
