// Memory that graphs allocate: by nodes, at an address that stays.
#include "../device/block.h"
#include "memory.h"
#include "options.h"
#include "stream.h"

#include <cstring>

namespace emulator {
namespace {
Allocation *of(const Owned *owner) {
    Allocation *found = holding(owner->start);
    return found != nullptr && found->owner == owner ? found : nullptr;
}
} // namespace

Owned::~Owned() {
    Allocation *found = of(this);
    if (found == nullptr) {
        return;
    }
    found->owner = nullptr;
    // What a launch has left outlives the graph, until it is freed.
    if (!found->there) {
        release(start);
    }
}

CUdeviceptr allocation_node(Stream &stream, Device &device, size_t bytes) {
    Allocation &made = allocate(device, bytes, Kind::Device, nullptr);
    auto owned = std::make_shared<Owned>(made.start);
    made.owner = owned.get();
    made.there = false;
    made.freeing = true;
    Owned *owner = owned.get();
    // Whoever runs the node holds the graph, and with it the owner.
    submit(stream, "allocation nodes", [owner] {
        if (Allocation *found = of(owner)) {
            found->there = true;
            spoil(reinterpret_cast<void *>(found->start), found->bytes, options().seed ^ found->bytes);
            if (found->written != nullptr) {
                memset(found->written.get(), 0, found->bytes);
            }
        }
        return CUDA_SUCCESS;
    });
    stream.capture->graph->owned.push_back(owned);
    return owned->start;
}

void free_node(Stream &stream, Allocation &allocation) {
    Owned *owner = nullptr;
    for (const std::shared_ptr<Owned> &owned : stream.capture->graph->owned) {
        owner = owned.get() == allocation.owner ? owned.get() : owner;
    }
    if (owner == nullptr || owner->freed_inside) {
        break_capture(stream, CUDA_ERROR_INVALID_VALUE);
    }
    submit(stream, "free nodes", [owner] {
        if (Allocation *found = of(owner)) {
            found->there = false;
        }
        return CUDA_SUCCESS;
    });
    owner->freed_inside = true;
}

void give_back(uintptr_t start) {
    Allocation *found = holding(start);
    if (found != nullptr && found->owner != nullptr) {
        found->there = false;
    } else {
        release(start);
    }
}

void leave_allocated(const Graph &graph) {
    for (const std::shared_ptr<Owned> &owned : graph.owned) {
        if (owned->left) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
    }
    for (const std::shared_ptr<Owned> &owned : graph.owned) {
        if (Allocation *found = owned->freed_inside ? nullptr : of(owned.get())) {
            owned->left = true;
            found->freeing = false;
        }
    }
}
} // namespace emulator
