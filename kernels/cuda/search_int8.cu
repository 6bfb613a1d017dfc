// Keys of int8 rows for up to eight queries at once.
//
// Roofline: the rows are read once, `pitch` bytes each (and 4 of a squared length where a metric needs a known one); eight threads
// read 128 bytes of a row at a time. For a query a byte costs a quarter of a dp4a, and a multiply-add more for a squared length that is not
// known: memory is the limit up to about eight queries on processors with 64 dp4a a clock and multiprocessor (at 4.8 TB/s an H200 reads
// 20 bytes a clock and multiprocessor, which are 5 dp4a for each query). What is written back is little: a row in thousands passes the bar.
#include "tercet/search.cuh"

// Threads that share a row: 8 times 16 bytes are a line.
constexpr u32 TEAM = 8;
constexpr u32 QUERIES = 8;

// Rows begin at multiples of `pitch`, itself one of 16, and end in zeros; so do queries. `norms` may be null. Row `i` of those that are
// looked at is row `first + i * step`.
template <u32 Q>
__device__ void scan(const i8 *rows, u64 pitch, const u32 *norms, u64 first, u64 step, u64 count, const i8 *queries,
                     const u32 *query_norms, u32 metric, const Sink &sink) {
    TERCET_SHARED(int4, shared);
    u32 words = (u32)(pitch / 16);
    for (u32 at = threadIdx.x; at < words * Q; at += blockDim.x) {
        shared[at] = ((const int4 *)queries)[at];
    }
    __syncthreads();
    u32 member = threadIdx.x % TEAM;
    u64 team = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / TEAM;
    u64 teams = (u64)gridDim.x * blockDim.x / TEAM;
    bool measure = metric != DOT && norms == nullptr;
    // All teams of a warp take as many turns, so that shuffles have all their threads.
    u64 turns = (count + teams - 1) / teams;
    for (u64 turn = 0; turn < turns; turn++) {
        u64 sampled = turn * teams + team;
        bool there = sampled < count;
        u64 row = first + (there ? sampled : 0) * step;
        const int4 *values = (const int4 *)(rows + row * pitch);
        i32 dots[Q];
        for (u32 q = 0; q < Q; q++) {
            dots[q] = 0;
        }
        i32 norm = 0;
        for (u32 at = member; there && at < words; at += TEAM) {
            int4 x = values[at];
            if (measure) {
                norm = __dp4a(x.x, x.x, __dp4a(x.y, x.y, __dp4a(x.z, x.z, __dp4a(x.w, x.w, norm))));
            }
            #pragma unroll
            for (u32 q = 0; q < Q; q++) {
                int4 y = shared[q * words + at];
                dots[q] = __dp4a(x.x, y.x, __dp4a(x.y, y.y, __dp4a(x.z, y.z, __dp4a(x.w, y.w, dots[q]))));
            }
        }
        for (u32 apart = TEAM / 2; apart > 0; apart /= 2) {
            norm += __shfl_xor_sync(0xFFFFFFFFu, norm, apart);
            #pragma unroll
            for (u32 q = 0; q < Q; q++) {
                dots[q] += __shfl_xor_sync(0xFFFFFFFFu, dots[q], apart);
            }
        }
        if (there && member == 0) {
            u32 row_norm = norms ? norms[row] : (u32)norm;
            #pragma unroll
            for (u32 q = 0; q < Q; q++) {
                sink.take(q, sampled, count, row, integer_key(metric, dots[q], query_norms[q], row_norm));
            }
        }
    }
}

// `queries` is 1 to 8; dynamic shared memory holds them, `queries * pitch` bytes. Where `keys` is not null it gets every key,
// `keys[query * count + i]`, and bars and candidates are not looked at.
extern "C" __global__ void search_int8(const i8 *rows, u64 pitch, const u32 *norms, u64 first, u64 step, u64 count, const i8 *queries,
                                       const u32 *query_norms, u32 query_count, u32 metric, u32 *keys, const u32 *bars, Candidate *candidates,
                                       u32 *counts, u32 capacity) {
    Sink sink = {keys, bars, candidates, counts, capacity};
    switch (query_count) {
    case 1:
        return scan<1>(rows, pitch, norms, first, step, count, queries, query_norms, metric, sink);
    case 2:
        return scan<2>(rows, pitch, norms, first, step, count, queries, query_norms, metric, sink);
    case 3:
    case 4:
        return scan<4>(rows, pitch, norms, first, step, count, queries, query_norms, metric, sink);
    default:
        return scan<QUERIES>(rows, pitch, norms, first, step, count, queries, query_norms, metric, sink);
    }
}
