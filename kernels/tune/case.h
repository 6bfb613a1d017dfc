// What a case is: a kernel, the memory that a launch of it reads and writes, and what must be there afterwards.
#pragma once

#include "numbers.h"

#include <functional>

// A part of the memory of a launch: what it holds before, and what is expected after: every `step`-th element of `width` bytes. Nothing if the
// launch does not change it, or if only the case's `right` looks at it.
struct Part {
    Bytes before;
    Bytes after = {};
    u64 width = 1, step = 1;
};

// What a launch may count on: the blocks of this kernel that run at a time.
struct Room {
    u32 blocks, multiprocessors;
};

struct Case {
    std::string size;
    // What a launch moves and does, as its algorithm needs it.
    double bytes, operations;
    std::vector<Part> parts;
    // The launch whose parts lie at these addresses. As the engine launches the kernel (gpu/src/engine).
    std::function<Launch(const std::vector<u64> &at, const Room &room)> launch;
    // Dynamic shared memory.
    u32 shared = 0;
    // Whether what lies in the parts afterwards is right, if `after` cannot say so.
    std::function<bool(const std::vector<Bytes> &)> right = nullptr;
};

// A case by its name, which --only looks into, and its kernel. It is made when its turn comes, for a number of values.
struct Entry {
    const char *name, *module, *kernel;
    std::function<Case(u64 size)> make;
};

// For places that a launch fills: what is left of this is a mistake.
inline Bytes unwritten(u64 bytes) { return Bytes(bytes, 0xA5); }
inline Bytes zeros(u64 bytes) { return Bytes(bytes, 0); }

// A pointer to nothing.
const u64 NONE = 0;

// As many blocks as `items` need if a block has `each` at a time, but at most `most`, as `LaunchGrid::strided`.
inline u32 blocks_for(u64 items, u64 each, u64 most) { return (u32)std::min((items + each - 1) / each, most); }

// How blocks share a tensor: pieces of whole vectors, 16 Ki values at least.
struct Pieces {
    u64 piece, count;

    Pieces(u64 values, u64 blocks) : piece(std::max<u64>((values + blocks - 1) / blocks, 16 << 10)) {
        piece = (piece + 15) / 16 * 16;
        count = (values + piece - 1) / piece;
    }
};

// From one sample to the next if each takes `cost` steps on the host: 1 up to 2³⁰ steps in all, a second or so. Odd, so that samples of a matrix
// lie in all of its rows and columns.
inline u64 sample_step(u64 count, u64 cost) { return ((count * cost) >> 30) | 1; }

inline std::string in_short(u64 number) {
    const char *units[] = {"", "Ki", "Mi", "Gi"};
    u32 unit = 0;
    for (; unit < 3 && number != 0 && number % 1024 == 0; unit++) number /= 1024;
    return std::to_string(number) + units[unit];
}
