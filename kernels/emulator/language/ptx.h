// Instructions of PTX that C++ has no sign for, as translate.py names them: what the PTX ISA says of each.
//
// Registers are variables. Addresses in shared memory are those of its window, as on a device, not pointers.
#pragma once

#include "../cuda.h"

// What is called everywhere: -Og, which keeps compilation short, leaves calls as calls.
#define PTX_FN static inline __attribute__((always_inline))

namespace ptx {
using emulator::cast_bits;
using s8 = signed char;
using u8 = unsigned char;
using b8 = unsigned char;
using s16 = short;
using u16 = unsigned short;
using b16 = unsigned short;
using s32 = int;
using u32 = unsigned;
using b32 = unsigned;
using s64 = long long;
using u64 = unsigned long long;
using b64 = unsigned long long;
using f32 = float;
using f64 = double;
using pred = bool;

// What a kernel finds in a register that it never wrote.
constexpr pred UNWRITTEN_pred = true;
constexpr u16 UNWRITTEN_u16 = 0xA5A5;
constexpr u32 UNWRITTEN_u32 = 0xA5A5A5A5;
constexpr u64 UNWRITTEN_u64 = 0xA5A5A5A5A5A5A5A5;
constexpr f32 UNWRITTEN_f32 = -2.8e-16f;
constexpr f64 UNWRITTEN_f64 = -1e-130;

// A device gives something where it divides by zero; no kernel may count on what.
template <typename T> inline T quotient(T a, T b) { return a / b; }
template <typename T> inline T remainder(T a, T b) { return a % b; }

// Of a NaN and a number the number; -0 is less than +0.
template <typename T> PTX_FN T least(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        return a != a ? b : b != b || a < b || (a == b && std::signbit(a)) ? a : b;
    } else {
        return a < b ? a : b;
    }
}
template <typename T> PTX_FN T greatest(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        return a != a ? b : b != b || a > b || (a == b && !std::signbit(a)) ? a : b;
    } else {
        return a > b ? a : b;
    }
}
// A sign is a bit, of a NaN too.
PTX_FN f32 magnitude(f32 a) { return cast_bits<f32>(cast_bits<u32>(a) & 0x7FFFFFFF); }
PTX_FN f64 magnitude(f64 a) { return cast_bits<f64>(cast_bits<u64>(a) & 0x7FFFFFFFFFFFFFFF); }
inline u64 magnitude(s64 a) { return a < 0 ? 0 - u64(a) : u64(a); }
PTX_FN f32 negative(f32 a) { return cast_bits<f32>(cast_bits<u32>(a) ^ 0x80000000); }

inline u64 high(u64 a, u64 b) { return __umul64hi(a, b); }
inline u32 high(u32 a, u32 b) { return __umulhi(a, b); }
inline s32 high(s32 a, s32 b) { return __mulhi(a, b); }

// Sums over several words: the carry stands in a register of its own.
PTX_FN u64 add_carry_out(bool &carry, u64 a, u64 b) {
    u64 sum;
    carry = __builtin_add_overflow(a, b, &sum);
    return sum;
}
PTX_FN u64 add_carry(bool &carry, u64 a, u64 b, bool out) {
    const u64 sum = a + b, all = sum + (carry ? 1 : 0);
    carry = out ? sum < a || all < sum : carry;
    return all;
}

// By as much as the width or more, nothing but the sign is left.
template <typename T> inline T shift_left(T a, u32 by) { return by >= sizeof(T) * 8 ? T(0) : T(a << by); }
template <typename T> inline T shift_right(T a, u32 by) { return by >= sizeof(T) * 8 ? T(a < 0 ? -1 : 0) : T(a >> by); }

// The low `length` bits of a field in place of those of `into` from bit `at` on.
template <typename T> inline T insert(T field, T into, u32 at, u32 length) {
    const T ones = (length & 0xFF) >= sizeof(T) * 8 ? T(~T(0)) : T((T(1) << (length & 0xFF)) - 1), mask = shift_left(ones, at & 0xFF);
    return T((into & ~mask) | (shift_left(field, at & 0xFF) & mask));
}

// As `__byte_perm`; a digit's highest bit asks for the sign of its byte in every bit.
inline u32 permute(u32 a, u32 b, u32 selector) {
    u32 bytes = __byte_perm(a, b, selector);
    for (int digit = 0; digit < 4; digit++) {
        const u32 mask = 0xFFu << (8 * digit);
        bytes = selector >> (4 * digit) & 8 ? (bytes & ~mask) | (bytes & 0x80u << (8 * digit) ? mask : 0) : bytes;
    }
    return bytes;
}

// How far the highest bit that is set is from the top.
inline u32 find_shift(u32 a) { return a == 0 ? ~0u : u32(__builtin_clz(a)); }

template <typename A, typename B> inline u32 dot4(u32 a, u32 b, u32 c) {
    for (int byte = 0; byte < 4; byte++) {
        c += u32(int(A(a >> (8 * byte))) * int(B(b >> (8 * byte))));
    }
    return c;
}

// The window of shared memory: what is dynamic below 2^18, where descriptors of matrices reach it, and variables above.
constexpr u64 STATICS = 1 << 18;
PTX_FN u64 address_of(const char *start, const void *variable) { return STATICS + u64(static_cast<const char *>(variable) - start); }
PTX_FN void *shared_pointer(const char *start, char *dynamic, u64 window, u64 address) {
    return address >= STATICS ? const_cast<char *>(start) + (address - STATICS) : dynamic + (address - window);
}

// The lane that a shuffle reads from (section "shfl.sync"); whether it is in range is a second result.
enum Way { UP, DOWN, BUTTERFLY, INDEX };
inline u32 shuffle(Way way, bool *in_range, u32 value, u32 b, u32 c, u32 members, int line) {
    const int self = emulator::here(), by = int(b & 31), segment = int(c >> 8 & 31), clamp = int(c & 31);
    const int most = (self & segment) | (clamp & ~segment);
    const int from = way == UP ? self - by : way == DOWN ? self + by : way == BUTTERFLY ? self ^ by : (self & segment) | (by & ~segment);
    const bool inside = way == UP ? from >= most : from <= most;
    if (in_range != nullptr) {
        *in_range = inside;
    }
    return emulator::shuffle_from(members, value, inside ? from : self, "shfl.sync", __builtin_FILE(), line);
}
} // namespace ptx

// Every access is of an aligned address.
#define PTX_ALIGNED(pointer, bytes)                                                                                                \
    if ((reinterpret_cast<uintptr_t>(pointer) & (bytes - 1)) != 0) {                                                               \
        emulator::check_aligned(pointer, bytes);                                                                                   \
    }

#define PTX_KERNEL(name, file, ...)                                                                                                \
    static const emulator::Parameter tercet_parameters_##name[] = {__VA_ARGS__, {0, false}};                                       \
    __attribute__((section("tercet_kernels"))) static emulator::Registration tercet_registration_##name(                           \
        {#name, tercet_parameters_##name, sizeof tercet_parameters_##name / sizeof(emulator::Parameter) - 1, name,                 \
         __start_tercet_shared_##file, __stop_tercet_shared_##file})
