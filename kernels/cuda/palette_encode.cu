// Palettes: what a codebook is chosen from, and the indices once it is. The choice itself is core's, on the host, from 256 counts a group.
//
// Roofline: three passes of 4 or 2 bytes a value (and 4 of importance in the second), for about 20 instructions: memory is the limit, but in
// the second, which adds to a bin of shared memory for each value, one at a time where many have one code.

#include "tercet/device.cuh"
#include "tercet/float.cuh"
#include "tercet/palette.cuh"

using namespace tercet;

const u32 CODES = 256;

// The code of a finite value on the symmetric grid: half to even of fl(x / scale), at most 127 off 0; 0 where the scale is 0. As
// core/src/quant/grid.rs.
TERCET_FN i32 code_of(f32 x, f32 scale) {
    if (scale == 0.0f) return 0;
    f32 steps = x / scale;
    // Plain comparisons before the conversion; one step beyond the end tells it.
    steps = steps > -128.0f ? steps : -128.0f;
    steps = steps < 128.0f ? steps : 128.0f;
    i32 code = __float2int_rn(steps);
    code = code > 127 ? 127 : code;
    return code < -127 ? -127 : code;
}

// Where a block works: groups of `len` values, the last perhaps shorter, each in `parts` parts.
struct Place {
    u64 group, begin, end;

    __device__ __forceinline__ Place(u64 count, u64 len, u32 parts) {
        group = blockIdx.x / parts;
        u64 first = group * len, last = first + len < count ? first + len : count;
        u64 share = (last - first + parts - 1) / parts;
        begin = first + (blockIdx.x % parts) * share;
        end = begin + share < last ? begin + share : last;
    }
};

// The largest pattern of |x| of each group's finite values, and the largest complement of the index of one that is not; 0 before.
template <class Element>
TERCET_FN void range(const typename Element::Bits *values, u64 count, u64 len, u32 parts, u32 *largest, u64 *not_bad) {
    Place place(count, len, parts);
    u32 most = 0;
    u64 bad = NO_INDEX;
    for (u64 at = place.begin + threadIdx.x; at < place.end; at += blockDim.x) {
        u32 size = magnitude(Element::widen(values[at]));
        if (size >= INFINITE) {
            bad = at < bad ? at : bad;
        } else {
            most = size > most ? size : most;
        }
    }
    most = warp_max(most);
    bad = warp_min(bad);
    if (threadIdx.x % WARP == 0) {
        atomicMax(largest + place.group, most);
        if (bad != NO_INDEX) atomicMax(not_bad + place.group, ~bad);
    }
}

// Adds each value's importance, or 1 without any, to the count of its code c at c + 128 of its group; 0 before. A group has less than 2³²
// values, so that no sum wraps.
template <class Element>
TERCET_FN void count_codes(const typename Element::Bits *values, const u32 *importances, u64 count, u64 len, u32 parts,
                           const f32 *scales, u64 *counts) {
    __shared__ u64 bins[CODES];
    Place place(count, len, parts);
    for (u32 i = threadIdx.x; i < CODES; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    f32 scale = scales[place.group];
    for (u64 at = place.begin + threadIdx.x; at < place.end; at += blockDim.x) {
        i32 code = code_of(float_of(Element::widen(values[at])), scale);
        u64 weight = importances != nullptr ? importances[at] : 1;
        if (weight != 0) atomicAdd(bins + code + 128, weight);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < CODES; i += blockDim.x) {
        if (bins[i] != 0) atomicAdd(counts + place.group * CODES + i, bins[i]);
    }
}

// The indices of the codes by each group's table, packed; a thread makes the bytes of eight. `rows` are whole rows.
template <class Element>
TERCET_FN void pack(const typename Element::Bits *values, const PaletteShape &shape, u32 parts, const f32 *scales, const u8 *tables,
                    u8 *indices) {
    __shared__ u8 table[CODES];
    u64 group = blockIdx.x / parts;
    for (u32 i = threadIdx.x; i < CODES; i += blockDim.x) table[i] = tables[group * CODES + i];
    __syncthreads();
    f32 scale = scales[group];
    u64 first = group * shape.group_rows, left = shape.rows - first;
    u64 rows = left < shape.group_rows ? left : shape.group_rows;
    u64 stride = (u64)parts * blockDim.x;
    for (u64 item = (u64)(blockIdx.x % parts) * blockDim.x + threadIdx.x; item < rows * shape.runs(); item += stride) {
        u64 row = first + item / shape.runs(), number = item % shape.runs();
        const typename Element::Bits *from = values + row * shape.cols + number * 8;
        u64 run = 0;
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            if (number * 8 + i < shape.cols) {
                i32 code = code_of(float_of(Element::widen(from[i])), scale);
                run |= (u64)table[code + 128] << (i * shape.bits);
            }
        }
        u64 at = number * shape.bits;
        for (u32 i = 0; i < shape.bits; i++) {
            if (at + i < shape.row_bytes) indices[row * shape.row_bytes + at + i] = (u8)(run >> (8 * i));
        }
    }
}

#define PALETTE(ELEMENT, NAME)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        palette_range_##NAME(const ELEMENT::Bits *values, u64 count, u64 len, u32 parts, u32 *largest, u64 *not_bad) {             \
        range<ELEMENT>(values, count, len, parts, largest, not_bad);                                                               \
    }                                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        palette_count_##NAME(const ELEMENT::Bits *values, const u32 *importances, u64 count, u64 len, u32 parts,                   \
                             const f32 *scales, u64 *counts) {                                                                     \
        count_codes<ELEMENT>(values, importances, count, len, parts, scales, counts);                                              \
    }                                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        palette_pack_##NAME(const ELEMENT::Bits *values, u32 bits, u64 rows, u64 cols, u64 group_rows, u64 row_bytes, u32 parts,   \
                            const f32 *scales, const u8 *tables, u8 *indices) {                                                    \
        pack<ELEMENT>(values, PaletteShape{bits, rows, cols, group_rows, row_bytes}, parts, scales, tables, indices);              \
    }

PALETTE(F32, f32)
PALETTE(F16, f16)
PALETTE(BF16, bf16)
