// Floats from codes and scales: fl((code − zero point) · scale), to f32, or rounded on to f16 or bf16.
//
// Roofline: reads 1 byte a value and writes 4 or 2, for about 6 instructions: memory is the limit.

#include "tercet/device.cuh"
#include "tercet/float.cuh"

using namespace tercet;

// A code's group, and what the group shares, as a thread goes along the codes.
struct Cursor {
    const f32 *scales;
    const i8 *zero_points;
    u64 group, len, within;
    f32 scale;
    i32 zero_point;

    __device__ __forceinline__ void seek(u64 index) {
        group = index / len;
        within = index - group * len;
        read();
    }

    __device__ __forceinline__ void read() {
        scale = scales[group];
        zero_point = zero_points == nullptr ? 0 : zero_points[group];
    }

    // The value of the next code.
    __device__ __forceinline__ f32 value(i32 code) {
        if (within == len) {
            within = 0;
            group += 1;
            read();
        }
        within += 1;
        return (f32)(code - zero_point) * scale;
    }
};

TERCET_FN void store_vector(u32 *out, u64 at, const u32 (&bits)[4]) { store16(out + at, u32x4{bits[0], bits[1], bits[2], bits[3]}); }

TERCET_FN void store_vector(u16 *out, u64 at, const u16 (&bits)[8]) {
    u32 words[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) words[i] = bits[2 * i] | (u32)bits[2 * i + 1] << 16;
    store16(out + at, u32x4{words[0], words[1], words[2], words[3]});
}

// `count` codes in groups of `len`, which a thread reads as many at once as make 16 bytes of floats.
template <class Element>
TERCET_FN void dequantize(const i8 *codes, u64 count, u64 len, const f32 *scales, const i8 *zero_points,
                          typename Element::Bits *out) {
    const u32 N = Element::COUNT;
    u64 threads = (u64)gridDim.x * 256, thread = (u64)blockIdx.x * 256 + threadIdx.x;
    Cursor cursor = {scales, zero_points, 0, len, 0, 0.0f, 0};
    for (u64 at = thread * N; at + N <= count; at += threads * N) {
        u32 words[2];
        if (N == 4) {
            words[0] = words[1] = *reinterpret_cast<const u32 *>(codes + at);
        } else {
            u32x2 pair = load8(codes + at);
            words[0] = pair.x;
            words[1] = pair.y;
        }
        cursor.seek(at);
        typename Element::Bits bits[N];
#pragma unroll
        for (u32 i = 0; i < N; i++) bits[i] = Element::narrow(cursor.value((i8)(words[i / 4] >> 8 * (i % 4))));
        store_vector(out, at, bits);
    }
    u64 last = count / N * N + thread;
    if (last < count) {
        cursor.seek(last);
        out[last] = Element::narrow(cursor.value(codes[last]));
    }
}

#define DEQUANTIZE(NAME, ELEMENT)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) NAME(const i8 *codes, u64 count, u64 len, const f32 *scales,                 \
                                                           const i8 *zero_points, ELEMENT::Bits *out) {                            \
        dequantize<ELEMENT>(codes, count, len, scales, zero_points, out);                                                          \
    }

DEQUANTIZE(dequantize_f32, F32)
DEQUANTIZE(dequantize_f16, F16)
DEQUANTIZE(dequantize_bf16, BF16)

// `not_outside` becomes the largest complement of the index of a code outside low..=high; 0 before.
extern "C" __global__ void __launch_bounds__(256) codes_outside(const i8 *codes, u64 count, i32 low, i32 high, u64 *not_outside) {
    u64 threads = (u64)gridDim.x * 256, thread = (u64)blockIdx.x * 256 + threadIdx.x;
    u64 first = NO_INDEX;
    for (u64 at = thread * 16; at < count; at += threads * 16) {
        if (at + 16 <= count) {
            u32x4 vector = load16(codes + at);
            const u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
            for (u32 i = 16; i-- > 0;) {
                i32 code = (i8)(words[i / 4] >> 8 * (i % 4));
                if ((code < low || code > high) && at + i < first) first = at + i;
            }
        } else {
            for (u64 index = at; index < count; index++) {
                if ((codes[index] < low || codes[index] > high) && index < first) first = index;
            }
        }
    }
    if (first != NO_INDEX) atomicMax(not_outside, ~first);
}
