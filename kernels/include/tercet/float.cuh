// Floats as bit patterns, and the three types that a tensor may hold. As core/src/number/bits.rs and element.rs.
#pragma once

#include "tercet/device.cuh"

namespace tercet {

// The pattern of infinity; a magnitude at or above it is not finite.
const u32 INFINITE = 0x7F800000;
// One past every index.
const u64 NO_INDEX = ~0ull;

TERCET_FN u32 magnitude(u32 pattern) { return pattern & 0x7FFFFFFF; }

// |x| = mantissa · 2^(shift − 149): 24 bits, the top one hidden but in subnormals.
TERCET_FN u32 mantissa(u32 magnitude) {
    return (magnitude & 0x7FFFFF) | (magnitude >> 23 == 0 ? 0 : 0x800000);
}

TERCET_FN u32 shift_of(u32 magnitude) {
    u32 field = magnitude >> 23;
    return field - (field == 0 ? 0 : 1);
}

// Keys that order as the floats do, −0 just below +0.
TERCET_FN u32 ordered(u32 pattern) { return pattern ^ ((u32)((i32)pattern >> 31) | 0x80000000); }

// The pattern of a key.
TERCET_FN u32 from_ordered(u32 key) { return key >> 31 ? key & 0x7FFFFFFF : ~key; }

// A tensor's element: its bits, how many come in 16 bytes, and the f32 of the same value. Widening is exact.
struct F32 {
    typedef u32 Bits;
    static const u32 COUNT = 4;
    static __device__ __forceinline__ u32 widen(u32 bits) { return bits; }
    static __device__ __forceinline__ u32 narrow(f32 x) { return bits_of(x); }
    static __device__ __forceinline__ void unpack(u32x4 vector, u32 *patterns) {
        patterns[0] = vector.x;
        patterns[1] = vector.y;
        patterns[2] = vector.z;
        patterns[3] = vector.w;
    }
};

template <class Half>
struct Pairs {
    typedef u16 Bits;
    static const u32 COUNT = 8;
    static __device__ __forceinline__ void unpack(u32x4 vector, u32 *patterns) {
        const u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            patterns[2 * i] = Half::widen(words[i] & 0xFFFF);
            patterns[2 * i + 1] = Half::widen(words[i] >> 16);
        }
    }
};

struct F16 : Pairs<F16> {
    static __device__ __forceinline__ u32 widen(u32 bits) { return bits_of(f16_to_f32((u16)bits)); }
    static __device__ __forceinline__ u16 narrow(f32 x) { return f32_to_f16(x); }
};

struct BF16 : Pairs<BF16> {
    static __device__ __forceinline__ u32 widen(u32 bits) { return bits << 16; }
    static __device__ __forceinline__ u16 narrow(f32 x) { return f32_to_bf16(x); }
};

}  // namespace tercet
