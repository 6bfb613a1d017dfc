// What kernels are written in: short type names, loads of 16 bytes, conversions, integer dot products, tensor-core products.
//
// With `warp.cuh` and `warpgroup.cuh` the only file with PTX. Each wrapper of it has a twin for the CPU (`kernels/emulator`), which gives the same bits and refuses
// what the hardware refuses. Warp shuffles, votes, atomics and barriers are CUDA's own names in both.
#pragma once

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
#define TERCET_DEVICE 1
#else
#define TERCET_DEVICE 0
#endif

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#define TERCET_FN static __device__ __forceinline__

// Lanes of a warp, and the mask that names all of them.
#define WARP 32
#define FULL_WARP 0xFFFFFFFFu

// Dynamic shared memory: declares `name`, a pointer to as many bytes as the launch gave, aligned to 16 bytes.
#if TERCET_DEVICE
#define TERCET_SHARED(type, name)                                                                                                  \
    extern __shared__ uint4 tercet_dynamic_shared[];                                                                               \
    type *name = reinterpret_cast<type *>(tercet_dynamic_shared)
#else
#define TERCET_SHARED(type, name) type *name = static_cast<type *>(emulator::dynamic_shared())
#endif

// Sixteen bytes, loaded and stored at once.
struct alignas(16) u32x4 {
    u32 x, y, z, w;
};

struct alignas(8) u32x2 {
    u32 x, y;
};

// Sixteen bytes at an address that is a multiple of 16.
TERCET_FN u32x4 load16(const void *from) {
#if !TERCET_DEVICE
    emulator::check_aligned(from, 16);
#endif
    return *static_cast<const u32x4 *>(from);
}

TERCET_FN void store16(void *to, u32x4 value) {
#if !TERCET_DEVICE
    emulator::check_aligned(to, 16);
#endif
    *static_cast<u32x4 *>(to) = value;
}

// Eight bytes at an address that is a multiple of 8.
TERCET_FN u32x2 load8(const void *from) {
#if !TERCET_DEVICE
    emulator::check_aligned(from, 8);
#endif
    return *static_cast<const u32x2 *>(from);
}

TERCET_FN void store8(void *to, u32x2 value) {
#if !TERCET_DEVICE
    emulator::check_aligned(to, 8);
#endif
    *static_cast<u32x2 *>(to) = value;
}

// As `load16`, of global memory that no thread writes during the launch and that is read once: it passes L1 by.
TERCET_FN u32x4 load16_once(const void *from) {
#if TERCET_DEVICE
    u32x4 out;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
                 : "l"(__cvta_generic_to_global(from)));
    return out;
#else
    return load16(from);
#endif
}

// As `store16`, to global memory that is not read again soon.
TERCET_FN void store16_once(void *to, u32x4 value) {
#if TERCET_DEVICE
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(value.x), "r"(value.y),
                 "r"(value.z), "r"(value.w)
                 : "memory");
#else
    store16(to, value);
#endif
}

// Patterns of floats.
TERCET_FN u32 bits_of(f32 x) { return __float_as_uint(x); }
TERCET_FN f32 float_of(u32 bits) { return __uint_as_float(bits); }
TERCET_FN u64 bits_of(f64 x) { return static_cast<u64>(__double_as_longlong(x)); }
TERCET_FN f64 double_of(u64 bits) { return __longlong_as_double(static_cast<i64>(bits)); }

// The value of an f16 (IEEE binary16), exactly; NaN becomes a NaN.
TERCET_FN f32 f16_to_f32(u16 bits) {
#if TERCET_DEVICE
    f32 out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(bits));
    return out;
#else
    return emulator::f16_to_f32(bits);
#endif
}

// The nearest f16, ties to even; beyond the largest, infinity; NaN becomes 0x7FFF.
TERCET_FN u16 f32_to_f16(f32 x) {
#if TERCET_DEVICE
    u16 out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
#else
    return emulator::f32_to_f16(x);
#endif
}

// The value of a bf16: the upper half of an f32.
TERCET_FN f32 bf16_to_f32(u16 bits) { return float_of(static_cast<u32>(bits) << 16); }

// The nearest bf16, ties to even; NaN becomes 0x7FFF. By integers, since devices before 8.0 have no such instruction.
TERCET_FN u16 f32_to_bf16(f32 x) {
    u32 bits = bits_of(x);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
        return 0x7FFF;
    }
    // Half a unit of the last place less one, plus that place: a tie rounds up only from an odd one. Cannot pass 2^32.
    return static_cast<u16>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// c + the four products of the bytes of a and b, wrapping.
TERCET_FN i32 dp4a(i32 a, i32 b, i32 c) { return __dp4a(a, b, c); }
TERCET_FN u32 dp4a(u32 a, u32 b, u32 c) { return __dp4a(a, b, c); }

// The same of unsigned bytes in a by signed bytes in b.
TERCET_FN i32 dp4a_unsigned_signed(u32 a, i32 b, i32 c) {
#if TERCET_DEVICE
    i32 out;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
    return out;
#else
    return emulator::dp4a_unsigned_signed(a, b, c);
#endif
}

// Four bytes of the eight of b:a (a's are 0 to 3), chosen by the low three bits of each digit of `selector`.
TERCET_FN u32 byte_permute(u32 a, u32 b, u32 selector) { return __byte_perm(a, b, selector); }

// Bits set; zeros above the highest (32 or 64 of 0); the lowest bit set plus one (0 of 0).
TERCET_FN u32 popcount(u32 x) { return static_cast<u32>(__popc(x)); }
TERCET_FN u32 popcount(u64 x) { return static_cast<u32>(__popcll(x)); }
TERCET_FN u32 leading_zeros(u32 x) { return static_cast<u32>(__clz(static_cast<i32>(x))); }
TERCET_FN u32 leading_zeros(u64 x) { return static_cast<u32>(__clzll(static_cast<i64>(x))); }
TERCET_FN u32 find_first_set(u32 x) { return static_cast<u32>(__ffs(static_cast<i32>(x))); }
TERCET_FN u32 find_first_set(u64 x) { return static_cast<u32>(__ffsll(static_cast<i64>(x))); }

// sum += addend, over 128 and 384 bits, least significant word first; what leaves the top is lost. A word of the sum is written before
// the last of the addend is read: no two share a register (`&`).
TERCET_FN void add_words(u64 (&sum)[2], u64 low, u64 high) {
#if TERCET_DEVICE
    asm("add.cc.u64 %0, %0, %2;\n\taddc.u64 %1, %1, %3;" : "+&l"(sum[0]), "+&l"(sum[1]) : "l"(low), "l"(high));
#else
    sum[0] += low;
    sum[1] += high + (sum[0] < low ? 1 : 0);
#endif
}

TERCET_FN void add_words(u64 (&sum)[6], const u64 (&addend)[6]) {
#if TERCET_DEVICE
    asm("add.cc.u64 %0, %0, %6;\n\taddc.cc.u64 %1, %1, %7;\n\taddc.cc.u64 %2, %2, %8;\n\t"
        "addc.cc.u64 %3, %3, %9;\n\taddc.cc.u64 %4, %4, %10;\n\taddc.u64 %5, %5, %11;"
        : "+&l"(sum[0]), "+&l"(sum[1]), "+&l"(sum[2]), "+&l"(sum[3]), "+&l"(sum[4]), "+&l"(sum[5])
        : "l"(addend[0]), "l"(addend[1]), "l"(addend[2]), "l"(addend[3]), "l"(addend[4]), "l"(addend[5]));
#else
    u64 carry = 0;
    for (int i = 0; i < 6; i++) {
        u64 part = addend[i] + carry;
        // A part that wraps is 0, and its carry goes on.
        carry = part < carry ? 1 : 0;
        sum[i] += part;
        carry |= sum[i] < part ? 1 : 0;
    }
#endif
}

#include "tercet/warp.cuh"
