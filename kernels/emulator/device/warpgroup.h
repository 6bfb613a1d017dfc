// What products of a warpgroup leave open: sums on their way, operands that may not change, what its four warps have called.
#pragma once

#include <cstddef>
#include <vector>

namespace emulator {
struct Thread;

// A thread's accumulators while products into them run.
struct Sums {
    int *at[128];
    unsigned count;
    // The group of the last product.
    unsigned group;
    unsigned values[128];
};

// A product whose matrices must stay as they are.
struct Operands {
    unsigned long long a, b;
    unsigned columns, group;
    unsigned long long hash;
};

// What a thread has under way. Operands are kept by a warp's first lane.
struct Products {
    std::vector<Sums> sums;
    std::vector<Operands> operands;
    // The number of groups closed.
    unsigned group = 0;
    // Whether a fence came after the last time accumulators were free to be touched.
    bool fenced = false;

    void reset();
};

// A call that all four warps of a warpgroup make, in the same order with the same values.
struct Call {
    const char *name, *file;
    int line;
    unsigned long long words[4];
};

// The calls of a warpgroup, and how many of them each warp has made.
struct Warpgroup {
    std::vector<Call> calls;
    size_t made[4] = {};

    void reset();
};

// A thread comes to the kernel's end, perhaps as the last of its block: ends the launch where something is left open.
void check_products_done(const Thread &thread, bool last);
} // namespace emulator
