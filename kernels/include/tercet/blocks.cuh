// GGUF's blocks: where codes and scales lie among a block's bytes. As core/src/block, a file a format there.
//
// Whoever reads blocks takes 128 values a warp, four neighbours a lane, so that what is stored or loaded beside them is one stretch of
// memory; a lane fetches the bytes of its four by itself, and L1 gives them to the others that share them. Whoever makes blocks has 256
// values a warp, eight neighbours a lane, and puts their bytes together in shared memory.
#pragma once

#include "tercet/float.cuh"

namespace tercet {

// Values of a warp's step where blocks are read, and where they are made.
const u32 STRIPE = 128;
const u32 SHARE = 256;

// A scale among bytes, at an even place.
TERCET_FN void put16(u8 *bytes, u32 value) { *reinterpret_cast<u16 *>(bytes) = (u16)value; }
TERCET_FN u32 get16(const u8 *bytes) { return *reinterpret_cast<const u16 *>(bytes); }

// Four bytes at an even place.
TERCET_FN void put32(u8 *bytes, u32 value) {
    put16(bytes, value);
    put16(bytes + 2, value >> 16);
}
TERCET_FN u32 get32(const u8 *bytes) { return get16(bytes) | get16(bytes + 2) << 16; }

// Codes as they are stored, a byte each, the first one lowest: a lane's eight.
struct Codes {
    u32 words[2];
};

// Bits 2 i and 2 i + 1 of a byte, and bit i of four, in byte i. Copies of the bits are moved so far apart that none meets another.
TERCET_FN u32 pairs_apart(u32 byte) {
    u32 nibbles = (byte | byte << 12) & 0x000F000F;
    return (nibbles | nibbles << 6) & 0x03030303;
}
TERCET_FN u32 bits_apart(u32 nibble) { return nibble * 0x00204081 & 0x01010101; }

// Blocks without a minimum.
const u32 NO_MIN = ~0u;

// Each format: values and bytes of a block, what is stored for the code 0, where its scale and its minimum lie. `stored` gives the codes of
// a lane's four values, of stripe `stripe` from a block's start on; `pack` brings a warp's 256 to `share`, their bytes. `digits` are 256
// bytes of the warp's own, for formats whose bytes mix the codes of several lanes. Blocks of several PARTS, which are read only, have in
// place of `pack` `of_scale` and `of_min`: what the part of a lane's values multiplies the scale by, and what it takes off minima.
template <u32 Len, u32 Bytes, i32 Offset, u32 Scale, u32 Min = NO_MIN, bool Parts = false>
struct Layout {
    static const bool PARTS = Parts;
    static const u32 LEN = Len;
    static const u32 BYTES = Bytes;
    static const i32 OFFSET = Offset;
    static const bool HAS_MIN = Min != NO_MIN;
    // Lanes with a block's values where blocks are read, all of them where it is longer than a stripe, and where they are made.
    static const u32 QUADS = Len < STRIPE ? Len / 4 : WARP;
    static const u32 LANES = Len / 8;
    static const u32 SHARE_BYTES = SHARE / Len * Bytes;

    // The block of a lane's values in a stripe, from the block that the stripes begin with.
    static __device__ __forceinline__ const u8 *of_lane(const u8 *bytes, u32 stripe) {
        return bytes + stripe * STRIPE / Len * Bytes + (Len < STRIPE ? threadIdx.x % WARP / QUADS * Bytes : 0);
    }
    static __device__ __forceinline__ u32 scale(const u8 *block) { return get16(block + Scale); }
    static __device__ __forceinline__ i32 of_scale(const u8 *, u32) { return 1; }
    static __device__ __forceinline__ i32 of_min(const u8 *, u32) { return 0; }
    // 0 where there is none.
    static __device__ __forceinline__ u32 min(const u8 *block) { return HAS_MIN ? get16(block + (HAS_MIN ? Min : 0)) : 0; }

    static __device__ __forceinline__ u8 *block(u8 *share) { return share + threadIdx.x % WARP / LANES * Bytes; }
    static __device__ __forceinline__ void set_scales(u8 *share, u32 scale, u32 min) {
        if (threadIdx.x % LANES != 0) return;
        put16(block(share) + Scale, scale);
        if (HAS_MIN) put16(block(share) + (HAS_MIN ? Min : 0), min);
    }
};

// All lanes' codes where each can read them.
TERCET_FN void spread(const Codes &codes, u8 *digits) {
    // What was read of the share before is read.
    __syncwarp();
    store8(digits + threadIdx.x % WARP * 8, u32x2{codes.words[0], codes.words[1]});
    __syncwarp();
}

struct Tq2_0 : Layout<256, 66, 1, 64> {
    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *digits) {
        spread(codes, digits);
        // Two bytes a lane: 32 h + m and the next.
        u32 at = threadIdx.x % WARP * 2;
        const u8 *from = digits + at / 32 * 128 + at % 32;
        put16(share + at, get16(from) | get16(from + 32) << 2 | get16(from + 64) << 4 | get16(from + 96) << 6);
    }

    static __device__ __forceinline__ u32 stored(const u8 *block, u32 stripe) {
        u32 lane = threadIdx.x % WARP;
        return get32(block + stripe % 2 * 32 + lane % 8 * 4) >> lane / 8 * 2 & 0x03030303;
    }
};

struct Tq1_0 : Layout<256, 54, 1, 52> {
    // Four bytes at once, a lane: 32 bytes of five digits that lie 32 apart, 16 of five 16 apart, 4 of four 4 apart. A byte is
    // ⌈256 v / 243⌉ of v = Σ digit · 3^(4 − n), which stays below 243, so none of the four reaches into the next.
    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *digits) {
        spread(codes, digits);
        u32 lane = threadIdx.x % WARP;
        if (lane >= 13) return;
        u32 from = lane < 8 ? lane * 4 : lane < 12 ? 160 + (lane - 8) * 4 : 240, stride = lane < 8 ? 32 : lane < 12 ? 16 : 4;
        const u32 *words = reinterpret_cast<const u32 *>(digits + from);
        u32 value = 0;
#pragma unroll
        for (u32 n = 0; n < 5; n++) value = value * 3 + (n < 4 || lane < 12 ? words[n * stride / 4] : 0);
        // Tried for all v: bits 16 on are that byte.
        u32 scaled[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) scaled[i] = (value >> 8 * i & 0xFF) * 69042 + 65535;
        put16(share + lane * 4, byte_permute(scaled[0], scaled[1], 0x62));
        put16(share + lane * 4 + 2, byte_permute(scaled[2], scaled[3], 0x62));
    }

    static __device__ __forceinline__ u32 stored(const u8 *block, u32 stripe) {
        u32 lane = threadIdx.x % WARP, at = lane % 8 * 4, n = lane / 8;
        if (stripe % 2 == 1) {
            at = lane < 8 ? lane * 4 : lane < 28 ? 32 + (lane - 8) % 4 * 4 : 48;
            n = lane < 8 ? 4 : lane < 28 ? (lane - 8) / 4 : lane - 28;
        }
        u32 power = n == 0 ? 1 : n == 1 ? 3 : n == 2 ? 9 : n == 3 ? 27 : 81;
        u32 bytes = get32(block + at), even = bytes & 0x00FF00FF, odd = bytes >> 8 & 0x00FF00FF;
        // The digits before it leave at the top; the first of the rest is what three times the fraction holds.
        even = (even * power & 0x00FF00FF) * 3;
        odd = (odd * power & 0x00FF00FF) * 3;
        return byte_permute(even, odd, 0x7351);
    }
};

struct Q2_0 : Layout<64, 18, 1, 0> {
    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *) {
        u32 bits = 0;
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            // As `pairs_apart`, back.
            u32 nibbles = (codes.words[i] | codes.words[i] >> 6) & 0x000F000F;
            bits |= ((nibbles | nibbles >> 12) & 0xFF) << 8 * i;
        }
        put16(block(share) + 2 + threadIdx.x % LANES * 2, bits);
    }

    static __device__ __forceinline__ u32 stored(const u8 *block, u32) { return pairs_apart(block[2 + threadIdx.x % QUADS]); }
};

// What is stored is the code itself; plus 128 it has no sign.
struct Q8_0 : Layout<32, 34, 128, 0> {
    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *) {
        u8 *bytes = block(share) + 2 + threadIdx.x % LANES * 8;
        put32(bytes, codes.words[0] ^ 0x80808080);
        put32(bytes + 4, codes.words[1] ^ 0x80808080);
    }

    static __device__ __forceinline__ u32 stored(const u8 *block, u32) {
        return get32(block + 2 + threadIdx.x % QUADS * 4) ^ 0x80808080;
    }
};

// 32 codes of four bits, or five: those of values m and m + 16 in the halves of byte m, `At` bytes on, and fifth bits in the order of
// values four bytes before.
template <u32 Bits, u32 Bytes, u32 At, i32 Offset, u32 Min = NO_MIN>
struct Nibbles : Layout<32, Bytes, Offset, 0, Min> {
    typedef Layout<32, Bytes, Offset, 0, Min> Block;

    static __device__ __forceinline__ void pack(const Codes &codes, u8 *share, u8 *) {
        // The lanes of values 16 to 31 hand their nibbles to those of values 0 to 15, which write the lower four of their bytes, as they
        // write the upper ones.
        u32 lane = threadIdx.x % Block::LANES;
        bool upper = lane >= 2;
        if (Bits == 5) {
            u32 low = codes.words[0] >> 4 & 0x01010101, high = codes.words[1] >> 4 & 0x01010101;
            // Bit 8 i goes to bit 24 + i.
            Block::block(share)[At - 4 + lane] = (u8)((low * 0x01020408 >> 24 & 15) | (high * 0x01020408 >> 24 & 15) << 4);
        }
        u32 low = codes.words[0] & 0x0F0F0F0F, high = codes.words[1] & 0x0F0F0F0F;
        u32 others = __shfl_xor_sync(FULL_WARP, upper ? low : high, 2);
        put32(Block::block(share) + At + lane % 2 * 8 + (upper ? 4 : 0), upper ? others | high << 4 : low | others << 4);
    }

    static __device__ __forceinline__ u32 stored(const u8 *block, u32) {
        u32 lane = threadIdx.x % Block::QUADS;
        u32 nibbles = get32(block + At + lane % 4 * 4) >> lane / 4 * 4 & 0x0F0F0F0F;
        if (Bits == 5) nibbles |= bits_apart(block[At - 4 + lane / 2] >> lane % 2 * 4 & 15) << 4;
        return nibbles;
    }
};

typedef Nibbles<4, 18, 2, 8> Q4_0;
typedef Nibbles<4, 20, 4, 0, 2> Q4_1;
typedef Nibbles<5, 22, 6, 16> Q5_0;
typedef Nibbles<5, 24, 8, 0, 2> Q5_1;

// A part is 32 values; byte 16 + 32 h + m holds value 64 h + m and value 64 h + 32 + m.
struct Q4_K : Layout<256, 144, 0, 0, 2, true> {
    static __device__ __forceinline__ u32 stored(const u8 *block, u32 stripe) {
        u32 lane = threadIdx.x % WARP;
        return get32(block + 16 + (stripe % 2 * 2 + lane / 16) * 32 + lane % 8 * 4) >> lane / 8 % 2 * 4 & 0x0F0F0F0F;
    }

    // Bytes 4 to 7 hold the scales of parts 0 to 3, bytes 8 to 11 their minima, six bits each; bytes 12 to 15 four bits of both of parts 4
    // to 7, whose upper two bits are above those.
    static __device__ __forceinline__ u32 part(u32 stripe) { return stripe % 2 * 4 + threadIdx.x % WARP / 8; }
    static __device__ __forceinline__ i32 of_scale(const u8 *block, u32 stripe) {
        u32 at = part(stripe);
        return at < 4 ? block[4 + at] & 63 : (block[8 + at] & 15) | block[at] >> 6 << 4;
    }
    static __device__ __forceinline__ i32 of_min(const u8 *block, u32 stripe) {
        u32 at = part(stripe);
        return at < 4 ? block[8 + at] & 63 : block[8 + at] >> 4 | block[4 + at] >> 6 << 4;
    }
};

// A part is 16 values. Of values 128 h + 32 n + m byte 64 h + 32 (n mod 2) + m holds four bits, byte 128 + 32 h + m two.
struct Q6_K : Layout<256, 210, 32, 208, NO_MIN, true> {
    static __device__ __forceinline__ u32 stored(const u8 *block, u32 stripe) {
        u32 lane = threadIdx.x % WARP, half = stripe % 2, n = lane / 8, m = lane % 8 * 4;
        u32 low = get32(block + 64 * half + n % 2 * 32 + m) >> n / 2 * 4 & 0x0F0F0F0F;
        u32 high = get32(block + 128 + 32 * half + m) >> 2 * n & 0x03030303;
        return low | high << 4;
    }

    static __device__ __forceinline__ i32 of_scale(const u8 *block, u32 stripe) {
        return (i8)block[192 + stripe % 2 * 8 + threadIdx.x % WARP / 4];
    }
};

// Every format, for the kernels: its name and its blocks. The ternary ones know rules; those with parts have no encoder.
#define TERCET_TERNARY_FORMATS(APPLY)                                                                                              \
    APPLY(tq1_0, Tq1_0)                                                                                                            \
    APPLY(tq2_0, Tq2_0)                                                                                                            \
    APPLY(q2_0, Q2_0)

#define TERCET_ENCODED_FORMATS(APPLY)                                                                                              \
    TERCET_TERNARY_FORMATS(APPLY)                                                                                                  \
    APPLY(q8_0, Q8_0)                                                                                                              \
    APPLY(q4_0, Q4_0)                                                                                                              \
    APPLY(q4_1, Q4_1)                                                                                                              \
    APPLY(q5_0, Q5_0)                                                                                                              \
    APPLY(q5_1, Q5_1)

#define TERCET_FORMATS_OF_PARTS(APPLY)                                                                                             \
    APPLY(q4_k, Q4_K)                                                                                                              \
    APPLY(q6_k, Q6_K)

#define TERCET_BLOCK_FORMATS(APPLY)                                                                                                \
    TERCET_ENCODED_FORMATS(APPLY)                                                                                                  \
    TERCET_FORMATS_OF_PARTS(APPLY)

// Whether an f16 is NaN or infinite.
TERCET_FN bool is_finite_f16(u32 bits) { return (bits & 0x7C00) != 0x7C00; }

// Names a block whose scale or minimum is not finite: `found` becomes the largest complement of twice its index, and 1 for a minimum;
// 0 before. A block's first lane calls it.
TERCET_FN void name_not_finite(u64 *found, u64 block, u32 scale, u32 min) {
    if (!is_finite_f16(scale)) {
        atomicMax(found, ~(block * 2));
    } else if (!is_finite_f16(min)) {
        atomicMax(found, ~(block * 2 + 1));
    }
}

}  // namespace tercet
