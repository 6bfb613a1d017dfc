// What the four warps of a warpgroup do together on Hopper: int8 products of matrices in shared memory, which run beside the code.
//
// As `device.cuh`: each wrapper has a twin for the CPU. All of it is for compute capability 9.0 alone ("sm_90a"). Sections are those of the
// PTX ISA 8.4 and later, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions" (wgmma).
//
// A warpgroup is four warps of which the first one's number is a multiple of four. All its threads do the following in the same order
// with the same values: whatever is said of a thread here is said of all 128.
//
//   1. Write matrices to shared memory (stores, or copies that were waited for); `fence_proxy_async`; a barrier.
//   2. `wgmma_fence`, any number of products into accumulators, `wgmma_commit`.
//   3. `wgmma_wait`, then read the accumulators. Until then neither they nor the matrices may be touched.
#pragma once

#include "tercet/device.cuh"

// The address of something in shared memory, in the window that descriptors know.
TERCET_FN u32 shared_address(const void *shared) {
#if TERCET_DEVICE
    return static_cast<u32>(__cvta_generic_to_shared(shared));
#else
    return emulator::shared_address(shared);
#endif
}

// Orders this thread's stores to shared memory, and its copies that were waited for, before reads of the "async proxy", which is what
// products read by (section "Async Proxy"). A barrier between the two passes the order on to other threads.
TERCET_FN void fence_proxy_async() {
#if TERCET_DEVICE
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
    emulator::fence_proxy_async();
#endif
}

// Where a matrix is, rows of 128 bytes one after another ("K-major"), swizzled by 128 bytes: bits 4 to 6 of every address are XORed with its
// bits 7 to 9, so the 16-byte vector v of row r lies at 128·r + 16·(v ^ r % 8). The first row is at a multiple of 1024.
//
// Section "Matrix Descriptor Format": bits 0-13 hold the address, 16-29 the leading dimension's offset, 32-45 the stride dimension's, each
// x as (x & 0x3FFFF) >> 4; 49-51 the base offset, 0 where the pattern begins at a multiple of 1024; 62-63 the swizzle, 1 for 128 bytes.
// Sections "Leading Dimension Byte Offset" and "Stride Dimension Byte Offset": in K-major order the former is not used with a swizzle and
// taken for 1, the latter is from eight rows to the next eight.
TERCET_FN u64 matrix_128(const void *shared) {
    const u64 address = (shared_address(shared) & 0x3FFFFu) >> 4, leading = 1, stride = (8 * 128) >> 4, swizzle = 1;
    return address | leading << 16 | stride << 32 | swizzle << 62;
}

// The same matrix `bytes` later, a multiple of 16: within the first row a later column (the swizzle is of the address, section "Shared Memory
// Matrix Layout"), beyond it, in multiples of 1024, later rows. Addresses stay below 2^18, so nothing carries.
TERCET_FN u64 matrix_at(u64 matrix, u32 bytes) { return matrix + (bytes >> 4); }

// Before the first product, and between anything else that touches accumulators and a product (section "wgmma.fence").
TERCET_FN void wgmma_fence() {
#if TERCET_DEVICE
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
    emulator::wgmma_fence();
#endif
}

// d = a * b: int8 matrices a (64 x 32) and b (32 x 128, given by its columns), as descriptors of their first 32 bytes of rows; sums in i32.
// Runs beside the code.
//
// Section "Matrix Fragments for wgmma.mma_async.m64nNk32": thread T of the warpgroup, with w = T / 32, g = T % 32 / 4, t = T % 4, has in
//   d[4j], d[4j + 1]      row 16w + g,      columns 8j + 2t and 8j + 2t + 1
//   d[4j + 2], d[4j + 3]  row 16w + g + 8,  the same columns
TERCET_FN void wgmma_m64n128k32_first(i32 (&d)[64], u64 a, u64 b) {
#if TERCET_DEVICE
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 0;"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]),
                   "=r"(d[6]), "=r"(d[7]), "=r"(d[8]), "=r"(d[9]), "=r"(d[10]), "=r"(d[11]),
                   "=r"(d[12]), "=r"(d[13]), "=r"(d[14]), "=r"(d[15]), "=r"(d[16]), "=r"(d[17]),
                   "=r"(d[18]), "=r"(d[19]), "=r"(d[20]), "=r"(d[21]), "=r"(d[22]), "=r"(d[23]),
                   "=r"(d[24]), "=r"(d[25]), "=r"(d[26]), "=r"(d[27]), "=r"(d[28]), "=r"(d[29]),
                   "=r"(d[30]), "=r"(d[31]), "=r"(d[32]), "=r"(d[33]), "=r"(d[34]), "=r"(d[35]),
                   "=r"(d[36]), "=r"(d[37]), "=r"(d[38]), "=r"(d[39]), "=r"(d[40]), "=r"(d[41]),
                   "=r"(d[42]), "=r"(d[43]), "=r"(d[44]), "=r"(d[45]), "=r"(d[46]), "=r"(d[47]),
                   "=r"(d[48]), "=r"(d[49]), "=r"(d[50]), "=r"(d[51]), "=r"(d[52]), "=r"(d[53]),
                   "=r"(d[54]), "=r"(d[55]), "=r"(d[56]), "=r"(d[57]), "=r"(d[58]), "=r"(d[59]),
                   "=r"(d[60]), "=r"(d[61]), "=r"(d[62]), "=r"(d[63])
                 : "l"(a), "l"(b)
                 : "memory");
#else
    emulator::wgmma(d, 128, a, b, false);
#endif
}

// d += a * b, as above.
TERCET_FN void wgmma_m64n128k32(i32 (&d)[64], u64 a, u64 b) {
#if TERCET_DEVICE
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1;"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]),
                   "+r"(d[6]), "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]),
                   "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]), "+r"(d[16]), "+r"(d[17]),
                   "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]),
                   "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]),
                   "+r"(d[30]), "+r"(d[31]), "+r"(d[32]), "+r"(d[33]), "+r"(d[34]), "+r"(d[35]),
                   "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]), "+r"(d[40]), "+r"(d[41]),
                   "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]),
                   "+r"(d[48]), "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]),
                   "+r"(d[54]), "+r"(d[55]), "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]),
                   "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63])
                 : "l"(a), "l"(b)
                 : "memory");
#else
    emulator::wgmma(d, 128, a, b, true);
#endif
}

// Closes a group of products.
TERCET_FN void wgmma_commit() {
#if TERCET_DEVICE
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
    emulator::wgmma_commit();
#endif
}

// Waits until at most `Left` groups are under way.
template <int Left> TERCET_FN void wgmma_wait() {
#if TERCET_DEVICE
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
#else
    emulator::wgmma_wait(Left);
#endif
}

// As above, where no product into `d` is left.
template <int Left> TERCET_FN void wgmma_wait(i32 (&d)[64]) {
    wgmma_wait<Left>();
#if TERCET_DEVICE
    // The compiler knows nothing of products that run on. This keeps it from reading their sums before the wait.
#pragma unroll
    for (u32 i = 0; i < 64; i++) asm volatile("" : "+r"(d[i])::"memory");
#else
    static_cast<void>(d);
#endif
}
