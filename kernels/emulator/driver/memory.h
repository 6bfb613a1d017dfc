// Memory that kernels may reach: of devices, and pinned memory of the host.
#pragma once

#include "clock.h"
#include "state.h"

namespace emulator {
struct Owned;

enum class Kind { Device, Pinned, Registered, Managed };

struct Allocation {
    uintptr_t start = 0;
    size_t bytes = 0;
    Kind kind = Kind::Device;
    // The device it counts against; for the host's, the one that was current.
    int device = 0;
    Pool *pool = nullptr;
    void *map = nullptr;
    size_t map_bytes = 0;
    // Whether a stream will free it, or, of a graph's memory, there is nothing to free now.
    bool freeing = false;
    // The graph's, while there is one, and whether its bytes are there now: from the allocation node on.
    Owned *owner = nullptr;
    bool there = true;
    // In the `check` variant, a 1 for each byte that something wrote.
    std::shared_ptr<unsigned char[]> written;
    // There too, what each byte was touched by.
    std::shared_ptr<Touched> touched;
};

// Takes memory, filled with a pattern; throws OUT_OF_MEMORY beyond the device's total.
Allocation &allocate(Device &device, size_t bytes, Kind kind, Pool *pool);
void release(uintptr_t start);
// Makes memory of a graph a node of it, or frees such a node's memory by another; the stream captures.
CUdeviceptr allocation_node(Stream &stream, Device &device, size_t bytes);
void free_node(Stream &stream, Allocation &allocation);
// Ends an allocation: the address of a graph's stays the graph's.
void give_back(uintptr_t start);
// Frees all that counts against a device.
void release_all(const Device &device);

// The allocation that holds an address, or ends there; null for none.
Allocation *holding(uintptr_t address);
// The allocation that holds all of a range, or null. An empty range is held anywhere.
bool holds(uintptr_t address, size_t bytes);
// As `holds`, of bytes that are there: a graph's are not before its allocation node has run, nor after they were freed.
bool usable(uintptr_t address, size_t bytes);
// As `holds`, but throws INVALID_VALUE.
void need(CUdeviceptr address, size_t bytes);
// Whether host memory at an address is pinned: known to the driver.
bool pinned(const void *address, size_t bytes);
// Whether kernels and copies of a context may touch an address.
bool reachable(const Context &context, const Allocation &allocation);

// Which bytes something wrote, for the `check` variant; memory of the host counts as written.
bool is_written(const Allocation &allocation, uintptr_t address, size_t bytes);
void mark_written(const Allocation &allocation, uintptr_t address, size_t bytes);
void copy_written(uintptr_t to, uintptr_t from, size_t bytes);

// A pool gives back what it holds beyond its threshold: at each synchronization.
void trim_pools();
void pool_took(Pool &pool, size_t bytes);
void pool_gave(Pool &pool, size_t bytes);
} // namespace emulator
