// The ternary threshold of least squared error, for up to 256 values in a warp. As core/src/quant/optimal.rs, whose facts bound
// what is summed: S < 2⁴¹ and S² · k < 2⁹⁰.
#pragma once

#include "tercet/plan.cuh"

namespace tercet {

// A threshold, and the sum and count of what it codes; sums in some unit that those compared share.
struct Choice {
    u64 sum;
    u32 count, threshold;

    // Whether S_a² · k_b exceeds S_b² · k_a; equal ones leave it to the smaller count.
    __device__ __forceinline__ bool beats(const Choice &other) const {
        u64 words[3], others[3];
        square_times(sum, other.count, words);
        square_times(other.sum, count, others);
        if (words[2] != others[2]) return words[2] > others[2];
        if (words[1] != others[1]) return words[1] > others[1];
        if (words[0] != others[0]) return words[0] > others[0];
        return count < other.count;
    }

    // sum² · count, 160 bits, least significant word first.
    TERCET_FN void square_times(u64 sum, u32 count, u64 (&words)[3]) {
        u64 low = sum * sum, high = __umul64hi(sum, sum);
        u64 middle = high * count, carry = __umul64hi(low, count);
        words[0] = low * count;
        words[1] = middle + carry;
        words[2] = __umul64hi(high, count) + (words[1] < middle ? 1 : 0);
    }

    __device__ __forceinline__ void merge(const Choice &other) {
        if (other.beats(*this)) *this = other;
    }

    __device__ __forceinline__ Choice exchange(u32 distance) const {
        return Choice{__shfl_xor_sync(FULL_WARP, sum, distance), __shfl_xor_sync(FULL_WARP, count, distance),
                      __shfl_xor_sync(FULL_WARP, threshold, distance)};
    }
};

// What there is before anything is coded: everything beats it.
TERCET_FN Choice nothing_coded() { return Choice{0, 1, NO_THRESHOLD}; }

// Sorts each stretch of LEN of a warp's 256 patterns, largest first: Batcher's network, with a barrier a step.
template <u32 LEN>
TERCET_FN void sort_patterns(u32 *patterns) {
    u32 lane = threadIdx.x % WARP;
#pragma unroll 1
    for (u32 size = 2; size <= LEN; size *= 2) {
#pragma unroll 1
        for (u32 distance = size / 2; distance > 0; distance /= 2) {
#pragma unroll
            for (u32 turn = 0; turn < 4; turn++) {
                u32 pair = turn * WARP + lane;
                u32 at = pair / distance * distance * 2 + pair % distance;
                // The first step of a size meets the other half's mirror image, so both halves fall.
                u32 with = distance == size / 2 ? at / size * size + size - 1 - at % size : at + distance;
                u32 a = patterns[at], b = patterns[with];
                patterns[at] = larger(a, b);
                patterns[with] = smaller(a, b);
            }
            __syncwarp();
        }
    }
}

// The threshold of each stretch of LEN patterns of finite magnitudes (zeros where there are fewer), in the LEN / 8 lanes that
// stand for it. All 256 patterns of the warp are written before, and sorted after.
template <u32 LEN>
TERCET_FN u32 optimal_threshold(u32 *patterns) {
    const u32 LANES = LEN / 8;
    __syncwarp();
    sort_patterns<LEN>(patterns);
    u32 lane = threadIdx.x % WARP, within = lane % LANES;
    u32 unit = shift_of(patterns[(lane - within) * 8]);
    unit = unit > 9 ? unit - 9 : 0;
    u64 values[8], total = 0;
    u32 count = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        u32 pattern = patterns[lane * 8 + i], place = shift_of(pattern);
        bool counts = pattern != 0 && place >= unit;
        values[i] = counts ? (u64)mantissa(pattern) << ((place - unit) & 63) : 0;
        total += values[i];
        count += counts ? 1 : 0;
    }
    // What the lanes before this one hold.
    u64 sum = total;
    u32 before = count;
#pragma unroll
    for (u32 distance = 1; distance < LANES; distance *= 2) {
        u64 more = __shfl_up_sync(FULL_WARP, sum, distance);
        u32 others = __shfl_up_sync(FULL_WARP, before, distance);
        if (within >= distance) {
            sum += more;
            before += others;
        }
    }
    sum -= total;
    before -= count;
    Choice best = nothing_coded();
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        u32 index = lane * 8 + i;
        if (values[i] == 0) continue;
        sum += values[i];
        before += 1;
        // Equal magnitudes share a code.
        bool last = index % LEN == LEN - 1 || patterns[index + 1] != patterns[index];
        Choice choice = {sum, before, patterns[index]};
        if (last && choice.beats(best)) best = choice;
    }
#pragma unroll
    for (u32 distance = LANES / 2; distance > 0; distance /= 2) best.merge(best.exchange(distance));
    __syncwarp();
    return best.threshold;
}

}  // namespace tercet
