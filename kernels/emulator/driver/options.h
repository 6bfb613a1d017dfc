// What the emulated machine is, and what goes wrong on it: TERCET_EMULATOR and `tercet_emulator_configure`.
#pragma once

#include "../device/block.h"
#include "api.h"

#include <string>
#include <vector>

namespace emulator {
// The n-th time a call of a kind is made, it fails.
struct Fault {
    std::string kind;
    long countdown;
    bool for_ever;
    int code;
};

struct Options {
    unsigned long long seed = 1;
    int major = 9, minor = 0;
    int devices = 1, driver = 12040, nccl = 22205, multiprocessors = 4;
    size_t memory = size_t(1) << 30;
    bool pools = true, peers = true;
    // Whether what ends a launch is told on standard error too.
    bool tell = false;
    // Whether products of a warpgroup leave sums where they belong.
    bool fragments = true;
    // 0: only what is waited for runs; 1: everything that can run does, in any order; 2: drawn anew at each wait.
    int lateness = 2;
    std::vector<Fault> faults;
};

Options &options();

// Every choice that the driver makes by chance; begins anew when the seed is set.
Dice &dice();

// Sets what `text` names ("seed=3,memory=64M"); false, and nothing changed, where it cannot be read.
bool configure(const std::string &text);

// Fails if a fault of this kind is due; each call counts.
void reach(const char *kind);
// As `reach`, but gives the error instead.
CUresult due(const char *kind);
} // namespace emulator
