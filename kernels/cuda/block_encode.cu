// GGUF's blocks from floats.
//
// Roofline: reads 4 or 2 bytes a value and writes 0.21 (TQ1_0) to 1.06 (Q8_0); about 25 instructions a value, 40 where a mean decides,
// and for the optimum a sort of 256 values a warp. ggml's rule on f32 stays below the 25 that an H200 has time for while 4.2 bytes move;
// means and the optimum are limited by instructions.

#include "tercet/device.cuh"
#include "tercet/block_quantize.cuh"

using namespace tercet;

// What happened; all bytes 0 before. The engine reads it.
struct EncodeRecord {
    u64 flushed;
    // The complement of the first value that is not finite, and the first block whose scale or minimum overflows f16, as
    // `name_not_finite` says it; 0 for none. They count from the tensor's start, `before` values of which came earlier.
    u64 not_bad, not_overflow;
};

// Which type values are of. A kernel takes all three, since only its loads differ.
enum Type { TYPE_F32 = 0, TYPE_F16 = 1, TYPE_BF16 = 2 };

// Eight neighbours; `at` is a multiple of 8.
TERCET_FN void load_eight(const u8 *values, u32 type, u64 at, u32 (&patterns)[8]) {
    if (type == TYPE_F32) {
        F32::unpack(load16(values + at * 4), patterns);
        F32::unpack(load16(values + at * 4 + 16), patterns + 4);
    } else if (type == TYPE_F16) {
        F16::unpack(load16(values + at * 2), patterns);
    } else {
        BF16::unpack(load16(values + at * 2), patterns);
    }
}

template <class Format>
TERCET_FN void encode(const u8 *values, u32 type, u64 before, u64 count, u32 rule, u32 least_squares, u8 *out, EncodeRecord *record) {
    alignas(16) __shared__ u8 tile[Format::TILE_BYTES];
    alignas(16) __shared__ u8 digits[Format::LEN == SHARE ? TILE : 16];
    __shared__ u32 sorted[Format::LEN > 32 ? TILE : 1];
    u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    u8 *share = tile + warp * Format::SHARE_BYTES;
    for (u64 start = (u64)blockIdx.x * TILE; start < count; start += (u64)gridDim.x * TILE) {
        u64 first = start + threadIdx.x * 8;
        u32 patterns[8] = {};
        // A block lies in one warp, and is there for all of its lanes or none.
        if (first < count) load_eight(values, type, first, patterns);
        u32 largest = 0;
#pragma unroll
        for (u32 i = 0; i < 8; i++) largest = larger(largest, magnitude(patterns[i]));
        if (largest >= INFINITE) {
            u32 bad = 0;
#pragma unroll
            for (u32 i = 8; i-- > 0;) bad = magnitude(patterns[i]) >= INFINITE ? i : bad;
            atomicMax(&record->not_bad, ~(before + first + bad));
        }
        largest = block_largest<Format::LANES>(largest);
        if (largest >= INFINITE) {
            // Refused; what comes out of it does not matter.
            largest = 0;
#pragma unroll
            for (u32 i = 0; i < 8; i++) patterns[i] = 0;
        }
        Decision decision = Quantizer<Format>::of(patterns, largest, rule, least_squares != 0, sorted);
        u32 scale = f32_to_f16(decision.scale), min = f32_to_f16(decision.min);
        if (lane % Format::LANES == 0) {
            if (decision.flushed) atomicAdd(&record->flushed, 1ull);
            name_not_finite(&record->not_overflow, (before + first) / Format::LEN, scale, min);
        }
        Format::pack(decision.codes, share, digits + (Format::LEN == SHARE ? warp * SHARE : 0));
        Format::set_scales(share, scale, min);
        __syncthreads();
        u64 left = (count - start) / Format::LEN * Format::BYTES;
        tile_out(out + start / Format::LEN * Format::BYTES, tile, left < Format::TILE_BYTES ? (u32)left : Format::TILE_BYTES);
        __syncthreads();
    }
}

#define ENCODE(NAME, FORMAT)                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        block_encode_##NAME(const u8 *values, u32 type, u64 before, u64 count, u32 rule, u32 least_squares, u8 *out,               \
                            EncodeRecord *record) {                                                                                \
        encode<FORMAT>(values, type, before, count, rule, least_squares, out, record);                                             \
    }

TERCET_BLOCK_FORMATS(ENCODE)
