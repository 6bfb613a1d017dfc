// The state of a block's threads, for the scheduler and for what they wait at.
#pragma once

#include "block.h"
#include "fiber.h"
#include "warpgroup.h"

#include <vector>

namespace emulator {
// The driver's numbers for what ends a launch.
constexpr int ILLEGAL_ADDRESS = 700, LAUNCH_TIMEOUT = 702, MISALIGNED_ADDRESS = 716, LAUNCH_FAILED = 719;

// Sixteen bytes on their way from global to shared memory.
struct Copy {
    void *to;
    const void *from;
    unsigned bytes, group;
};

struct Thread {
    Place place;
    Lane words;
    // Its stack, from when it first runs to when it leaves.
    Fiber *fiber;
    unsigned warp;
    // What it waits for, and where in the source.
    const char *name, *file;
    int line;
    unsigned mask;
    Together *what;
    // Asynchronous copies not yet done, and the number of groups closed.
    std::vector<Copy> copies;
    unsigned group;
    Products products;

    void reset(unsigned index, dim3 thread);
};

struct Block {
    std::vector<Thread *> threads;
    // A bit for each lane of a warp: there is one; it can run; it waits for its warp; it has left.
    unsigned lanes[32], ready[32], waiting[32], gone[32];
    Warpgroup groups[8];
    // A bit for each warp with a lane that can run.
    unsigned ready_warps;
    // Threads at the barrier, how many of them with a predicate that holds; those that have left.
    unsigned at_barrier, predicates, released_predicates, left;
    // Where in the source the barrier is that threads wait at.
    const char *file;
    int line;

    void reset();
    // These lanes of a warp can run.
    void make_ready(unsigned warp, unsigned members) {
        ready[warp] |= members;
        ready_warps |= 1u << warp;
    }
};

extern Block block;
extern Thread *current;

// Leaves the running thread until something makes it ready.
void wait();
// The running thread has come to the kernel's end.
void leave();
// A place in a source, in words.
inline std::string place_of(const char *file, int line) { return std::string(file) + ":" + std::to_string(line); }
// What the threads that have not left wait for, in words.
std::string waiting_report();
// Records what ended the launch without leaving the stack.
void record_failure(int error, const std::string &message);
} // namespace emulator
