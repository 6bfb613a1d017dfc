// Where threads wait for each other: the block's barrier, and what the lanes of a warp do together.
#include "threads.h"

namespace emulator {
void Thread::reset(unsigned index, dim3 thread) {
    place = {thread, index % 32};
    warp = index / 32;
    fiber = nullptr;
    name = file = nullptr;
    what = nullptr;
    mask = 0;
    copies.clear();
    group = 0;
    products.reset();
}

void Block::reset() {
    threads.clear();
    for (unsigned warp = 0; warp < 32; warp++) {
        lanes[warp] = ready[warp] = waiting[warp] = gone[warp] = 0;
    }
    for (Warpgroup &group : groups) {
        group.reset();
    }
    ready_warps = at_barrier = predicates = released_predicates = left = 0;
}

Lane &lane() { return current->words; }

namespace {
// Lets the lanes that a thread waits with go on, if all have come. Lanes that left the kernel are not waited for.
void finish_if_complete(const Thread &first) {
    const unsigned warp = first.warp, members = first.mask & block.lanes[warp] & ~block.gone[warp];
    if ((members & ~block.waiting[warp]) != 0) {
        return;
    }
    Thread *const *threads = &block.threads[size_t(warp) * 32];
    Lane *lanes[32] = {};
    for (unsigned rest = members; rest != 0; rest &= rest - 1) {
        unsigned i = unsigned(__builtin_ctz(rest));
        Thread &other = *threads[i];
        if (other.mask != first.mask || other.what != first.what) {
            fail(LAUNCH_FAILED, "lanes of a warp part: lane " + std::to_string(first.place.lane) + " calls " + first.name + " at " +
                                    place_of(first.file, first.line) + " and lane " + std::to_string(i) + " " + other.name + " at " +
                                    place_of(other.file, other.line) + ", or with another mask");
        }
        lanes[i] = &other.words;
    }
    if (first.what != nullptr) {
        first.what(lanes);
    }
    check_together(warp, members);
    block.waiting[warp] &= ~members;
    block.make_ready(warp, members);
}

void release_barrier() {
    check_barrier();
    block.released_predicates = block.predicates;
    block.at_barrier = block.predicates = 0;
    // None has left.
    for (unsigned warp = 0; warp * 32 < block.threads.size(); warp++) {
        block.make_ready(warp, block.lanes[warp]);
    }
}
} // namespace

void together(Together *what, const char *name, unsigned mask, const char *file, int line) {
    Thread &self = *current;
    if ((mask >> self.place.lane & 1) == 0) {
        fail(LAUNCH_FAILED, std::string(name) + " at " + place_of(file, line) + ": the calling lane is not in its mask");
    }
    block.waiting[self.warp] |= 1u << self.place.lane;
    self.what = what;
    self.name = name;
    self.mask = mask;
    self.file = file;
    self.line = line;
    finish_if_complete(self);
    wait();
}

unsigned barrier(bool predicate, const char *file, int line) {
    Thread &self = *current;
    if (block.left != 0) {
        fail(LAUNCH_FAILED, "a thread waits at the barrier at " + place_of(file, line) + " and another has left the kernel");
    }
    if (block.at_barrier == 0) {
        block.file = file;
        block.line = line;
    } else if (block.line != line || (block.file != file && strcmp(block.file, file) != 0)) {
        fail(LAUNCH_FAILED, "threads wait at two barriers, " + place_of(file, line) + " and " + place_of(block.file, block.line));
    }
    self.name = "__syncthreads";
    self.file = file;
    self.line = line;
    block.at_barrier++;
    block.predicates += predicate;
    if (block.at_barrier == block.threads.size()) {
        release_barrier();
    }
    wait();
    return block.released_predicates;
}

void leave() {
    Thread &self = *current;
    if (!self.copies.empty()) {
        fail(LAUNCH_FAILED, "a thread leaves with asynchronous copies that it never waited for");
    }
    block.left++;
    check_products_done(self, block.left == block.threads.size());
    block.gone[self.warp] |= 1u << self.place.lane;
    if (block.at_barrier != 0) {
        fail(LAUNCH_FAILED, "a thread left the kernel while another waits at the barrier at " + place_of(block.file, block.line));
    }
    // Lanes that wait for this one need not any more.
    unsigned done = 0;
    for (unsigned rest = block.waiting[self.warp]; rest != 0; rest &= rest - 1) {
        const Thread &other = *block.threads[size_t(self.warp) * 32 + unsigned(__builtin_ctz(rest))];
        if ((done & other.mask) == 0) {
            done |= other.mask;
            finish_if_complete(other);
        }
    }
}

std::string waiting_report() {
    std::string text;
    unsigned told = 0, left = 0, waiting = 0;
    for (const Thread *thread : block.threads) {
        if (block.gone[thread->warp] >> thread->place.lane & 1) {
            left++;
            continue;
        }
        waiting++;
        if (told++ < 4) {
            text += "thread " + std::to_string(thread->warp * 32 + thread->place.lane) + " at " + thread->name + " (" +
                    place_of(thread->file, thread->line) + "), ";
        }
    }
    return text + std::to_string(waiting) + " wait, " + std::to_string(left) + " have left";
}
} // namespace emulator
