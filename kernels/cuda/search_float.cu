// Keys of rows of f32, f16 or bf16 for a query of f32: the sums of core's order, 64 lanes, of which a thread has two.
//
// Roofline: the rows are read once. A value costs a multiplication and an addition, rounded one by one, in f64 where the metric is the
// cosine (twice that where the row's squared length is not known): memory is the limit of dot products and distances, and of cosines
// on devices that have f64 at half of f32's rate.

#include "tercet/device.cuh"
#include "tercet/search.cuh"

using namespace tercet;

// Terms after which core's sums start anew.
const u64 RUN = 65536;

// The sum of both lanes of a warp's threads, halving by halving, in every thread.
template <class F>
TERCET_FN F halve(F low, F high) {
    F sum = low + high;
#pragma unroll
    for (u32 half = WARP / 2; half > 0; half /= 2) {
        // Threads of the upper half get something too, which nobody looks at.
        sum = sum + __shfl_down_sync(FULL_WARP, sum, half);
    }
    return __shfl_sync(FULL_WARP, sum, 0);
}

// Σ term(i), one run after another. A lane that no term reached holds −0, which changes nothing that it is added to.
template <class F, class Term>
TERCET_FN F sum_of(u64 dim, Term term) {
    F total = (F)-0.0f;
    for (u64 start = 0; start < dim; start += RUN) {
        u64 end = start + RUN < dim ? start + RUN : dim;
        F low = (F)-0.0f, high = (F)-0.0f;
        for (u64 at = start + threadIdx.x % WARP; at < end; at += 2 * WARP) {
            low = low + term(at);
            if (at + WARP < end) high = high + term(at + WARP);
        }
        total = total + halve(low, high);
    }
    return total;
}

template <class Element>
TERCET_FN void scan(const typename Element::Bits *values, u64 dim, const f64 *norms, const Chosen &chosen, const f32 *query, f64 query_norm,
                    u32 metric, const Sink &sink) {
    u64 warp = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP, warps = (u64)gridDim.x * blockDim.x / WARP;
    for (u64 index = warp; index < chosen.count; index += warps) {
        u64 row = chosen.row(index);
        const typename Element::Bits *own = values + row * dim;
        auto x = [&](u64 at) { return float_of(Element::widen(own[at])); };
        u32 key;
        if (metric == DOT) {
            key = float_key(sum_of<f32>(dim, [&](u64 at) { return query[at] * x(at); }));
        } else if (metric == SQUARED_L2) {
            f32 sum = sum_of<f32>(dim, [&](u64 at) {
                f32 difference = query[at] - x(at);
                return difference * difference;
            });
            key = float_key(-sum);
        } else {
            f64 dot = sum_of<f64>(dim, [&](u64 at) { return (f64)query[at] * (f64)x(at); });
            f64 norm = norms != nullptr ? norms[row] : sum_of<f64>(dim, [&](u64 at) { return (f64)x(at) * (f64)x(at); });
            key = square_key(dot, query_norm, norm);
        }
        if (threadIdx.x % WARP == 0) sink.take(0, index, row, key);
    }
}

// Rows lie one after another, `dim` values each. `norms` may be null. Where `keys` is null candidates are taken, else all keys.
#define SEARCH(NAME, ELEMENT)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const ELEMENT::Bits *values, u64 dim, const f64 *norms, u64 first, u64 step, u64 count, const f32 *query, f64 query_norm, \
             u32 metric, u32 *keys, const u32 *bars, u64 *candidates, u32 *counts, u32 capacity) {                                 \
        Sink sink = {keys, count, bars, candidates, counts, capacity};                                                             \
        Chosen chosen = {first, step, count};                                                                                      \
        scan<ELEMENT>(values, dim, norms, chosen, query, query_norm, metric, sink);                                                \
    }

SEARCH(search_f32, F32)
SEARCH(search_f16, F16)
SEARCH(search_bf16, BF16)
