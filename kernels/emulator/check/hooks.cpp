// Every load and store of a kernel: inside its memory, of something written, in order with the others.
#include "../driver/memory.h"
#include "order.h"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <link.h>

namespace emulator {
namespace {
enum class Space { Shared, Global, Own, Elsewhere };

// This library's own image: tables of constants, and who the running thread is.
struct Image {
    uintptr_t start = ~uintptr_t(0), end = 0;
};
Image image() {
    Image all;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *out) {
            Image mine;
            for (int i = 0; i < info->dlpi_phnum; i++) {
                if (info->dlpi_phdr[i].p_type == PT_LOAD) {
                    uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                    mine.start = at < mine.start ? at : mine.start;
                    mine.end = at + info->dlpi_phdr[i].p_memsz > mine.end ? at + info->dlpi_phdr[i].p_memsz : mine.end;
                }
            }
            auto here = reinterpret_cast<uintptr_t>(&image);
            if (here >= mine.start && here < mine.end) {
                *static_cast<Image *>(out) = mine;
            }
            return 0;
        },
        &all);
    return all;
}
const Image library = image();

// Most of what a kernel loads and stores.
inline bool is_on_stack(uintptr_t at) { return at - reinterpret_cast<uintptr_t>(current->fiber->stack) < (64u << 10); }

Space space_of(uintptr_t at, size_t bytes, Allocation *&allocation) {
    auto start = reinterpret_cast<uintptr_t>(running_kernel().shared);
    auto stop = reinterpret_cast<uintptr_t>(running_kernel().shared_end);
    if (at >= start && at + bytes <= stop) {
        return Space::Shared;
    }
    auto dynamic = reinterpret_cast<uintptr_t>(dynamic_shared());
    if (dynamic != 0 && at >= dynamic && at + bytes <= dynamic + dynamic_shared_bytes()) {
        return Space::Shared;
    }
    if (at >= library.start && at + bytes <= library.end) {
        return Space::Own;
    }
    allocation = holding(at);
    return allocation != nullptr && at + bytes <= allocation->start + allocation->bytes ? Space::Global : Space::Elsewhere;
}

// "file:line" of an address in this library, as addr2line knows it.
std::string source_of(const void *at) {
    Dl_info info;
    if (dladdr(at, &info) == 0) {
        return "?";
    }
    char command[600], line[400] = "?";
    // The call returns to `at`; the line is that of the instruction before.
    uintptr_t offset = reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(info.dli_fbase) - 1;
    snprintf(command, sizeof command, "addr2line -e '%s' 0x%zx 2>/dev/null", info.dli_fname, size_t(offset));
    if (FILE *pipe = popen(command, "r")) {
        if (fgets(line, sizeof line, pipe) != nullptr) {
            line[strcspn(line, "\n")] = 0;
        }
        pclose(pipe);
    }
    return line;
}

const char *verb(Touch how) { return how == Touch::Read ? "reads" : how == Touch::Write ? "writes" : "changes"; }

[[noreturn]] void fail_at(int error, const std::string &message, const void *at) {
    fail(error, message + ", at " + source_of(at));
}

std::string bytes_text(size_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

[[noreturn]] void fail_elsewhere(uintptr_t address, size_t bytes, Touch how, const Allocation *near, const void *at) {
    std::string text = std::string("a thread ") + verb(how) + " " + bytes_text(bytes);
    if (near != nullptr) {
        fail_at(ILLEGAL_ADDRESS, text + " at " + std::to_string(address - near->start) + " of " + bytes_text(near->bytes), at);
    }
    fail_at(ILLEGAL_ADDRESS, text + " where no memory of the device is", at);
}

[[noreturn]] void fail_race(const char *what, Stamp other, const char *space, Touch how, const void *at) {
    fail_at(LAUNCH_FAILED,
            std::string("a race in ") + space + " memory: the thread " + verb(how) + " what thread " + std::to_string(other.index()) +
                " of block " + std::to_string(unsigned(other.block)) + " " + what,
            at);
}

// One byte's: the rules, and who touched it last.
void check_order(Cell &cell, Touch how, bool shared, Stamp now, const void *at) {
    const char *space = shared ? "shared" : "global";
    // Each block has shared memory of its own, though here all have the same.
    for (Stamp *stamp : {&cell.write, &cell.read, &cell.other_read}) {
        if (shared && stamp->block != now.block) {
            *stamp = {};
        }
    }
    if (cell.write.any() && !(now.atomic && cell.write.atomic) && !is_before(cell.write, now)) {
        fail_race(cell.write.atomic ? "changes" : "writes", cell.write, space, how, at);
    }
    if (how == Touch::Read) {
        if (cell.read.thread != now.thread || cell.read.block != now.block) {
            cell.other_read = cell.read;
        }
        cell.read = now;
        return;
    }
    for (Stamp read : {cell.read, cell.other_read}) {
        if (read.any() && !is_before(read, now)) {
            fail_race("reads", read, space, how, at);
        }
    }
    cell.write = now;
}

bool same(const Cell &a, const Cell &b) { return memcmp(&a, &b, sizeof a) == 0; }

void check_order(uintptr_t address, size_t bytes, Touch how, bool shared, const void *at) {
    const Stamp now = stamp_now(how == Touch::Atomic);
    while (bytes != 0) {
        Cell *cell = &cell_of(address);
        Cell *end = cell + std::min(bytes, size_t(CHUNK - address % CHUNK));
        address += size_t(end - cell);
        bytes -= size_t(end - cell);
        while (cell != end) {
            // The bytes of a number mostly have one past.
            const Cell before = *cell;
            check_order(*cell, how, shared, now, at);
            const Cell after = *cell;
            for (cell++; cell != end && same(*cell, before); cell++) {
                *cell = after;
            }
        }
    }
}

// A load or store that is not on the running thread's own stack.
__attribute__((noinline)) void touch_memory(uintptr_t address, size_t bytes, Touch how, const void *at) {
    Allocation *allocation = nullptr;
    Space space = space_of(address, bytes, allocation);
    if (space == Space::Own) {
        return;
    }
    if (space == Space::Elsewhere) {
        fail_elsewhere(address, bytes, how, allocation, at);
    }
    if (how == Touch::Atomic && space == Space::Global) {
        check_atomic(address);
    }
    const char *name = space == Space::Shared ? "shared" : "global";
    // What a block before this one left in shared memory is as good as nothing.
    if (how != Touch::Write && !(space == Space::Global ? is_written(*allocation, address, bytes) : written_by_block(address, bytes))) {
        fail_at(LAUNCH_FAILED, std::string("a thread ") + verb(how) + " " + name + " memory that nobody wrote", at);
    }
    check_order(address, bytes, how, space == Space::Shared, at);
    if (how != Touch::Read && space == Space::Global) {
        mark_written(*allocation, address, bytes);
    }
}

// `touch`, within each hook.
inline __attribute__((always_inline)) void touch_here(const void *pointer, size_t bytes, Touch how, const void *at) {
    auto address = reinterpret_cast<uintptr_t>(pointer);
    // An asynchronous copy of no bytes reads none, wherever it points.
    if (current != nullptr && bytes != 0 && !is_on_stack(address)) {
        touch_memory(address, bytes, how, at);
    }
}
} // namespace

void touch(const void *pointer, size_t bytes, Touch how, const void *at) { touch_here(pointer, bytes, how, at); }

void touch_async(const void *pointer, size_t bytes, const void *at) {
    touch(pointer, bytes, Touch::Read, at);
    for (size_t i = 0; i < bytes; i++) {
        Stamp write = cell_of(reinterpret_cast<uintptr_t>(pointer) + i).write;
        if (write.any() && !is_fenced(write)) {
            fail_at(LAUNCH_FAILED, "a product reads what thread " + std::to_string(write.index()) + " wrote without fence.proxy.async", at);
        }
    }
}

bool written_by_block(uintptr_t address, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        Stamp write = cell_of(address + i).write;
        if (!write.any() || !is_of_block(write)) {
            return false;
        }
    }
    return true;
}
} // namespace emulator

using emulator::Touch;
using emulator::touch_here;

#define TERCET_HOOK(name, bytes, how)                                                                                              \
    extern "C" __attribute__((visibility("hidden"))) void name(void *address) {                                                    \
        touch_here(address, bytes, how, __builtin_return_address(0));                                                              \
    }
TERCET_HOOK(__tsan_read1, 1, Touch::Read)
TERCET_HOOK(__tsan_read2, 2, Touch::Read)
TERCET_HOOK(__tsan_read4, 4, Touch::Read)
TERCET_HOOK(__tsan_read8, 8, Touch::Read)
TERCET_HOOK(__tsan_read16, 16, Touch::Read)
TERCET_HOOK(__tsan_write1, 1, Touch::Write)
TERCET_HOOK(__tsan_write2, 2, Touch::Write)
TERCET_HOOK(__tsan_write4, 4, Touch::Write)
TERCET_HOOK(__tsan_write8, 8, Touch::Write)
TERCET_HOOK(__tsan_write16, 16, Touch::Write)
TERCET_HOOK(__tsan_volatile_read1, 1, Touch::Read)
TERCET_HOOK(__tsan_volatile_read2, 2, Touch::Read)
TERCET_HOOK(__tsan_volatile_read4, 4, Touch::Read)
TERCET_HOOK(__tsan_volatile_read8, 8, Touch::Read)
TERCET_HOOK(__tsan_volatile_write1, 1, Touch::Write)
TERCET_HOOK(__tsan_volatile_write2, 2, Touch::Write)
TERCET_HOOK(__tsan_volatile_write4, 4, Touch::Write)
TERCET_HOOK(__tsan_volatile_write8, 8, Touch::Write)

#define TERCET_RANGE_HOOK(name, how)                                                                                               \
    extern "C" __attribute__((visibility("hidden"))) void name(void *address, size_t bytes) {                                      \
        touch_here(address, bytes, how, __builtin_return_address(0));                                                              \
    }
TERCET_RANGE_HOOK(__tsan_read_range, Touch::Read)
TERCET_RANGE_HOOK(__tsan_write_range, Touch::Write)

extern "C" __attribute__((visibility("hidden"))) void __tsan_vptr_update(void *) {}
extern "C" __attribute__((visibility("hidden"))) void __tsan_init() {}
