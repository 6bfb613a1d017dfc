// Products of a warpgroup by definition. Sections are those of the PTX ISA's "Asynchronous Warpgroup Level Matrix Multiply-Accumulate
// Instructions".
#include "warpgroup.h"

#include "shared.h"
#include "threads.h"

#include <cstdio>

namespace emulator {
namespace {
constexpr unsigned WARPS = 4, ROWS = 16, DEPTH = 32, MOST_COLUMNS = 256;
// What accumulators hold while products into them run.
constexpr int SPOILED = int(0xA5A5A5A5);

[[noreturn]] void refuse(int error, const char *what, unsigned long long descriptor) {
    char text[160];
    snprintf(text, sizeof text, "wgmma.mma_async: the descriptor %016llx %s", descriptor, what);
    fail(error, text);
}

// A matrix in shared memory whose rows are read in K-major order: section "Matrix Descriptor Format".
class Matrix {
  public:
    explicit Matrix(unsigned long long descriptor) : descriptor(descriptor) {
        // Bits 14-15, 30-31, 46-48 and 52-61 have no meaning.
        if ((descriptor & 0x3FF1C000C000C000ull) != 0) {
            refuse(LAUNCH_FAILED, "has bits set that mean nothing", descriptor);
        }
        // Addresses and offsets without their lowest four bits.
        start = unsigned(descriptor & 0x3FFF) << 4;
        leading = unsigned(descriptor >> 16 & 0x3FFF) << 4;
        stride = unsigned(descriptor >> 32 & 0x3FFF) << 4;
        const unsigned mode = unsigned(descriptor >> 62);
        // Section "Strides": without a swizzle core matrices of 8 rows of 16 bytes; else rows of 128, 64 or 32 bytes, eight of them a pattern.
        width = mode == 0 ? 16 : 256 >> mode;
        if (mode == 0) {
            return;
        }
        // Where the pattern begins at its own multiple the base offset is 0. Nothing here begins it elsewhere.
        if ((descriptor >> 49 & 7) != 0) {
            refuse(LAUNCH_FAILED, "has a base offset, for patterns that do not begin at a multiple of their size", descriptor);
        }
        if (start % (8 * width) >= width || stride % (8 * width) != 0) {
            refuse(MISALIGNED_ADDRESS, "does not begin in the first row of the swizzle's pattern, or steps to another row of it", descriptor);
        }
        if (start % width + DEPTH > width) {
            refuse(MISALIGNED_ADDRESS, "has rows that leave the row of the swizzle's pattern", descriptor);
        }
        // Section "Canonical Layouts": Swizzle<3, 4, 3>, <2, 4, 3>, <1, 4, 3>: as many bits from the seventh on, XORed three bits lower.
        swizzled = width - 16;
    }

    // The 16 bytes of a row from column 16 * vector on.
    const unsigned char *vector(unsigned row, unsigned vector) const {
        unsigned at = start + row / 8 * stride + row % 8 * width + vector * (width == 16 ? leading : 16);
        at ^= at >> 3 & swizzled;
        const unsigned char *found = shared_at(at);
        if (found == nullptr) {
            refuse(ILLEGAL_ADDRESS, "reaches out of dynamic shared memory", descriptor);
        }
        return found;
    }

    // Rows as numbers; tells the `check` variant of what is read, where `by` is a caller.
    void read(short (*to)[DEPTH], unsigned first, unsigned rows, const void *by) const {
        for (unsigned row = 0; row < rows; row++) {
            for (unsigned half = 0; half < DEPTH / 16; half++) {
                const unsigned char *from = vector(first + row, half);
                if (by != nullptr) {
                    touch_async(from, 16, by);
                }
                for (unsigned i = 0; i < 16; i++) {
                    to[row][16 * half + i] = static_cast<signed char>(from[i]);
                }
            }
        }
    }

  private:
    unsigned long long descriptor;
    unsigned start, leading, stride, width, swizzled = 0;
};

// A warp's part of both matrices: its 16 rows of the first, and all columns of the second.
struct Read {
    short a[ROWS][DEPTH], b[MOST_COLUMNS][DEPTH];
    unsigned long long hash = 0;

    Read(const Operands &operands, unsigned warp, const void *by) {
        Matrix(operands.a).read(a, warp % WARPS * ROWS, ROWS, by);
        Matrix(operands.b).read(b, 0, operands.columns, by);
        for (const auto &row : a) {
            add(row);
        }
        for (unsigned column = 0; column < operands.columns; column++) {
            add(b[column]);
        }
    }

  private:
    void add(const short (&values)[DEPTH]) {
        for (short value : values) {
            hash = (hash ^ static_cast<unsigned short>(value)) * 0x100000001B3ull;
        }
    }
};

Thread &thread_of(unsigned lane) { return *block.threads[size_t(current->warp) * 32 + lane]; }

// All warps of the warpgroup make the same call. Section "wgmma.mma_async": `.aligned`, and descriptors are the same across all warps.
void agree(const unsigned long long *words, unsigned count) {
    const unsigned warp = current->warp, first = warp / WARPS * WARPS;
    for (unsigned i = 0; i < WARPS; i++) {
        if (first + i >= 32 || block.lanes[first + i] != ~0u) {
            fail(LAUNCH_FAILED, std::string(current->name) + " at " + place_of(current->file, current->line) +
                                    " in a warpgroup without four warps of 32 threads");
        }
    }
    if (block.gone[warp] != 0) {
        fail(LAUNCH_FAILED, std::string(current->name) + " without all lanes of its warp");
    }
    Call call = {current->name, current->file, current->line, {}};
    for (unsigned i = 0; i < count; i++) {
        call.words[i] = words[i];
    }
    Warpgroup &group = block.groups[warp / WARPS];
    const size_t at = group.made[warp % WARPS]++;
    if (at == group.calls.size()) {
        group.calls.push_back(call);
        return;
    }
    const Call &other = group.calls[at];
    if (call.line != other.line || strcmp(call.name, other.name) != 0 || strcmp(call.file, other.file) != 0 ||
        memcmp(call.words, other.words, sizeof call.words) != 0) {
        fail(LAUNCH_FAILED, std::string("warps of a warpgroup part: one calls ") + call.name + " at " + place_of(call.file, call.line) +
                                " and another " + other.name + " at " + place_of(other.file, other.line) + ", or with other values");
    }
}

Sums *under_way(Products &products, const int *at) {
    for (Sums &sums : products.sums) {
        if (sums.at[0] == at) {
            return &sums;
        }
    }
    return nullptr;
}

// Accumulators hold what they were spoiled with unless somebody wrote them.
void check_untouched(const Sums &sums) {
    for (unsigned i = 0; i < sums.count; i++) {
        if (*sums.at[i] != SPOILED) {
            fail(LAUNCH_FAILED, "accumulators were written while a product into them ran");
        }
    }
}

// A lane's accumulators before a product adds to them.
Sums &begin(Products &products, int *const *at, unsigned count, bool add) {
    if (Sums *sums = under_way(products, at[0])) {
        check_untouched(*sums);
        return *sums;
    }
    if (!products.fenced) {
        fail(LAUNCH_FAILED, "wgmma.mma_async at " + place_of(current->file, current->line) +
                                " without wgmma.fence since its accumulators could be touched");
    }
    Sums sums = {{}, count, 0, {}};
    for (unsigned i = 0; i < count; i++) {
        sums.at[i] = at[i];
        // Without `add` they are whatever they are.
        sums.values[i] = add ? unsigned(*at[i]) : 0;
        *at[i] = SPOILED;
    }
    products.sums.push_back(sums);
    return products.sums.back();
}
} // namespace

void Products::reset() {
    sums.clear();
    operands.clear();
    group = 0;
    fenced = false;
}

void Warpgroup::reset() {
    calls.clear();
    memset(made, 0, sizeof made);
}

void check_products_done(const Thread &thread, bool last) {
    if (!thread.products.sums.empty()) {
        fail(LAUNCH_FAILED, "a thread leaves with products that it never waited for");
    }
    for (unsigned i = 0; last && i < 8; i++) {
        for (size_t made : block.groups[i].made) {
            if (made != block.groups[i].calls.size()) {
                const Call &missed = block.groups[i].calls[made];
                fail(LAUNCH_FAILED, std::string("a warp never comes to ") + missed.name + " at " + place_of(missed.file, missed.line) +
                                        ", where others of its warpgroup were");
            }
        }
    }
}

void warpgroup_fence(Lane *const (&)[32]) {
    agree(nullptr, 0);
    for (unsigned i = 0; i < 32; i++) {
        thread_of(i).products.fenced = true;
    }
}

void warpgroup_product(Lane *const (&lanes)[32]) {
    const Lane &words = *lanes[0];
    const unsigned columns = unsigned(words.in[3]);
    agree(words.in, 4);
    for (const Lane *lane : lanes) {
        if (memcmp(lane->in, words.in, 4 * sizeof words.in[0]) != 0) {
            fail(LAUNCH_FAILED, "wgmma.mma_async with other values in one lane than in another");
        }
    }
    Operands operands = {words.in[0], words.in[1], columns, thread_of(0).products.group, 0};
    Read read(operands, current->warp, reinterpret_cast<const void *>(words.in[5]));
    operands.hash = read.hash;
    thread_of(0).products.operands.push_back(operands);
    const unsigned exchanged = fragments_in_order() ? 0 : 1;
    for (unsigned i = 0; i < 32; i++) {
        Products &products = thread_of(i).products;
        Sums &sums = begin(products, reinterpret_cast<int *const *>(lanes[i]->in[4]), columns / 2, words.in[2] != 0);
        sums.group = products.group;
        for (unsigned at = 0; at < sums.count; at++) {
            // Section "Matrix Fragments for wgmma.mma_async.m64nNk32".
            const unsigned row = i / 4 + at / 2 % 2 * 8, column = at / 4 * 8 + i % 4 * 2 + (at % 2 ^ exchanged);
            int sum = 0;
            for (unsigned k = 0; k < DEPTH; k++) {
                sum += read.a[row][k] * read.b[column][k];
            }
            sums.values[at] = (words.in[2] != 0 ? sums.values[at] : 0) + unsigned(sum);
        }
    }
}

void warpgroup_commit(Lane *const (&)[32]) {
    agree(nullptr, 0);
    for (unsigned i = 0; i < 32; i++) {
        thread_of(i).products.group++;
    }
}

void warpgroup_wait(Lane *const (&lanes)[32]) {
    const unsigned left = unsigned(lanes[0]->in[0]);
    agree(lanes[0]->in, 1);
    for (unsigned i = 0; i < 32; i++) {
        Products &products = thread_of(i).products;
        auto waits = [&](unsigned group) { return group + left < products.group; };
        size_t kept = 0;
        for (const Operands &operands : products.operands) {
            if (!waits(operands.group)) {
                products.operands[kept++] = operands;
            } else if (Read(operands, current->warp, nullptr).hash != operands.hash) {
                fail(LAUNCH_FAILED, "shared memory was written while a product read it");
            }
        }
        products.operands.resize(kept);
        kept = 0;
        for (const Sums &sums : products.sums) {
            if (!waits(sums.group)) {
                products.sums[kept++] = sums;
                continue;
            }
            check_untouched(sums);
            for (unsigned at = 0; at < sums.count; at++) {
                *sums.at[at] = int(sums.values[at]);
            }
            // From here on the thread may touch them.
            products.fenced = false;
        }
        products.sums.resize(kept);
    }
}
} // namespace emulator
