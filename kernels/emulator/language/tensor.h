// Tensor-core products, matrix loads and asynchronous copies: the twins of `include/tercet/warp.cuh`.
#pragma once

namespace emulator {
Together mma_product, matrix_rows, reduce_add, reduce_min_unsigned, reduce_max_unsigned;

// d += a * b; the fragments as the PTX ISA lays them out (tensor.cpp).
inline void mma_m16n8k32(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], TERCET_WHERE) {
    Lane &mine = lane();
    for (int i = 0; i < 4; i++) {
        mine.in[i] = a[i];
        mine.in[6 + i] = unsigned(d[i]);
    }
    mine.in[4] = b[0];
    mine.in[5] = b[1];
    together(mma_product, "mma.m16n8k32", 0xFFFFFFFF, file, line);
    for (int i = 0; i < 4; i++) {
        d[i] = int(mine.out[i]);
    }
}

inline void load_matrices(unsigned (&out)[4], const void *row, TERCET_WHERE) {
    check_aligned(row, 16);
    touch(row, 16, Touch::Read, __builtin_return_address(0));
    Lane &mine = lane();
    mine.in[0] = reinterpret_cast<uintptr_t>(row);
    together(matrix_rows, "ldmatrix", 0xFFFFFFFF, file, line);
    for (int i = 0; i < 4; i++) {
        out[i] = unsigned(mine.out[i]);
    }
}

// The destination is spoiled at once and written when a wait says so.
void copy_async16(void *shared, const void *global, unsigned bytes);
void copy_async_commit();
void copy_async_wait(int left);
} // namespace emulator

inline unsigned __reduce_add_sync(unsigned mask, unsigned value, TERCET_WHERE) {
    emulator::lane().in[0] = value;
    emulator::together(emulator::reduce_add, "__reduce_add_sync", mask, file, line);
    return unsigned(emulator::lane().out[0]);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, TERCET_WHERE) {
    emulator::lane().in[0] = value;
    emulator::together(emulator::reduce_min_unsigned, "__reduce_min_sync", mask, file, line);
    return unsigned(emulator::lane().out[0]);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, TERCET_WHERE) {
    emulator::lane().in[0] = value;
    emulator::together(emulator::reduce_max_unsigned, "__reduce_max_sync", mask, file, line);
    return unsigned(emulator::lane().out[0]);
}
