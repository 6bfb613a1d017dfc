// Eight-bit floats of the OCP formats E4M3 and E5M2: codes of fl(x / scale), saturating, and back. As core/src/quant/fp8.rs.
//
// Roofline: quantizing reads 4 or 2 bytes a value and writes 1, for 21 instructions, 11 of them the ALU's; an H200 has time for 35 and 18 while
// 5 bytes pass (18 a clock and multiprocessor), and for 21 and 11 while 3 do: memory is the limit, of halves both. Dequantizing reads 1 and
// writes 4 for 15: memory is.

#include "tercet/device.cuh"
#include "tercet/apply.cuh"

using namespace tercet;

// A format by its bits of mantissa: 3 for E4M3, 2 for E5M2.
template <u32 MANTISSA>
struct Fp8 {
    // The code of the largest value.
    static const u32 MAX = MANTISSA == 3 ? 0x7E : 0x7B;
    // Bits of an f32's mantissa that codes lack, and an f32's exponent field less a code's.
    static const u32 DROPPED = 23 - MANTISSA;
    static const u32 REBIAS = 127 - ((1 << (6 - MANTISSA)) - 1);
    // The least normal number, the least number, which is the unit of the subnormal ones, and 2²³ units: a sum from there on is whole units.
    static const u32 NORMAL = (REBIAS + 1) << 23;
    static const u32 UNIT = (REBIAS + 1 - MANTISSA) << 23;
    static const u32 UNITS = (REBIAS + 1 - MANTISSA + 23) << 23;

    // What has the code of |x| in its low bits, by q = fl(|x| · fl(1/scale)), where it is sure: then the highest bit of `sure` stays.
    //
    // Three roundings lie between q and fl(|x| / scale), so they are within 3.1 · 2⁻²⁴ · q of each other: of q below 2^(e + 1), whose unit is
    // 2^(e − MANTISSA), less than 2⁻¹⁶ units. So if q lies more than that from a tie, both round to the same number. The addition of
    // 2^(e + DROPPED) rounds q to whole units, which the pattern counts. What is beyond the largest number has its code anyway.
    static __device__ __forceinline__ u32 near_code(u32 pattern, f32 inverse, u32 *sure) {
        const f32 BOUND = (0.5f - 1.0f / 65536) / (1 << MANTISSA), BEYOND = float_of(((MAX >> MANTISSA) + 1 + REBIAS) << 23);
        f32 q = fminf(fabsf(float_of(pattern) * inverse), BEYOND);
        u32 power = bits_of(q) & INFINITE;
        power = larger(power, NORMAL);
        f32 whole = float_of(power) * (1 << DROPPED), sum = q + whole;
        *sure &= bits_of(fabsf(q - (sum - whole)) - float_of(power) * BOUND);
        u32 code = bits_of(sum) - power + (power >> DROPPED) - ((DROPPED << 23) + ((REBIAS + 1) << MANTISSA));
        return smaller(code, MAX);
    }

    // The code of what is not NaN.
    static __device__ __forceinline__ u32 encode(f32 x) {
        u32 pattern = bits_of(x), size = magnitude(pattern);
        // Half a unit of the last place less one, plus that place: a tie rounds up only from an odd one. A carry raises the exponent.
        u32 rounded = size + ((1u << (DROPPED - 1)) - 1) + (size >> DROPPED & 1);
        u32 normal = (rounded >> DROPPED) - (REBIAS << MANTISSA);
        // The addition rounds to whole units, half to even. Of larger numbers it is not taken.
        u32 subnormal = bits_of(float_of(size) + float_of(UNITS)) - UNITS;
        u32 code = size < NORMAL ? subnormal : normal;
        return smaller(code, MAX) | (pattern >> 24 & 0x80);
    }

    static __device__ __forceinline__ f32 decode(u32 code) {
        u32 sign = (code & 0x80) << 24;
        code &= 0x7F;
        u32 size = code < 1u << MANTISSA ? bits_of((f32)code * float_of(UNIT)) : (code << DROPPED) + (REBIAS << 23);
        if (code > MAX) size = MANTISSA == 2 && code == MAX + 1 ? INFINITE : 0x7FC00000;
        return float_of(sign | size);
    }
};

// A scale that is not positive and finite makes every code 0. `not_bad` becomes the largest complement of the index of a value that is not
// finite, whose code is something; 0 before.
template <class Element, u32 MANTISSA>
TERCET_FN void quantize(const typename Element::Bits *values, u64 count, f32 scale, u8 *codes, u64 *not_bad) {
    const bool usable = scale > 0.0f && scale < float_of(INFINITE);
    const f32 inverse = 1.0f / scale;
    // Where the reciprocal is no normal number all are divided.
    const u32 normal = bits_of(inverse) >= 0x00800000 && bits_of(inverse) < INFINITE ? ~0u : 0;
    u64 bad = NO_INDEX;
    walk<Element>(values, 0, count, blockIdx.x * 256 + threadIdx.x, gridDim.x * 256, [&](const Tile<Element> &tile) {
        u32 found[16], words[4], twice = 0, sure = normal;
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            twice = larger(twice, tile.patterns[i] << 1);
            found[i] = Fp8<MANTISSA>::near_code(tile.patterns[i], inverse, &sure) | (tile.patterns[i] >> 24 & 0x80);
        }
        if (sure >> 31 == 0) {
#pragma unroll
            for (u32 i = 0; i < 16; i++) {
                found[i] = usable ? Fp8<MANTISSA>::encode(float_of(tile.patterns[i]) / scale) : 0;
            }
        }
        pack_codes(found, words);
        store_codes(reinterpret_cast<i8 *>(codes), tile, words);
        if (twice >> 1 >= INFINITE) {
#pragma unroll
            for (u32 i = 0; i < 16; i++) {
                if (i < tile.count && magnitude(tile.patterns[i]) >= INFINITE && tile.place(i) < bad) bad = tile.place(i);
            }
        }
    });
    if (bad != NO_INDEX) atomicMax(not_bad, ~bad);
}

template <u32 MANTISSA>
TERCET_FN void dequantize(const u8 *codes, u64 count, f32 scale, f32 *out) {
    u64 threads = (u64)gridDim.x * 256, thread = (u64)blockIdx.x * 256 + threadIdx.x;
    for (u64 at = thread * 4; at + 4 <= count; at += threads * 4) {
        u32 word = *reinterpret_cast<const u32 *>(codes + at), bits[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) bits[i] = bits_of(Fp8<MANTISSA>::decode(word >> 8 * i & 0xFF) * scale);
        store16(out + at, u32x4{bits[0], bits[1], bits[2], bits[3]});
    }
    u64 last = count / 4 * 4 + thread;
    if (last < count) out[last] = Fp8<MANTISSA>::decode(codes[last]) * scale;
}

#define QUANTIZE(NAME, ELEMENT, MANTISSA)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, 4)                                                                           \
        NAME(const ELEMENT::Bits *values, u64 count, f32 scale, u8 *codes, u64 *not_bad) {                                         \
        quantize<ELEMENT, MANTISSA>(values, count, scale, codes, not_bad);                                                         \
    }

QUANTIZE(fp8_quantize_e4m3_f32, F32, 3)
QUANTIZE(fp8_quantize_e4m3_f16, F16, 3)
QUANTIZE(fp8_quantize_e4m3_bf16, BF16, 3)
QUANTIZE(fp8_quantize_e5m2_f32, F32, 2)
QUANTIZE(fp8_quantize_e5m2_f16, F16, 2)
QUANTIZE(fp8_quantize_e5m2_bf16, BF16, 2)

extern "C" __global__ void __launch_bounds__(256) fp8_dequantize_e4m3(const u8 *codes, u64 count, f32 scale, f32 *out) {
    dequantize<3>(codes, count, scale, out);
}

extern "C" __global__ void __launch_bounds__(256) fp8_dequantize_e5m2(const u8 *codes, u64 count, f32 scale, f32 *out) {
    dequantize<2>(codes, count, scale, out);
}
