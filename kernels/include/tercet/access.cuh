// How threads walk over a stretch of a tensor: whole vectors of 16 bytes, which any stretch has at the same places, as many at a
// time as hold 16 values, then what is left, first vectors and then the values at the two ends. And how a warp writes floats that it made of
// bytes: four neighbours a lane, so that a store of the warp is one stretch of memory.
#pragma once

#include "tercet/float.cuh"

namespace tercet {

// The values of one thread's turn: 16 of them, or `count`, 4, 8 or 1, followed by copies, so that extremes are those of all 16.
template <class Element>
struct Tile {
    static const u32 N = 16;
    // A vector's values, and vectors of a full turn.
    static const u32 EACH = Element::COUNT;
    static const u32 VECTORS = N / EACH;

    u32 patterns[N];
    u32 count;
    // Where the first value is in the tensor, and how far vectors lie apart.
    u64 index, stride;

    __device__ __forceinline__ u64 place(u32 i) const { return index + i / EACH * stride + i % EACH; }
};

// Calls of_tile(Tile) for all values of begin..end, shared among at least 32 threads. `values` is aligned to 16 bytes; begin and end are
// not. The call stands at one place, since kernels are long enough with one copy of it.
template <class Element, class OfTile>
TERCET_FN void walk(const typename Element::Bits *values, u64 begin, u64 end, u32 thread, u32 threads, OfTile of_tile) {
    const u32 EACH = Element::COUNT, VECTORS = Tile<Element>::VECTORS;
    u64 first = (begin + EACH - 1) / EACH, last = end / EACH;
    // Without a whole vector all values are at the ends: fewer than 2 · EACH, at most 16.
    bool vectors = first < last;
    u32 head = (u32)(vectors ? first * EACH - begin : end - begin), tail = (u32)(vectors ? end - last * EACH : 0);
    bool single = thread < head + tail;
    u64 vector = vectors ? first + thread : last;
    while (true) {
        Tile<Element> tile;
        tile.index = vector * EACH;
        tile.stride = (u64)threads * EACH;
        if (vector + (u64)(VECTORS - 1) * threads < last) {
            u32x4 loaded[VECTORS];
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) loaded[i] = load16(values + tile.index + i * tile.stride);
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) Element::unpack(loaded[i], tile.patterns + i * EACH);
            tile.count = Tile<Element>::N;
            vector += (u64)VECTORS * threads;
        } else if (vector < last) {
            Element::unpack(load16(values + tile.index), tile.patterns);
#pragma unroll
            for (u32 i = EACH; i < Tile<Element>::N; i++) tile.patterns[i] = tile.patterns[i % EACH];
            tile.count = EACH;
            vector += threads;
        } else if (single) {
            tile.index = thread < head ? begin + thread : end - tail + (thread - head);
            u32 pattern = Element::widen(values[tile.index]);
#pragma unroll
            for (u32 i = 0; i < Tile<Element>::N; i++) tile.patterns[i] = pattern;
            tile.count = 1;
            single = false;
        } else {
            break;
        }
        of_tile(tile);
    }
}

// Four neighbours to a place that is a multiple of 4.
template <class Element>
TERCET_FN void store_four(typename Element::Bits *out, const f32 (&values)[4]) {
    if (Element::COUNT == 4) {
        store16(out, u32x4{bits_of(values[0]), bits_of(values[1]), bits_of(values[2]), bits_of(values[3])});
    } else {
        u32 words[2];
#pragma unroll
        for (u32 i = 0; i < 2; i++) words[i] = Element::narrow(values[2 * i]) | (u32)Element::narrow(values[2 * i + 1]) << 16;
        store8(out, u32x2{words[0], words[1]});
    }
}

// Byte `i` of a word as the last of the integer 2²³, and its distance from another such integer, which is exact.
TERCET_FN f32 byte_from(u32 word, u32 i, f32 origin) { return float_of(byte_permute(word, 0x4B000000, 0x7650 + i)) - origin; }
TERCET_FN f32 origin_of(u32 byte) { return float_of(0x4B000000 + byte); }

}  // namespace tercet
