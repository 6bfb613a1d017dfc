// Keys of int8 and of ternary rows for up to 64 queries at once by tensor cores (m16n8k32), from 8.0.
//
// Roofline: the rows are read once, a byte a value or a quarter. An H200 reads 20 bytes a clock and multiprocessor, of whose int8 products
// mma.sync does some 2,600: for int8 rows memory is the limit up to 64 queries (1,300 products) and to 130, for ternary rows (four values a
// byte) up to 30. A key is not computed where a comparison of the product (and for cosines two multiplications) says that it cannot
// reach the bar: 1 to 5 instructions a row and query, which at 64 a clock for rows of 256 values are less than their products. A product
// that may reach it takes a warp some 50 instructions, beside the 800 of 32 rows of 256 values and 32 queries. The dp4a
// kernels read queries from shared memory for each row, 128 bytes a clock, which ends at 6 queries.

#include "tercet/device.cuh"
#include "tercet/search.cuh"

using namespace tercet;

// Rows of a tile, bytes of each that are brought at a time, and from row to row in shared memory 16 more, so that the rows of a matrix
// load meet no bank twice. Parts are brought three ahead, which keeps some 30 KiB under way.
const u32 ROWS = 128, PART = 64, PITCH = PART + 16, STAGES = 4;
const u32 PANEL = ROWS * PITCH;
const u32 THREADS = 256;
// Queries of a warp, which has 32 rows; two warps have all 64.
const u32 ACROSS = 32;

// What is known of a query: a limit that its products are held against, its squared length and its sum.
struct Query {
    u32 limit, norm;
    i32 sum;
};

// Where a bar lies for products: below it no key can reach the bar. For cosines a float a little under the least square that does; NaN
// where the bar is 0.
TERCET_FN u32 limit_of(u32 metric, u32 bar) {
    if (metric == DOT) return bar ^ 0x80000000u;
    if (metric == SQUARED_L2) return ~bar;
    // The least pattern with this key, back from the order of `ordered`; past the last, infinity.
    u32 least = bar << 6;
    if (bar >> 26 != 0) return INFINITE;
    f32 square = float_of(least ^ ((u32)((i32)~least >> 31) | 0x80000000u));
    // Both roundings below are within 2^-24 of what they round, as are the quotient's in `cosine_key`.
    return bits_of(square - fabsf(square) * 9.5367431640625e-7f);
}

// Whether a row may reach the bar. Comparisons are such that a NaN says it may.
TERCET_FN bool may_reach(u32 metric, const Query &query, i32 dot, u32 row_norm) {
    if (metric == DOT) return dot >= (i32)query.limit;
    if (metric == SQUARED_L2) return query.norm + row_norm - 2u * (u32)dot <= query.limit;
    f32 x = (f32)dot;
    return !(x * fabsf(x) < float_of(query.limit) * (f32)row_norm);
}

// A row's bytes as they are.
struct Int8Codes {
    static const u32 RUNS = 1;
    static __device__ __forceinline__ u32 run(u32 word, u32) { return word; }
    // The squared length of four values.
    __device__ __forceinline__ u32 squares(u32 word, u32) const { return (u32)dp4a((i32)word, (i32)word, 0); }
};

// Two bits a value: of the `bytes` bytes of a row, byte i has the values i, i + bytes, i + 2 bytes and i + 3 bytes, as code + 1.
struct TernaryCodes {
    static const u32 RUNS = 4;
    u32 bytes, dim;

    static __device__ __forceinline__ u32 run(u32 word, u32 run) { return word >> (2 * run) & 0x03030303u; }

    // Codes other than 0 in the four bytes from `at` on, as in `search_ternary.cu`.
    __device__ __forceinline__ u32 squares(u32 word, u32 at) const {
        u32 sum = 0;
#pragma unroll
        for (u32 r = 0; r < RUNS; r++) {
            u32 begin = r * bytes, left = begin < dim ? dim - begin : 0;
            u32 values = left < bytes ? left : bytes, valid = at < values ? values - at : 0;
            u32 mask = valid >= 4 ? 0x01010101u : 0x01010101u & ((1u << (8 * valid)) - 1);
            u32 other = run(word, r) ^ 0x01010101u;
            sum += popcount((other | other >> 1) & mask);
        }
        return sum;
    }
};

// Rows of `pitch` bytes, and what may be known of each.
struct Base {
    const u8 *rows;
    u32 pitch;
    const u8 *magnitudes;
    const u32 *norms;
};

// `query_count` queries of Codes::RUNS times `pitch` values each.
struct Asked {
    const i8 *values;
    const i32 *sums;
    const u32 *norms;
    u32 count;
};

// Dynamic shared memory: STAGES panels of rows, then the queries, 16 or more, each with zeros up to a multiple of 32 values a run, and
// 16 bytes more.
template <class Codes>
TERCET_FN void scan(const Codes &codes, const Base &base, const Chosen &chosen, const Asked &asked, u32 metric, const Sink &sink) {
    TERCET_SHARED(u8, shared);
    __shared__ u32 tile_norms[ROWS], tile_magnitudes[ROWS];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 row_base = warp % 4 * 32, column_base = warp / 4 * ACROSS;
    const u32 run = (base.pitch + 31) / 32 * 32, query_pitch = Codes::RUNS * run + 16;
    u8 *const queries = shared + STAGES * PANEL;
    const u32 padded = asked.count < 16 ? 16 : asked.count;
    for (u32 i = threadIdx.x; i < padded * Codes::RUNS * (run / 16); i += THREADS) {
        u32 at = i % (run / 16) * 16, r = i / (run / 16) % Codes::RUNS, query = i / (run / 16) / Codes::RUNS;
        bool there = query < asked.count && at < base.pitch;
        const i8 *from = asked.values + ((u64)query * Codes::RUNS + r) * base.pitch + at;
        store16(queries + query * query_pitch + r * run + at, there ? load16(from) : u32x4{0, 0, 0, 0});
    }
    auto known = [&](u32 query) {
        bool there = query < asked.count;
        u32 bar = !there ? ~0u : sink.keys != nullptr ? 0 : sink.bars[query];
        return Query{limit_of(metric, bar), there ? asked.norms[query] : 0, there && Codes::RUNS > 1 ? asked.sums[query] : 0};
    };
    // Those of this lane: columns 2t and 2t + 1 of each eight.
    Query mine[ACROSS / 8][2];
#pragma unroll
    for (u32 n = 0; n < ACROSS / 8; n++) {
#pragma unroll
        for (u32 l = 0; l < 2; l++) mine[n][l] = known(column_base + n * 8 + lane % 4 * 2 + l);
    }
    const bool measure = metric != DOT && base.norms == nullptr;
    const u32 parts = (base.pitch + PART - 1) / PART;
    const u64 tiles = (chosen.count + ROWS - 1) / ROWS;
    // What is brought next, two vectors a thread: where the rows begin, null past the last.
    const u32 TURNS = ROWS * (PART / 16) / THREADS, vector = threadIdx.x % (PART / 16) * 16;
    u64 coming = blockIdx.x;
    u32 coming_part = 0, coming_slot = 0;
    const u8 *from[TURNS];
    auto point = [&]() {
#pragma unroll
        for (u32 turn = 0; turn < TURNS; turn++) {
            u64 index = coming * ROWS + turn * (ROWS / TURNS) + threadIdx.x / (PART / 16);
            from[turn] = index < chosen.count ? base.rows + chosen.row(index) * base.pitch : nullptr;
        }
    };
    auto bring = [&]() {
        const u32 at = coming_part * PART + vector;
#pragma unroll
        for (u32 turn = 0; turn < TURNS; turn++) {
            bool there = from[turn] != nullptr && at < base.pitch;
            u8 *to = shared + coming_slot * PANEL + (turn * (ROWS / TURNS) + threadIdx.x / (PART / 16)) * PITCH + vector;
            copy_async16(to, there ? from[turn] + at : base.rows, there ? 16 : 0);
        }
        copy_async_commit();
        coming_slot = (coming_slot + 1) % STAGES;
        if (++coming_part == parts) {
            coming_part = 0;
            coming += gridDim.x;
            point();
        }
    };
    point();
#pragma unroll
    for (u32 i = 0; i < STAGES - 1; i++) bring();
    i32 dots[2][ACROSS / 8][4];
    u32 slot = 0;
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
        for (u32 m = 0; m < 2; m++) {
#pragma unroll
            for (u32 n = 0; n < ACROSS / 8; n++) dots[m][n][0] = dots[m][n][1] = dots[m][n][2] = dots[m][n][3] = 0;
        }
        // Two threads a row.
        const u32 own = threadIdx.x / 2, half = threadIdx.x % 2;
        const bool own_there = half == 0 && tile * ROWS + own < chosen.count;
        const u64 own_row = chosen.row(own_there ? tile * ROWS + own : 0);
        u32 norm = own_there && base.norms != nullptr ? base.norms[own_row] : 0;
        const u32 magnitude = own_there && base.magnitudes != nullptr ? base.magnitudes[own_row] : 1;
        for (u32 part = 0; part < parts; part++) {
            copy_async_wait<STAGES - 2>();
            // The part is there, and nobody reads the slot that is written next.
            __syncthreads();
            bring();
            const u8 *panel = shared + slot * PANEL;
            slot = (slot + 1) % STAGES;
            if (measure) {
#pragma unroll
                for (u32 at = half * 32; at < half * 32 + 32; at += 16) {
                    u32x4 vector = load16(panel + own * PITCH + at);
                    const u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
                    for (u32 i = 0; i < 4; i++) norm += codes.squares(words[i], part * PART + at + 4 * i);
                }
            }
            for (u32 at = 0; at < PART && part * PART + at < base.pitch; at += 32) {
                // Lane 8i + r names row r of the i-th 8 x 16 bytes: rows 0 and 8 of the first half, then of the second.
                u32 a[2][4];
#pragma unroll
                for (u32 m = 0; m < 2; m++) {
                    load_matrices(a[m], panel + (row_base + m * 16 + lane % 16) * PITCH + at + lane / 16 * 16);
                }
#pragma unroll
                for (u32 r = 0; r < Codes::RUNS; r++) {
                    u32 values[2][4];
#pragma unroll
                    for (u32 m = 0; m < 2; m++) {
#pragma unroll
                        for (u32 i = 0; i < 4; i++) values[m][i] = Codes::run(a[m][i], r);
                    }
#pragma unroll
                    for (u32 n = 0; n < ACROSS / 8; n += 2) {
                        // Both halves of eight queries, then of the next eight, where there are any.
                        const u32 column = column_base + n * 8;
                        if (column >= padded) continue;
                        u32 b[4];
                        load_matrices(b, queries + (column + lane / 16 * 8 + lane % 8) * query_pitch + r * run + part * PART + at +
                                             lane / 8 % 2 * 16);
                        const u32 low[2] = {b[0], b[1]}, high[2] = {b[2], b[3]};
#pragma unroll
                        for (u32 m = 0; m < 2; m++) {
                            mma_m16n8k32(dots[m][n], values[m], low);
                            mma_m16n8k32(dots[m][n + 1], values[m], high);
                        }
                    }
                }
            }
        }
        norm += __shfl_xor_sync(FULL_WARP, norm, 1);
        if (half == 0) {
            tile_norms[own] = measure ? norm * magnitude * magnitude : norm;
            tile_magnitudes[own] = magnitude;
        }
        __syncthreads();
        // A bit for each product that may reach its bar, in the order of `products`: mostly none.
        u32 reach = 0;
        i32 products[2][2][ACROSS / 8][2];
#pragma unroll
        for (u32 m = 0; m < 2; m++) {
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                const u32 line = row_base + m * 16 + half * 8 + lane / 4;
                const i32 scale = Codes::RUNS > 1 ? (i32)tile_magnitudes[line] : 1;
                const u32 row_norm = tile_norms[line];
#pragma unroll
                for (u32 n = 0; n < ACROSS / 8; n++) {
#pragma unroll
                    for (u32 l = 0; l < 2; l++) {
                        const i32 dot = (dots[m][n][2 * half + l] - mine[n][l].sum) * scale;
                        if (may_reach(metric, mine[n][l], dot, row_norm)) reach |= 1u << (((m * 2 + half) * (ACROSS / 8) + n) * 2 + l);
                    }
                }
            }
        }
        if (reach != 0) {
            // A copy that is indexed lies in memory: what is seldom run is a short loop, and products stay in registers elsewhere.
#pragma unroll
            for (u32 m = 0; m < 2; m++) {
#pragma unroll
                for (u32 i = 0; i < 4; i++) {
#pragma unroll
                    for (u32 n = 0; n < ACROSS / 8; n++) products[m][i / 2][n][i % 2] = dots[m][n][i];
                }
            }
#pragma unroll 1
            for (; reach != 0; reach &= reach - 1) {
                const u32 i = find_first_set(reach) - 1;
                const u32 l = i % 2, n = i / 2 % (ACROSS / 8), half = i / (ACROSS / 4) % 2, m = i / (ACROSS / 2);
                const u32 line = row_base + m * 16 + half * 8 + lane / 4, number = column_base + n * 8 + lane % 4 * 2 + l;
                const u64 index = tile * ROWS + line;
                if (index >= chosen.count || number >= asked.count) continue;
                const i32 sum = Codes::RUNS > 1 ? asked.sums[number] : 0;
                const i32 dot = (products[m][half][n][l] - sum) * (Codes::RUNS > 1 ? (i32)tile_magnitudes[line] : 1);
                sink.take(number, index, chosen.row(index), integer_key(metric, dot, asked.norms[number], tile_norms[line]));
            }
        }
        // The next products and matrix loads are the whole warp's.
        __syncwarp();
    }
    copy_async_wait<0>();
}

// The metric as a constant, so that what is asked of each product is a few instructions.
template <class Codes>
TERCET_FN void scan_by(const Codes &codes, const Base &base, const Chosen &chosen, const Asked &asked, u32 metric, const Sink &sink) {
    if (metric == DOT) {
        scan(codes, base, chosen, asked, DOT, sink);
    } else if (metric == COSINE) {
        scan(codes, base, chosen, asked, COSINE, sink);
    } else {
        scan(codes, base, chosen, asked, SQUARED_L2, sink);
    }
}

// As `search_int8`, for up to 64 queries.
extern "C" __global__ void __launch_bounds__(256, 2)
    search_mma_int8(const u8 *rows, u64 pitch, const u32 *norms, u64 first, u64 step, u64 count, const i8 *queries, const u32 *query_norms,
                    u32 query_count, u32 metric, u32 *keys, const u32 *bars, u64 *candidates, u32 *counts, u32 capacity) {
    scan_by(Int8Codes{}, Base{rows, (u32)pitch, nullptr, norms}, Chosen{first, step, count},
            Asked{queries, nullptr, query_norms, query_count}, metric, Sink{keys, count, bars, candidates, counts, capacity});
}

// As `search_ternary`, for up to 64 queries.
extern "C" __global__ void __launch_bounds__(256, 2)
    search_mma_ternary(const u8 *rows, u64 pitch, u32 row_bytes, u32 dim, const u8 *magnitudes, const u32 *norms, u64 first, u64 step,
                       u64 count, const i8 *queries, const i32 *query_sums, const u32 *query_norms, u32 query_count, u32 metric,
                       u32 *keys, const u32 *bars, u64 *candidates, u32 *counts, u32 capacity) {
    scan_by(TernaryCodes{row_bytes, dim}, Base{rows, (u32)pitch, magnitudes, norms}, Chosen{first, step, count},
            Asked{queries, query_sums, query_norms, query_count}, metric, Sink{keys, count, bars, candidates, counts, capacity});
}
