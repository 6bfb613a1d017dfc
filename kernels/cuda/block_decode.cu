// Floats from GGUF's blocks: fl(code · scale), or fl(code · scale + minimum), whose product is exact, to f32, or rounded on to f16 or bf16.
// In blocks of several parts scale and minimum are a part's: exact products of the block's with small integers.
//
// Roofline: reads 0.21 to 1.06 bytes a value and writes 4 or 2, for 9 (TQ2_0) to 17 (Q5_1) instructions, 7 more to bf16, of which half are
// the ALU pipe's. While f32 is written an H200 has time for 30 and 15 a value: memory is the limit; to halves, for half of that. A warp has
// no memory and no barrier in common with others; its stores are one stretch of memory each, and the loads of 512 values are under way at
// once.

#include "tercet/device.cuh"
#include "tercet/access.cuh"
#include "tercet/blocks.cuh"

using namespace tercet;

// Stripes of a warp's turn, whole blocks of 256 values; a macro, so that others can be tried.
#ifndef TERCET_DECODE_STRIPES
#define TERCET_DECODE_STRIPES 4
#endif
const u32 STRIPES = TERCET_DECODE_STRIPES;
static_assert(STRIPES % 2 == 0, "a turn begins with a block");

// `not_bad` names the first block whose scale or minimum is not finite, as `name_not_finite` does. It counts from the tensor's start, `before`
// values of which came earlier.
template <class Element, class Format>
TERCET_FN void decode(const u8 *bytes, u64 before, u64 count, typename Element::Bits *out, u64 *not_bad) {
    const u64 TURN = STRIPES * STRIPE;
    u32 lane = threadIdx.x % WARP;
    u64 warp = (u64)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP, warps = (u64)gridDim.x * (blockDim.x / WARP);
    for (u64 start = warp * TURN; start < count; start += warps * TURN) {
        const u8 *blocks = bytes + start / Format::LEN * Format::BYTES;
        u32 left = count - start < TURN ? (u32)(count - start) : (u32)TURN;
        u32 stored[STRIPES], scale[STRIPES], min[STRIPES];
        bool finite = true;
#pragma unroll
        for (u32 stripe = 0; stripe < STRIPES; stripe++) {
            // A block is there as a whole or not at all; where it is not, the first one stands for it.
            const u8 *block = stripe * STRIPE + lane * 4 < left ? Format::of_lane(blocks, stripe) : blocks;
            stored[stripe] = Format::stored(block, stripe);
            scale[stripe] = Format::scale(block);
            min[stripe] = Format::min(block);
            finite = finite && is_finite_f16(scale[stripe]) && (!Format::HAS_MIN || is_finite_f16(min[stripe]));
        }
        if (!finite) {
#pragma unroll
            for (u32 stripe = 0; stripe < STRIPES; stripe++) {
                u64 first = start + stripe * STRIPE + lane * 4;
                if (first < count && first % Format::LEN == 0) {
                    name_not_finite(not_bad, (before + first) / Format::LEN, scale[stripe], min[stripe]);
                }
            }
        }
#pragma unroll
        for (u32 stripe = 0; stripe < STRIPES; stripe++) {
            u32 within = stripe * STRIPE + lane * 4;
            if (within >= left) break;
            f32 unit = f16_to_f32((u16)scale[stripe]), least = f16_to_f32((u16)min[stripe]), values[4];
            if (Format::PARTS) {
                // Here, since registers are few: the caches have these bytes. −0 where nothing is taken off, so that −0 stays.
                const u8 *block = Format::of_lane(blocks, stripe);
                unit *= (f32)Format::of_scale(block, stripe);
                least = -(least * (f32)Format::of_min(block, stripe));
            }
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                values[i] = byte_from(stored[stripe], i, origin_of(Format::OFFSET)) * unit;
                // Adding 0 would make +0 of −0.
                if (Format::HAS_MIN) values[i] += least;
            }
            store_four<Element>(out + start + within, values);
        }
    }
}

#define DECODE_TO(NAME, ELEMENT, FORMAT)                                                                                           \
    extern "C" __global__ void __launch_bounds__(256, 8)                                                                           \
        NAME(const u8 *bytes, u64 before, u64 count, ELEMENT::Bits *out, u64 *not_bad) {                                           \
        decode<ELEMENT, FORMAT>(bytes, before, count, out, not_bad);                                                               \
    }

#define DECODE(NAME, FORMAT)                                                                                                       \
    DECODE_TO(block_decode_##NAME##_f32, F32, FORMAT)                                                                              \
    DECODE_TO(block_decode_##NAME##_f16, F16, FORMAT)                                                                              \
    DECODE_TO(block_decode_##NAME##_bf16, BF16, FORMAT)

TERCET_BLOCK_FORMATS(DECODE)
