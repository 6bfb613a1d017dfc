// Threads of a block as fibers: one runs until it waits for others, then another that can run, in an order drawn from the seed.
//
// The next is mostly of the same warp, whose stacks are in the cache; now and then of any, in the middle of whatever its warp does.
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
// The warp of the thread that ran last.
unsigned last_warp = 0;

// The sanitizer learns the bounds of stacks on the way from the scheduler's.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool DIRECT = false;
#else
constexpr bool DIRECT = true;
#endif

// One of the bits that are set.
unsigned drawn(unsigned bits, unsigned long long roll) {
    unsigned by = unsigned(roll) & 31;
    unsigned turned = bits >> by | bits << (-by & 31);
    return (unsigned(__builtin_ctz(turned)) + by) & 31;
}
} // namespace

Block block;
Thread *current = nullptr;

const Kernel &running_kernel() { return *launch->kernel; }

bool fragments_in_order() { return launch->fragments; }

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

namespace {
void thread_main();

// The thread that runs next, which is no longer among those that can; null for none.
Thread *draw_next() {
    if (block.ready_warps == 0) {
        return nullptr;
    }
    unsigned long long roll = dice.roll();
    if (block.ready[last_warp] == 0 || roll % 16 == 0) {
        last_warp = drawn(block.ready_warps, roll >> 16);
    }
    unsigned lane = drawn(block.ready[last_warp], roll >> 32);
    block.ready[last_warp] &= ~(1u << lane);
    if (block.ready[last_warp] == 0) {
        block.ready_warps &= ~(1u << last_warp);
    }
    return block.threads[size_t(last_warp) * 32 + lane];
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

// Goes from a stack on to a thread.
void enter(Fiber &from, Thread &next, bool leaving_for_good) {
    current = &next;
    running = &next.place;
    if (next.fiber == nullptr) {
        next.fiber = take_fiber();
    }
    switch_stack(from, *next.fiber, leaving_for_good);
}

void thread_main() {
    arrived();
    for (;;) {
        launch->kernel->run(launch->values);
        leave();
        Fiber &own = *current->fiber;
        Thread *next = DIRECT ? draw_next() : nullptr;
        if (next != nullptr && next->fiber == nullptr) {
            // A thread that has not begun can do so right here.
            next->fiber = &own;
            current = next;
            running = &next->place;
            continue;
        }
        idle_fibers.push_back(&own);
        if (next != nullptr) {
            enter(own, *next, true);
        } else {
            switch_stack(own, scheduler, true);
        }
        __builtin_unreachable();
    }
}
} // namespace

void wait() {
    Thread &self = *current;
    Thread *next = DIRECT ? draw_next() : nullptr;
    if (next == nullptr) {
        switch_stack(*self.fiber, scheduler, false);
    } else if (next != &self) {
        enter(*self.fiber, *next, false);
    }
}

namespace {

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
        block.lanes[thread.warp] |= 1u << thread.place.lane;
        block.make_ready(thread.warp, 1u << thread.place.lane);
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
    last_warp = drawn(block.ready_warps, dice.roll());
    while (Thread *next = draw_next()) {
        enter(scheduler, *next, false);
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
