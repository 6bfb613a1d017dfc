// What a module's PTX says of itself: its version, its target, its entries and their parameters.
#pragma once

#include <string>
#include <vector>

namespace emulator {
struct PtxEntry {
    std::string name;
    std::vector<unsigned> parameter_bytes;
    // Bytes of static shared memory; the most threads of a block, 0 where it says nothing.
    unsigned shared_bytes = 0, max_threads = 0;
};

struct Ptx {
    int version = 0; // 84 for 8.4
    int target = 0;  // 90 for sm_90
    bool exact_target = false; // sm_90a
    std::vector<PtxEntry> entries;
};

// False for a text that is no PTX.
bool read_ptx(const std::string &text, Ptx &out);
} // namespace emulator
