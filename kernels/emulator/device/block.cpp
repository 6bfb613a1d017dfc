// Threads of a block as fibers: one runs until it waits for others, then another that can run, in an order drawn from the seed.
#include "block.h"

#include "fiber.h"
#include "shared.h"
#include "signals.h"
#include "threads.h"

#include <memory>
#include <vector>

namespace emulator {
const Place *running = nullptr;
dim3 block_index, block_size, grid_size;

namespace {
// The threads of a block, at most as many as there can be. (In the library's image, where kernels may read who they are.)
Thread pool[1024];
// A stack that was just left is the next to be taken, so threads
// that never wait run on one, which stays in the cache.
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber *> idle_fibers;
Fiber scheduler;
const Launch *launch = nullptr;
Outcome outcome;
Dice dice{0};
} // namespace

Block block;
Thread *current = nullptr;

const Kernel &running_kernel() { return *launch->kernel; }

bool inside() { return current != nullptr; }

std::string where() {
    auto of = [](dim3 d) { return std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z); };
    std::string text = std::string(launch->kernel->name) + ", block (" + of(block_index) + ")";
    return current == nullptr ? text : text + ", thread (" + of(current->place.thread) + ")";
}

void fail(int error, const std::string &message) {
    outcome = {error, message + " [" + where() + "]"};
    // The fiber is left as it stands; nothing in a kernel has a destructor.
    switch_stack(*current->fiber, scheduler, true);
    __builtin_unreachable();
}

void Thread::make_ready() {
    stage = Stage::Ready;
    block.ready.push_back(this);
}

void wait() { switch_stack(*current->fiber, scheduler, false); }

namespace {
void thread_main() {
    arrived();
    launch->kernel->run(launch->values);
    leave();
    idle_fibers.push_back(current->fiber);
    switch_stack(*current->fiber, scheduler, true);
    __builtin_unreachable();
}

// A stack that begins with `thread_main`.
Fiber *take_fiber() {
    if (idle_fibers.empty()) {
        fibers.push_back(std::make_unique<Fiber>());
        idle_fibers.push_back(fibers.back().get());
    }
    Fiber *fiber = idle_fibers.back();
    idle_fibers.pop_back();
    prepare(*fiber, unsigned(idle_fibers.size()), thread_main);
    return fiber;
}

void start_threads(unsigned count) {
    block.reset();
    // A block that was stopped left its stacks where they were.
    if (idle_fibers.size() != fibers.size()) {
        idle_fibers.clear();
        for (const auto &fiber : fibers) {
            idle_fibers.push_back(fiber.get());
        }
    }
    dim3 at = {0, 0, 0};
    for (unsigned i = 0; i < count; i++) {
        Thread &thread = pool[i];
        thread.reset(i, at);
        block.threads.push_back(&thread);
        thread.make_ready();
        if (++at.x == launch->block.x) {
            at.x = 0;
            at.y++;
        }
        if (at.y == launch->block.y) {
            at.y = 0;
            at.z++;
        }
    }
}

// Runs one block to its end; false when something stopped it.
bool run_block(unsigned count) {
    spoil(launch->kernel->shared, size_t(launch->kernel->shared_end - launch->kernel->shared), dice.roll());
    check_block();
    start_threads(count);
    while (!block.ready.empty()) {
        unsigned pick = dice.below(unsigned(block.ready.size()));
        current = block.ready[pick];
        block.ready[pick] = block.ready.back();
        block.ready.pop_back();
        running = &current->place;
        if (current->fiber == nullptr) {
            current->fiber = take_fiber();
        }
        switch_stack(scheduler, *current->fiber, false);
        if (outcome.error != 0) {
            return false;
        }
    }
    current = nullptr;
    if (block.left != count) {
        outcome = {LAUNCH_FAILED, "threads wait for each other for ever: " + waiting_report() + " [" + where() + "]"};
        return false;
    }
    return true;
}

// Block number `i` of the order that the seed draws: multiplication by an odd number permutes a power of two, and what falls
// beyond the number of blocks is passed over.
struct Order {
    unsigned long long mask = 0, factor, offset, next = 0;
    explicit Order(unsigned long long count) : factor(dice.roll() | 1), offset(dice.roll()) {
        while (mask + 1 < count) {
            mask = mask * 2 + 1;
        }
    }
    unsigned long long draw(unsigned long long count) {
        for (;;) {
            unsigned long long at = (next++ * factor + offset) & mask;
            // Mixed once more by steps that can be undone, so that neighbours part.
            at ^= at >> 3 & mask;
            if (at < count) {
                return at;
            }
        }
    }
};
} // namespace

Outcome run(const Launch &what) {
    launch = &what;
    outcome = {};
    dice = {what.seed};
    block_size = what.block;
    grid_size = what.grid;
    check_launch();
    DynamicShared shared(what.shared_bytes);
    Signals signals(scheduler);
    unsigned threads = what.block.x * what.block.y * what.block.z;
    unsigned long long blocks = 1ull * what.grid.x * what.grid.y * what.grid.z;
    Order order(blocks);
    for (unsigned long long i = 0; i < blocks; i++) {
        unsigned long long at = order.draw(blocks);
        unsigned long long plane = 1ull * what.grid.x * what.grid.y;
        block_index = {unsigned(at % what.grid.x), unsigned(at / what.grid.x % what.grid.y), unsigned(at / plane)};
        shared.spoil(dice.roll());
        if (!run_block(threads)) {
            break;
        }
    }
    current = nullptr;
    launch = nullptr;
    return outcome;
}

void record_failure(int error, const std::string &message) { outcome = {error, message + " [" + where() + "]"}; }
} // namespace emulator
