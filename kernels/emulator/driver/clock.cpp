// Orders pieces of work, and finds two that touch a byte without one.
#include "clock.h"

#include "../check/check.h"
#include "memory.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace emulator {
namespace {
struct Piece {
    unsigned number, count;
    const char *what;
};
// All that ran; the first is none.
std::vector<Piece> &pieces() {
    static auto *all = new std::vector<Piece>{{0, 0, ""}};
    return *all;
}
Clock comes_after;

bool piece_is_before(unsigned piece) { return comes_after.at(pieces()[piece].number) >= pieces()[piece].count; }

// The piece that must have come before and need not have; 0 for none.
unsigned conflict(Touched &byte, unsigned self, Use use) {
    if (byte.write != self && !piece_is_before(byte.write) && !(byte.atomic && use == Use::Atomic)) {
        return byte.write;
    }
    if (use != Use::Read) {
        for (unsigned read : {byte.read, byte.other_read}) {
            if (read != self && !piece_is_before(read)) {
                return read;
            }
        }
        byte = {self, use == Use::Atomic, 0, 0};
    } else if (byte.read == self || piece_is_before(byte.read)) {
        byte.read = self;
    } else if (byte.other_read == self || piece_is_before(byte.other_read)) {
        byte.other_read = self;
    }
    return 0;
}
} // namespace

// Nobody asks but where touches are checked; there a clock stays empty.
void Clock::set(unsigned number, unsigned count) {
    if (!CHECKED) {
        return;
    }
    of.resize(std::max(of.size(), size_t(number) + 1));
    of[number] = count;
}

void Clock::learn(const Clock &other) {
    if (!CHECKED) {
        return;
    }
    of.resize(std::max(of.size(), other.of.size()));
    for (size_t i = 0; i < other.of.size(); i++) {
        of[i] = std::max(of[i], other.of[i]);
    }
}

unsigned take_numbers(size_t many) {
    static unsigned next = 1;
    next += unsigned(many);
    return next - unsigned(many);
}

Clock &host_clock() {
    static auto *clock = new Clock;
    return *clock;
}

void begin_piece(unsigned number, const Clock &clock) {
    if (CHECKED) {
        comes_after = clock;
        pieces().push_back({number, clock.at(number), ""});
    }
}

const Clock &running_clock() { return comes_after; }

bool touch_in_order(uintptr_t at, size_t bytes, Use use, const char *what) {
    Allocation *allocation = CHECKED && bytes != 0 ? holding(at) : nullptr;
    if (allocation == nullptr || at + bytes > allocation->start + allocation->bytes) {
        return true;
    }
    if (allocation->touched == nullptr) {
        // Pages that nobody touches take no memory.
        const size_t bytes = allocation->bytes * sizeof(Touched);
        void *zeros = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (zeros == MAP_FAILED) {
            throw Error{CUDA_ERROR_OUT_OF_MEMORY};
        }
        allocation->touched.reset(static_cast<Touched *>(zeros), [bytes](Touched *at) { munmap(at, bytes); });
    }
    const unsigned self = unsigned(pieces().size()) - 1;
    pieces()[self].what = what;
    Touched *byte = &allocation->touched.get()[at - allocation->start], *end = byte + bytes;
    while (byte != end) {
        // The bytes of a number mostly have one past.
        const Touched before = *byte;
        if (unsigned other = conflict(*byte, self, use)) {
            state().message = std::string(what) + (use == Use::Read ? " reads" : " writes") + " what " + pieces()[other].what + " of another stream or node " +
                              (byte->write == other ? "writes" : "reads") + ", and nothing orders the two";
            return false;
        }
        const Touched after = *byte;
        for (byte++; byte != end && memcmp(byte, &before, sizeof before) == 0; byte++) {
            *byte = after;
        }
    }
    return true;
}
} // namespace emulator
