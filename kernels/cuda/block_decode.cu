// Floats from GGUF's blocks: fl(code · scale), or fl(code · scale + minimum), whose product is exact, to f32, or rounded on to f16 or bf16.
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

// `not_bad` names the first block whose scale or minimum is not finite, as `name_not_finite` does. It counts from the tensor's start, `before`
// values of which came earlier.
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
            u32 scale = Format::scale(share), min = Format::min(share);
            if (threadIdx.x % Format::LANES == 0) name_not_finite(not_bad, (before + first) / Format::LEN, scale, min);
            Codes codes = Format::unpack(share);
            f32 unit = f16_to_f32((u16)scale), least = f16_to_f32((u16)min), values[8];
#pragma unroll
            for (u32 i = 0; i < 8; i++) {
                values[i] = (f32)codes.codes[i] * unit;
                // Adding 0 would make +0 of −0.
                if (Format::HAS_MIN) values[i] += least;
            }
            Store<Element>::eight(out, first, values);
        }
        __syncthreads();
    }
}

#define DECODE_TO(NAME, ELEMENT, FORMAT)                                                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const u8 *bytes, u64 before, u64 count, ELEMENT::Bits *out, u64 *not_bad) {                                           \
        decode<ELEMENT, FORMAT>(bytes, before, count, out, not_bad);                                                               \
    }

#define DECODE(NAME, FORMAT)                                                                                                       \
    DECODE_TO(block_decode_##NAME##_f32, F32, FORMAT)                                                                              \
    DECODE_TO(block_decode_##NAME##_f16, F16, FORMAT)                                                                              \
    DECODE_TO(block_decode_##NAME##_bf16, BF16, FORMAT)

TERCET_BLOCK_FORMATS(DECODE)
