// The exact Σ|x| of a thread, and of a warp.
//
// A thread keeps 128 bits that stand at a moving place, since its values seldom lie far apart, and 384 bits for what
// falls outside. Chunks of up to 16 values come in as one integer of 61 bits: about four instructions a value.
#pragma once

#include "tercet/wide.cuh"

namespace tercet {

struct ExactSum {
    // (words[1] · 2⁶⁴ + words[0]) · 2^base.
    u64 words[2];
    u32 base;
    Wide wide;

    __device__ __forceinline__ void clear() {
        words[0] = words[1] = 0;
        base = 0;
        wide.clear();
    }

    __device__ __forceinline__ void flush() {
        if ((words[0] | words[1]) != 0) wide.add_shifted(words[0], words[1], base);
        words[0] = words[1] = 0;
    }

    // Adds integer · 2^place, integer < 2⁶¹. It moves up by at most 40, so 2²⁷ of them stay below 2¹²⁸.
    __device__ __forceinline__ void add(u64 integer, u32 place) {
        if (integer == 0) return;
        u32 up = place - base;
        if (up > 40) {
            flush();
            base = place > 20 ? place - 20 : 0;
            up = place - base;
        }
        // In two steps, since a shift by 64 is none.
        add_words(words, integer << up, integer >> 1 >> (63 - up));
    }

    __device__ __forceinline__ void add_one(u32 magnitude) { add(mantissa(magnitude), shift_of(magnitude)); }

    // Adds up to 16 magnitudes of which `largest` is the largest. A mantissa of 24 bits moves by at most 32, so the sum
    // stays below 2⁶¹; values further down, which are rare, are added one by one.
    template <u32 N>
    __device__ __forceinline__ void add_chunk(const u32 (&magnitudes)[N], u32 largest) {
        u32 top = shift_of(largest);
        u32 floor = top > 32 ? top - 32 : 0;
        u64 sum = 0;
        u32 outside = 0;
#pragma unroll
        for (u32 i = 0; i < N; i++) {
            u32 integer = mantissa(magnitudes[i]), place = shift_of(magnitudes[i]);
            bool inside = place >= floor;
            sum += inside ? (u64)integer << ((place - floor) & 63) : 0;
            outside |= inside || integer == 0 ? 0 : 1u << i;
        }
        add(sum, floor);
        while (outside != 0) {
            u32 next = find_first_set(outside) - 1, found = 0;
            outside &= outside - 1;
            // A choice among registers, where an index would move them all to memory.
#pragma unroll
            for (u32 i = 0; i < N; i++) found = i == next ? magnitudes[i] : found;
            wide.add_shifted(mantissa(found), 0, shift_of(found));
        }
    }

    // The sum of all lanes, in each of them.
    __device__ __forceinline__ Wide warp_sum() {
        bool empty = (words[0] | words[1]) == 0;
        u32 lowest = warp_min(empty ? ~0u : base);
        u32 up = empty ? 0 : base - lowest;
        // Room for 32 of them: five bits.
        u32 zeros = words[1] != 0 ? leading_zeros(words[1]) : 64 + leading_zeros(words[0]);
        bool fits = wide.is_zero() && up + 5 <= zeros && up < 64;
        if (__all_sync(FULL_WARP, fits)) {
            u64 total[2] = {words[0] << up, words[1] << up | words[0] >> 1 >> (63 - up)};
#pragma unroll
            for (u32 distance = 16; distance > 0; distance /= 2) {
                u64 other = __shfl_xor_sync(FULL_WARP, total[0], distance);
                add_words(total, other, __shfl_xor_sync(FULL_WARP, total[1], distance));
            }
            Wide sum;
            sum.clear();
            if ((total[0] | total[1]) != 0) sum.add_shifted(total[0], total[1], lowest);
            return sum;
        }
        flush();
        Wide sum = wide;
#pragma unroll 1
        for (u32 distance = 16; distance > 0; distance /= 2) sum.merge(sum.exchange(distance));
        return sum;
    }
};

}  // namespace tercet
