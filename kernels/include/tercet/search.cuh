// What search kernels have in common: keys that order as scores do, and where rows go that may be among the best.
//
// A key is an integer, larger where a row fits better. A row that ranks above another has a key at least as large, or for cosines of
// integers at most one less, so a filter by keys loses none. What passes is ranked by core's own scores, which no key replaces.
#pragma once

#include "tercet/float.cuh"

namespace tercet {

// The metrics, by the numbers that the engine passes.
const u32 DOT = 0, COSINE = 1, SQUARED_L2 = 2;

// As core ranks floats: NaN below all, both zeros equal.
TERCET_FN u32 float_key(f32 x) { return x != x ? 0u : ordered(bits_of(x + 0.0f)); }

// The signed square of a cosine, in steps of 2^-18 of itself or more.
//
// None of the roundings here (of dot, norm, square, quotient; dot's counts twice) moves it by more than 2^-24 of itself, so two that
// belong in the other order are less than 10 * 2^-24 apart. A step is 64 patterns, each at least 2^-24 of the number: keys that are
// in the wrong order differ by one. Nothing overflows or is subnormal: dot^2 is 0 or from 1 to 2^62, norms are below 2^30.
TERCET_FN u32 cosine_key(i32 dot, u32 row_norm) {
    f32 x = (f32)dot;
    f32 square = row_norm == 0 ? 0.0f : x * fabsf(x) / (f32)row_norm;
    return ordered(bits_of(square + 0.0f)) >> 6;
}

// The key of a row that is compared in integers.
TERCET_FN u32 integer_key(u32 metric, i32 dot, u32 query_norm, u32 row_norm) {
    if (metric == DOT) return (u32)dot ^ 0x80000000u;
    if (metric == COSINE) return cosine_key(dot, row_norm);
    // The steps may wrap; the distance does not.
    return ~(query_norm + row_norm - 2u * (u32)dot);
}

// The key of a signed square of a cosine in f64: its upper half orders as the whole does.
TERCET_FN u32 square_key(f64 dot, f64 query_norm, f64 row_norm) {
    f64 norms = query_norm * row_norm;
    f64 square = norms == 0.0 ? 0.0 : dot * fabs(dot) / norms;
    return ordered((u32)(bits_of(square + 0.0) >> 32));
}

// Where keys go. Of a sample every one is written, in order. Of other rows those that reach their query's bar are appended as
// key * 2^32 + row, and counted also where there is no more room.
struct Sink {
    u32 *keys;
    u64 samples;
    const u32 *bars;
    u64 *candidates;
    u32 *counts;
    u32 capacity;

    __device__ __forceinline__ void take(u32 query, u64 sampled, u64 row, u32 key) const {
        if (keys != nullptr) {
            keys[query * samples + sampled] = key;
        } else if (key >= bars[query]) {
            append(query, row, key);
        }
    }

    __device__ __forceinline__ void append(u32 query, u64 row, u32 key) const {
        u32 place = atomicAdd(counts + query, 1u);
        if (place < capacity) candidates[(u64)query * capacity + place] = (u64)key << 32 | row;
    }
};

// The rows of a launch: `count` of them, `first`, `first + step` and so on.
struct Chosen {
    u64 first, step, count;

    __device__ __forceinline__ u64 row(u64 index) const { return first + index * step; }
};

// Threads that share a row of bytes: eight times 16 bytes are a line.
const u32 TEAM = 8;
// The most queries of a launch by dp4a.
const u32 QUERIES = 8;

// Adds up over a team; every member gets the sum.
template <class T>
TERCET_FN T team_sum(T value) {
#pragma unroll
    for (u32 step = TEAM / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step);
    return value;
}

}  // namespace tercet
