// Rows of activations normalized by their root mean square and quantized to 8 or 16 bits. As core/src/quant/activations.rs.
//
// Roofline: reads 4 bytes a value, of rows beyond 4,096 all but the last part twice, the second time from the caches, as gains always, and writes
// 1 or 2; about 14 instructions a value, 3 of them the first warp's additions of squares, where an H200 has time for 35: memory is the limit of many
// rows, latency of a few, half of it the chain of those additions.

#include "tercet/device.cuh"
#include "tercet/float.cuh"
#include "tercet/lanes.cuh"
#include "tercet/team.cuh"

using namespace tercet;

template <class Code>
struct Limit;
template <>
struct Limit<i8> {
    static __device__ __forceinline__ f32 value() { return 127.0f; }
};
template <>
struct Limit<i16> {
    static __device__ __forceinline__ f32 value() { return 32639.0f; }
};

const u32 THREADS = 256;
// Values that a thread keeps of a row, four vectors of four; and those of a block, a part of a row.
const u32 KEPT = 16, PART = THREADS * KEPT;
// Turns of the 64 lanes that are loaded at once.
const u32 TURNS = 8;
static_assert(RUN % PART == 0 && PART % (TURNS * 2 * WARP) == 0, "a part begins where a lane's turn does");

// Of which vector a thread's `i`-th four values are, in a part.
TERCET_FN u32 place(u32 vector) { return (vector * THREADS + threadIdx.x) * 4; }

// Four values from `at` on, of a part of `count`; zeros after its end. Where `whole`, the part begins at a multiple of 16 bytes and holds
// whole vectors.
TERCET_FN void load_four(const f32 *part, u32 at, u32 count, bool whole, f32 *four) {
    if (whole) {
        u32x4 loaded = at < count ? load16(part + at) : u32x4{0, 0, 0, 0};
        four[0] = float_of(loaded.x);
        four[1] = float_of(loaded.y);
        four[2] = float_of(loaded.z);
        four[3] = float_of(loaded.w);
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; i++) four[i] = at + i < count ? part[at + i] : 0.0f;
    }
}

// Writes the low bits of four codes, where there are so many; zeros where `keep` is 0, else it is all ones.
TERCET_FN void store_four(i8 *part, u32 at, u32 count, bool whole, u32 keep, const u32 *four) {
    if (whole) {
        u32 word = byte_permute(byte_permute(four[0], four[1], 0x40), byte_permute(four[2], four[3], 0x40), 0x5410);
        if (at < count) *reinterpret_cast<u32 *>(part + at) = word & keep;
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            if (at + i < count) part[at + i] = (i8)(four[i] & keep);
        }
    }
}

TERCET_FN void store_four(i16 *part, u32 at, u32 count, bool whole, u32 keep, const u32 *four) {
    if (whole) {
        u32x2 words = {byte_permute(four[0], four[1], 0x5410) & keep, byte_permute(four[2], four[3], 0x5410) & keep};
        if (at < count) store8(part + at, words);
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            if (at + i < count) part[at + i] = (i16)(four[i] & keep);
        }
    }
}

// The values that a thread has of a row's part from `from` on, times their gains if there are any. `SQUARES`: the squares without them go to
// `squares` then.
template <bool SQUARES>
TERCET_FN void load_part(const f32 *row, const f32 *gains, u64 from, u32 count, bool whole, f32 *squares, f32 (&y)[KEPT]) {
#pragma unroll
    for (u32 vector = 0; vector < KEPT / 4; vector++) load_four(row + from, place(vector), count, whole, y + 4 * vector);
    if (gains == nullptr) return;
    f32 own[KEPT];
#pragma unroll
    for (u32 vector = 0; vector < KEPT / 4; vector++) load_four(gains + from, place(vector), count, whole, own + 4 * vector);
#pragma unroll
    for (u32 vector = 0; vector < KEPT / 4; vector++) {
        f32 *four = y + 4 * vector;
        if (SQUARES) {
            u32 square[4];
#pragma unroll
            for (u32 i = 0; i < 4; i++) square[i] = bits_of(four[i] * four[i]);
            store16(squares + place(vector), u32x4{square[0], square[1], square[2], square[3]});
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++) four[i] = four[i] * own[4 * vector + i];
    }
}

// A block takes a row at a time; without `gains` there is no norm. The scale of a row that is not finite is NaN, its codes 0.
//
// A row comes part by part. The squares' one order is that of core's 64 lanes: the first warp adds them, from shared memory, where all
// threads have put them. The last part, or a row that is no longer, stays in registers until the scale is known.
template <class Code>
TERCET_FN void norm_quantize(const f32 *x, u64 rows, u64 cols, const f32 *gains, f32 eps, Code *codes, f32 *scales) {
    alignas(16) __shared__ f32 squares[PART];
    __shared__ u32 largest_of[THREADS / WARP];
    __shared__ f32 factor;
    const f32 LIMIT = Limit<Code>::value();
    const bool whole = cols % 4 == 0;
    // Where the last part begins.
    const u64 last = cols == 0 ? 0 : (cols - 1) / PART * PART;
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const f32 *own = x + row * cols;
        u32 twice = 0;
        // As core's lanes begin: −0 changes nothing that it is added to.
        f32 y[KEPT], total = -0.0f, low = -0.0f, high = -0.0f;
        for (u64 from = 0; from <= last; from += PART) {
            u32 count = from < last ? PART : (u32)(cols - last);
            load_part<true>(own, gains, from, count, whole, squares, y);
#pragma unroll
            for (u32 i = 0; i < KEPT; i++) twice = larger(twice, bits_of(y[i]) << 1);
            if (from == last) {
                u32 largest = warp_max(twice >> 1);
                if (threadIdx.x % WARP == 0) largest_of[threadIdx.x / WARP] = largest;
            }
            __syncthreads();
            if (gains != nullptr && threadIdx.x < WARP) {
                // Eight turns at a time, whose loads do not wait for one another. Zeros after the row's end change no sum.
                for (const f32 *at = squares + threadIdx.x; at < squares + count; at += TURNS * 2 * WARP) {
                    f32 lows[TURNS], highs[TURNS];
#pragma unroll
                    for (u32 turn = 0; turn < TURNS; turn++) {
                        lows[turn] = at[turn * 2 * WARP];
                        highs[turn] = at[turn * 2 * WARP + WARP];
                    }
#pragma unroll
                    for (u32 turn = 0; turn < TURNS; turn++) {
                        low = low + lows[turn];
                        high = high + highs[turn];
                    }
                }
                if (from == last || (from + PART) % RUN == 0) {
                    total = total + halve(low, high);
                    low = high = -0.0f;
                }
            }
            // The next part writes what this one reads.
            if (from < last) __syncthreads();
        }
        if (threadIdx.x == 0) {
            f32 root = gains == nullptr ? 1.0f : __fsqrt_rn(total / (f32)cols + eps);
            u32 largest = largest_of[0];
#pragma unroll
            for (u32 warp = 1; warp < THREADS / WARP; warp++) largest = larger(largest, largest_of[warp]);
            f32 most = float_of(largest), scale = most / root / LIMIT;
            factor = LIMIT / most;
            bool finite = largest < INFINITE && magnitude(bits_of(root)) < INFINITE;
            if (finite && magnitude(bits_of(factor)) >= INFINITE) {
                factor = scale = 0.0f;
            } else if (!finite || magnitude(bits_of(scale)) >= INFINITE) {
                // Not finite: what that makes codes 0 below.
                factor = float_of(0x7FC00000);
                scale = factor;
            }
            scales[row] = scale;
        }
        // The next row writes this only behind a barrier of its own.
        __syncthreads();
        f32 steps = factor;
        const u32 keep = magnitude(bits_of(steps)) > INFINITE ? 0 : ~0u;
        for (u64 back = 0; back <= last; back += PART) {
            // The last part first.
            u64 from = last - back;
            u32 count = from < last ? PART : (u32)(cols - last);
            if (back > 0) load_part<false>(own, gains, from, count, whole, squares, y);
#pragma unroll
            for (u32 vector = 0; vector < KEPT / 4; vector++) {
                u32 four[4];
#pragma unroll
                for (u32 i = 0; i < 4; i++) {
                    // As core's half_even_small: the addition rounds, and the low bits of the pattern are the code's.
                    const f32 ONE_AND_HALF = 12582912.0f;
                    four[i] = bits_of(y[4 * vector + i] * steps + ONE_AND_HALF);
                }
                store_four(codes + row * cols + from, place(vector), count, whole, keep, four);
            }
        }
    }
}

#define NORM_QUANTIZE(NAME, CODE)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 5)                                                                           \
        NAME(const f32 *x, u64 rows, u64 cols, const f32 *gains, f32 eps, CODE *codes, f32 *scales) {                              \
        norm_quantize<CODE>(x, rows, cols, gains, eps, codes, scales);                                                             \
    }

NORM_QUANTIZE(activations_a8, i8)
NORM_QUANTIZE(activations_a16, i16)
