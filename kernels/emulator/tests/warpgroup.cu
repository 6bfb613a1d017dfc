// Products of a warpgroup: right ones through every swizzle, and the mistakes that the emulated device must show.
#include "tercet/warpgroup.cuh"

// Where the 16-byte vector of a row lies among rows one after another, by drawings of the layouts: rows of 128, 64 or 32 bytes whose vectors
// are exchanged, row by row, every second or every fourth row; without a swizzle groups of eight rows, the second vectors after the first.
static __device__ u32 place(u32 swizzle, u32 row, u32 vector, u32 rows) {
    switch (swizzle) {
    case 1:
        return row * 128 + (vector ^ row % 8) * 16;
    case 2:
        return row * 64 + (vector ^ row / 2 % 4) * 16;
    case 3:
        return row * 32 + (vector ^ row / 4 % 2) * 16;
    default:
        return vector * rows * 16 + row * 16;
    }
}

// The descriptor of such rows, by the fields' places.
static __device__ u64 describe(u32 swizzle, u32 address, u32 rows) {
    const u64 width = swizzle == 0 ? 16 : 256 >> swizzle, leading = swizzle == 0 ? rows * 16 : 16;
    return (u64)(address / 16) + (leading / 16 << 16) + (8 * width / 16 << 32) + ((u64)swizzle << 62);
}

// A 64 x 32 matrix by the columns of a 32 x 128 one, plus `d` where it is not null: from byte `column` of longer rows on.
extern "C" __global__ void test_wgmma(const u8 *a, const u8 *b, const i32 *d, i32 *out, u32 swizzle, u32 column) {
    TERCET_SHARED(u8, memory);
    u8 *const rows = memory + (0u - shared_address(memory)) % 1024, *const columns = rows + 64 * 128;
    for (u32 i = threadIdx.x; i < (64 + 128) * 2; i += 128) {
        const u32 row = i / 2, vector = i % 2;
        const u32 at = column / 16 + vector;
        if (row < 64) {
            copy_async16(rows + place(swizzle, row, at, 64), a + i * 16);
        } else {
            store16(columns + place(swizzle, row - 64, at, 128), load16(b + (i - 128) * 16));
        }
    }
    copy_async_commit();
    copy_async_wait<0>();
    fence_proxy_async();
    __syncthreads();
    const u64 first = matrix_at(describe(swizzle, shared_address(rows), 64), column);
    const u64 second = matrix_at(describe(swizzle, shared_address(columns), 128), column);
    i32 sums[64];
    const u32 lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
    auto place_of = [&](u32 i) { return (row + i / 2 % 2 * 8) * 128 + i / 4 * 8 + lane % 4 * 2 + i % 2; };
    if (d != nullptr) {
        for (u32 i = 0; i < 64; i++) sums[i] = d[place_of(i)];
    }
    wgmma_fence();
    if (d != nullptr) {
        wgmma_m64n128k32(sums, first, second);
    } else {
        wgmma_m64n128k32_first(sums, first, second);
    }
    wgmma_commit();
    // Again, and added: into sums that are under way.
    wgmma_m64n128k32(sums, first, second);
    wgmma_commit();
    wgmma_wait<0>(sums);
    for (u32 i = 0; i < 64; i++) out[place_of(i)] = sums[i];
}

enum {
    NOTHING,
    NO_FENCE,
    NO_FENCE_AGAIN,
    NO_PROXY_FENCE,
    NO_WAIT,
    NO_COMMIT,
    WAIT_FOR_FEW,
    OUTSIDE,
    MIDDLE_OF_PATTERN,
    OVER_THE_ROW,
    BASE_OFFSET,
    NO_MEANING,
    OTHER_DESCRIPTOR,
    OTHER_CALL,
    FEWER_CALLS,
    MEMORY_WRITTEN,
    SUMS_WRITTEN,
    STATIC_MEMORY,
};

// Ones times ones, which are 32, with a mistake.
extern "C" __global__ void test_wgmma_mistake(i32 *out, u32 mistake) {
    TERCET_SHARED(u8, memory);
    __shared__ u32 other[4];
    u8 *const rows = memory + (0u - shared_address(memory)) % 1024;
    for (u32 i = threadIdx.x; i < 128 * 8; i += blockDim.x) store16(rows + i * 16, u32x4{0x01010101, 0x01010101, 0x01010101, 0x01010101});
    if (mistake != NO_PROXY_FENCE) fence_proxy_async();
    __syncthreads();
    const u32 warp = threadIdx.x / 32;
    u64 a = matrix_128(rows);
    const u64 b = a;
    if (mistake == OUTSIDE) a = matrix_at(a, 64 * 1024);
    if (mistake == MIDDLE_OF_PATTERN) a = matrix_at(a, 128);
    if (mistake == OVER_THE_ROW) a = matrix_at(a, 112);
    if (mistake == BASE_OFFSET) a |= 1ull << 49;
    if (mistake == NO_MEANING) a |= 1ull << 52;
    if (mistake == OTHER_DESCRIPTOR && warp == 2) a = matrix_at(a, 32);
    if (mistake == STATIC_MEMORY) a = matrix_128(other);
    i32 sums[64];
    if (mistake != NO_FENCE) wgmma_fence();
    wgmma_m64n128k32_first(sums, a, b);
    if (mistake == OTHER_CALL && warp == 1) {
        wgmma_wait<1>();
    } else if (mistake != NO_COMMIT && !(mistake == FEWER_CALLS && warp == 3)) {
        wgmma_commit();
    }
    if (mistake == MEMORY_WRITTEN) rows[threadIdx.x] = 2;
    if (mistake == SUMS_WRITTEN) sums[5] = 7;
    if (mistake == WAIT_FOR_FEW) {
        wgmma_wait<1>(sums);
    } else if (mistake != NO_WAIT && !(mistake == FEWER_CALLS && warp == 3)) {
        wgmma_wait<0>(sums);
    }
    if (mistake == NO_FENCE_AGAIN) {
        wgmma_m64n128k32(sums, a, b);
        wgmma_commit();
        wgmma_wait<0>(sums);
    }
    out[threadIdx.x] = sums[0];
    // Reading early is seen by its result.
    if (mistake == WAIT_FOR_FEW) wgmma_wait<0>(sums);
}
