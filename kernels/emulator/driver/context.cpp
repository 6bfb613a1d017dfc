// Contexts: the primary one of each device, others, and which is current on a thread.
#include "memory.h"
#include "options.h"
#include "stream.h"

namespace emulator {
namespace {
thread_local std::vector<Context *> current_stack;

Context *make_context(Device &device) {
    reach("context");
    auto *context = new Context{&device, CUDA_SUCCESS, nullptr, nullptr, {}, {}, {}, {}};
    context->null_stream = make_stream(*context, true, 0);
    context->thread_stream = make_stream(*context, true, 0);
    return give_out(context);
}

// What is queued runs first; streams and events that are left become invalid handles. The context itself stays in memory, since
// what others hold may name it.
void end_context(Context &context) {
    run_all();
    for (Stream *stream : context.streams) {
        take_back(stream);
    }
    // One that failed refused to free anything; what was taken in it ends with it.
    if (context.lost != CUDA_SUCCESS) {
        release_all(*context.device);
    }
    take_back(&context);
}
} // namespace

Context *current_context() { return current_stack.empty() ? nullptr : current_stack.back(); }

void set_current_context(Context *context, bool push) {
    if (!push && !current_stack.empty()) {
        current_stack.pop_back();
    }
    if (push || context != nullptr) {
        current_stack.push_back(context);
    }
}

Context *pop_current_context() {
    if (current_stack.empty()) {
        throw Error{CUDA_ERROR_INVALID_CONTEXT};
    }
    Context *context = current_stack.back();
    current_stack.pop_back();
    return context;
}
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal) {
    return initialized([&] {
        Device &device = device_of(ordinal);
        if (device.primary == nullptr) {
            device.primary = make_context(device);
        }
        device.retained++;
        given(out) = device.primary;
    });
}

TERCET_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
    return initialized([&] {
        Device &device = device_of(ordinal);
        if (device.primary == nullptr) {
            throw Error{CUDA_ERROR_INVALID_CONTEXT};
        }
        if (--device.retained == 0) {
            end_context(*device.primary);
            device.primary = nullptr;
        }
    });
}

TERCET_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
    return initialized([&] {
        Device &device = device_of(ordinal);
        if (device.primary != nullptr) {
            end_context(*device.primary);
            device.primary = nullptr;
            device.retained = 0;
        }
    });
}

TERCET_API CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags, int *active) {
    return initialized([&] {
        const Device &device = device_of(ordinal);
        given(flags) = device.flags;
        given(active) = device.primary != nullptr;
    });
}

TERCET_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
    return initialized([&] { device_of(ordinal).flags = flags; });
}

TERCET_API CUresult cuCtxCreate_v2(CUcontext *out, unsigned, CUdevice ordinal) {
    return initialized([&] {
        given(out) = make_context(device_of(ordinal));
        set_current_context(*out, true);
    });
}
TERCET_API CUresult cuCtxCreate_v3(CUcontext *out, void *, int, unsigned flags, CUdevice ordinal) {
    return cuCtxCreate_v2(out, flags, ordinal);
}

TERCET_API CUresult cuCtxDestroy_v2(CUcontext handle) {
    return initialized([&] {
        Context &context = valid(handle);
        end_context(context);
        if (current_context() == &context) {
            pop_current_context();
        }
    });
}

TERCET_API CUresult cuCtxGetCurrent(CUcontext *out) {
    return initialized([&] { given(out) = current_context(); });
}

TERCET_API CUresult cuCtxSetCurrent(CUcontext handle) {
    return initialized([&] {
        if (handle != nullptr) {
            valid(handle);
        }
        set_current_context(handle, false);
    });
}

TERCET_API CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    return initialized([&] { set_current_context(&valid(handle), true); });
}

TERCET_API CUresult cuCtxPopCurrent_v2(CUcontext *out) {
    return initialized([&] {
        Context *context = pop_current_context();
        if (out != nullptr) {
            *out = context;
        }
    });
}

TERCET_API CUresult cuCtxGetDevice(CUdevice *out) {
    return in_context([&](Context &context) { given(out) = context.device->index; });
}

TERCET_API CUresult cuCtxGetApiVersion(CUcontext handle, unsigned *out) {
    return initialized([&] {
        valid(handle);
        given(out) = unsigned(options().driver);
    });
}

TERCET_API CUresult cuCtxSynchronize() {
    return in_context([&](Context &context) {
        reach("sync");
        synchronize(context);
    });
}

TERCET_API CUresult cuCtxGetFlags(unsigned *out) {
    return in_context([&](Context &context) { given(out) = context.device->flags; });
}
TERCET_API CUresult cuCtxSetFlags(unsigned flags) {
    return in_context([&](Context &context) { context.device->flags = flags; });
}

TERCET_API CUresult cuCtxGetLimit(size_t *out, int limit) {
    return in_context([&](Context &context) {
        if (limit < 0 || limit > 6) {
            throw Error{CUDA_ERROR_UNSUPPORTED_LIMIT};
        }
        given(out) = context.limits[limit];
    });
}
TERCET_API CUresult cuCtxSetLimit(int limit, size_t value) {
    return in_context([&](Context &context) {
        if (limit < 0 || limit > 6) {
            throw Error{CUDA_ERROR_UNSUPPORTED_LIMIT};
        }
        context.limits[limit] = value;
    });
}

TERCET_API CUresult cuCtxGetCacheConfig(int *out) {
    return in_context([&](Context &) { given(out) = 0; });
}
TERCET_API CUresult cuCtxSetCacheConfig(int) {
    return in_context([&](Context &) {});
}

TERCET_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    return in_context([&](Context &context) {
        int other = valid(peer).device->index;
        if (flags != 0) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        if (other == context.device->index || !options().peers) {
            throw Error{CUDA_ERROR_PEER_ACCESS_UNSUPPORTED};
        }
        if (!context.peers.insert(other).second) {
            throw Error{CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED};
        }
    });
}
TERCET_API CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    return in_context([&](Context &context) {
        if (context.peers.erase(valid(peer).device->index) == 0) {
            throw Error{CUDA_ERROR_PEER_ACCESS_NOT_ENABLED};
        }
    });
}

TERCET_API CUresult cuProfilerStart() {
    return in_context([&](Context &) {});
}
TERCET_API CUresult cuProfilerStop() {
    return in_context([&](Context &) {});
}
