// Floats from codes and scales: fl((code − zero point) · scale), to f32, or rounded on to f16 or bf16.
//
// Roofline: reads 1 byte a value and writes 4 or 2, for about 12 instructions, 7 more to bf16: memory is the limit. A warp loads 256 codes at
// once, four neighbours a lane each time, so that its stores are one stretch of memory each.

#include "tercet/device.cuh"
#include "tercet/access.cuh"

using namespace tercet;

// Values of a warp's step, and of its turn.
const u32 STRIPE = 128, STRIPES = 2, TURN = STRIPES * STRIPE;

// The group of a warp's turn: as it moves on by a fixed number of values it is not divided for again.
struct Place {
    u64 len, group, within;
    // ⌈2²⁰ / len⌉ where a turn may reach over several groups. Then `within` and what is added to it are below 256, so that their sum times
    // what the reciprocal times `len` is too large by, less than `len`, stays below 2²⁰ and the quotient is exact.
    u32 reciprocal;

    __device__ __forceinline__ Place(u64 len, u64 index) : len(len), group(index / len), within(index - index / len * len) {
        reciprocal = len < TURN ? ((1 << 20) + (u32)len - 1) / (u32)len : 0;
    }

    __device__ __forceinline__ void move(const Place &step) {
        group += step.group;
        within += step.within;
        if (within >= len) {
            within -= len;
            group += 1;
        }
    }

    // How many groups later the value lies that comes `after` < TURN values later.
    __device__ __forceinline__ u32 groups_to(u32 after) const {
        if (len < TURN) return ((u32)within + after) * reciprocal >> 20;
        return len - within <= after ? 1 : 0;
    }
};

// `count` codes in groups of `len`.
template <class Element>
TERCET_FN void dequantize(const i8 *codes, u64 count, u64 len, const f32 *scales, const i8 *zero_points,
                          typename Element::Bits *out) {
    u32 lane = threadIdx.x % WARP;
    u64 start = (blockIdx.x * (u64)(256 / WARP) + threadIdx.x / WARP) * TURN, step = gridDim.x * (u64)(256 / WARP) * TURN;
    if (start >= count) return;
    Place place(len, start), stride(len, step);
    for (; start < count; start += step) {
        if (len % 4 == 0 && count - start >= TURN) {
            // No four neighbours are of two groups.
            const f32 *here = scales + place.group;
            const i8 *points = zero_points == nullptr ? nullptr : zero_points + place.group;
            u32 words[STRIPES];
            f32 scale[STRIPES], origin[STRIPES];
#pragma unroll
            for (u32 i = 0; i < STRIPES; i++) {
                u32 after = i * STRIPE + lane * 4;
                u32 group = place.groups_to(after);
                words[i] = *reinterpret_cast<const u32 *>(codes + start + after);
                scale[i] = here[group];
                origin[i] = origin_of(128 + (points == nullptr ? 0 : points[group]));
            }
#pragma unroll
            for (u32 i = 0; i < STRIPES; i++) {
                f32 values[4];
#pragma unroll
                for (u32 k = 0; k < 4; k++) values[k] = byte_from(words[i] ^ 0x80808080, k, origin[i]) * scale[i];
                store_four<Element>(out + start + i * STRIPE + lane * 4, values);
            }
        } else {
#pragma unroll 1
            for (u32 after = lane; after < TURN && start + after < count; after += WARP) {
                u64 group = place.group + place.groups_to(after);
                i32 zero_point = zero_points == nullptr ? 0 : zero_points[group];
                out[start + after] = Element::narrow((f32)(codes[start + after] - zero_point) * scales[group]);
            }
        }
        place.move(stride);
    }
}

#define DEQUANTIZE(NAME, ELEMENT)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 8)                                                                           \
        NAME(const i8 *codes, u64 count, u64 len, const f32 *scales, const i8 *zero_points, ELEMENT::Bits *out) {                  \
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
