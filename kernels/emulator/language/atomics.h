// Integer atomics of 32 and 64 bits; of floats there are none, since their order would show.
#pragma once

namespace emulator {
// One thread runs at a time, so plain code is atomic. The address must be aligned, as on a device.
template <typename T> inline T exchange(T *at, T value) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "atomics are of 32 or 64 bits");
    check_aligned(at, sizeof(T));
    T before = *at;
    *at = value;
    return before;
}
template <typename T> using Same = std::common_type_t<T>;
template <typename T> using Unsigned = std::make_unsigned_t<T>;
} // namespace emulator

template <typename T> inline T atomicAdd(T *at, emulator::Same<T> value) {
    return emulator::exchange(at, T(emulator::Unsigned<T>(*at) + emulator::Unsigned<T>(value)));
}
template <typename T> inline T atomicSub(T *at, emulator::Same<T> value) {
    static_assert(sizeof(T) == 4, "CUDA has no 64-bit atomicSub");
    return emulator::exchange(at, T(emulator::Unsigned<T>(*at) - emulator::Unsigned<T>(value)));
}
template <typename T> inline T atomicMin(T *at, emulator::Same<T> value) {
    return emulator::exchange(at, value < *at ? value : *at);
}
template <typename T> inline T atomicMax(T *at, emulator::Same<T> value) {
    return emulator::exchange(at, *at < value ? value : *at);
}
template <typename T> inline T atomicOr(T *at, emulator::Same<T> value) { return emulator::exchange(at, T(*at | value)); }
template <typename T> inline T atomicAnd(T *at, emulator::Same<T> value) { return emulator::exchange(at, T(*at & value)); }
template <typename T> inline T atomicXor(T *at, emulator::Same<T> value) { return emulator::exchange(at, T(*at ^ value)); }
template <typename T> inline T atomicExch(T *at, emulator::Same<T> value) { return emulator::exchange(at, value); }
template <typename T> inline T atomicCAS(T *at, emulator::Same<T> expected, emulator::Same<T> value) {
    T before = *at;
    return emulator::exchange(at, before == expected ? value : before);
}
inline unsigned atomicInc(unsigned *at, unsigned limit) { return emulator::exchange(at, *at >= limit ? 0u : *at + 1); }
