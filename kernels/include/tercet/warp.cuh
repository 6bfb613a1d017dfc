// What a warp does together: sums and extremes over its lanes, tensor-core products, copies that run beside the code.
//
// Part of `device.cuh`. Everything here is called by all 32 lanes. What says "from 8.0" stands in files compiled for it only.
#pragma once

// The sum, least, greatest over the lanes, in every lane; integers, so the order cannot show.
template <typename T> TERCET_FN T warp_sum(T value) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(FULL_WARP, value, step);
    }
    return value;
}

template <typename T> TERCET_FN T warp_min(T value) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        T other = __shfl_xor_sync(FULL_WARP, value, step);
        value = other < value ? other : value;
    }
    return value;
}

template <typename T> TERCET_FN T warp_max(T value) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        T other = __shfl_xor_sync(FULL_WARP, value, step);
        value = other > value ? other : value;
    }
    return value;
}

// d += a * b for int8 matrices a (16 x 32, rows) and b (32 x 8, columns), sums in i32; from 8.0.
//
// Fragments, for lane L, g = L / 4, t = L % 4 (PTX ISA, m16n8k32 of 8-bit integers):
//   a[0] row g,     columns 4t..4t+3        a[1] row g + 8, columns 4t..4t+3
//   a[2] row g,     columns 16+4t..16+4t+3  a[3] row g + 8, columns 16+4t..16+4t+3
//   b[0] rows 4t..4t+3 of column g          b[1] rows 16+4t..16+4t+3 of column g
//   d[0], d[1] row g, columns 2t, 2t + 1    d[2], d[3] row g + 8, columns 2t, 2t + 1
TERCET_FN void mma_m16n8k32(i32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if TERCET_DEVICE
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    emulator::mma_m16n8k32(d, a, b);
#endif
}

// d = a * b: as above from zeros, which take no instructions.
TERCET_FN void mma_m16n8k32_first(i32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if TERCET_DEVICE
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(0));
#else
    d[0] = d[1] = d[2] = d[3] = 0;
    emulator::mma_m16n8k32(d, a, b);
#endif
}

// Four 8 x 8 matrices of 16-bit elements from shared memory: lane 8i + r names the 16 bytes of row r of matrix i; lane L gets the
// pair 2t, 2t + 1 (t = L % 4) of row L / 4 of each. From 7.5. For bytes: 8 rows of 16, four of them a lane.
TERCET_FN void load_matrices(u32 (&out)[4], const void *shared_row) {
#if TERCET_DEVICE
    u32 at = static_cast<u32>(__cvta_generic_to_shared(shared_row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
#else
    emulator::load_matrices(out, shared_row);
#endif
}

// Sixteen bytes from global to shared memory, beside the code; the first `bytes` (0 to 16) of them are copied, the rest are zeros.
// Both addresses are multiples of 16, even where nothing is copied. From 8.0.
TERCET_FN void copy_async16(void *shared, const void *global, u32 bytes = 16) {
#if TERCET_DEVICE
    u32 at = static_cast<u32>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(__cvta_generic_to_global(global)), "r"(bytes)
                 : "memory");
#else
    emulator::copy_async16(shared, global, bytes);
#endif
}

// Closes a group of this thread's copies; waits until at most `Left` of its groups are under way.
TERCET_FN void copy_async_commit() {
#if TERCET_DEVICE
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    emulator::copy_async_commit();
#endif
}

template <int Left> TERCET_FN void copy_async_wait() {
#if TERCET_DEVICE
    asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
#else
    emulator::copy_async_wait(Left);
#endif
}
