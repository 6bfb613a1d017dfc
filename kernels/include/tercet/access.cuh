// How threads walk over a stretch of a tensor: whole vectors of 16 bytes, which any stretch has at the same places, as many at a
// time as hold 16 values, then what is left at its two ends, one value a thread.
#pragma once

#include "tercet/float.cuh"

namespace tercet {

// The values of one thread's turn: N vectors of 16 bytes, `stride` values apart from each other's start.
template <class Element, u32 N>
struct Tile {
    u32 patterns[N * Element::COUNT];
    u64 index;
    u64 stride;
};

template <class Element, u32 N>
TERCET_FN Tile<Element, N> load_tile(const typename Element::Bits *values, u64 vector, u32 threads) {
    const u32x4 *vectors = reinterpret_cast<const u32x4 *>(values);
    u32x4 loaded[N];
#pragma unroll
    for (u32 i = 0; i < N; i++) loaded[i] = load16(vectors + vector + (u64)i * threads);
    Tile<Element, N> tile;
#pragma unroll
    for (u32 i = 0; i < N; i++) Element::unpack(loaded[i], tile.patterns + i * Element::COUNT);
    tile.index = vector * Element::COUNT;
    tile.stride = (u64)threads * Element::COUNT;
    return tile;
}

// Calls tile(Tile) and single(pattern, index) for every value of begin..end, shared among at least 32 threads. `values` is
// aligned to 16 bytes; begin and end are not.
template <class Element, class OfTile, class OfSingle>
TERCET_FN void walk(const typename Element::Bits *values, u64 begin, u64 end, u32 thread, u32 threads, OfTile of_tile,
                                     OfSingle of_single) {
    const u32 N = Element::COUNT;
    u64 first = (begin + N - 1) / N, last = end / N;
    // Without a whole vector all values are single: fewer than 2 N, which is at most 16.
    bool vectors = first < last;
    u64 head = vectors ? first * N - begin : end - begin;
    u64 tail = vectors ? end - last * N : 0;
    if (thread < head + tail) {
        u64 index = thread < head ? begin + thread : end - tail + (thread - head);
        of_single(Element::widen(values[index]), index);
    }
    if (!vectors) return;
    u64 vector = first + thread;
    const u32 MANY = 16 / N;
    for (; vector + (MANY - 1) * (u64)threads < last; vector += MANY * (u64)threads) {
        of_tile(load_tile<Element, MANY>(values, vector, threads));
    }
    for (; vector < last; vector += threads) of_tile(load_tile<Element, 1>(values, vector, threads));
}

}  // namespace tercet
