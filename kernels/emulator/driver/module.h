// Modules and their functions.
#pragma once

#include "../cuda.h"
#include "ptx.h"
#include "state.h"

#include <memory>

namespace emulator {
struct Function {
    const Kernel *kernel;
    Module *module;
    unsigned shared_bytes, max_threads;
    // What cuFuncSetAttribute has allowed.
    unsigned max_dynamic_shared;
    int carveout = -1;
};

struct Module {
    Context *context;
    Ptx ptx;
    std::map<std::string, std::unique_ptr<Function>> functions;
};

// Static and dynamic shared memory of a block: without leave, and with it.
constexpr unsigned SHARED_USUAL = 48 << 10;
unsigned shared_most(const Device &device);
} // namespace emulator
