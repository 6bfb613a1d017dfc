// The exact Σ|x| of a thread, and of a warp.
//
// Floats are added by windows. Let u = 2^(top − 21) and v = u · 2⁻²², where every |x| < 2^(top + 1) = 2²² u. Then x + 2²³ u lies where
// floats are the multiples of u: the addition rounds x to such a multiple k u, k ≤ 2²², and the float's pattern counts k. What is
// left of x is exact and at most u/2 = 2²¹ v, so its sum with 1.5 · 2²³ v counts multiples of v the same way. If nothing is left after
// that, x is what was counted: no bit was lost. All steps are exact but those two additions, which round as they should, and the
// patterns are summed as integers. Of values from 2^(top − 20) up nothing is ever left, and few of most data are smaller.
//
// What a window does not hold goes to an integer of 384 bits, value by value.
#pragma once

#include "tercet/wide.cuh"

namespace tercet {

struct ExactSum {
    // Σ k of both windows: at most 2²² and 2²¹ each for fewer than 2⁴⁰ values.
    u64 upper;
    i64 lower;
    // The pattern of 2^(top + 1), which all in the window are below.
    u32 limit;
    Wide wide;

    // Where top may be: v is at least the least subnormal number, below which nothing is left of any float, and 2²³ u is finite.
    enum : u32 { LEAST = (127 - 106 + 1) << 23, MOST = (127 + 124 + 1) << 23 };

    __device__ __forceinline__ void clear() {
        upper = 0;
        lower = 0;
        limit = LEAST;
        wide.clear();
    }

    // 2²³ u = 2^(top + 2), and 1.5 · 2²³ v = 1.5 · 2^(top − 20).
    __device__ __forceinline__ f32 first() const { return float_of(limit + (1 << 23)); }
    __device__ __forceinline__ f32 second() const { return float_of(limit - (21 << 23) + 0x400000); }

    // The sum in units of v, and v as a power of two times 2⁻¹⁴⁹: no negative number, since it is a sum of magnitudes.
    __device__ __forceinline__ void units(u64 (&words)[2]) const {
        words[0] = upper << 22;
        words[1] = upper >> 42;
        add_words(words, (u64)lower, (u64)(lower >> 63));
    }
    __device__ __forceinline__ u32 place() const { return (limit - LEAST) >> 23; }

    // Sets the window by a largest magnitude, with room for two powers more. It holds nothing.
    __device__ __forceinline__ void set(u32 largest) {
        u32 wanted = (largest >> 23 << 23) + (3 << 23);
        limit = wanted < LEAST ? (u32)LEAST : wanted > MOST ? (u32)MOST : wanted;
    }

    // What a window leaves of |x|, and the patterns that count the rest.
    __device__ __forceinline__ u32 split(u32 pattern, u32 *high, u32 *low) const {
        f32 x = fabsf(float_of(pattern)), a = first(), b = second();
        f32 upper = x + a, rest = x - (upper - a);
        f32 lower = rest + b, left = rest - (lower - b);
        *high = bits_of(upper);
        *low = bits_of(lower);
        return bits_of(left);
    }

    // Adds the magnitudes of 16 patterns, of which `largest` is the largest. Of fewer, 1, 4 or 8, they are `count` in turn, and each
    // counts once.
    __device__ __forceinline__ void add(const u32 (&patterns)[16], u32 largest, u32 count) {
        if (largest >= limit && (upper | (u64)lower) == 0) set(largest);
        u32 highs = 0, lows = 0, left = 0;
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            u32 high, low;
            left |= split(patterns[i], &high, &low);
            highs += high;
            lows += low;
        }
        if (left == 0 && largest < limit) {
            // Sums of 16 copies are multiples of 16/count; 16 · 2²² · 16 is below 2³¹.
            upper += (highs - 16 * bits_of(first())) * count / 16;
            lower += (i32)((lows - 16 * bits_of(second())) * count) / 16;
        } else {
            add_each(patterns, largest, count);
        }
    }

    // The same value by value, those that do not fit the window to the 384 bits; first what the window holds, where it has to move. In a
    // loop, since it is seldom taken and would have many registers.
    __device__ __forceinline__ void add_each(const u32 (&patterns)[16], u32 largest, u32 count) {
        bool moves = largest >= limit || largest + (10 << 23) < limit;
#pragma unroll 1
        for (u32 turn = moves ? 0 : 1; turn <= count; turn++) {
            u64 words[2];
            u32 to;
            if (turn == 0) {
                units(words);
                to = place();
                upper = 0;
                lower = 0;
                set(largest);
            } else {
                // A choice among registers, where an index would move them all to memory.
                u32 found = 0, high, low;
#pragma unroll
                for (u32 i = 0; i < 16; i++) found = i + 1 == turn ? magnitude(patterns[i]) : found;
                if (split(found, &high, &low) == 0 && found < limit) {
                    upper += high - bits_of(first());
                    lower += (i32)(low - bits_of(second()));
                    continue;
                }
                words[0] = mantissa(found);
                words[1] = 0;
                to = shift_of(found);
            }
            wide.add_shifted(words[0], words[1], to);
        }
    }

    // The sum of all lanes, in each of them.
    __device__ __forceinline__ Wide warp_sum() {
        u64 words[2];
        units(words);
        u32 base = place();
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
