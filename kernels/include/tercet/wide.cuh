// An integer of 384 bits in units of 2⁻¹⁴⁹: any sum of f32 magnitudes. As core/src/number/exact_sum.rs.
#pragma once

#include "tercet/float.cuh"

namespace tercet {

const u32 LIMBS = 6;

struct Wide {
    u64 limbs[LIMBS];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (u32 i = 0; i < LIMBS; i++) limbs[i] = 0;
    }

    __device__ __forceinline__ bool is_zero() const {
        u64 any = 0;
#pragma unroll
        for (u32 i = 0; i < LIMBS; i++) any |= limbs[i];
        return any == 0;
    }

    // Adds (high · 2⁶⁴ + low) · 2^shift; shift is at most 254. Every limb is added to, so that all stay in registers.
    __device__ __forceinline__ void add_shifted(u64 low, u64 high, u32 shift) {
        u32 place = shift / 64, within = shift % 64;
        u64 a = low << within;
        u64 b = high << within | (within == 0 ? 0 : low >> (64 - within));
        u64 c = within == 0 ? 0 : high >> (64 - within);
        u64 parts[LIMBS];
#pragma unroll
        for (u32 i = 0; i < LIMBS; i++) parts[i] = i == place ? a : i == place + 1 ? b : i == place + 2 ? c : 0;
        add_words(limbs, parts);
    }

    __device__ __forceinline__ void merge(const Wide &other) { add_words(limbs, other.limbs); }

    __device__ __forceinline__ Wide exchange(u32 distance) const {
        Wide other;
#pragma unroll
        for (u32 i = 0; i < LIMBS; i++) other.limbs[i] = __shfl_xor_sync(FULL_WARP, limbs[i], distance);
        return other;
    }

    // Adds to a sum that other threads add to. Each wrap of a limb carries once, so the sum ends the same in any order.
    __device__ __forceinline__ void add_to(u64 *sum) const {
        u64 carry = 0;
#pragma unroll
        for (u32 i = 0; i < LIMBS; i++) {
            u64 part = limbs[i] + carry;
            // A part that wraps is 0, and its carry goes on.
            carry = part < carry ? 1 : 0;
            if (part != 0) {
                u64 before = atomicAdd(&sum[i], part);
                carry |= before + part < part ? 1 : 0;
            }
        }
    }

    // The sum over n values, rounded once to nearest even; 0 for n = 0. For n < 2⁴⁰.
    __device__ __forceinline__ f32 mean(u64 n) const;
};

// The 64 bits from the highest set one down, and whether any below is set; position is that of the lowest of them.
struct Top {
    u64 bits;
    u64 next;
    i32 position;
    bool below;
};

TERCET_FN Top top_of(const Wide& wide) {
    u64 first = 0, second = 0, third = 0;
    i32 at = 0;
    bool rest = false;
#pragma unroll
    for (i32 i = (i32)LIMBS - 1; i >= 0; i--) {
        u64 limb = wide.limbs[i];
        if (first == 0) {
            first = limb;
            at = i;
            second = i > 0 ? wide.limbs[i > 0 ? i - 1 : 0] : 0;
            third = i > 1 ? wide.limbs[i > 1 ? i - 2 : 0] : 0;
        } else if (i < at - 2) {
            rest = rest || limb != 0;
        }
    }
    Top top;
    u32 zeros = first == 0 ? 0 : leading_zeros(first);
    top.bits = zeros == 0 ? first : first << zeros | second >> (64 - zeros);
    top.next = zeros == 0 ? second : second << zeros | third >> (64 - zeros);
    top.below = rest || (zeros == 0 ? third : third << zeros) != 0;
    top.position = 64 * at - (i32)zeros;
    return top;
}

// bits · 2^position units rounded to f32, ties to even; `below` stands for something under its last bit. bits ≥ 2²⁵.
TERCET_FN f32 round_units(u64 bits, i32 position, bool below) {
    i32 highest = position + 63 - (i32)leading_zeros(bits);
    // The last kept bit: 24 significant ones, fewer where f32 is subnormal.
    i32 last = highest > 23 ? highest - 23 : 0;
    // At least 1, since bits has 25 or more; at most 64, for results under 2⁻¹⁴⁹.
    u32 cut = (u32)(last - position);
    if (cut > 64) return 0.0f;
    u64 kept = cut == 64 ? 0 : bits >> cut;
    bool half = bits >> (cut - 1) & 1;
    bool rest = below || (bits & ((1ull << (cut - 1)) - 1)) != 0;
    u64 pattern = ((u64)last << 23) + kept + (half && (rest || (kept & 1)) ? 1 : 0);
    return float_of(pattern < INFINITE ? (u32)pattern : INFINITE);
}

// Two steps of a division: 64 bits by n, then what is left with 24 bits more, where the first quotient could be short.
__device__ __forceinline__ f32 Wide::mean(u64 n) const {
    Top top = top_of(*this);
    if (n == 0 || top.bits == 0) return 0.0f;
    if (n >> 32 == 0) {
        u64 quotient = top.bits / n;
        bool below = top.bits - quotient * n != 0 || top.next != 0 || top.below;
        return round_units(quotient, top.position, below);
    }
    // n < 2⁴⁰, so the remainder has room for 24 bits, and the quotient of 24 bits for 24 more.
    u64 quotient = top.bits / n;
    u64 wide = (top.bits - quotient * n) << 24 | top.next >> 40;
    u64 more = wide / n;
    bool below = wide - more * n != 0 || (top.next & ((1ull << 40) - 1)) != 0 || top.below;
    return round_units(quotient << 24 | more, top.position - 24, below);
}

}  // namespace tercet
