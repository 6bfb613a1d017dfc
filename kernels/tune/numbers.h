// Random data, the same in every run, and numbers as the kernels write them, by their definitions. Plain on purpose: what is expected is computed
// from these. Compiled without contraction of products and sums, as the kernels are.
#pragma once

#include "driver.h"

#include <cmath>

struct Random {
    u64 state;

    // splitmix64.
    u64 next() {
        u64 x = state += 0x9E3779B97F4A7C15;
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
        x = (x ^ x >> 27) * 0x94D049BB133111EB;
        return x ^ x >> 31;
    }

    u32 below(u32 end) { return (u32)((next() >> 32) * end >> 32); }

    // Shaped like a bell, below 4 in magnitude, with all bits of the mantissa in use: a sum of four numbers, times one between 1/2 and 3/2, so
    // a multiple of 2⁻⁴⁹.
    float bell() {
        const u64 a = next(), b = next();
        double sum = 0;
        for (u32 part : {(u32)a, (u32)(a >> 32), (u32)b, (u32)(b >> 32)}) sum += (part >> 8) * 0x1p-24;
        return (float)((sum - 2) * (0.5 + (next() >> 12) * 0x1p-52));
    }
};

inline u32 bits_of(float x) {
    u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline float float_of(u32 bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// A key that orders as floats do.
inline u32 ordered(float x) { return bits_of(x) >> 31 ? ~bits_of(x) : bits_of(x) | 0x80000000; }

// The nearest f16, ties to even, of what is below its largest: 10 bits after the first, fewer below 2⁻¹⁴. A carry raises the exponent.
inline u16 half_of(float x) {
    const int exponent = x == 0 ? -14 : std::max(std::ilogb(x), -14);
    const int steps = (int)std::nearbyint(std::ldexp(std::fabs((double)x), 10 - exponent));
    return (u16)((std::signbit(x) ? 0x8000 : 0) + ((exponent + 14) << 10) + steps);
}

inline float of_half(u16 bits) {
    const int exponent = bits >> 10 & 31;
    const double size = std::ldexp((bits & 1023) + (exponent != 0 ? 1024 : 0), std::max(exponent, 1) - 25);
    return (float)(bits >> 15 ? -size : size);
}

// A sum of magnitudes in units of 2⁻⁶⁴, which is exact for what `bell` gives.
__extension__ typedef unsigned __int128 Units;
inline Units units_of(float x) { return (Units)std::ldexp(std::fabs((double)x), 64); }

// Their mean, rounded once: of a power of two of them, and above the least normal number, only the sum is rounded.
inline float mean_of(Units sum, u32 count) { return (float)sum * 0x1p-64f / (float)count; }

enum Type { F32, F16, BF16 };

// Values that a type holds exactly, and the bytes of that.
struct Tensor {
    std::vector<float> values;
    Bytes bytes;
};

template <class T>
Bytes bytes_of(const std::vector<T> &values) {
    const u8 *from = reinterpret_cast<const u8 *>(values.data());
    return Bytes(from, from + values.size() * sizeof(T));
}

template <class T>
std::vector<T> numbers_of(const Bytes &bytes) {
    std::vector<T> numbers(bytes.size() / sizeof(T));
    memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
    return numbers;
}

inline Tensor bells(u64 count, u64 seed, Type type = F32) {
    Random random{seed};
    std::vector<float> values(count);
    for (float &x : values) x = random.bell();
    if (type == F32) return {values, bytes_of(values)};
    std::vector<u16> halves(count);
    for (u64 i = 0; i < count; i++) {
        halves[i] = type == F16 ? half_of(values[i]) : (u16)(bits_of(values[i]) >> 16);
        values[i] = type == F16 ? of_half(halves[i]) : float_of((u32)halves[i] << 16);
    }
    return {values, bytes_of(halves)};
}

// Codes from -127 to 127.
inline std::vector<i8> codes(u64 count, u64 seed) {
    Random random{seed};
    std::vector<i8> found(count);
    for (i8 &code : found) code = (i8)((int)random.below(255) - 127);
    return found;
}

inline i32 dot(const i8 *a, const i8 *b, u64 count) {
    i32 sum = 0;
    for (u64 i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}
