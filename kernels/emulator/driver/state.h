// What the driver knows: devices, contexts, memory, and the lock around all of it.
#pragma once

#include "api.h"
#include "clock.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace emulator {
// An error of a call, thrown to its end.
struct Error {
    CUresult code;
};

// Stream-ordered memory: how much is in use, how much is held for later.
struct Pool {
    int device;
    size_t used = 0, used_high = 0, reserved = 0, reserved_high = 0, threshold = 0, max_size = 0;
    int reuse[3] = {1, 1, 1};
    bool is_default = false;
};

struct Device {
    int index = 0;
    size_t total = 0, used = 0;
    Pool pool;
    Pool *current_pool = nullptr;
    Context *primary = nullptr;
    int retained = 0;
    unsigned flags = 0;
};

struct Context {
    Device *device;
    // Once a kernel has failed, every call says so.
    CUresult lost = CUDA_SUCCESS;
    Stream *null_stream = nullptr, *thread_stream = nullptr;
    std::set<Stream *> streams;
    std::set<int> peers;
    std::map<int, size_t> limits;
    // What streams did that are gone.
    Clock gone;
};

struct State {
    std::recursive_mutex lock;
    bool initialized = false;
    std::vector<std::unique_ptr<Device>> devices;
    // Handles that were given out and not taken back.
    std::unordered_set<const void *> handles;
    // What ended the last launch that failed, for people.
    std::string message;
    std::map<std::string, unsigned long long> counts;
};

// Never destroyed: programs call the driver from their last destructors.
State &state();

// The context that is current on the calling thread; null for none.
Context *current_context();
void set_current_context(Context *context, bool push);
Context *pop_current_context();

Device &device_of(CUdevice device);

// The handle, or CUDA_ERROR_INVALID_HANDLE.
template <typename T> T &valid(T *handle) {
    if (handle == nullptr || state().handles.count(handle) == 0) {
        throw Error{CUDA_ERROR_INVALID_HANDLE};
    }
    return *handle;
}
template <typename T> T *give_out(T *handle) {
    state().handles.insert(handle);
    return handle;
}
template <typename T> void take_back(T *handle) { state().handles.erase(handle); }

template <typename T> T &given(T *pointer) {
    if (pointer == nullptr) {
        throw Error{CUDA_ERROR_INVALID_VALUE};
    }
    return *pointer;
}

// A call that needs nothing but the lock.
template <typename F> CUresult locked(F body) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    try {
        body();
        return CUDA_SUCCESS;
    } catch (const Error &error) {
        return error.code;
    }
}

// A call after cuInit.
template <typename F> CUresult initialized(F body) {
    return locked([&] {
        if (!state().initialized) {
            throw Error{CUDA_ERROR_NOT_INITIALIZED};
        }
        body();
    });
}

// A call in the current context, which must not have failed.
template <typename F> CUresult in_context(F body) {
    return initialized([&] {
        Context *context = current_context();
        if (context == nullptr) {
            throw Error{CUDA_ERROR_INVALID_CONTEXT};
        }
        if (state().handles.count(context) == 0) {
            throw Error{CUDA_ERROR_CONTEXT_IS_DESTROYED};
        }
        if (context->lost != CUDA_SUCCESS) {
            throw Error{context->lost};
        }
        body(*context);
    });
}

void count(const char *what, unsigned long long by = 1);
} // namespace emulator
