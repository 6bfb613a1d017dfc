// Pinned memory of the host.
#include "memory.h"
#include "options.h"
#include "stream.h"

namespace emulator {
Allocation &adopt(void *start, size_t bytes, int device);
}

using namespace emulator;

TERCET_API CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
    return in_context([&](Context &context) {
        reach("host");
        if (flags > 7) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        refuse_in_capture(context);
        given(out) = reinterpret_cast<void *>(allocate(*context.device, bytes, Kind::Pinned, nullptr).start);
    });
}

TERCET_API CUresult cuMemAllocHost_v2(void **out, size_t bytes) { return cuMemHostAlloc(out, bytes, 0); }

TERCET_API CUresult cuMemFreeHost(void *at) {
    return in_context([&](Context &context) {
        const Allocation *found = holding(reinterpret_cast<uintptr_t>(at));
        if (found == nullptr || found->start != reinterpret_cast<uintptr_t>(at) || found->kind != Kind::Pinned) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        refuse_in_capture(context);
        synchronize(context);
        release(reinterpret_cast<uintptr_t>(at));
    });
}

TERCET_API CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned) {
    return in_context([&](Context &context) {
        reach("host");
        if (at == nullptr || bytes == 0) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        if (pinned(at, 1)) {
            throw Error{CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED};
        }
        adopt(at, bytes, context.device->index);
    });
}

TERCET_API CUresult cuMemHostUnregister(void *at) {
    return in_context([&](Context &context) {
        const Allocation *found = holding(reinterpret_cast<uintptr_t>(at));
        if (found == nullptr || found->start != reinterpret_cast<uintptr_t>(at) || found->kind != Kind::Registered) {
            throw Error{CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED};
        }
        synchronize(context);
        release(found->start);
    });
}

TERCET_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *at, unsigned) {
    return in_context([&](Context &) {
        if (!pinned(at, 1)) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        given(out) = reinterpret_cast<uintptr_t>(at);
    });
}

TERCET_API CUresult cuMemHostGetFlags(unsigned *out, void *at) {
    return in_context([&](Context &) {
        if (!pinned(at, 1)) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        // Portable and mapped, as all is with unified addresses.
        given(out) = 3;
    });
}
