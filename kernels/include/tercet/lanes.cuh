// Float sums in core's one order, by a warp: 64 lanes, of which a thread has two. As core/src/number/lanes.rs.
#pragma once

#include "tercet/device.cuh"

namespace tercet {

// Terms after which core's sums start anew.
enum : u64 { RUN = 65536 };

// The sum of both lanes of a warp's threads, halving by halving, in every thread.
template <class F>
TERCET_FN F halve(F low, F high) {
    F sum = low + high;
#pragma unroll
    for (u32 half = WARP / 2; half > 0; half /= 2) {
        // Threads of the upper half get something too, which nobody looks at.
        sum = sum + __shfl_down_sync(FULL_WARP, sum, half);
    }
    return __shfl_sync(FULL_WARP, sum, 0);
}

// Σ term(i, q) for each q, one run after another. A lane that no term reached holds −0, which changes nothing that it is added to.
template <u32 Q, class F, class Term>
TERCET_FN void sums_of(u64 dim, F (&totals)[Q], Term term) {
#pragma unroll
    for (u32 q = 0; q < Q; q++) totals[q] = (F)-0.0f;
    for (u64 start = 0; start < dim; start += RUN) {
        u64 end = start + RUN < dim ? start + RUN : dim;
        F low[Q], high[Q];
#pragma unroll
        for (u32 q = 0; q < Q; q++) low[q] = high[q] = (F)-0.0f;
        for (u64 at = start + threadIdx.x % WARP; at < end; at += 2 * WARP) {
            bool second = at + WARP < end;
#pragma unroll
            for (u32 q = 0; q < Q; q++) {
                low[q] = low[q] + term(at, q);
                if (second) high[q] = high[q] + term(at + WARP, q);
            }
        }
#pragma unroll
        for (u32 q = 0; q < Q; q++) totals[q] = totals[q] + halve(low[q], high[q]);
    }
}

}  // namespace tercet
