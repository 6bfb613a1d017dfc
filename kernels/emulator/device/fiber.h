// Stacks to run a thread of a block on, and the switch between them.
#pragma once

#include <cstddef>

namespace emulator {
// A stack of its own, guarded at its low end; made once and used again.
struct Fiber {
    char *stack = nullptr;
    // Where the stack stood when it was left.
    void *top = nullptr;
};

// Makes the next switch to it call `entry`, which must never return. Stacks of different colours begin in different sets of a cache.
void prepare(Fiber &fiber, unsigned colour, void (*entry)());

// Leaves the running stack for another. `leaving_for_good` says that the one that is left is not switched to again before
// `prepare`.
void switch_stack(Fiber &from, Fiber &to, bool leaving_for_good);

// To be called first by what `prepare` started.
void arrived();

// Whether an address lies in the guard below a fiber's stack: it overflowed.
bool in_guard(const Fiber &fiber, const void *address);
} // namespace emulator
