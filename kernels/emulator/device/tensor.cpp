// Tensor-core products and the copies that feed them.
#include "threads.h"

#include <cstdio>

namespace emulator {
namespace {
int byte_of(unsigned long long word, unsigned at) { return static_cast<signed char>(word >> (8 * at)); }

void need_whole_warp(Lane *const (&lanes)[32], const char *name) {
    for (const Lane *lane : lanes) {
        if (lane == nullptr) {
            fail(LAUNCH_FAILED, std::string(name) + " without all lanes of its warp");
        }
    }
}
} // namespace

void mma_product(Lane *const (&lanes)[32]) {
    need_whole_warp(lanes, "mma.m16n8k32");
    int a[16][32], b[8][32];
    for (unsigned i = 0; i < 32; i++) {
        unsigned group = i / 4, column = i % 4 * 4;
        for (unsigned k = 0; k < 4; k++) {
            for (unsigned word = 0; word < 4; word++) {
                a[group + 8 * (word & 1)][column + 16 * (word >> 1) + k] = byte_of(lanes[i]->in[word], k);
            }
            b[group][column + k] = byte_of(lanes[i]->in[4], k);
            b[group][column + 16 + k] = byte_of(lanes[i]->in[5], k);
        }
    }
    for (unsigned i = 0; i < 32; i++) {
        for (unsigned word = 0; word < 4; word++) {
            unsigned row = i / 4 + 8 * (word >> 1), column = i % 4 * 2 + (word & 1);
            unsigned sum = unsigned(lanes[i]->in[6 + word]);
            for (unsigned k = 0; k < 32; k++) {
                sum += unsigned(a[row][k] * b[column][k]);
            }
            lanes[i]->out[word] = sum;
        }
    }
}

void matrix_rows(Lane *const (&lanes)[32]) {
    need_whole_warp(lanes, "ldmatrix");
    for (unsigned i = 0; i < 32; i++) {
        for (unsigned matrix = 0; matrix < 4; matrix++) {
            auto *row = reinterpret_cast<const unsigned *>(lanes[matrix * 8 + i / 4]->in[0]);
            lanes[i]->out[matrix] = row[i % 4];
        }
    }
}

void copy_async16(void *shared, const void *global, unsigned bytes) {
    check_aligned(shared, 16);
    check_aligned(global, 16);
    if (bytes > 16) {
        fail(LAUNCH_FAILED, "an asynchronous copy of more than 16 bytes");
    }
    // Until it is waited for, nobody can count on what lies there.
    memset(shared, 0xA5, 16);
    current->copies.push_back({shared, global, bytes, current->group});
}

void copy_async_commit() { current->group++; }

void copy_async_wait(int left) {
    size_t kept = 0;
    for (const Copy &copy : current->copies) {
        if (copy.group + unsigned(left) >= current->group) {
            current->copies[kept++] = copy;
            continue;
        }
        touch(copy.from, copy.bytes, Touch::Read, __builtin_return_address(0));
        touch(copy.to, 16, Touch::Write, __builtin_return_address(0));
        auto *to = static_cast<unsigned char *>(copy.to);
        auto *from = static_cast<const unsigned char *>(copy.from);
        for (unsigned i = 0; i < 16; i++) {
            to[i] = i < copy.bytes ? from[i] : 0;
        }
    }
    current->copies.resize(kept);
}

void check_aligned(const void *address, unsigned bytes) {
    if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
        char text[96];
        snprintf(text, sizeof text, "an access of %u bytes at %p, which is no multiple of that", bytes, address);
        fail(MISALIGNED_ADDRESS, text);
    }
}
} // namespace emulator
