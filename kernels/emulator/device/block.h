// Runs the blocks of a launch on the calling thread.
#pragma once

#include "../cuda.h"

#include <string>

namespace emulator {
// A launch that is ready to run.
struct Launch {
    const Kernel *kernel;
    dim3 grid, block;
    unsigned shared_bytes;
    void *const *values;
    // Orders blocks and threads, and is the pattern of memory that nobody wrote.
    unsigned long long seed;
    // Whether products of a warpgroup leave sums where they belong: without it those of neighbouring columns are exchanged.
    bool fragments = true;
};

// What stopped a launch: an error of the driver (0: nothing did) and a sentence for people.
struct Outcome {
    int error = 0;
    std::string message;
};

Outcome run(const Launch &launch);

// Called on a thread's stack: ends the launch. Does not return.
[[noreturn]] void fail(int error, const std::string &message);

// The kernel of the launch that runs.
const Kernel &running_kernel();

// Its `fragments`.
bool fragments_in_order();

// Whether a thread of a block is running, on the calling thread of the system.
bool inside();

// The running thread and block, for messages.
std::string where();

// The order of everything is drawn from this.
struct Dice {
    unsigned long long state;
    unsigned long long roll() {
        // SplitMix64.
        unsigned long long z = (state += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    unsigned below(unsigned n) { return unsigned((roll() >> 32) * n >> 32); }
};

// Fills memory with the pattern of a seed.
void spoil(void *memory, size_t bytes, unsigned long long seed);
} // namespace emulator
