// Keys of ternary rows, two bits a value, for up to eight queries at once.
//
// Roofline: the rows are read once, a quarter of a byte a value. Four values cost a shift, an and, and a dp4a for each query: three
// instructions for a byte, four times int8's, so that memory and instructions meet at about one query.
#include "tercet/search.cuh"

constexpr u32 TEAM = 8;
constexpr u32 QUERIES = 8;
constexpr u32 RUNS = 4;

// As in core: of the bytes of a row, byte i has values i, i + S, i + 2 S and i + 3 S, S bytes in all.
struct Shape {
    u64 pitch;
    u32 bytes;
    u32 dim;
};

// How many of four bytes from `at` on hold a code other than 0 in run `run`; bits beyond the row's end are not looked at.
__device__ inline u32 coded(u32 word, u32 at, u32 run, const Shape &shape) {
    u32 begin = run * shape.bytes;
    u32 values = begin < shape.dim ? min(shape.dim - begin, shape.bytes) : 0;
    u32 valid = at < values ? min(values - at, 4u) : 0;
    u32 mask = valid == 4 ? 0x01010101u : 0x01010101u & ((1u << (8 * valid)) - 1);
    u32 other = (word >> (2 * run) & 0x03030303u) ^ 0x01010101u;
    return __popc((other | other >> 1) & mask);
}

template <u32 Q>
__device__ void scan(const u8 *rows, Shape shape, const u8 *magnitudes, const u32 *norms, u64 first, u64 step, u64 count,
                     const i8 *queries, const i32 *query_sums, const u32 *query_norms, u32 metric, const Sink &sink) {
    TERCET_SHARED(int4, shared);
    u32 words = (u32)(shape.pitch / 16);
    for (u32 at = threadIdx.x; at < words * RUNS * Q; at += blockDim.x) {
        shared[at] = ((const int4 *)queries)[at];
    }
    __syncthreads();
    u32 member = threadIdx.x % TEAM;
    u64 team = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / TEAM;
    u64 teams = (u64)gridDim.x * blockDim.x / TEAM;
    bool measure = metric != DOT && norms == nullptr;
    u64 turns = (count + teams - 1) / teams;
    for (u64 turn = 0; turn < turns; turn++) {
        u64 sampled = turn * teams + team;
        bool there = sampled < count;
        u64 row = first + (there ? sampled : 0) * step;
        const int4 *bytes = (const int4 *)(rows + row * shape.pitch);
        i32 dots[Q];
        for (u32 q = 0; q < Q; q++) {
            dots[q] = 0;
        }
        u32 norm = 0;
        for (u32 at = member; there && at < words; at += TEAM) {
            int4 x = bytes[at];
            #pragma unroll
            for (u32 run = 0; run < RUNS; run++) {
                if (measure) {
                    norm += coded(x.x, 16 * at, run, shape) + coded(x.y, 16 * at + 4, run, shape) +
                            coded(x.z, 16 * at + 8, run, shape) + coded(x.w, 16 * at + 12, run, shape);
                }
                i32 a = (u32)x.x >> (2 * run) & 0x03030303u;
                i32 b = (u32)x.y >> (2 * run) & 0x03030303u;
                i32 c = (u32)x.z >> (2 * run) & 0x03030303u;
                i32 d = (u32)x.w >> (2 * run) & 0x03030303u;
                #pragma unroll
                for (u32 q = 0; q < Q; q++) {
                    int4 y = shared[(q * RUNS + run) * words + at];
                    dots[q] = __dp4a(a, y.x, __dp4a(b, y.y, __dp4a(c, y.z, __dp4a(d, y.w, dots[q]))));
                }
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
            i32 magnitude = magnitudes ? magnitudes[row] : 1;
            u32 row_norm = norms ? norms[row] : norm * (u32)(magnitude * magnitude);
            #pragma unroll
            for (u32 q = 0; q < Q; q++) {
                i32 dot = (dots[q] - query_sums[q]) * magnitude;
                sink.take(q, sampled, count, row, integer_key(metric, dot, query_norms[q], row_norm));
            }
        }
    }
}

// Rows begin at multiples of `pitch`, itself one of 16. A query is four runs of `pitch` values, each followed by zeros; `query_sums`
// are the sums of their values. `queries`, keys and candidates as in search_int8; dynamic shared memory is `4 * queries * pitch`.
extern "C" __global__ void search_ternary(const u8 *rows, u64 pitch, u32 row_bytes, u32 dim, const u8 *magnitudes, const u32 *norms, u64 first,
                                          u64 step, u64 count, const i8 *queries, const i32 *query_sums, const u32 *query_norms,
                                          u32 query_count, u32 metric, u32 *keys, const u32 *bars, Candidate *candidates, u32 *counts,
                                          u32 capacity) {
    Sink sink = {keys, bars, candidates, counts, capacity};
    Shape shape = {pitch, row_bytes, dim};
    switch (query_count) {
    case 1:
        return scan<1>(rows, shape, magnitudes, norms, first, step, count, queries, query_sums, query_norms, metric, sink);
    case 2:
        return scan<2>(rows, shape, magnitudes, norms, first, step, count, queries, query_sums, query_norms, metric, sink);
    case 3:
    case 4:
        return scan<4>(rows, shape, magnitudes, norms, first, step, count, queries, query_sums, query_norms, metric, sink);
    default:
        return scan<QUERIES>(rows, shape, magnitudes, norms, first, step, count, queries, query_sums, query_norms, metric, sink);
    }
}
