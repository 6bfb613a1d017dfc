// Allocations: each a mapping of its own that ends at a page nobody may touch, so that a step beyond it is an illegal address.
#include "memory.h"

#include "../device/block.h"
#include "options.h"
#include "stream.h"

#include <cstdlib>
#include <sys/mman.h>

namespace emulator {
namespace {
// What cuMemAlloc promises of an address.
constexpr size_t ALIGNMENT = 256;

std::map<uintptr_t, Allocation> &all() {
    static auto *map = new std::map<uintptr_t, Allocation>;
    return *map;
}

// Those found last, by the page asked for: kernels that are checked ask at every access.
Allocation *recent[64];

#if defined(__SANITIZE_ADDRESS__)
// The sanitizer knows the exact end.
void *take(size_t bytes, void *&map, size_t &map_bytes) {
    map_bytes = bytes;
    return posix_memalign(&map, ALIGNMENT, bytes) == 0 ? map : nullptr;
}
void give(void *map, size_t) { free(map); }
#else
constexpr size_t PAGE = 4096;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

void *take(size_t bytes, void *&map, size_t &map_bytes) {
    size_t whole = round_up(bytes, ALIGNMENT), body = round_up(whole, PAGE);
    map_bytes = body + PAGE;
    map = mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return nullptr;
    }
    mprotect(static_cast<char *>(map) + body, PAGE, PROT_NONE);
    return static_cast<char *>(map) + (body - whole);
}
void give(void *map, size_t map_bytes) { munmap(map, map_bytes); }
#endif
} // namespace

Allocation &allocate(Device &device, size_t bytes, Kind kind, Pool *pool) {
    bool of_device = kind == Kind::Device || kind == Kind::Managed;
    if (bytes == 0) {
        throw Error{CUDA_ERROR_INVALID_VALUE};
    }
    if (pool != nullptr && pool->max_size != 0 && pool->used + bytes > pool->max_size) {
        throw Error{CUDA_ERROR_OUT_OF_MEMORY};
    }
    size_t held = pool != nullptr ? pool->reserved - pool->used : 0;
    if (of_device && (bytes > device.total || device.used + bytes > device.total + held)) {
        throw Error{CUDA_ERROR_OUT_OF_MEMORY};
    }
    Allocation made;
    made.bytes = bytes;
    made.kind = kind;
    made.device = device.index;
    made.pool = pool;
    void *start = take(bytes, made.map, made.map_bytes);
    if (start == nullptr) {
        throw Error{CUDA_ERROR_OUT_OF_MEMORY};
    }
    made.start = reinterpret_cast<uintptr_t>(start);
    spoil(start, bytes, options().seed ^ made.bytes);
    if (CHECKED && of_device) {
        made.written.reset(new unsigned char[bytes]());
    }
    if (pool != nullptr) {
        pool_took(*pool, bytes);
    } else if (of_device) {
        device.used += bytes;
    }
    count("allocations");
    return all().emplace(made.start, made).first->second;
}

void release(uintptr_t start) {
    auto found = all().find(start);
    if (found == all().end()) {
        throw Error{CUDA_ERROR_INVALID_VALUE};
    }
    Allocation gone = found->second;
    all().erase(found);
    memset(recent, 0, sizeof recent);
    if (gone.pool != nullptr) {
        pool_gave(*gone.pool, gone.bytes);
    } else if (gone.kind == Kind::Device || gone.kind == Kind::Managed) {
        state().devices[size_t(gone.device)]->used -= gone.bytes;
    }
    if (gone.map != nullptr) {
        give(gone.map, gone.map_bytes);
    }
    count("frees");
}

void release_all(const Device &device) {
    std::vector<uintptr_t> starts;
    for (const auto &held : all()) {
        if (held.second.device == device.index && held.second.kind != Kind::Registered) {
            starts.push_back(held.first);
        }
    }
    for (uintptr_t start : starts) {
        release(start);
    }
}

Allocation &adopt(void *start, size_t bytes, int device) {
    Allocation made;
    made.start = reinterpret_cast<uintptr_t>(start);
    made.bytes = bytes;
    made.kind = Kind::Registered;
    made.device = device;
    return all().emplace(made.start, made).first->second;
}

Allocation *holding(uintptr_t address) {
    Allocation *&here = recent[address / 4096 % 64];
    if (here != nullptr && address - here->start < here->bytes) {
        return here;
    }
    auto after = all().upper_bound(address);
    if (after == all().begin()) {
        return nullptr;
    }
    Allocation &before = std::prev(after)->second;
    if (address > before.start + before.bytes) {
        return nullptr;
    }
    return here = &before;
}

bool holds(uintptr_t address, size_t bytes) {
    const Allocation *found = holding(address);
    return bytes == 0 || (found != nullptr && bytes <= found->start + found->bytes - address);
}

bool usable(uintptr_t address, size_t bytes) {
    return holds(address, bytes) && (bytes == 0 || holding(address)->there);
}

void need(CUdeviceptr address, size_t bytes) {
    if (!holds(uintptr_t(address), bytes)) {
        throw Error{CUDA_ERROR_INVALID_VALUE};
    }
}

bool is_written(const Allocation &allocation, uintptr_t address, size_t bytes) {
    return allocation.written == nullptr || memchr(&allocation.written[address - allocation.start], 0, bytes) == nullptr;
}

void mark_written(const Allocation &allocation, uintptr_t address, size_t bytes) {
    if (allocation.written != nullptr) {
        memset(&allocation.written[address - allocation.start], 1, bytes);
    }
}

void copy_written(uintptr_t to, uintptr_t from, size_t bytes) {
    const Allocation *target = CHECKED ? holding(to) : nullptr, *source = holding(from);
    if (target == nullptr || target->written == nullptr) {
        return;
    }
    bool known = source != nullptr && source->written != nullptr && from + bytes <= source->start + source->bytes;
    if (known) {
        memmove(&target->written[to - target->start], &source->written[from - source->start], bytes);
    } else {
        mark_written(*target, to, bytes);
    }
}

bool pinned(const void *address, size_t bytes) { return holds(reinterpret_cast<uintptr_t>(address), bytes); }

bool reachable(const Context &context, const Allocation &allocation) {
    bool elsewhere = allocation.kind == Kind::Device && allocation.device != context.device->index;
    return allocation.there && (!elsewhere || context.peers.count(allocation.device) != 0);
}

void pool_took(Pool &pool, size_t bytes) {
    Device &device = *state().devices[size_t(pool.device)];
    pool.used += bytes;
    if (pool.used > pool.reserved) {
        device.used += pool.used - pool.reserved;
        pool.reserved = pool.used;
    }
    pool.used_high = pool.used > pool.used_high ? pool.used : pool.used_high;
    pool.reserved_high = pool.reserved > pool.reserved_high ? pool.reserved : pool.reserved_high;
}

void pool_gave(Pool &pool, size_t bytes) { pool.used -= bytes; }
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
    return in_context([&](Context &context) {
        reach("alloc");
        refuse_in_capture(context);
        given(out) = allocate(*context.device, bytes, Kind::Device, nullptr).start;
    });
}

TERCET_API CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned) {
    return in_context([&](Context &context) {
        reach("alloc");
        refuse_in_capture(context);
        given(out) = allocate(*context.device, bytes, Kind::Managed, nullptr).start;
    });
}

TERCET_API CUresult cuMemFree_v2(CUdeviceptr at) {
    return in_context([&](Context &context) {
        if (at == 0) {
            return;
        }
        const Allocation *found = holding(uintptr_t(at));
        if (found == nullptr || found->start != at || found->kind == Kind::Pinned || found->kind == Kind::Registered ||
            found->owner != nullptr) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        refuse_in_capture(context);
        // Freeing waits for the device, which may still be using it.
        synchronize(context);
        release(uintptr_t(at));
    });
}

TERCET_API CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    return in_context([&](Context &context) {
        given(free) = context.device->total - context.device->used;
        given(total) = context.device->total;
    });
}

TERCET_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr at) {
    return in_context([&](Context &) {
        const Allocation *found = holding(uintptr_t(at));
        if (found == nullptr) {
            throw Error{CUDA_ERROR_NOT_FOUND};
        }
        if (start != nullptr) {
            *start = found->start;
        }
        if (bytes != nullptr) {
            *bytes = found->bytes;
        }
    });
}

TERCET_API CUresult cuPointerGetAttribute(void *out, int attribute, CUdeviceptr at) {
    return initialized([&] {
        const Allocation *found = holding(uintptr_t(at));
        if (found == nullptr) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        bool of_host = found->kind == Kind::Pinned || found->kind == Kind::Registered;
        switch (attribute) {
        case 2: // memory type: host or device
            *static_cast<unsigned *>(&given(static_cast<unsigned *>(out))) = of_host ? 1 : 2;
            break;
        case 3: // address for the device
        case 4: // address for the host
            given(static_cast<CUdeviceptr *>(out)) = at;
            break;
        case 8: // managed
            given(static_cast<unsigned *>(out)) = found->kind == Kind::Managed;
            break;
        case 9: // ordinal of the device
            given(static_cast<int *>(out)) = found->device;
            break;
        case 11: // start
            given(static_cast<CUdeviceptr *>(out)) = found->start;
            break;
        case 12: // bytes
            given(static_cast<size_t *>(out)) = found->bytes;
            break;
        case 17: // pool
            given(static_cast<Pool **>(out)) = found->pool;
            break;
        default:
            throw Error{CUDA_ERROR_NOT_SUPPORTED};
        }
    });
}
