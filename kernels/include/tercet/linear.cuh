// Weights of layers as the device holds them, and what becomes of a row's sum.
#pragma once

#include "tercet/device.cuh"

namespace tercet {

// Codes of BITS bits, 16 bytes at once. A 32-bit word holds 8 / BITS groups of four columns: column 4·l + b of the word is in byte b, BITS·l
// bits up, less OFFSET. So one shift and one mask give the four bytes that a dot product takes, in the order of the activations.
template <u32 BITS>
struct Packed {
    // Groups of four columns in a word, columns in 16 bytes.
    static const u32 QUADS = 8 / BITS;
    static const u32 COLS = 128 / BITS;
    static const i32 OFFSET = BITS == 2 ? 1 : BITS == 4 ? 8 : 0;

    static __device__ __forceinline__ u32 quad(u32 word, u32 l) {
        return BITS == 8 ? word : (word >> (BITS * l)) & (0x01010101u * ((1u << (BITS % 8)) - 1));
    }
};

// A finite f16 times 2²⁴ as mantissa · 2^shift: 11 bits and a sign, at most 29 up.
struct FixedScale {
    i32 mantissa;
    u32 shift;

    __device__ __forceinline__ void read(u32 bits) {
        u32 exponent = bits >> 10 & 31;
        i32 magnitude = (i32)(bits & 1023) | (exponent != 0 ? 1024 : 0);
        mantissa = bits & 0x8000 ? -magnitude : magnitude;
        shift = exponent != 0 ? exponent - 1 : 0;
    }

    // The dot product of a block times its scale. With at most 2¹⁹ for the dot the first product is below 2³¹.
    __device__ __forceinline__ i64 times(i32 dot) const { return (i64)((u64)(i64)(mantissa * dot) << shift); }
};

// A scale as above in one word, for magnitudes below 128: 11 bits and a sign, at most 20 up.
TERCET_FN i32 narrow_scale(u32 bits) {
    FixedScale scale;
    scale.read(bits);
    return (i32)((u32)scale.mantissa << scale.shift);
}

// Four words of a row of weights, as a lane loads them.
TERCET_FN void unpack(u32x4 vector, u32 *words) {
    words[0] = vector.x;
    words[1] = vector.y;
    words[2] = vector.z;
    words[3] = vector.w;
}

// What becomes of the sum of a row of weights and a row of activations: with the bias, as it is (`sums`), or times the unit of the layout
// and both scales, each product rounded (`out`).
struct Finish {
    const i64 *bias;
    const f32 *row_scales;
    f32 scale, unit;
    const f32 *x_scales;
    i64 *sums;
    f32 *out;
    // Rows of weights.
    u32 rows;

    __device__ __forceinline__ void put(u32 row, u64 x_row, i64 sum) const {
        if (bias != nullptr) sum += bias[row];
        u64 at = x_row * rows + row;
        if (sums != nullptr) {
            sums[at] = sum;
        } else {
            out[at] = (f32)sum * unit * scale_of(row) * x_scales[x_row];
        }
    }

    __device__ __forceinline__ f32 scale_of(u32 row) const { return row_scales != nullptr ? row_scales[row] : scale; }
};

}  // namespace tercet
