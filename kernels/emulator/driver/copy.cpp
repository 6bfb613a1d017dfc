// Copies and fills. Asynchronous ones read and write when their stream comes to them, but for memory that is not pinned.
#include "memory.h"
#include "options.h"
#include "stream.h"

#include <cstring>
#include <utility>

namespace emulator {
namespace {
// Moves bytes when the stream comes to it; memory that has been freed by then ends the context, as on a device.
Action move(CUdeviceptr to, CUdeviceptr from, size_t bytes, bool to_known, bool from_known) {
    return [=] {
        if ((to_known && !usable(uintptr_t(to), bytes)) || (from_known && !usable(uintptr_t(from), bytes))) {
            state().message = "a copy of memory that has been freed, or of a graph's that is not there now";
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        if (!touch_in_order(uintptr_t(from), bytes, Use::Read, "a copy") || !touch_in_order(uintptr_t(to), bytes, Use::Write, "a copy")) {
            return CUDA_ERROR_LAUNCH_FAILED;
        }
        count("bytes copied", bytes);
        copy_written(uintptr_t(to), uintptr_t(from), bytes);
        memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
        return CUDA_SUCCESS;
    };
}

void upload(Context &context, CUdeviceptr to, const void *from, size_t bytes, Stream &stream) {
    reach("copy");
    need(to, bytes);
    if (bytes == 0) {
        return;
    }
    given(static_cast<const char *>(from));
    if (pinned(from, bytes) || stream.capture != nullptr) {
        submit(stream, "copies to the device", move(to, reinterpret_cast<uintptr_t>(from), bytes, true, pinned(from, bytes)));
        return;
    }
    // Pageable memory is staged before the call returns.
    auto staged = std::make_shared<std::vector<char>>(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
    Action run = move(to, reinterpret_cast<uintptr_t>(staged->data()), bytes, true, false);
    submit(stream, "copies to the device", [staged, run] { return run(); });
    (void)context;
}

void download(Context &context, void *to, CUdeviceptr from, size_t bytes, Stream &stream) {
    reach("copy");
    need(from, bytes);
    if (bytes == 0) {
        return;
    }
    given(static_cast<char *>(to));
    bool late = pinned(to, bytes);
    TicketPtr ticket = submit(stream, "copies to the host", move(reinterpret_cast<uintptr_t>(to), from, bytes, late, true));
    if (!late) {
        // To pageable memory the call returns when it is done.
        wait_for(context, ticket);
    }
}

void across(CUdeviceptr to, CUdeviceptr from, size_t bytes, Stream &stream, const char *kind = "copies on the device") {
    reach("copy");
    need(to, bytes);
    need(from, bytes);
    if (bytes != 0) {
        submit(stream, kind, move(to, from, bytes, true, true));
    }
}

// From the memory of one context's device to that of another's, whether they reach each other or not: without access the driver takes
// the way by the host.
void between(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, Stream &stream) {
    for (auto [address, context] : {std::pair(to, to_context), std::pair(from, from_context)}) {
        const Allocation *found = holding(uintptr_t(address));
        if (found != nullptr && found->kind == Kind::Device && found->device != valid(context).device->index) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
    }
    across(to, from, bytes, stream, "copies between devices");
}

template <typename T> void fill(CUdeviceptr to, T value, size_t number, Stream &stream) {
    reach("memset");
    if (to % sizeof(T) != 0) {
        throw Error{CUDA_ERROR_INVALID_VALUE};
    }
    need(to, number * sizeof(T));
    if (number == 0) {
        return;
    }
    submit(stream, "fills", [=] {
        if (!usable(uintptr_t(to), number * sizeof(T))) {
            state().message = "a fill of memory that has been freed, or of a graph's that is not there now";
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        if (!touch_in_order(uintptr_t(to), number * sizeof(T), Use::Write, "a fill")) {
            return CUDA_ERROR_LAUNCH_FAILED;
        }
        auto *at = reinterpret_cast<T *>(to);
        mark_written(*holding(uintptr_t(to)), uintptr_t(to), number * sizeof(T));
        for (size_t i = 0; i < number; i++) {
            at[i] = value;
        }
        return CUDA_SUCCESS;
    });
}

// A call without a stream: on the null stream, and waited for. No capture bears it.
template <typename F> CUresult at_once(F body) {
    return in_context([&](Context &context) {
        refuse_in_capture(context);
        body(context, *context.null_stream);
        synchronize(*context.null_stream);
    });
}

template <typename F> CUresult on_stream(CUstream handle, F body) {
    return in_context([&](Context &context) { body(context, stream_of(context, handle)); });
}
} // namespace
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    return at_once([&](Context &context, Stream &stream) { upload(context, to, from, bytes, stream); });
}
TERCET_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream on) {
    return on_stream(on, [&](Context &context, Stream &stream) { upload(context, to, from, bytes, stream); });
}
TERCET_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    return at_once([&](Context &context, Stream &stream) { download(context, to, from, bytes, stream); });
}
TERCET_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream on) {
    return on_stream(on, [&](Context &context, Stream &stream) { download(context, to, from, bytes, stream); });
}
TERCET_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return at_once([&](Context &, Stream &stream) { across(to, from, bytes, stream); });
}
TERCET_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on) {
    return on_stream(on, [&](Context &, Stream &stream) { across(to, from, bytes, stream); });
}
TERCET_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on) {
    return on_stream(on, [&](Context &context, Stream &stream) {
        // The kind is told by the addresses.
        if (!holds(uintptr_t(from), bytes)) {
            upload(context, to, reinterpret_cast<const void *>(from), bytes, stream);
        } else if (!holds(uintptr_t(to), bytes)) {
            download(context, reinterpret_cast<void *>(to), from, bytes, stream);
        } else {
            across(to, from, bytes, stream);
        }
    });
}
TERCET_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return at_once([&](Context &, Stream &stream) { across(to, from, bytes, stream); });
}
TERCET_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                                      CUstream on) {
    return on_stream(on, [&](Context &, Stream &stream) {
        between(to, to_context, from, from_context, bytes, stream);
    });
}
TERCET_API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes) {
    return at_once([&](Context &, Stream &stream) {
        between(to, to_context, from, from_context, bytes, stream);
    });
}
TERCET_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t number) {
    return at_once([&](Context &, Stream &stream) { fill(to, value, number, stream); });
}
TERCET_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t number, CUstream on) {
    return on_stream(on, [&](Context &, Stream &stream) { fill(to, value, number, stream); });
}
TERCET_API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t number, CUstream on) {
    return on_stream(on, [&](Context &, Stream &stream) { fill(to, value, number, stream); });
}
TERCET_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t number) {
    return at_once([&](Context &, Stream &stream) { fill(to, value, number, stream); });
}
TERCET_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t number, CUstream on) {
    return on_stream(on, [&](Context &, Stream &stream) { fill(to, value, number, stream); });
}
