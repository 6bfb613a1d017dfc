// Memory in the order of a stream, and the pools it comes from.
#include "memory.h"
#include "options.h"
#include "stream.h"

namespace emulator {
namespace {
std::set<Pool *> &made_pools() {
    static auto *all = new std::set<Pool *>;
    return *all;
}

void trim(Pool &pool, size_t keep) {
    size_t kept = pool.used > keep ? pool.used : keep;
    if (pool.reserved > kept) {
        state().devices[size_t(pool.device)]->used -= pool.reserved - kept;
        pool.reserved = kept;
    }
}

CUdeviceptr take_async(Context &context, size_t bytes, Pool &pool, CUstream on) {
    reach("alloc");
    Stream &stream = stream_of(context, on);
    if (stream.capture != nullptr) {
        // Of the pool only the device is asked: the memory is the graph's.
        return allocation_node(stream, *state().devices[size_t(pool.device)], bytes);
    }
    Device &device = *state().devices[size_t(pool.device)];
    try {
        return allocate(device, bytes, Kind::Device, &pool).start;
    } catch (const Error &) {
        // What was freed in the order of streams may not have come that far yet.
        run_all();
        if (context.lost != CUDA_SUCCESS) {
            throw Error{context.lost};
        }
        return allocate(device, bytes, Kind::Device, &pool).start;
    }
}
} // namespace

void trim_pools() {
    for (const std::unique_ptr<Device> &device : state().devices) {
        trim(device->pool, device->pool.threshold);
    }
    for (Pool *pool : made_pools()) {
        trim(*pool, pool->threshold);
    }
}
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream on) {
    return in_context([&](Context &context) {
        if (!options().pools) {
            throw Error{CUDA_ERROR_NOT_SUPPORTED};
        }
        given(out) = take_async(context, bytes, *context.device->current_pool, on);
    });
}

TERCET_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream on) {
    return in_context([&](Context &context) { given(out) = take_async(context, bytes, valid(pool), on); });
}

TERCET_API CUresult cuMemFreeAsync(CUdeviceptr at, CUstream on) {
    return in_context([&](Context &context) {
        Stream &stream = stream_of(context, on);
        if (at == 0) {
            return;
        }
        Allocation *found = holding(uintptr_t(at));
        bool known = found != nullptr && found->start == at && found->kind == Kind::Device;
        if (stream.capture != nullptr) {
            // A node, which can free only what the graph itself allocates.
            if (!known) {
                break_capture(stream, CUDA_ERROR_INVALID_VALUE);
            }
            free_node(stream, *found);
            return;
        }
        if (!known || found->freeing) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        found->freeing = true;
        if (found->owner != nullptr) {
            found->owner->left = false;
        }
        submit(stream, "stream-ordered frees", [at] {
            if (!touch_in_order(uintptr_t(at), holding(uintptr_t(at))->bytes, Use::Write, "a free")) {
                return CUDA_ERROR_LAUNCH_FAILED;
            }
            give_back(uintptr_t(at));
            return CUDA_SUCCESS;
        });
    });
}

TERCET_API CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *wanted) {
    return initialized([&] {
        const CUmemPoolProps &properties = given(wanted);
        if (properties.allocation_type != 1 || properties.location_type != 1) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        auto *pool = new Pool;
        pool->device = device_of(properties.location_id).index;
        pool->max_size = properties.max_size;
        made_pools().insert(pool);
        given(out) = give_out(pool);
    });
}

TERCET_API CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    return initialized([&] {
        Pool &pool = valid(handle);
        if (pool.is_default) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        run_all();
        if (pool.used != 0) {
            // Its memory lives on; so does what counts it.
            take_back(handle);
            return;
        }
        trim(pool, 0);
        Device &device = *state().devices[size_t(pool.device)];
        if (device.current_pool == &pool) {
            device.current_pool = &device.pool;
        }
        take_back(handle);
        made_pools().erase(&pool);
        delete handle;
    });
}

TERCET_API CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
    return initialized([&] { trim(valid(handle), keep); });
}

TERCET_API CUresult cuMemPoolGetAttribute(CUmemoryPool handle, int attribute, void *out) {
    return in_context([&](Context &context) {
        // As a driver was seen to: 580 on an H200.
        refuse_in_capture(context);
        const Pool &pool = valid(handle);
        const size_t sizes[] = {pool.threshold, pool.reserved, pool.reserved_high, pool.used, pool.used_high};
        if (attribute >= 1 && attribute <= 3) {
            given(static_cast<int *>(out)) = pool.reuse[attribute - 1];
        } else if (attribute >= 4 && attribute <= 8) {
            given(static_cast<unsigned long long *>(out)) = sizes[attribute - 4];
        } else {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
    });
}

TERCET_API CUresult cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void *value) {
    return initialized([&] {
        Pool &pool = valid(handle);
        if (attribute >= 1 && attribute <= 3) {
            pool.reuse[attribute - 1] = given(static_cast<int *>(value));
        } else if (attribute == 4) {
            pool.threshold = given(static_cast<unsigned long long *>(value));
        } else if ((attribute == 6 || attribute == 8) && given(static_cast<unsigned long long *>(value)) == 0) {
            // The high-water marks can only be set back.
            (attribute == 6 ? pool.reserved_high : pool.used_high) = attribute == 6 ? pool.reserved : pool.used;
        } else {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
    });
}

// Which devices it names is checked; kernels reach what their context's peers allow.
TERCET_API CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *access, size_t number) {
    return initialized([&] {
        const Pool &pool = valid(handle);
        for (size_t i = 0; i < number; i++) {
            const CUmemAccessDesc &one = (&given(access))[i];
            // 1: a device; 0, 1, 3: nothing, reading, both.
            if (one.location_type != 1 || (one.flags != 0 && one.flags != 1 && one.flags != 3)) {
                throw Error{CUDA_ERROR_INVALID_VALUE};
            }
            if (device_of(one.location_id).index != pool.device && !options().peers) {
                throw Error{CUDA_ERROR_INVALID_DEVICE};
            }
        }
    });
}

TERCET_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
    return initialized([&] {
        if (!options().pools) {
            throw Error{CUDA_ERROR_NOT_SUPPORTED};
        }
        given(out) = &device_of(device).pool;
    });
}

TERCET_API CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
    return initialized([&] { given(out) = device_of(device).current_pool; });
}

TERCET_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    return initialized([&] { device_of(device).current_pool = &valid(pool); });
}
