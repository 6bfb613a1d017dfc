// Keys of int8 rows for up to eight queries at once.
//
// Roofline: the rows are read once, `pitch` bytes each, 128 bytes of a row by a team of eight threads. For a query a byte costs a quarter
// of a dp4a, and as much again once for a squared length that is not known: memory is the limit up to eight queries (at 4.8 TB/s an H200
// reads 20 bytes a clock and multiprocessor, 5 dp4a for each query, of 64). One row in thousands is written.

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

// Rows and queries begin at multiples of `pitch`, itself one of 16, and end in zeros; 1, 2, 4 or 8 queries, which lie in as many
// `pitch` bytes of dynamic shared memory. `norms` may be null. Where `keys` is null candidates are taken, else all keys.
extern "C" __global__ void __launch_bounds__(256) search_int8(const i8 *rows, u64 pitch, const u32 *norms, u64 first, u64 step, u64 count,
                                                              const i8 *queries, const u32 *query_norms, u32 query_count, u32 metric,
                                                              u32 *keys, const u32 *bars, u64 *candidates, u32 *counts, u32 capacity) {
    Sink sink = {keys, count, bars, candidates, counts, capacity};
    Chosen chosen = {first, step, count};
    if (query_count == 1) {
        scan<1>(rows, pitch, norms, chosen, queries, query_norms, metric, sink);
    } else if (query_count == 2) {
        scan<2>(rows, pitch, norms, chosen, queries, query_norms, metric, sink);
    } else if (query_count == 4) {
        scan<4>(rows, pitch, norms, chosen, queries, query_norms, metric, sink);
    } else {
        scan<QUERIES>(rows, pitch, norms, chosen, queries, query_norms, metric, sink);
    }
}
