// Keys of rows of f32, f16 or bf16 for a query of f32: the sums of core's order, 64 lanes, of which a thread has two.
//
// Roofline: the rows are read once. A value costs a multiplication and an addition that are rounded one by one, in f64 where the metric
// is the cosine (twice that where the row's squared length is not known): memory is the limit for dot products and distances, and for
// cosines on processors that have f64 at half of f32's rate.
#include "tercet/search.cuh"

constexpr u32 WARP = 32;
// Terms after which core's sums start anew.
constexpr u64 RUN = 65536;

// The values of rows, widened.
struct Singles {
    const u32 *values;
    __device__ float at(u64 index) const { return __uint_as_float(values[index]); }
};
struct Halves {
    const u16 *values;
    __device__ float at(u64 index) const { return f16_to_f32(values[index]); }
};
struct Brains {
    const u16 *values;
    __device__ float at(u64 index) const { return __uint_as_float((u32)values[index] << 16); }
};

// The sum of both lanes of all threads of a warp, halving by halving; every thread has it.
template <typename F>
__device__ inline F halve(F low, F high) {
    F sum = low + high;
    for (u32 half = 16; half > 0; half /= 2) {
        // The threads of the upper half get something too, which is not looked at.
        sum = sum + __shfl_down_sync(0xFFFFFFFFu, sum, half);
    }
    return __shfl_sync(0xFFFFFFFFu, sum, 0);
}

// One run of terms after another. A lane that no term reached holds -0, which changes nothing that it is added to.
template <typename F, typename Term>
__device__ inline F sum_of(u64 dim, Term term) {
    u32 lane = threadIdx.x % WARP;
    F total = (F)-0.0f;
    for (u64 start = 0; start < dim; start += RUN) {
        u64 end = min(start + RUN, dim);
        F low = (F)-0.0f, high = (F)-0.0f;
        for (u64 at = start + lane; at < end; at += 2 * WARP) {
            low = low + term(at);
            if (at + WARP < end) {
                high = high + term(at + WARP);
            }
        }
        total = total + halve(low, high);
    }
    return total;
}

template <typename Values>
__device__ void scan(Values values, u64 dim, const double *norms, u64 first, u64 step, u64 count, const float *query, double query_norm,
                     u32 metric, const Sink &sink) {
    u64 warp = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    u64 warps = (u64)gridDim.x * blockDim.x / WARP;
    for (u64 sampled = warp; sampled < count; sampled += warps) {
        u64 row = first + sampled * step;
        u64 begin = row * dim;
        float sum = 0.0f;
        double dot = 0.0, norm = 0.0;
        if (metric == DOT) {
            sum = sum_of<float>(dim, [&](u64 at) { return query[at] * values.at(begin + at); });
        } else if (metric == SQUARED_L2) {
            sum = sum_of<float>(dim, [&](u64 at) {
                float difference = query[at] - values.at(begin + at);
                return difference * difference;
            });
        } else {
            dot = sum_of<double>(dim, [&](u64 at) { return (double)query[at] * (double)values.at(begin + at); });
            norm = norms ? norms[row] : sum_of<double>(dim, [&](u64 at) {
                double x = values.at(begin + at);
                return x * x;
            });
        }
        if (threadIdx.x % WARP == 0) {
            sink.take(0, sampled, count, row, float_metric_key(metric, sum, dot, query_norm, norm));
        }
    }
}

// Rows lie one after another, `dim` values each. `norms` may be null. Row `i` of those that are looked at is row `first + i * step`. Keys
// and candidates as in search_int8.
extern "C" __global__ void search_f32(const u32 *values, u64 dim, const double *norms, u64 first, u64 step, u64 count, const float *query,
                                      double query_norm, u32 metric, u32 *keys, const u32 *bars, Candidate *candidates, u32 *counts,
                                      u32 capacity) {
    Sink sink = {keys, bars, candidates, counts, capacity};
    scan(Singles{values}, dim, norms, first, step, count, query, query_norm, metric, sink);
}

extern "C" __global__ void search_f16(const u16 *values, u64 dim, const double *norms, u64 first, u64 step, u64 count, const float *query,
                                      double query_norm, u32 metric, u32 *keys, const u32 *bars, Candidate *candidates, u32 *counts,
                                      u32 capacity) {
    Sink sink = {keys, bars, candidates, counts, capacity};
    scan(Halves{values}, dim, norms, first, step, count, query, query_norm, metric, sink);
}

extern "C" __global__ void search_bf16(const u16 *values, u64 dim, const double *norms, u64 first, u64 step, u64 count, const float *query,
                                       double query_norm, u32 metric, u32 *keys, const u32 *bars, Candidate *candidates, u32 *counts,
                                       u32 capacity) {
    Sink sink = {keys, bars, candidates, counts, capacity};
    scan(Brains{values}, dim, norms, first, step, count, query, query_norm, metric, sink);
}
