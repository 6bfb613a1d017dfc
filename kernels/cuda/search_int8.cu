// Keys of int8 rows for up to eight queries at once.
//
// Roofline: the rows are read once, `pitch` bytes each, 128 bytes of a row by a team of eight threads. At 4.8 TB/s an H200 reads 20 bytes a
// clock and multiprocessor. For a query a byte costs a quarter of a dp4a, and as much again once for a squared length that is not known: 5
// of the 64 dp4a a clock for each query. With one query a warp takes some 175 instructions for eight rows of 256 bytes, two fifths of what
// it may issue while these arrive.
// What keeps memory busy is what is under way: with one query a thread asks for four times 16 bytes before it uses any, 64 KiB a
// multiprocessor, twice what latency and bandwidth need. With more queries it is one, and dp4a, sums over teams and the reads of queries
// from shared memory take their turns: eight queries are a third of memory's rate. One row in thousands is written.

#include "tercet/device.cuh"
#include "tercet/search.cuh"

using namespace tercet;

TERCET_FN i32 dot16(u32x4 a, u32x4 b, i32 sum) {
    return dp4a((i32)a.x, (i32)b.x, dp4a((i32)a.y, (i32)b.y, dp4a((i32)a.z, (i32)b.z, dp4a((i32)a.w, (i32)b.w, sum))));
}

template <u32 Q>
TERCET_FN void scan(const i8 *rows, u64 pitch, const u32 *norms, const Chosen &chosen, const i8 *queries, const u32 *query_norms,
                    u32 metric, const Sink &sink) {
    TERCET_SHARED(u32x4, shared);
    u32 words = (u32)(pitch / 16);
    for (u32 at = threadIdx.x; at < words * Q; at += blockDim.x) shared[at] = load16(queries + 16 * (u64)at);
    __syncthreads();
    u32 member = threadIdx.x % TEAM;
    u64 team = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / TEAM, teams = (u64)gridDim.x * blockDim.x / TEAM;
    bool measure = metric != DOT && norms == nullptr;
    // All teams of a warp take as many turns: sums over a team are the warp's work.
    for (u64 turn = 0; turn < chosen.count; turn += teams) {
        u64 index = turn + team;
        bool there = index < chosen.count;
        u64 row = chosen.row(there ? index : 0);
        i32 dots[Q], norm = 0;
#pragma unroll
        for (u32 q = 0; q < Q; q++) dots[q] = 0;
        for (u32 at = member; there && at < words; at += TEAM) {
            u32x4 x = load16(rows + row * pitch + 16 * (u64)at);
            if (measure) norm = dot16(x, x, norm);
#pragma unroll
            for (u32 q = 0; q < Q; q++) dots[q] = dot16(x, shared[q * words + at], dots[q]);
        }
        norm = team_sum(norm);
#pragma unroll
        for (u32 q = 0; q < Q; q++) dots[q] = team_sum(dots[q]);
        if (there && member == 0) {
            u32 row_norm = measure ? (u32)norm : norms == nullptr ? 0 : norms[row];
#pragma unroll
            for (u32 q = 0; q < Q; q++) sink.take(q, index, row, integer_key(metric, dots[q], query_norms[q], row_norm));
        }
    }
}

// Adds up two values over a team: its lower half gets the sum of the first, its upper half that of the second.
TERCET_FN i32 pair_sum(const i32 (&values)[2], u32 half) {
    const i32 own = half == 0 ? values[0] : values[1], other = half == 0 ? values[1] : values[0];
    i32 sum = own + __shfl_xor_sync(FULL_WARP, other, TEAM / 2);
#pragma unroll
    for (u32 step = TEAM / 4; step > 0; step /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, step);
    return sum;
}

// Rows of a team, and vectors of each, that are under way together with one query; a macro, so that other numbers of vectors can be tried.
#ifndef TERCET_SEARCH_PARTS
#define TERCET_SEARCH_PARTS 2
#endif
const u32 PAIR = 2, PARTS = TERCET_SEARCH_PARTS;

// As `scan`, for one query.
TERCET_FN void scan_one(const i8 *rows, u64 pitch, const u32 *norms, const Chosen &chosen, const i8 *query, u32 query_norm, u32 metric,
                        const Sink &sink) {
    TERCET_SHARED(u32x4, shared);
    const u32 words = (u32)(pitch / 16);
    for (u32 at = threadIdx.x; at < words; at += blockDim.x) shared[at] = load16(query + 16 * (u64)at);
    __syncthreads();
    const u32 member = threadIdx.x % TEAM;
    // The row of the pair that this thread's half of the team has the sums of in the end.
    const u32 half = member / (TEAM / PAIR);
    const u64 team = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / TEAM, teams = (u64)gridDim.x * blockDim.x / TEAM;
    const bool measure = metric != DOT && norms == nullptr, look = metric != DOT && norms != nullptr;
    const u32 bar = sink.keys != nullptr ? 0 : sink.bars[0];
    // Of each pair's row: where it begins. Past `end` there is none.
    const u64 stride = teams * chosen.step * pitch;
    const i8 *from[PAIR] = {rows + chosen.row(team) * pitch, rows + chosen.row(team) * pitch + stride};
    const i8 *const end = rows + (chosen.row(chosen.count - 1) + 1) * pitch;
    // All teams of a warp take as many turns: sums over a team are the warp's work.
    for (u64 turn = 0; turn < chosen.count; turn += PAIR * teams) {
        const bool there = (half == 0 ? from[0] : from[1]) < end;
        const u32 known = look && there ? norms[chosen.row(turn + half * teams + team)] : 0;
        i32 dots[PAIR] = {}, squares[PAIR] = {};
#pragma unroll 1
        for (u32 at = member; at < words; at += PARTS * TEAM) {
            u32x4 x[PAIR][PARTS], y[PARTS];
#pragma unroll
            for (u32 p = 0; p < PARTS; p++) {
                // Of the first part all members have a vector.
                const bool within = p == 0 || at + p * TEAM < words;
#pragma unroll
                for (u32 r = 0; r < PAIR; r++) {
                    x[r][p] = within && from[r] < end ? load16_once(from[r] + 16 * (at + p * TEAM)) : u32x4{0, 0, 0, 0};
                }
                y[p] = shared[within ? at + p * TEAM : at];
            }
#pragma unroll
            for (u32 p = 0; p < PARTS; p++) {
#pragma unroll
                for (u32 r = 0; r < PAIR; r++) {
                    dots[r] = dot16(x[r][p], y[p], dots[r]);
                    if (measure) squares[r] = dot16(x[r][p], x[r][p], squares[r]);
                }
            }
        }
        const i32 dot = pair_sum(dots, half);
        const u32 row_norm = measure ? (u32)pair_sum(squares, half) : known;
        if (there && member % (TEAM / PAIR) == 0) {
            const u32 key = integer_key(metric, dot, query_norm, row_norm);
            const u64 index = turn + half * teams + team;
            if (sink.keys != nullptr) {
                sink.keys[index] = key;
            } else if (key >= bar) {
                sink.append(0, chosen.row(index), key);
            }
        }
#pragma unroll
        for (u32 r = 0; r < PAIR; r++) from[r] += PAIR * stride;
    }
}

// Rows and queries begin at multiples of `pitch`, itself one of 16, and end in zeros; 2, 4 or 8 queries, which lie in as many
// `pitch` bytes of dynamic shared memory. `norms` may be null. Where `keys` is null candidates are taken, else all keys.
extern "C" __global__ void __launch_bounds__(256) search_int8(const i8 *rows, u64 pitch, const u32 *norms, u64 first, u64 step, u64 count,
                                                              const i8 *queries, const u32 *query_norms, u32 query_count, u32 metric,
                                                              u32 *keys, const u32 *bars, u64 *candidates, u32 *counts, u32 capacity) {
    Sink sink = {keys, count, bars, candidates, counts, capacity};
    Chosen chosen = {first, step, count};
    if (query_count == 2) {
        scan<2>(rows, pitch, norms, chosen, queries, query_norms, metric, sink);
    } else if (query_count == 4) {
        scan<4>(rows, pitch, norms, chosen, queries, query_norms, metric, sink);
    } else {
        scan<QUERIES>(rows, pitch, norms, chosen, queries, query_norms, metric, sink);
    }
}

// As `search_int8`, of one query.
extern "C" __global__ void __launch_bounds__(256, 4) search_one_int8(const i8 *rows, u64 pitch, const u32 *norms, u64 first, u64 step,
                                                                     u64 count, const i8 *query, const u32 *query_norm, u32 metric,
                                                                     u32 *keys, const u32 *bars, u64 *candidates, u32 *counts, u32 capacity) {
    Sink sink = {keys, count, bars, candidates, counts, capacity};
    scan_one(rows, pitch, norms, Chosen{first, step, count}, query, query_norm[0], metric, sink);
}
