// The CUDA driver as far as it is needed: declared here and looked up at run time, so that no toolkit has to be there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

typedef std::vector<u8> Bytes;

// What a call of the driver or a file had against it, as a sentence.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Names, types and numbers are those of CUDA's own cuda.h. Handles are pointers that only the driver follows.
#define TUNE_FUNCTIONS(F)                                                                                                          \
    F(cuInit, (u32))                                                                                                               \
    F(cuDriverGetVersion, (int *))                                                                                                 \
    F(cuGetErrorName, (int, const char **))                                                                                        \
    F(cuDeviceGet, (int *, int))                                                                                                   \
    F(cuDeviceGetName, (char *, int, int))                                                                                         \
    F(cuDeviceGetAttribute, (int *, int, int))                                                                                     \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                                                                    \
    F(cuCtxSetCurrent, (void *))                                                                                                   \
    F(cuMemGetInfo_v2, (size_t *, size_t *))                                                                                       \
    F(cuMemAlloc_v2, (u64 *, size_t))                                                                                              \
    F(cuMemFree_v2, (u64))                                                                                                         \
    F(cuMemHostAlloc, (void **, size_t, u32))                                                                                      \
    F(cuMemFreeHost, (void *))                                                                                                     \
    F(cuMemcpyHtoDAsync_v2, (u64, const void *, size_t, void *))                                                                   \
    F(cuMemcpyDtoHAsync_v2, (void *, u64, size_t, void *))                                                                         \
    F(cuMemcpyDtoDAsync_v2, (u64, u64, size_t, void *))                                                                            \
    F(cuStreamCreate, (void **, u32))                                                                                              \
    F(cuStreamDestroy_v2, (void *))                                                                                                \
    F(cuStreamSynchronize, (void *))                                                                                               \
    F(cuStreamBeginCapture_v2, (void *, int))                                                                                      \
    F(cuStreamEndCapture, (void *, void **))                                                                                       \
    F(cuGraphInstantiateWithFlags, (void **, void *, u64))                                                                         \
    F(cuGraphLaunch, (void *, void *))                                                                                             \
    F(cuGraphExecDestroy, (void *))                                                                                                \
    F(cuGraphDestroy, (void *))                                                                                                    \
    F(cuEventCreate, (void **, u32))                                                                                               \
    F(cuEventDestroy_v2, (void *))                                                                                                 \
    F(cuEventRecord, (void *, void *))                                                                                             \
    F(cuEventElapsedTime, (float *, void *, void *))                                                                               \
    F(cuModuleLoadData, (void **, const void *))                                                                                   \
    F(cuModuleUnload, (void *))                                                                                                    \
    F(cuModuleGetFunction, (void **, void *, const char *))                                                                        \
    F(cuFuncGetAttribute, (int *, int, void *))                                                                                    \
    F(cuFuncSetAttribute, (void *, int, int))                                                                                      \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, void *, int, size_t))                                                   \
    F(cuLaunchKernel, (void *, u32, u32, u32, u32, u32, u32, u32, void *, void **, void **))

struct Driver {
#define TUNE_DECLARE(NAME, TYPES) int(*NAME) TYPES = nullptr;
    TUNE_FUNCTIONS(TUNE_DECLARE)

    // The one of this process.
    static Driver &get() {
        static Driver driver;
        return driver;
    }

    void open() {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        if (library == nullptr) throw Failure("there is no CUDA driver here: " + std::string(dlerror()));
#define TUNE_LOOK_UP(NAME, TYPES)                                                                                                  \
    NAME = reinterpret_cast<int(*) TYPES>(dlsym(library, #NAME));                                                                  \
    if (NAME == nullptr) throw Failure("the CUDA driver is too old: it has no " #NAME);
        TUNE_FUNCTIONS(TUNE_LOOK_UP)
    }
};

inline void check(const char *call, int status) {
    const char *name = nullptr;
    if (status == 0) return;
    if (Driver::get().cuGetErrorName(status, &name) != 0 || name == nullptr) name = "an error without a name";
    throw Failure(std::string(call) + ": " + name + " (" + std::to_string(status) + ")");
}
#define CALL(NAME, ...) check(#NAME, Driver::get().NAME(__VA_ARGS__))

// The first device, its only context and stream, and what is asked of them once.
struct Device {
    std::string name;
    int driver = 0, number = 0;
    u32 capability = 0, multiprocessors = 0;
    size_t cache = 0;
    void *stream = nullptr;

    Device() {
        Driver::get().open();
        CALL(cuInit, 0);
        CALL(cuDriverGetVersion, &driver);
        CALL(cuDeviceGet, &number, 0);
        char text[256] = {};
        CALL(cuDeviceGetName, text, (int)sizeof text, number);
        name = text;
        capability = attribute(75) * 10 + attribute(76);
        multiprocessors = attribute(16);
        cache = attribute(38);
        void *context;
        CALL(cuDevicePrimaryCtxRetain, &context, number);
        CALL(cuCtxSetCurrent, context);
        // 1: does not wait for the null stream, which cannot be captured.
        CALL(cuStreamCreate, &stream, 1);
    }

    u32 attribute(int which) const {
        int value = 0;
        CALL(cuDeviceGetAttribute, &value, which, number);
        return (u32)value;
    }

    void wait() const { CALL(cuStreamSynchronize, stream); }
};

// Owners. What their ends return is not looked at: if the device is lost all calls fail, and that was said before.
struct DeviceMemory {
    u64 at = 0;
    size_t bytes;

    explicit DeviceMemory(size_t bytes) : bytes(bytes) { CALL(cuMemAlloc_v2, &at, std::max<size_t>(bytes, 1)); }
    DeviceMemory(DeviceMemory &&other) noexcept : at(std::exchange(other.at, 0)), bytes(other.bytes) {}
    ~DeviceMemory() {
        if (at != 0) Driver::get().cuMemFree_v2(at);
    }
};

struct PinnedMemory {
    void *at = nullptr;

    explicit PinnedMemory(size_t bytes) { CALL(cuMemHostAlloc, &at, bytes, 0); }
    PinnedMemory(const PinnedMemory &) = delete;
    ~PinnedMemory() { Driver::get().cuMemFreeHost(at); }
};

struct Event {
    void *handle = nullptr;

    Event() { CALL(cuEventCreate, &handle, 0); }
    Event(const Event &) = delete;
    ~Event() { Driver::get().cuEventDestroy_v2(handle); }
};

// What `record` queues on the device's stream, to be run again and again.
struct Graph {
    void *graph = nullptr, *executable = nullptr;

    template <class Record>
    Graph(const Device &device, Record record) {
        // 1: only this thread's calls are watched.
        CALL(cuStreamBeginCapture_v2, device.stream, 1);
        try {
            record();
        } catch (...) {
            Driver::get().cuStreamEndCapture(device.stream, &graph);
            if (graph != nullptr) Driver::get().cuGraphDestroy(graph);
            throw;
        }
        CALL(cuStreamEndCapture, device.stream, &graph);
        const int status = Driver::get().cuGraphInstantiateWithFlags(&executable, graph, 0);
        if (status != 0) Driver::get().cuGraphDestroy(graph);
        check("cuGraphInstantiateWithFlags", status);
    }
    Graph(const Graph &) = delete;
    ~Graph() {
        Driver::get().cuGraphExecDestroy(executable);
        Driver::get().cuGraphDestroy(graph);
    }
};

// A number or an address, with the bytes that a kernel's parameter has for it.
struct Argument {
    u64 bits = 0;
    u32 bytes;

    template <class T>
    Argument(T value) : bytes(sizeof value) {
        static_assert(sizeof value <= sizeof bits, "a parameter is a number or a pointer");
        // Every machine with CUDA is little-endian: a shorter number lies in the first bytes.
        memcpy(&bits, &value, sizeof value);
    }
};

// A grid of blocks of 256 threads, and what each thread is given.
struct Launch {
    u32 blocks, rows;
    std::vector<Argument> arguments;
};

// A kernel of a module's text. Its registers are those that this driver's compiler gives it.
struct Kernel {
    void *module = nullptr, *function = nullptr;
    int registers = 0, local = 0;
    u32 shared;

    Kernel(const std::string &ptx, const std::string &name, u32 shared) : shared(shared) {
        CALL(cuModuleLoadData, &module, ptx.c_str());
        try {
            CALL(cuModuleGetFunction, &function, module, name.c_str());
            CALL(cuFuncGetAttribute, &registers, 4, function);
            CALL(cuFuncGetAttribute, &local, 3, function);
            // 8: more dynamic shared memory than every kernel may have has to be asked for.
            if (shared > 32 << 10) CALL(cuFuncSetAttribute, function, 8, (int)shared);
        } catch (...) {
            Driver::get().cuModuleUnload(module);
            throw;
        }
    }
    Kernel(const Kernel &) = delete;
    ~Kernel() { Driver::get().cuModuleUnload(module); }

    // Blocks that the device runs at a time.
    u32 resident(const Device &device) const {
        int fit = 0;
        CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &fit, function, 256, shared);
        return std::max(fit, 1) * device.multiprocessors;
    }

    void launch(const Device &device, Launch launch) const {
        std::vector<void *> values;
        for (Argument &argument : launch.arguments) values.push_back(&argument.bits);
        CALL(cuLaunchKernel, function, launch.blocks, launch.rows, 1, 256, 1, 1, shared, device.stream, values.data(), nullptr);
    }
};
