// One pass over a group: extremes, the first value that is not finite, the exact Σ|x|. As core/src/number/stats.rs.
#pragma once

#include "tercet/access.cuh"
#include "tercet/team.cuh"

namespace tercet {

// Extremes in three comparisons a value, of patterns as they are: among negative floats the one farthest from 0 is the largest
// unsigned pattern, among others the largest signed one; the smallest unsigned pattern serves where all have one sign.
struct Extremes {
    u32 top, bottom;
    i32 positive;

    __device__ __forceinline__ void clear() {
        top = 0;
        bottom = ~0u;
        positive = (i32)0x80000000;
    }

    __device__ __forceinline__ void add(u32 pattern) {
        top = larger(top, pattern);
        bottom = smaller(bottom, pattern);
        positive = (i32)pattern > positive ? (i32)pattern : positive;
    }

    __device__ __forceinline__ void merge(const Extremes& other) {
        top = larger(top, other.top);
        bottom = smaller(bottom, other.bottom);
        positive = other.positive > positive ? other.positive : positive;
    }

    __device__ __forceinline__ Extremes exchange(u32 distance) const {
        Extremes other;
        other.top = __shfl_xor_sync(FULL_WARP, top, distance);
        other.bottom = __shfl_xor_sync(FULL_WARP, bottom, distance);
        other.positive = __shfl_xor_sync(FULL_WARP, positive, distance);
        return other;
    }

    __device__ __forceinline__ u32 low() const { return top >> 31 ? top : bottom; }
    __device__ __forceinline__ u32 high() const { return positive >= 0 ? (u32)positive : bottom; }
    // The largest magnitude; a NaN or an infinity among the values is at or above INFINITE.
    __device__ __forceinline__ u32 largest() const {
        return larger(top >> 31 ? magnitude(top) : 0, positive >= 0 ? (u32)positive : 0);
    }
};

// The largest magnitude alone, in one comparison a value.
struct Largest {
    // Twice the pattern, which drops the sign.
    u32 twice;

    __device__ __forceinline__ void clear() { twice = 0; }

    __device__ __forceinline__ void add(u32 pattern) { twice = larger(twice, pattern << 1); }

    __device__ __forceinline__ void merge(const Largest& other) { twice = larger(twice, other.twice); }

    __device__ __forceinline__ Largest exchange(u32 distance) const {
        return Largest{__shfl_xor_sync(FULL_WARP, twice, distance)};
    }

    __device__ __forceinline__ u32 largest() const { return twice >> 1; }
    // Ends that no value goes beyond, of which one is a value's magnitude.
    __device__ __forceinline__ u32 low() const { return largest(); }
    __device__ __forceinline__ u32 high() const { return largest(); }
};

// The first of some indices.
struct First {
    u64 index;

    __device__ __forceinline__ void merge(const First& other) { index = other.index < index ? other.index : index; }
    __device__ __forceinline__ First exchange(u32 distance) const { return First{__shfl_xor_sync(FULL_WARP, index, distance)}; }
};

// One of two types.
template <bool FIRST, class A, class B>
struct Choose {
    typedef A Type;
};
template <class A, class B>
struct Choose<false, A, B> {
    typedef B Type;
};

// `Kept`: `Extremes` or `Largest`.
template <class Kept>
struct GroupStats {
    Kept extremes;
    // Index of the first value that is not finite, in the tensor.
    u64 bad;
    Wide sum;
};

// The statistics of begin..end of a tensor, by a team; the sum only where it is asked for.
template <class Element, class Team, class Kept>
TERCET_FN GroupStats<Kept> group_stats(const typename Element::Bits *values, u64 begin, u64 end, bool with_sum) {
    Kept all;
    all.clear();
    First bad = {NO_INDEX};
    ExactSum sum;
    sum.clear();
    walk<Element>(values, begin, end, Team::thread(), Team::SIZE, [&](const Tile<Element> &tile) {
        Kept here;
        here.clear();
#pragma unroll
        for (u32 i = 0; i < 16; i++) here.add(tile.patterns[i]);
        u32 largest = here.largest();
        all.merge(here);
        if (largest >= INFINITE) {
#pragma unroll
            for (u32 i = 0; i < 16; i++) {
                bool found = i < tile.count && magnitude(tile.patterns[i]) >= INFINITE;
                if (found) bad.merge(First{tile.place(i)});
            }
        } else if (with_sum) {
            sum.add(tile.patterns, largest, tile.count);
        }
    });
    GroupStats<Kept> stats;
    stats.extremes = Team::all(all);
    // The whole team knows whether there is one.
    stats.bad = stats.extremes.largest() >= INFINITE ? Team::all(bad).index : NO_INDEX;
    if (with_sum) {
        stats.sum = Team::sum(sum);
    } else {
        stats.sum.clear();
    }
    return stats;
}

// A group's statistics in memory, such that all bytes 0 mean no values, and every field is a sum or a maximum: any number
// of blocks may add to one, in any order. The engine reads it.
struct StatsRecord {
    u64 sum[LIMBS];
    // The complement of the first bad index in the tensor; 0 for none.
    u64 not_bad;
    // The complement of the smallest value's key, and the largest value's key.
    u32 not_low, high;
};

}  // namespace tercet
