// GGUF's blocks in a warp that holds 256 values, eight neighbours a lane: where codes and scales lie among a block's bytes. As
// core/src/block, a file a format there.
//
// A thread block holds 2,048 values, whose bytes are a multiple of 16 in every format and pass through shared memory, so that global
// memory sees whole vectors.
#pragma once

#include "tercet/float.cuh"

namespace tercet {

// Values of a thread block's turn, and of a warp's.
const u32 TILE = 2048;
const u32 SHARE = 256;

// Up to eight values of a lane as bytes.
struct Codes {
    i32 codes[8];
};

// A scale among bytes, at an even place.
TERCET_FN void put16(u8 *bytes, u32 value) { *reinterpret_cast<u16 *>(bytes) = (u16)value; }
TERCET_FN u32 get16(const u8 *bytes) { return *reinterpret_cast<const u16 *>(bytes); }

// Eight bytes at an even place.
TERCET_FN void put_bytes(u8 *bytes, const i32 *values) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) put16(bytes + 2 * i, (values[2 * i] & 0xFF) | (values[2 * i + 1] & 0xFF) << 8);
}

TERCET_FN void get_bytes(const u8 *bytes, u32 *values) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 pair = get16(bytes + 2 * i);
        values[2 * i] = pair & 0xFF;
        values[2 * i + 1] = pair >> 8;
    }
}

// Blocks without a minimum.
const u32 NO_MIN = ~0u;

// Each format: values and bytes of a block, where its scale and its minimum lie, lanes that hold one; `pack` and `unpack` move a warp's
// codes to and from `share`, its bytes. `digits` are 256 bytes of the warp's own, for formats whose bytes mix the codes of several lanes.
template <u32 Len, u32 Bytes, u32 Scale, u32 Min = NO_MIN>
struct Layout {
    static const u32 LEN = Len;
    static const u32 BYTES = Bytes;
    static const u32 LANES = Len / 8;
    static const bool HAS_MIN = Min != NO_MIN;
    // Bytes of a warp's values, and of a thread block's.
    static const u32 SHARE_BYTES = SHARE / Len * Bytes;
    static const u32 TILE_BYTES = TILE / Len * Bytes;

    static __device__ __forceinline__ u8 *block(u8 *share) { return share + threadIdx.x % WARP / LANES * Bytes; }
    static __device__ __forceinline__ const u8 *block(const u8 *share) { return share + threadIdx.x % WARP / LANES * Bytes; }
    static __device__ __forceinline__ u32 scale(const u8 *share) { return get16(block(share) + Scale); }
    // 0 where there is none.
    static __device__ __forceinline__ u32 min(const u8 *share) { return HAS_MIN ? get16(block(share) + (HAS_MIN ? Min : 0)) : 0; }
    static __device__ __forceinline__ void set_scales(u8 *share, u32 scale, u32 min) {
        if (threadIdx.x % LANES != 0) return;
        put16(block(share) + Scale, scale);
        if (HAS_MIN) put16(block(share) + (HAS_MIN ? Min : 0), min);
    }
};

// Digits of 0 to 2 of all lanes where each can read them.
TERCET_FN void spread(const Codes &codes, u8 *digits) {
    i32 shifted[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) shifted[i] = codes.codes[i] + 1;
    put_bytes(digits + threadIdx.x % WARP * 8, shifted);
    __syncwarp();
}

struct Tq2_0 : Layout<256, 66, 64> {
    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *digits) {
        spread(codes, digits);
        // Two bytes a lane: 32 h + m and the next.
        u32 at = threadIdx.x % WARP * 2;
        const u8 *from = digits + at / 32 * 128 + at % 32;
        put16(share + at, get16(from) | get16(from + 32) << 2 | get16(from + 64) << 4 | get16(from + 96) << 6);
    }

    static __device__ __forceinline__ Codes unpack(const u8 *share) {
        u32 value = threadIdx.x % WARP * 8, bytes[8];
        get_bytes(share + value / 128 * 32 + value % 32, bytes);
        u32 shift = value % 128 / 32 * 2;
        Codes codes;
#pragma unroll
        for (u32 i = 0; i < 8; i++) codes.codes[i] = (i32)(bytes[i] >> shift & 3) - 1;
        return codes;
    }
};

struct Tq1_0 : Layout<256, 54, 52> {
    // A byte of `lanes` digits that lie `stride` apart: v = Σ digit · 3^(4 − n), as ⌈256 v / 243⌉.
    static __device__ __forceinline__ u8 byte_of(const u8 *digits, u32 stride, u32 lanes) {
        u32 value = 0;
#pragma unroll
        for (u32 n = 0; n < 5; n++) value = value * 3 + (n < lanes ? digits[n * stride] : 0);
        return (u8)((value * 256 + 242) / 243);
    }

    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *digits) {
        spread(codes, digits);
        u32 lane = threadIdx.x % WARP;
        share[lane] = byte_of(digits + lane, 32, 5);
        if (lane < 16) share[32 + lane] = byte_of(digits + 160 + lane, 16, 5);
        if (lane < 4) share[48 + lane] = byte_of(digits + 240 + lane, 4, 4);
    }

    static __device__ __forceinline__ Codes unpack(const u8 *share) {
        Codes codes;
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            u32 value = threadIdx.x % WARP * 8 + i;
            u32 from = value < 160 ? 0 : value < 240 ? 160 : 240, stride = value < 160 ? 32 : value < 240 ? 16 : 4;
            u32 at = (value < 160 ? 0 : value < 240 ? 32 : 48) + (value - from) % stride, n = (value - from) / stride;
            u32 power = n == 0 ? 1 : n == 1 ? 3 : n == 2 ? 9 : n == 3 ? 27 : 81;
            // The digits before it leave at the top; the first of the rest is what three times the fraction holds.
            codes.codes[i] = (i32)((share[at] * power & 0xFF) * 3 >> 8) - 1;
        }
        return codes;
    }
};

struct Q2_0 : Layout<64, 18, 0> {
    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *) {
        u32 bits = 0;
#pragma unroll
        for (u32 i = 0; i < 8; i++) bits |= (u32)(codes.codes[i] + 1) << 2 * i;
        put16(block(share) + 2 + threadIdx.x % LANES * 2, bits);
    }

    static __device__ __forceinline__ Codes unpack(const u8 *share) {
        u32 lane = threadIdx.x % WARP, bits = get16(share + lane / LANES * BYTES + 2 + lane % LANES * 2);
        Codes codes;
#pragma unroll
        for (u32 i = 0; i < 8; i++) codes.codes[i] = (i32)(bits >> 2 * i & 3) - 1;
        return codes;
    }
};

struct Q8_0 : Layout<32, 34, 0> {
    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *) {
        put_bytes(block(share) + 2 + threadIdx.x % LANES * 8, codes.codes);
    }

    static __device__ __forceinline__ Codes unpack(const u8 *share) {
        u32 lane = threadIdx.x % WARP, bytes[8];
        get_bytes(share + lane / LANES * BYTES + 2 + lane % LANES * 8, bytes);
        Codes codes;
#pragma unroll
        for (u32 i = 0; i < 8; i++) codes.codes[i] = (i8)bytes[i];
        return codes;
    }
};

// 32 codes of four bits, or five: those of values m and m + 16 in the halves of byte m, `At` bytes on, and fifth bits in the order of
// values four bytes before. What is stored is the code plus `Offset`.
template <u32 Bits, u32 Bytes, u32 At, i32 Offset, u32 Min = NO_MIN>
struct Nibbles : Layout<32, Bytes, 0, Min> {
    typedef Layout<32, Bytes, 0, Min> Block;

    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *) {
        // The lanes of values 16 to 31 hand their nibbles to those of values 0 to 15.
        u32 lane = threadIdx.x % Block::LANES, nibbles = 0, fifths = 0;
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            u32 stored = (u32)(codes.codes[i] + Offset);
            nibbles |= (stored & 15) << 4 * i;
            fifths |= stored >> 4 << i;
        }
        if (Bits == 5) Block::block(share)[At - 4 + lane] = (u8)fifths;
        u32 others = __shfl_xor_sync(FULL_WARP, nibbles, 2);
        if (lane < 2) {
            i32 bytes[8];
#pragma unroll
            for (u32 i = 0; i < 8; i++) bytes[i] = (nibbles >> 4 * i & 15) | (others >> 4 * i & 15) << 4;
            put_bytes(Block::block(share) + At + lane * 8, bytes);
        }
    }

    static __device__ __forceinline__ Codes unpack(const u8 *share) {
        u32 lane = threadIdx.x % Block::LANES, bytes[8];
        get_bytes(Block::block(share) + At + lane % 2 * 8, bytes);
        u32 shift = lane / 2 * 4, fifths = Bits == 5 ? Block::block(share)[At - 4 + lane] : 0;
        Codes codes;
#pragma unroll
        for (u32 i = 0; i < 8; i++) codes.codes[i] = (i32)((bytes[i] >> shift & 15) | (fifths >> i & 1) << 4) - Offset;
        return codes;
    }
};

typedef Nibbles<4, 18, 2, 8> Q4_0;
typedef Nibbles<4, 20, 4, 0, 2> Q4_1;
typedef Nibbles<5, 22, 6, 16> Q5_0;
typedef Nibbles<5, 24, 8, 0, 2> Q5_1;

// Every format, for the kernels: its name and its blocks.
#define TERCET_BLOCK_FORMATS(APPLY)                                                                                                \
    APPLY(tq1_0, Tq1_0)                                                                                                            \
    APPLY(tq2_0, Tq2_0)                                                                                                            \
    APPLY(q2_0, Q2_0)                                                                                                              \
    APPLY(q8_0, Q8_0)                                                                                                              \
    APPLY(q4_0, Q4_0)                                                                                                              \
    APPLY(q4_1, Q4_1)                                                                                                              \
    APPLY(q5_0, Q5_0)                                                                                                              \
    APPLY(q5_1, Q5_1)

// Whether an f16 is NaN or infinite.
TERCET_FN bool is_finite_f16(u32 bits) { return (bits & 0x7C00) != 0x7C00; }

// Names the first block whose scale or minimum is not finite: `found` becomes the largest complement of twice its index, and 1 for a minimum;
// 0 before. A block's first lane calls it.
TERCET_FN void name_not_finite(u64 *found, u64 block, u32 scale, u32 min) {
    if (!is_finite_f16(scale)) {
        atomicMax(found, ~(block * 2));
    } else if (!is_finite_f16(min)) {
        atomicMax(found, ~(block * 2 + 1));
    }
}

// A tile's bytes between global and shared memory, by a block of 256 threads: whole vectors, then what is left. `count` is a multiple of 2.
TERCET_FN void tile_in(u8 *tile, const u8 *bytes, u32 count) {
    for (u32 at = threadIdx.x * 16; at + 16 <= count; at += 256 * 16) store16(tile + at, load16(bytes + at));
    for (u32 at = count / 16 * 16 + threadIdx.x; at < count; at += 256) tile[at] = bytes[at];
}

TERCET_FN void tile_out(u8 *bytes, const u8 *tile, u32 count) { tile_in(bytes, tile, count); }

}  // namespace tercet
