// Who touched a byte last, and whether that comes before what is done now.
#pragma once

#include "../device/threads.h"
#include "check.h"

namespace emulator {
// A touch in 64 bits; 0 is none. Numbers of blocks and phases wrap, which can hide a race and never makes one.
struct Stamp {
    uint64_t block : 20, phase : 13, thread : 11, clock : 19, atomic : 1;
    bool any() const { return thread != 0; }
    unsigned index() const { return unsigned(thread) - 1; }
};
static_assert(sizeof(Stamp) == 8);

// The last write of a byte, and the last reads of two threads.
struct Cell {
    Stamp write, read, other_read;
    bool touched() const { return write.any() || read.any(); }
};

// Bytes of one chunk have their cells in a row; a page knows its chunks.
constexpr unsigned CHUNK = 64, PAGE = 4096;
struct Chunk {
    Cell cells[CHUNK];
};
struct Page {
    uintptr_t key = 0;
    Chunk *chunks[PAGE / CHUNK] = {};
};
// The pages found last, by the lowest bits of their keys: kernels ask at every access.
extern Page *recent_pages[64];
// The cell of a byte whose chunk nobody touched in this launch, or whose page was not found last.
Cell &find_cell(uintptr_t address);

inline Cell &cell_of(uintptr_t address) {
    uintptr_t key = address / PAGE;
    const Page *page = recent_pages[key % 64];
    if (page != nullptr && page->key == key) {
        if (Chunk *chunk = page->chunks[address / CHUNK % (PAGE / CHUNK)]) {
            return chunk->cells[address % CHUNK];
        }
    }
    return find_cell(address);
}
// The running thread's stamp.
Stamp stamp_now(bool atomic);
// Whether a barrier, a warp's meeting or a fence lies between a touch and the running thread's stamp.
bool is_before(Stamp stamp, Stamp now);
// Whether the thread that touched a byte of this block's shared memory has fenced it for products since.
bool is_fenced(Stamp stamp);
// Whether a touch is the running block's.
bool is_of_block(Stamp stamp);
// Whether the running block wrote every byte.
bool written_by_block(uintptr_t address, size_t bytes);
// The running thread changes a word of global memory by an atomic operation: it publishes there what came before its last fence, and learns at
// its next fence what others have published there.
void check_atomic(uintptr_t address);
} // namespace emulator
