// Which pieces of work come before which: by streams, events, edges of graphs, and what the host has waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulator {
// How much of each stream's work, and how many runs of each node of a graph, something comes after.
class Clock {
  public:
    unsigned at(unsigned number) const { return number < of.size() ? of[number] : 0; }
    void set(unsigned number, unsigned count);
    void learn(const Clock &other);

  private:
    std::vector<unsigned> of;
};

// Numbers for a stream, or for the nodes of a graph: the first of so many in a row.
unsigned take_numbers(size_t many);

// What the host has waited for. What one of its threads has, all have: how they tell each other is not seen here.
Clock &host_clock();

// A piece of work begins to run: the last so far of a stream's or a node's number.
void begin_piece(unsigned number, const Clock &clock);
const Clock &running_clock();

// What a byte of an allocation was touched by: the last write, whether by an atomic operation, and since then the reads of two pieces that
// come in no order.
struct Touched {
    unsigned write : 31, atomic : 1, read, other_read;
};
enum class Use { Read, Write, Atomic };

// The running piece touches memory. False, with a sentence as the driver's message, where another piece touched a byte of it, one of the two
// wrote without an atomic operation, and neither comes before the other. `what` is the piece, as a verb's subject. Always true but in the
// `check` and `ptx` variants.
bool touch_in_order(uintptr_t at, size_t bytes, Use use, const char *what);
} // namespace emulator
