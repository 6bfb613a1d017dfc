// Shared memory, spoiled before each block so that nothing can be read that this block did not write.
#include "shared.h"

#include "block.h"
#include "threads.h"

#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace emulator {
namespace {
void *dynamic = nullptr;
size_t dynamic_bytes = 0;
// Where it begins in the window of shared memory, whose first 1024 bytes are the system's: at a multiple of 16 and of no more.
unsigned window = 0;
} // namespace

__attribute__((no_sanitize("address"))) void spoil(void *memory, size_t bytes, unsigned long long seed) {
    auto *at = static_cast<unsigned char *>(memory);
    Dice dice{seed};
    unsigned long long pattern = dice.roll();
#if defined(__SANITIZE_ADDRESS__)
    // Plain stores: a call of memset would trip over the red zones between variables.
    for (size_t i = 0; i < bytes; i++) {
        static_cast<volatile unsigned char *>(at)[i] = static_cast<unsigned char>(pattern >> (8 * (i % 8)));
    }
#else
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        memcpy(at + i, &pattern, 8);
    }
    memcpy(at + i, &pattern, bytes - i);
#endif
}

DynamicShared::DynamicShared(unsigned bytes) : bytes(bytes) {
    dynamic_bytes = bytes;
    if (bytes != 0 && posix_memalign(&dynamic, 128, bytes) != 0) {
        abort();
    }
}

DynamicShared::~DynamicShared() {
    free(dynamic);
    dynamic = nullptr;
}

void DynamicShared::spoil(unsigned long long seed) {
    emulator::spoil(dynamic, bytes, seed);
    window = 1024 + 16 * Dice{~seed}.below(512);
}

void *dynamic_shared() { return dynamic; }
size_t dynamic_shared_bytes() { return dynamic_bytes; }
unsigned dynamic_window() { return window; }

unsigned shared_address(const void *shared) {
    const size_t at = size_t(static_cast<const char *>(shared) - static_cast<const char *>(dynamic));
    if (dynamic == nullptr || at > dynamic_bytes) {
        fail(ILLEGAL_ADDRESS, "the address in shared memory of something that is not in its dynamic part");
    }
    return window + unsigned(at);
}

const unsigned char *shared_at(unsigned address) {
    const bool inside = address >= window && address - window + 16 <= dynamic_bytes;
    return inside ? static_cast<const unsigned char *>(dynamic) + (address - window) : nullptr;
}
} // namespace emulator
