// Kernels with mistakes that the emulated device must show.
#include "tercet/device.cuh"

// Reads a neighbour's word without a barrier.
extern "C" __global__ void test_racy(u32 *out) {
    __shared__ u32 words[64];
    words[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = words[(threadIdx.x + 1) % 64];
}

// Which block came last, by plain stores.
extern "C" __global__ void test_last_block(u32 *out) { out[0] = blockIdx.x; }

extern "C" __global__ void test_beyond(u32 *out, u32 at) { out[at + threadIdx.x] = 1; }

extern "C" __global__ void test_beyond_shared(u32 *out, u32 at) {
    __shared__ u32 words[40];
    words[at + threadIdx.x] = 1;
    out[0] = words[at];
}

extern "C" __global__ void test_beyond_dynamic(u32 *out, u32 at) {
    TERCET_SHARED(u32, words);
    words[at + threadIdx.x] = 1;
    out[0] = words[at];
}

// Nobody wrote what it reads.
extern "C" __global__ void test_unwritten(u32 *out) {
    __shared__ u32 words[32];
    out[blockIdx.x] = words[threadIdx.x];
}

// Thread 3 leaves, the others wait.
extern "C" __global__ void test_early_leave(u32 *out) {
    if (threadIdx.x == 3) {
        return;
    }
    __syncthreads();
    out[threadIdx.x] = 1;
}

// The two halves of a block wait at two barriers.
extern "C" __global__ void test_two_barriers(u32 *out) {
    if (threadIdx.x < 32) {
        __syncthreads();
        out[0] = 1;
    } else {
        __syncthreads();
        out[1] = 2;
    }
}

// Half a warp waits at the barrier, half for the whole warp.
extern "C" __global__ void test_deadlock(u32 *out) {
    if (threadIdx.x < 16) {
        __syncthreads();
    } else {
        out[0] = __ballot_sync(FULL_WARP, 1);
    }
}

// Lanes of one mask that call different things.
extern "C" __global__ void test_parted(u32 *out) {
    if (threadIdx.x < 16) {
        out[0] = __ballot_sync(FULL_WARP, 1);
    } else {
        out[1] = __shfl_sync(FULL_WARP, threadIdx.x, 0);
    }
}

extern "C" __global__ void test_misaligned(u8 *out) { store16(out + 4, u32x4{1, 2, 3, 4}); }

// Reads a copy before it is waited for.
extern "C" __global__ void test_hasty_copy(const u32 *in, u32 *out, u32 wait) {
    alignas(16) __shared__ u32 words[128];
    copy_async16(words + 4 * threadIdx.x, in + 4 * threadIdx.x);
    copy_async_commit();
    if (wait != 0) {
        copy_async_wait<0>();
    }
    out[threadIdx.x] = words[4 * threadIdx.x];
    copy_async_wait<0>();
}

extern "C" __global__ void test_divide(u32 *out, u32 by) { out[0] = 7 / by; }

// What follows is a mistake only for the `check` variant: the results are right by luck, or the memory is.

// Reads what its warp's lane 0 wrote, with or without a meeting of the warp.
extern "C" __global__ void test_warp_order(u32 *out, u32 meet) {
    __shared__ u32 word;
    if (threadIdx.x == 0) {
        word = 5;
    }
    if (meet != 0) {
        __syncwarp();
    }
    out[threadIdx.x] = threadIdx.x == 0 || meet != 0 ? word : 0;
    if (meet == 0 && threadIdx.x == 9) {
        word = 6;
    }
}

// No mistake with 0 bytes, wherever they are: an asynchronous copy then reads none, and fills its place with zeros.
extern "C" __global__ void test_copies_nothing(u32 *out, u64 step, u32 bytes) {
    alignas(16) __shared__ u32 words[4];
    const u32 *from = step == 0 ? nullptr : out + step;
    copy_async16(words, from, bytes);
    copy_async_commit();
    copy_async_wait<0>();
    out[0] = words[0] | words[1] | words[2] | words[3];
}

// No mistake: each block has shared memory of its own, and uses it in another order.
extern "C" __global__ void test_own_shared(u32 *out) {
    __shared__ u32 words[32];
    words[(threadIdx.x + blockIdx.x) % 32] = threadIdx.x;
    __syncthreads();
    atomicAdd(out, words[threadIdx.x]);
}

// Each block adds to one word, by an atomic or not.
extern "C" __global__ void test_block_order(u32 *out, u32 atomic) {
    if (atomic != 0) {
        atomicAdd(out, 1u);
    } else {
        out[0] += 1;
    }
}

enum { RIGHT, NO_FENCE, NO_FENCE_AFTER, FENCE_TOO_EARLY, NO_BARRIER, OTHER_WORD };

// The last block sums what the threads of all wrote: by barriers, and by a fence, an atomic operation and a fence of one thread of each block.
extern "C" __global__ void test_last_sums(u32 *parts, u32 *done, u32 how) {
    __shared__ u32 last;
    const bool first = threadIdx.x == 0;
    if (how == FENCE_TOO_EARLY && first) {
        __threadfence();
    }
    parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    if (how != NO_BARRIER) {
        __syncthreads();
    }
    if (first) {
        if (how != NO_FENCE && how != FENCE_TOO_EARLY) {
            __threadfence();
        }
        // Each block at a word of its own learns nothing of the others.
        u32 before = atomicAdd(done + (how == OTHER_WORD ? 2 + blockIdx.x : 1), 1u);
        last = how == OTHER_WORD || before == gridDim.x - 1;
        if (how != NO_FENCE && how != NO_FENCE_AFTER) {
            __threadfence();
        }
    }
    __syncthreads();
    if (last != 0) {
        u32 sum = 0;
        for (u32 i = 0; i < gridDim.x; i++) {
            sum += parts[i * blockDim.x + threadIdx.x];
        }
        atomicAdd(done, sum);
    }
}

// A word of which somebody wrote three bytes.
extern "C" __global__ void test_partly_written(u32 *out, u32 bytes) {
    TERCET_SHARED(u8, memory);
    if (threadIdx.x < bytes) {
        memory[threadIdx.x] = 1;
    }
    __syncthreads();
    out[threadIdx.x] = *reinterpret_cast<u32 *>(memory);
}

extern "C" __global__ void test_reads_unwritten(const u32 *in, u32 *out) { out[0] = in[threadIdx.x]; }

// Right: each block has shared memory of its own.
extern "C" __global__ void test_own_places(u32 *out) {
    __shared__ u32 words[32];
    words[threadIdx.x] = blockIdx.x;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = words[31 - threadIdx.x];
}

template <u32 N> TERCET_FN void in_a_template(u32 *out) {
    __shared__ u32 words[N];
    out[blockIdx.x] = words[threadIdx.x];
}

// As `test_unwritten`, in a template.
extern "C" __global__ void test_unwritten_template(u32 *out) { in_a_template<48>(out); }
