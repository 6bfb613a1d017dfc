// What the `check` variant is told as a launch runs; in the others all of it is nothing.
//
// Compiled with the hooks of -fsanitize=thread, every load and store of a kernel calls a function (hooks.cpp). Where the compiler
// has no part (copies by the driver, barriers, what a warp does together) the emulator calls these.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator {
enum class Touch { Read, Write, Atomic };

#if defined(TERCET_CHECKED)
constexpr bool CHECKED = true;

// A launch has ended: false where another piece of work may touch the same memory at the same time (driver/clock.h).
bool check_launched(const char *kernel);
// A launch and a block begin; a barrier has let its threads go; the lanes of a mask have come together.
void check_launch();
void check_block();
void check_barrier();
void check_together(unsigned warp, unsigned members);
// The running thread orders what it did and knows before what it does: what other blocks published, it has seen by then.
void check_fence();
// The running thread orders its writes to shared memory before what products read.
void check_proxy_fence();
// A product of the running thread's warpgroup reads shared memory; as `touch`.
void touch_async(const void *address, size_t bytes, const void *at);
// The running thread reads or writes; ends the launch where it must not. `at` is the caller, for the report.
void touch(const void *address, size_t bytes, Touch how, const void *at);
#else
constexpr bool CHECKED = false;

inline bool check_launched(const char *) { return true; }
inline void check_launch() {}
inline void check_block() {}
inline void check_barrier() {}
inline void check_together(unsigned, unsigned) {}
inline void check_fence() {}
inline void check_proxy_fence() {}
inline void touch_async(const void *, size_t, const void *) {}
inline void touch(const void *, size_t, Touch, const void *) {}
#endif
} // namespace emulator
