// What lanes do together: each function sees the words of all lanes that take part.
#include "threads.h"

namespace emulator {
namespace {
// What a lane gets from one that takes no part.
constexpr unsigned long long NOBODY = 0xDEADBEEFDEADBEEFull;

template <typename F> void fold(Lane *const (&lanes)[32], unsigned start, F add) {
    unsigned sum = start;
    for (Lane *lane : lanes) {
        sum = lane != nullptr ? add(sum, unsigned(lane->in[0])) : sum;
    }
    for (Lane *lane : lanes) {
        if (lane != nullptr) {
            lane->out[0] = sum;
        }
    }
}
} // namespace

void shuffle(Lane *const (&lanes)[32]) {
    for (Lane *lane : lanes) {
        if (lane != nullptr) {
            const Lane *source = lanes[lane->in[1] & 31];
            lane->out[0] = source != nullptr ? source->in[0] : NOBODY;
        }
    }
}

void vote(Lane *const (&lanes)[32]) {
    unsigned set = 0, all = 0;
    for (unsigned i = 0; i < 32; i++) {
        if (lanes[i] != nullptr) {
            set |= unsigned(lanes[i]->in[0]) << i;
            all |= 1u << i;
        }
    }
    for (Lane *lane : lanes) {
        if (lane != nullptr) {
            lane->out[0] = set;
            lane->out[1] = all;
        }
    }
}

void match(Lane *const (&lanes)[32]) {
    for (Lane *lane : lanes) {
        unsigned same = 0;
        for (unsigned i = 0; lane != nullptr && i < 32; i++) {
            same |= unsigned(lanes[i] != nullptr && lanes[i]->in[0] == lane->in[0]) << i;
        }
        if (lane != nullptr) {
            lane->out[0] = same;
        }
    }
}

void reduce_add(Lane *const (&lanes)[32]) {
    fold(lanes, 0, [](unsigned a, unsigned b) { return a + b; });
}
void reduce_min_unsigned(Lane *const (&lanes)[32]) {
    fold(lanes, ~0u, [](unsigned a, unsigned b) { return a < b ? a : b; });
}
void reduce_max_unsigned(Lane *const (&lanes)[32]) {
    fold(lanes, 0, [](unsigned a, unsigned b) { return a < b ? b : a; });
}
} // namespace emulator
