// Threads of a block: who they are, where they wait for each other, and what a warp does together.
#pragma once

namespace emulator {
// A thread's place in its block. The emulator keeps the running one's here.
struct Place {
    dim3 thread;
    unsigned lane;
};
extern const Place *running;
extern dim3 block_index, block_size, grid_size;

// Words a lane gives to, and takes from, what its warp does together.
constexpr int LANE_IN = 10, LANE_OUT = 4;
struct Lane {
    unsigned long long in[LANE_IN];
    unsigned long long out[LANE_OUT];
};
// What a warp does: all lanes' words (null where a lane takes no part).
using Together = void(Lane *const (&lanes)[32]);

// Waits for every lane of `mask` to call the same, of which the last does `what` for all. Returns the words of this lane.
Lane &lane();
void together(Together *what, const char *name, unsigned mask, const char *file, int line);

// Waits for every thread of the block; returns how many gave a predicate that is not 0.
unsigned barrier(bool predicate, const char *file, int line);

// The dynamic shared memory that the launch asked for.
void *dynamic_shared();
size_t dynamic_shared_bytes();
// Where it lies in the window of shared memory: at another multiple of 16 in each block.
unsigned dynamic_window();

// Ends the launch with an error of the device unless the address is a multiple of `bytes`.
void check_aligned(const void *address, unsigned bytes);

Together shuffle, vote, match;
} // namespace emulator

#define threadIdx (emulator::running->thread)
#define blockIdx emulator::block_index
#define blockDim emulator::block_size
#define gridDim emulator::grid_size
#define warpSize 32

// Where the source says it, for the report.
#define TERCET_WHERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(TERCET_WHERE) { emulator::barrier(false, file, line); }
inline int __syncthreads_count(int predicate, TERCET_WHERE) { return int(emulator::barrier(predicate != 0, file, line)); }
inline int __syncthreads_or(int predicate, TERCET_WHERE) { return emulator::barrier(predicate != 0, file, line) != 0; }
inline int __syncthreads_and(int predicate, TERCET_WHERE) { return emulator::barrier(predicate == 0, file, line) == 0; }

inline void __syncwarp(unsigned mask = 0xFFFFFFFF, TERCET_WHERE) {
    emulator::together(nullptr, "__syncwarp", mask, file, line);
}
inline void __threadfence() { emulator::check_fence(); }
inline void __threadfence_block() {}
inline void __threadfence_system() { emulator::check_fence(); }

namespace emulator {
// The lane to read is found by the caller; each lane names its own.
template <typename T> inline T shuffle_from(unsigned mask, T value, int source, const char *name, const char *file, int line) {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) >= 4, "a shuffle moves 32 or 64 bits");
    Lane &mine = lane();
    mine.in[0] = 0;
    memcpy(&mine.in[0], &value, sizeof value);
    mine.in[1] = static_cast<unsigned long long>(source);
    together(shuffle, name, mask, file, line);
    memcpy(&value, &mine.out[0], sizeof value);
    return value;
}
inline int here() { return int(running->lane); }
} // namespace emulator

template <typename T> inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, TERCET_WHERE) {
    int start = emulator::here() & ~(width - 1);
    return emulator::shuffle_from(mask, value, start | (source & (width - 1)), "__shfl_sync", file, line);
}
template <typename T> inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, TERCET_WHERE) {
    int self = emulator::here(), source = self - int(delta);
    source = source < (self & ~(width - 1)) ? self : source;
    return emulator::shuffle_from(mask, value, source, "__shfl_up_sync", file, line);
}
template <typename T> inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, TERCET_WHERE) {
    int self = emulator::here(), source = self + int(delta);
    source = source > (self | (width - 1)) ? self : source;
    return emulator::shuffle_from(mask, value, source, "__shfl_down_sync", file, line);
}
template <typename T> inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, TERCET_WHERE) {
    int self = emulator::here(), source = self ^ bits;
    source = source > (self | (width - 1)) ? self : source;
    return emulator::shuffle_from(mask, value, source, "__shfl_xor_sync", file, line);
}

namespace emulator {
// The lanes whose predicate is not 0, and those that took part.
struct Ballot {
    unsigned set, all;
};
inline Ballot ballot(unsigned mask, int predicate, const char *name, const char *file, int line) {
    Lane &mine = lane();
    mine.in[0] = predicate != 0;
    together(vote, name, mask, file, line);
    return {unsigned(mine.out[0]), unsigned(mine.out[1])};
}
} // namespace emulator

inline unsigned __ballot_sync(unsigned mask, int predicate, TERCET_WHERE) {
    return emulator::ballot(mask, predicate, "__ballot_sync", file, line).set;
}
inline int __any_sync(unsigned mask, int predicate, TERCET_WHERE) {
    return emulator::ballot(mask, predicate, "__any_sync", file, line).set != 0;
}
inline int __all_sync(unsigned mask, int predicate, TERCET_WHERE) {
    emulator::Ballot votes = emulator::ballot(mask, predicate, "__all_sync", file, line);
    return votes.set == votes.all;
}
template <typename T> inline unsigned __match_any_sync(unsigned mask, T value, TERCET_WHERE) {
    emulator::Lane &mine = emulator::lane();
    mine.in[0] = 0;
    memcpy(&mine.in[0], &value, sizeof value);
    emulator::together(emulator::match, "__match_any_sync", mask, file, line);
    return unsigned(mine.out[0]);
}
// The lanes that have come this far together: any part of them is allowed, so each lane stands alone.
inline unsigned __activemask() { return 1u << emulator::here(); }
