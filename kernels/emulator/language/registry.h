// Kernels by name, with the sizes of their parameters; the build script writes one TERCET_KERNEL a kernel.
#pragma once

#include <utility>

namespace emulator {
struct Parameter {
    unsigned bytes;
    bool pointer;
};

struct Kernel {
    const char *name;
    const Parameter *parameters;
    unsigned count;
    // Runs one thread: `values[i]` points at parameter i.
    void (*run)(void *const *values);
    // The variables of its file that are shared memory.
    char *shared, *shared_end;
};

void add_kernel(const Kernel *kernel);

template <auto Function> struct Entry;
template <typename... P, void (*Function)(P...)> struct Entry<Function> {
    static_assert(((std::is_pointer_v<P> || std::is_arithmetic_v<P>)&&...), "parameters are pointers, integers and floats");
    static_assert(((std::is_pointer_v<P> || sizeof(P) >= 4) && ...), "parameters have 32 or 64 bits");
    static constexpr Parameter parameters[sizeof...(P) + 1] = {{sizeof(P), std::is_pointer_v<P>}..., {0, false}};

    // The values lie in memory of the host, which the `check` variant forbids to kernels.
    template <size_t... At> __attribute__((no_sanitize("thread"))) static void call(void *const *values, std::index_sequence<At...>) {
        (void)values;
        Function(*static_cast<std::remove_cv_t<P> *>(values[At])...);
    }
    __attribute__((no_sanitize("thread"))) static void run(void *const *values) { call(values, std::index_sequence_for<P...>()); }
};

// A kernel of this library, of a function of its source or of its PTX.
struct Registration {
    Kernel kernel;
    explicit Registration(const Kernel &of) : kernel(of) { add_kernel(&kernel); }
};

template <auto Function> Kernel kernel_of(const char *name, char *shared, char *shared_end) {
    return {name, Entry<Function>::parameters, unsigned(sizeof(Entry<Function>::parameters) / sizeof(Parameter) - 1), &Entry<Function>::run, shared,
            shared_end};
}

// What a kernel of PTX reads of a parameter, from a byte of it on.
template <typename T>
__attribute__((noinline, no_sanitize("thread"))) static T parameter(void *const *values, unsigned index, unsigned offset) {
    T value;
    memcpy(&value, static_cast<const char *>(values[index]) + offset, sizeof value);
    return value;
}
} // namespace emulator

// The linker's names for the section that the build script makes of a file's shared memory; both null where it has none.
#define TERCET_FILE(file)                                                                                                          \
    extern "C" __attribute__((weak, visibility("hidden"))) char __start_tercet_shared_##file[], __stop_tercet_shared_##file[]

// Not among the variables that the build script takes for shared memory.
#define TERCET_KERNEL(name, file)                                                                                                  \
    __attribute__((section("tercet_kernels"))) static emulator::Registration tercet_registration_##name(                           \
        emulator::kernel_of<&name>(#name, __start_tercet_shared_##file, __stop_tercet_shared_##file))
