// Products of a warpgroup: the twins of `include/tercet/warpgroup.cuh`.
#pragma once

namespace emulator {
// An address of dynamic shared memory in the window that descriptors know.
unsigned shared_address(const void *shared);

// The running thread orders its writes to shared memory before reads by products.
inline void fence_proxy_async() { check_proxy_fence(); }

Together warpgroup_fence, warpgroup_product, warpgroup_commit, warpgroup_wait;

inline void wgmma_fence(TERCET_WHERE) { together(warpgroup_fence, "wgmma.fence", 0xFFFFFFFF, file, line); }

// d = a * b, and with `add` d += a * b, for matrices of 64 x 32 and 32 x `columns` bytes that descriptors name (warpgroup.cpp); the sums lie
// where `d` points. Not inline, so that reports know who called.
template <int N>
__attribute__((noinline)) void wgmma_to(int *const (&d)[N], unsigned columns, unsigned long long a, unsigned long long b, bool add,
                                        TERCET_WHERE) {
    Lane &mine = lane();
    mine.in[0] = a;
    mine.in[1] = b;
    mine.in[2] = add;
    mine.in[3] = columns;
    mine.in[4] = reinterpret_cast<uintptr_t>(d);
    mine.in[5] = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
    together(warpgroup_product, "wgmma.mma_async", 0xFFFFFFFF, file, line);
}

// The same of sums in a row.
template <int N>
__attribute__((always_inline)) inline void wgmma(int (&d)[N], unsigned columns, unsigned long long a, unsigned long long b, bool add,
                                                 TERCET_WHERE) {
    int *to[N];
    for (int i = 0; i < N; i++) {
        to[i] = &d[i];
    }
    wgmma_to(to, columns, a, b, add, file, line);
}

inline void wgmma_commit(TERCET_WHERE) { together(warpgroup_commit, "wgmma.commit_group", 0xFFFFFFFF, file, line); }

inline void wgmma_wait(int left, TERCET_WHERE) {
    lane().in[0] = static_cast<unsigned long long>(left);
    together(warpgroup_wait, "wgmma.wait_group", 0xFFFFFFFF, file, line);
}
} // namespace emulator
