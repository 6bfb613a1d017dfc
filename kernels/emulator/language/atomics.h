// Integer atomics of 32 and 64 bits; of floats there are none, since their order would show.
#pragma once

namespace emulator {
template <typename T> using Same = std::common_type_t<T>;
template <typename T> using Unsigned = std::make_unsigned_t<T>;

// One thread runs at a time, so plain code is atomic. The address must be aligned, as on a device. The hooks of the `check` variant
// would take it for a load and a store.
template <typename T, typename F> __attribute__((no_sanitize("thread"))) T update(T *at, F next) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "atomics are of 32 or 64 bits");
    check_aligned(at, sizeof(T));
    touch(at, sizeof(T), Touch::Atomic, __builtin_return_address(0));
    T before = *at;
    *at = next(before);
    return before;
}
} // namespace emulator

template <typename T> inline T atomicAdd(T *at, emulator::Same<T> value) {
    return emulator::update(at, [=](T old) { return T(emulator::Unsigned<T>(old) + emulator::Unsigned<T>(value)); });
}
template <typename T> inline T atomicSub(T *at, emulator::Same<T> value) {
    static_assert(sizeof(T) == 4, "CUDA has no 64-bit atomicSub");
    return emulator::update(at, [=](T old) { return T(emulator::Unsigned<T>(old) - emulator::Unsigned<T>(value)); });
}
template <typename T> inline T atomicMin(T *at, emulator::Same<T> value) {
    return emulator::update(at, [=](T old) { return value < old ? value : old; });
}
template <typename T> inline T atomicMax(T *at, emulator::Same<T> value) {
    return emulator::update(at, [=](T old) { return old < value ? value : old; });
}
template <typename T> inline T atomicOr(T *at, emulator::Same<T> value) {
    return emulator::update(at, [=](T old) { return T(old | value); });
}
template <typename T> inline T atomicAnd(T *at, emulator::Same<T> value) {
    return emulator::update(at, [=](T old) { return T(old & value); });
}
template <typename T> inline T atomicXor(T *at, emulator::Same<T> value) {
    return emulator::update(at, [=](T old) { return T(old ^ value); });
}
template <typename T> inline T atomicExch(T *at, emulator::Same<T> value) {
    return emulator::update(at, [=](T) { return value; });
}
template <typename T> inline T atomicCAS(T *at, emulator::Same<T> expected, emulator::Same<T> value) {
    return emulator::update(at, [=](T old) { return old == expected ? value : old; });
}
inline unsigned atomicInc(unsigned *at, unsigned limit) {
    return emulator::update(at, [=](unsigned old) { return old >= limit ? 0u : old + 1; });
}
