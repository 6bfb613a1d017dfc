// CUDA's integer and floating-point functions, to the bit. What is approximate on a device is absent.
#pragma once

namespace emulator {
// Bits of one type as another.
template <typename To, typename From> inline To cast_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// IEEE binary16, by integers (half.cpp).
float f16_to_f32(unsigned short bits);
unsigned short f32_to_f16(float x);

int dp4a_unsigned_signed(unsigned a, int b, int c);
} // namespace emulator

inline unsigned __float_as_uint(float x) { return emulator::cast_bits<unsigned>(x); }
inline int __float_as_int(float x) { return emulator::cast_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return emulator::cast_bits<float>(x); }
inline float __int_as_float(int x) { return emulator::cast_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulator::cast_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulator::cast_bits<double>(x); }

// One rounding each, to nearest even; the compiler is told not to fuse (-ffp-contract=off).
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }

namespace emulator {
// A device saturates where C++ leaves the conversion undefined, and makes 0 of NaN (and i64's least for 64 bits).
template <typename Int, typename Float> inline Int saturate(Float x, Int of_nan) {
    constexpr Int least = std::is_signed_v<Int> ? Int(Int(1) << (sizeof(Int) * 8 - 1)) : Int(0);
    constexpr Int greatest = Int(~least);
    if (x != x) {
        return of_nan;
    }
    // `greatest` itself may not be a float; its successor, a power of two, is.
    if (x >= Float(greatest / 2 + 1) * Float(2)) {
        return greatest;
    }
    return x < Float(least) ? least : Int(x);
}
} // namespace emulator

inline int __float2int_rn(float x) { return emulator::saturate<int>(__builtin_rintf(x), 0); }
inline int __float2int_rz(float x) { return emulator::saturate<int>(__builtin_truncf(x), 0); }
inline int __float2int_rd(float x) { return emulator::saturate<int>(__builtin_floorf(x), 0); }
inline unsigned __float2uint_rn(float x) { return emulator::saturate<unsigned>(__builtin_rintf(x), 0u); }
inline unsigned __float2uint_rz(float x) { return emulator::saturate<unsigned>(__builtin_truncf(x), 0u); }
inline int __double2int_rn(double x) { return emulator::saturate<int>(__builtin_rint(x), 0); }
inline int __double2int_rz(double x) { return emulator::saturate<int>(__builtin_trunc(x), 0); }
inline long long __float2ll_rn(float x) { return emulator::saturate<long long>(__builtin_rintf(x), -0x7FFFFFFFFFFFFFFFll - 1); }
inline long long __double2ll_rn(double x) { return emulator::saturate<long long>(__builtin_rint(x), -0x7FFFFFFFFFFFFFFFll - 1); }
inline unsigned long long __double2ull_rn(double x) {
    return emulator::saturate<unsigned long long>(__builtin_rint(x), 1ull << 63);
}
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline float __ll2float_rn(long long x) { return float(x); }
inline float __ull2float_rn(unsigned long long x) { return float(x); }
inline double __int2double_rn(int x) { return double(x); }
inline double __ll2double_rn(long long x) { return double(x); }
inline double __ull2double_rn(unsigned long long x) { return double(x); }
inline float __double2float_rn(double x) { return float(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned out = 0;
    for (int bit = 0; bit < 32; bit++) {
        out |= (x >> bit & 1u) << (31 - bit);
    }
    return out;
}
inline int __mulhi(int a, int b) { return int((long long)(a)*b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)(a)*b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)(a)*b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)(a)*b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return unsigned(((unsigned long long)(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned(((unsigned long long)(high) << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    unsigned long long bytes = (unsigned long long)(b) << 32 | a;
    unsigned out = 0;
    for (int digit = 0; digit < 4; digit++) {
        unsigned choice = selector >> (4 * digit);
        // The digit's highest bit means something to the instruction; the function clears it.
        out |= (unsigned(bytes >> (8 * (choice & 7))) & 0xFF) << (8 * digit);
    }
    return out;
}
inline int __dp4a(int a, int b, int c) {
    unsigned sum = unsigned(c);
    for (int byte = 0; byte < 4; byte++) {
        sum += unsigned(int((signed char)(a >> (8 * byte))) * int((signed char)(b >> (8 * byte))));
    }
    return int(sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int byte = 0; byte < 4; byte++) {
        c += (a >> (8 * byte) & 0xFF) * (b >> (8 * byte) & 0xFF);
    }
    return c;
}
inline int emulator::dp4a_unsigned_signed(unsigned a, int b, int c) {
    unsigned sum = unsigned(c);
    for (int byte = 0; byte < 4; byte++) {
        sum += unsigned(int(a >> (8 * byte) & 0xFF) * int((signed char)(b >> (8 * byte))));
    }
    return int(sum);
}

// CUDA converts the operands as C++ does for an operator.
template <typename A, typename B, typename = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
inline auto min(A a, B b) -> std::common_type_t<A, B> {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) {
        return T(__builtin_fmin(T(a), T(b)));
    } else {
        return T(b) < T(a) ? T(b) : T(a);
    }
}
template <typename A, typename B, typename = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
inline auto max(A a, B b) -> std::common_type_t<A, B> {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) {
        return T(__builtin_fmax(T(a), T(b)));
    } else {
        return T(a) < T(b) ? T(b) : T(a);
    }
}

// Cache hints change nothing here.
template <typename T> inline T __ldg(const T *from) { return *from; }
template <typename T> inline T __ldcs(const T *from) { return *from; }
template <typename T> inline T __ldcg(const T *from) { return *from; }
template <typename T> inline void __stcs(T *to, T value) { *to = value; }
template <typename T> inline void __stcg(T *to, T value) { *to = value; }
