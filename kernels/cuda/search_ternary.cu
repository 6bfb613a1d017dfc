// Keys of ternary rows, two bits a value, for up to eight queries at once.
//
// Roofline: the rows are read once, a quarter of a byte a value. Four values cost a shift, an and, and a dp4a for each query: at one
// query three instructions for a byte, three quarters of what an H200 has (64 a clock and multiprocessor, which reads 20 bytes), so that
// memory is the limit for one query and dp4a for more than four.

#include "tercet/device.cuh"
#include "tercet/search.cuh"

using namespace tercet;

// As in core: of the `bytes` bytes of a row, byte i has the values i, i + bytes, i + 2 bytes and i + 3 bytes, two bits each from the
// lowest on, as code + 1.
struct Packed {
    u64 pitch;
    u32 bytes, dim;
};
const u32 RUNS = 4;

// How many of the four bytes from `at` on have a code other than 0 in run `run`; bits beyond the row's end are not looked at.
TERCET_FN u32 coded(u32 word, u32 at, u32 run, const Packed &packed) {
    u32 begin = run * packed.bytes;
    u32 left = begin < packed.dim ? packed.dim - begin : 0;
    u32 values = left < packed.bytes ? left : packed.bytes;
    u32 valid = at < values ? values - at : 0;
    u32 mask = valid >= 4 ? 0x01010101u : 0x01010101u & ((1u << (8 * valid)) - 1);
    u32 other = (word >> (2 * run) & 0x03030303u) ^ 0x01010101u;
    return popcount((other | other >> 1) & mask);
}

template <u32 Q>
TERCET_FN void scan(const u8 *rows, const Packed &packed, const u8 *magnitudes, const u32 *norms, const Chosen &chosen, const i8 *queries,
                    const i32 *query_sums, const u32 *query_norms, u32 metric, const Sink &sink) {
    TERCET_SHARED(u32x4, shared);
    u32 words = (u32)(packed.pitch / 16);
    for (u32 at = threadIdx.x; at < words * RUNS * Q; at += blockDim.x) shared[at] = load16(queries + 16 * (u64)at);
    __syncthreads();
    u32 member = threadIdx.x % TEAM;
    u64 team = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / TEAM, teams = (u64)gridDim.x * blockDim.x / TEAM;
    bool measure = metric != DOT && norms == nullptr;
    for (u64 turn = 0; turn < chosen.count; turn += teams) {
        u64 index = turn + team;
        bool there = index < chosen.count;
        u64 row = chosen.row(there ? index : 0);
        i32 dots[Q];
        u32 norm = 0;
#pragma unroll
        for (u32 q = 0; q < Q; q++) dots[q] = 0;
        for (u32 at = member; there && at < words; at += TEAM) {
            u32x4 vector = load16(rows + row * packed.pitch + 16 * (u64)at);
            const u32 x[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
            for (u32 run = 0; run < RUNS; run++) {
#pragma unroll
                for (u32 i = 0; measure && i < 4; i++) norm += coded(x[i], 16 * at + 4 * i, run, packed);
#pragma unroll
                for (u32 q = 0; q < Q; q++) {
                    u32x4 query = shared[(q * RUNS + run) * words + at];
                    const u32 y[4] = {query.x, query.y, query.z, query.w};
#pragma unroll
                    for (u32 i = 0; i < 4; i++) dots[q] = dp4a((i32)(x[i] >> (2 * run) & 0x03030303u), (i32)y[i], dots[q]);
                }
            }
        }
        norm = team_sum(norm);
#pragma unroll
        for (u32 q = 0; q < Q; q++) dots[q] = team_sum(dots[q]);
        if (there && member == 0) {
            u32 magnitude = magnitudes == nullptr ? 1 : magnitudes[row];
            u32 row_norm = measure ? norm * magnitude * magnitude : norms == nullptr ? 0 : norms[row];
#pragma unroll
            for (u32 q = 0; q < Q; q++) {
                i32 dot = (dots[q] - query_sums[q]) * (i32)magnitude;
                sink.take(q, index, row, integer_key(metric, dot, query_norms[q], row_norm));
            }
        }
    }
}

// Rows begin at multiples of `pitch`, itself one of 16. A query is four runs of `pitch` values, those of the row's runs and zeros after
// them; `query_sums` are the sums of queries. 1, 2, 4 or 8 queries, which lie in as many times 4 `pitch` bytes of dynamic shared memory.
// `magnitudes` and `norms` may be null. Where `keys` is null candidates are taken, else all keys.
extern "C" __global__ void __launch_bounds__(256)
    search_ternary(const u8 *rows, u64 pitch, u32 row_bytes, u32 dim, const u8 *magnitudes, const u32 *norms, u64 first, u64 step, u64 count,
                   const i8 *queries, const i32 *query_sums, const u32 *query_norms, u32 query_count, u32 metric, u32 *keys,
                   const u32 *bars, u64 *candidates, u32 *counts, u32 capacity) {
    Sink sink = {keys, count, bars, candidates, counts, capacity};
    Chosen chosen = {first, step, count};
    Packed packed = {pitch, row_bytes, dim};
    if (query_count == 1) {
        scan<1>(rows, packed, magnitudes, norms, chosen, queries, query_sums, query_norms, metric, sink);
    } else if (query_count == 2) {
        scan<2>(rows, packed, magnitudes, norms, chosen, queries, query_sums, query_norms, metric, sink);
    } else if (query_count == 4) {
        scan<4>(rows, packed, magnitudes, norms, chosen, queries, query_sums, query_norms, metric, sink);
    } else {
        scan<QUERIES>(rows, packed, magnitudes, norms, chosen, queries, query_sums, query_norms, metric, sink);
    }
}
