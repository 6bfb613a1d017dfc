// Keys of rows of f32, f16 or bf16 for one query of f32, or four: the sums of core's order, 64 lanes, of which a thread has two.
//
// Roofline: the rows are read once. For each query a value costs a multiplication and an addition, rounded one by one, in f64 where the
// metric is the cosine (twice that where the row's squared length is not known): memory is the limit of dot products and distances, and of
// one query's cosines on devices that have f64 at half of f32's rate. Queries come from the first cache, four bytes for each value, of which
// a multiprocessor reads 128 a clock while 20 of rows arrive: enough for four queries of f32.

#include "tercet/device.cuh"
#include "tercet/lanes.cuh"
#include "tercet/search.cuh"

using namespace tercet;

// Queries lie one after another; there are Q of them.
struct Asked {
    const f32 *values;
    const f64 *norms;
};

template <class Element, u32 Q>
TERCET_FN void scan(const typename Element::Bits *values, u64 dim, const f64 *norms, const Chosen &chosen, const Asked &asked, u32 metric,
                    const Sink &sink) {
    u64 warp = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP, warps = (u64)gridDim.x * blockDim.x / WARP;
    for (u64 index = warp; index < chosen.count; index += warps) {
        u64 row = chosen.row(index);
        const typename Element::Bits *own = values + row * dim;
        auto x = [&](u64 at) { return float_of(Element::widen(own[at])); };
        auto y = [&](u64 at, u32 q) { return asked.values[q * dim + at]; };
        u32 keys[Q];
        if (metric == COSINE) {
            f64 dots[Q], norm[1];
            sums_of(dim, dots, [&](u64 at, u32 q) { return (f64)y(at, q) * (f64)x(at); });
            if (norms != nullptr) {
                norm[0] = norms[row];
            } else {
                sums_of(dim, norm, [&](u64 at, u32) { return (f64)x(at) * (f64)x(at); });
            }
#pragma unroll
            for (u32 q = 0; q < Q; q++) keys[q] = square_key(dots[q], asked.norms[q], norm[0]);
        } else {
            f32 sums[Q];
            if (metric == DOT) {
                sums_of(dim, sums, [&](u64 at, u32 q) { return y(at, q) * x(at); });
            } else {
                sums_of(dim, sums, [&](u64 at, u32 q) {
                    f32 difference = y(at, q) - x(at);
                    return difference * difference;
                });
            }
#pragma unroll
            for (u32 q = 0; q < Q; q++) keys[q] = float_key(metric == DOT ? sums[q] : -sums[q]);
        }
        if (threadIdx.x % WARP == 0) {
#pragma unroll
            for (u32 q = 0; q < Q; q++) sink.take(q, index, row, keys[q]);
        }
    }
}

// Rows lie one after another, `dim` values each, and so do Q queries. `norms` may be null. Where `keys` is null candidates are taken, else
// all keys. One query has a kernel of its own, with half the registers.
#define SEARCH(NAME, ELEMENT, Q)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const ELEMENT::Bits *values, u64 dim, const f64 *norms, u64 first, u64 step, u64 count, const f32 *queries,           \
             const f64 *query_norms, u32 metric, u32 *keys, const u32 *bars, u64 *candidates, u32 *counts, u32 capacity) {         \
        Sink sink = {keys, count, bars, candidates, counts, capacity};                                                             \
        Chosen chosen = {first, step, count};                                                                                      \
        scan<ELEMENT, Q>(values, dim, norms, chosen, Asked{queries, query_norms}, metric, sink);                                   \
    }

SEARCH(search_f32, F32, 1)
SEARCH(search_f16, F16, 1)
SEARCH(search_bf16, BF16, 1)
SEARCH(search_four_f32, F32, 4)
SEARCH(search_four_f16, F16, 4)
SEARCH(search_four_bf16, BF16, 4)
