// The exact Σ|x| of a thread, and of a warp.
//
// A thread keeps 128 bits that stand at a moving place, since its values seldom lie far apart, and 384 bits for what
// falls outside. Sixteen values at a time come in as one integer of 61 bits.
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

    // Adds 16 magnitudes of which `largest` is the largest. A mantissa of 24 bits moves by at most 32, so their sum stays below 2⁶¹; it
    // moves up by at most 40, so that 2²⁷ of them stay below 2¹²⁸. Values further down than 32 places, and what stood too far from this
    // sum, go to the 384 bits; both are rare.
    __device__ __forceinline__ void add(const u32 (&magnitudes)[16], u32 largest) {
        u32 top = shift_of(largest);
        u32 floor = top > 32 ? top - 32 : 0;
        u64 sum = 0;
        u32 outside = 0;
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            u32 integer = mantissa(magnitudes[i]), place = shift_of(magnitudes[i]);
            bool inside = place >= floor;
            sum += inside ? (u64)integer << ((place - floor) & 63) : 0;
            outside |= inside || integer == 0 ? 0 : 1u << i;
        }
        bool moves = floor - base > 40 && sum != 0;
        while (outside != 0 || moves) {
            u64 low = words[0], high = words[1];
            u32 place = base;
            if (moves) {
                words[0] = words[1] = 0;
                base = floor > 20 ? floor - 20 : 0;
                moves = false;
            } else {
                u32 next = find_first_set(outside) - 1, found = 0;
                outside &= outside - 1;
                // A choice among registers, where an index would move them all to memory.
#pragma unroll
                for (u32 i = 0; i < 16; i++) found = i == next ? magnitudes[i] : found;
                low = mantissa(found);
                high = 0;
                place = shift_of(found);
            }
            wide.add_shifted(low, high, place);
        }
        u32 up = floor - base;
        // In two steps, since a shift by 64 is none. A sum of zeros may stand anywhere.
        if (sum != 0) add_words(words, sum << up, sum >> 1 >> (63 - up));
    }

    // The sum of all lanes, in each of them.
    __device__ __forceinline__ Wide warp_sum() {
        bool empty = (words[0] | words[1]) == 0;
        u32 lowest = warp_min(empty ? ~0u : base);
        u32 up = empty ? 0 : base - lowest;
        // Room for 32 of them: five bits.
        u32 zeros = words[1] != 0 ? leading_zeros(words[1]) : 64 + leading_zeros(words[0]);
        // The usual case, and much the cheaper one: all lanes' 128 bits at one place.
        bool fits = __all_sync(FULL_WARP, wide.is_zero() && up + 5 <= zeros && up < 64);
        u64 total[2] = {words[0], words[1]};
        u32 place = base;
        if (fits) {
            total[1] = words[1] << up | words[0] >> 1 >> (63 - up);
            total[0] = words[0] << up;
            place = lowest == ~0u ? 0 : lowest;
#pragma unroll
            for (u32 distance = 16; distance > 0; distance /= 2) {
                u64 other = __shfl_xor_sync(FULL_WARP, total[0], distance);
                add_words(total, other, __shfl_xor_sync(FULL_WARP, total[1], distance));
            }
        }
        Wide sum = wide;
        sum.add_shifted(total[0], total[1], place);
        if (!fits) {
#pragma unroll 1
            for (u32 distance = 16; distance > 0; distance /= 2) sum.merge(sum.exchange(distance));
        }
        return sum;
    }
};

}  // namespace tercet
