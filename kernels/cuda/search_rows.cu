// Rows of bytes brought to a pitch that is a multiple of 16, so that scans load 16 bytes of one row at a time.
//
// Roofline: every byte is read once and written once, four at a time; it happens once for a base.

#include "tercet/device.cuh"

// Row `i` of `count` goes to `out + i * pitch`; what follows its `bytes` bytes is 0.
extern "C" __global__ void __launch_bounds__(256) search_rows(const u8 *rows, u64 bytes, u64 count, u64 pitch, u8 *out) {
    u64 words = pitch / 4;
    u64 threads = (u64)gridDim.x * blockDim.x, thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 at = thread; at < count * words; at += threads) {
        u64 row = at / words, first = (at - row * words) * 4;
        u32 word = 0;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            if (first + i < bytes) word |= (u32)rows[row * bytes + first + i] << (8 * i);
        }
        *reinterpret_cast<u32 *>(out + row * pitch + first) = word;
    }
}
