// What search kernels have in common: keys that order as scores do, and where rows that may be among the best go.
//
// A key is an integer, larger where a row fits better. Rows that rank above another have a key at least as large less `SLACK` of
// their metric, so a filter by keys loses none; what passes is ranked by core's own scores, which no key replaces.
#pragma once

#include "tercet/device.cuh"

// The metrics, by the numbers that the engine passes.
enum Metric : u32 { DOT = 0, COSINE = 1, SQUARED_L2 = 2 };

// A row that passed, in the order that the engine reads: key, row.
struct Candidate {
    u32 key;
    u32 row;
};

// Patterns whose unsigned integers order as the floats do.
__device__ inline u32 ordered(u32 pattern) {
    return pattern ^ ((pattern >> 31) ? 0xFFFFFFFFu : 0x80000000u);
}

// As core ranks floats: NaN below all, both zeros equal.
__device__ inline u32 float_key(float x) {
    return x != x ? 0u : ordered(__float_as_uint(x + 0.0f));
}

// The signed square of a cosine, in steps of 2^-17 of itself.
//
// Of the five roundings here none moves it by more than 2^-24 of itself, and 64 patterns of 2^-24 to 2^-23 each make a step: rows
// whose keys are two steps apart rank as their keys do. Nothing overflows or is subnormal: dot^2 is 0 or from 1 to 2^62, norms are
// below 2^30.
__device__ inline u32 cosine_key(i32 dot, u32 row_norm) {
    if (row_norm == 0) {
        return ordered(0) >> 6;
    }
    float x = (float)dot;
    float square = x * fabsf(x) / (float)row_norm;
    return ordered(__float_as_uint(square + 0.0f)) >> 6;
}

// The key of a row that is compared in integers.
__device__ inline u32 integer_key(u32 metric, i32 dot, u32 query_norm, u32 row_norm) {
    switch (metric) {
    case DOT:
        return (u32)dot ^ 0x80000000u;
    case COSINE:
        return cosine_key(dot, row_norm);
    default:
        // The steps may wrap; the distance does not.
        return ~(query_norm + row_norm - 2u * (u32)dot);
    }
}

// The key of a row of floats, by the sum of its metric: the upper half of a cosine's square orders as the whole does.
__device__ inline u32 float_metric_key(u32 metric, float sum, double dot, double query_norm, double row_norm) {
    if (metric == DOT) {
        return float_key(sum);
    }
    if (metric == SQUARED_L2) {
        return float_key(-sum);
    }
    double norms = query_norm * row_norm;
    double square = norms == 0.0 ? 0.0 : dot * fabs(dot) / norms;
    return ordered((u32)((u64)__double_as_longlong(square + 0.0) >> 32));
}

// Where keys go. A sample's are all written, in order; of other rows those that reach the bar are appended, and counted also where
// there is no more room.
struct Sink {
    u32 *keys;
    const u32 *bars;
    Candidate *candidates;
    u32 *counts;
    u32 capacity;

    __device__ void take(u32 query, u64 sampled, u64 samples, u64 row, u32 key) const {
        if (keys) {
            keys[query * samples + sampled] = key;
        } else if (key >= bars[query]) {
            u32 place = atomicAdd(counts + query, 1u);
            if (place < capacity) {
                candidates[(u64)query * capacity + place] = {key, (u32)row};
            }
        }
    }
};
