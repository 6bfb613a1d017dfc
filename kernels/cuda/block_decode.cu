// Floats from GGUF's blocks: fl(code · scale), to f32, or rounded on to f16 or bf16.
//
// Roofline: reads 0.21 to 1.06 bytes a value and writes 4 or 2, for about 6 instructions (TQ1_0: 12): memory is the limit.

#include "tercet/device.cuh"
#include "tercet/blocks.cuh"

using namespace tercet;

// Eight neighbours; `at` is a multiple of 8.
template <class Element>
struct Store;

template <>
struct Store<F32> {
    static __device__ __forceinline__ void eight(u32 *out, u64 at, const f32 (&values)[8]) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 4) {
            store16(out + at + i,
                    u32x4{bits_of(values[i]), bits_of(values[i + 1]), bits_of(values[i + 2]), bits_of(values[i + 3])});
        }
    }
};

template <class Half>
struct StoreHalf {
    static __device__ __forceinline__ void eight(u16 *out, u64 at, const f32 (&values)[8]) {
        u32 words[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) words[i] = Half::narrow(values[2 * i]) | (u32)Half::narrow(values[2 * i + 1]) << 16;
        store16(out + at, u32x4{words[0], words[1], words[2], words[3]});
    }
};

template <>
struct Store<F16> : StoreHalf<F16> {};
template <>
struct Store<BF16> : StoreHalf<BF16> {};

// `not_bad` becomes the largest complement of a block's index whose scale is not finite; 0 before. It counts from the tensor's start,
// `before` values of which came earlier.
template <class Element, class Format>
TERCET_FN void decode(const u8 *bytes, u64 before, u64 count, typename Element::Bits *out, u64 *not_bad) {
    alignas(16) __shared__ u8 tile[Format::TILE_BYTES];
    const u8 *share = tile + threadIdx.x / WARP * Format::SHARE_BYTES;
    for (u64 start = (u64)blockIdx.x * TILE; start < count; start += (u64)gridDim.x * TILE) {
        u64 left = (count - start) / Format::LEN * Format::BYTES;
        tile_in(tile, bytes + start / Format::LEN * Format::BYTES, left < Format::TILE_BYTES ? (u32)left : Format::TILE_BYTES);
        __syncthreads();
        u64 first = start + threadIdx.x * 8;
        if (first < count) {
            u32 scale = Format::scale(share);
            if (!is_finite_f16(scale) && threadIdx.x % Format::LANES == 0) {
                atomicMax(not_bad, ~((before + first) / Format::LEN));
            }
            Codes codes = Format::unpack(share);
            f32 unit = f16_to_f32((u16)scale), values[8];
#pragma unroll
            for (u32 i = 0; i < 8; i++) values[i] = (f32)codes.codes[i] * unit;
            Store<Element>::eight(out, first, values);
        }
        __syncthreads();
    }
}

#define DECODE(NAME, ELEMENT, FORMAT)                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const u8 *bytes, u64 before, u64 count, ELEMENT::Bits *out, u64 *not_bad) {                                           \
        decode<ELEMENT, FORMAT>(bytes, before, count, out, not_bad);                                                               \
    }

DECODE(block_decode_tq1_0_f32, F32, Tq1_0)
DECODE(block_decode_tq1_0_f16, F16, Tq1_0)
DECODE(block_decode_tq1_0_bf16, BF16, Tq1_0)
DECODE(block_decode_tq2_0_f32, F32, Tq2_0)
DECODE(block_decode_tq2_0_f16, F16, Tq2_0)
DECODE(block_decode_tq2_0_bf16, BF16, Tq2_0)
DECODE(block_decode_q2_0_f32, F32, Q2_0)
DECODE(block_decode_q2_0_f16, F16, Q2_0)
DECODE(block_decode_q2_0_bf16, BF16, Q2_0)
DECODE(block_decode_q8_0_f32, F32, Q8_0)
DECODE(block_decode_q8_0_f16, F16, Q8_0)
DECODE(block_decode_q8_0_bf16, BF16, Q8_0)
DECODE(block_decode_q4_0_f32, F32, Q4_0)
DECODE(block_decode_q4_0_f16, F16, Q4_0)
DECODE(block_decode_q4_0_bf16, BF16, Q4_0)
