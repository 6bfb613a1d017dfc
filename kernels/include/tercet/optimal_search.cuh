// The ternary threshold of least squared error, for up to 2¹⁶ values in a block: branch and bound over bins of magnitudes. As
// core/src/quant/search.rs, whose proof holds here; what differs is that all bins are judged at once.
//
// A coded magnitude is at least half the mean, so at least max/(2 n), at most 18 exponents under the largest: in units of the last
// place 18 exponents down a value is below 2⁴², and a sum of 2¹⁶ of them below 2⁵⁸.
#pragma once

#include "tercet/access.cuh"
#include "tercet/optimal.cuh"

namespace tercet {

const u32 SEARCH_BINS = 512;
const u32 MOST_SEARCHED = 1 << 16;
// 2⁻⁴⁸: more than the relative error of the f64 steps of a bound, fewer than 20 roundings of 2⁻⁵³ among positive terms.
const f64 SLACK = 1.0 / (1ull << 48);

// Counts, and sums of mantissas in two halves: 2¹⁶ times 12 bits fit 32.
struct SearchTable {
    u32 counts[SEARCH_BINS], low[SEARCH_BINS], high[SEARCH_BINS];
};

// Equal bins of patterns; as core's `MagnitudeSpan`.
struct Span {
    u32 first, end, shift;

    __device__ __forceinline__ u32 bins() const { return end > first ? (end - first + (1u << shift) - 1) >> shift : 0; }

    // The finest over limit..edge that the table holds; at `coarsest` only the top of that range if it does not.
    TERCET_FN Span window(u32 limit, u32 edge, u32 coarsest) {
        for (u32 shift = 0; shift <= coarsest; shift++) {
            Span span = {limit >> shift << shift, edge, shift};
            if (span.bins() <= SEARCH_BINS) return span;
        }
        u32 tops = (edge + (1u << coarsest) - 1) >> coarsest;
        return Span{(tops > SEARCH_BINS ? tops - SEARCH_BINS : 0) << coarsest, edge, coarsest};
    }
};

// Sum and count of all values from some pattern up.
struct Front {
    u64 sum, count;

    __device__ __forceinline__ void add(const Front &other) {
        sum += other.sum;
        count += other.count;
    }
};

// The bins that may hold something better: the lowest one's first pattern, and one past the last pattern of the topmost, with what lies
// above that bin. Nothing is open where `top` is 0.
struct Open {
    u32 lowest, top;
    Front above;

    __device__ __forceinline__ void merge(const Open &other) {
        lowest = smaller(lowest, other.lowest);
        if (other.top > top) {
            top = other.top;
            above = other.above;
        }
    }

    __device__ __forceinline__ Open exchange(u32 distance) const {
        return Open{__shfl_xor_sync(FULL_WARP, lowest, distance),
                    __shfl_xor_sync(FULL_WARP, top, distance),
                    {__shfl_xor_sync(FULL_WARP, above.sum, distance), __shfl_xor_sync(FULL_WARP, above.count, distance)}};
    }
};

// What the threads before this one hold together; `total` becomes what all do.
TERCET_FN Front block_before(const Front &own, Front *total) {
    __shared__ Front warps[WARPS];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    Front until = own;
#pragma unroll
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        u64 sum = __shfl_up_sync(FULL_WARP, until.sum, distance);
        u64 count = __shfl_up_sync(FULL_WARP, until.count, distance);
        if (lane >= distance) until.add(Front{sum, count});
    }
    if (lane == WARP - 1) warps[warp] = until;
    __syncthreads();
    Front before = {until.sum - own.sum, until.count - own.count};
    *total = Front{0, 0};
    for (u32 i = 0; i < WARPS; i++) {
        if (i < warp) before.add(warps[i]);
        total->add(warps[i]);
    }
    __syncthreads();
    return before;
}

// One bin of the table, in units of 2^unit.
struct SearchBin {
    u32 first, last, count;
    u64 mantissas;
    Front content;

    TERCET_FN SearchBin of(const SearchTable &table, const Span &span, u32 index, u32 unit) {
        SearchBin bin;
        bin.first = span.first + (index << span.shift);
        bin.last = smaller(bin.first + (1u << span.shift), span.end) - 1;
        bin.count = table.counts[index];
        bin.mantissas = ((u64)table.high[index] << 12) + table.low[index];
        // Nothing lies below the unit, but an empty bin may begin there.
        bin.content = Front{bin.count == 0 ? 0 : bin.mantissas << ((shift_of(bin.first) - unit) & 63), bin.count};
        return bin;
    }

    // An upper bound of S²/k strictly inside the bin, under which `above` lies; 0 where nothing is inside.
    __device__ __forceinline__ f64 bound(const Front &above, u32 unit) const {
        if (count < 2 || first == last) return 0.0;
        u64 low = mantissa(first), width = mantissa(last) - low;
        f64 crossing = (f64)(mantissas - count * low) / (f64)width;
        f64 largest = (f64)((u64)mantissa(last) << ((shift_of(last) - unit) & 63));
        f64 sum = (f64)above.sum + crossing * largest;
        return sum * sum / ((f64)above.count + crossing) * (1.0 + SLACK);
    }
};

// The smallest pattern that the optimum codes, of a group whose largest magnitude and mean these are.
template <class Element>
TERCET_FN u32 search_threshold(const typename Element::Bits *values, u64 begin, u64 end, u32 largest, f32 mean) {
    __shared__ SearchTable table;
    const u32 OWN = SEARCH_BINS / BLOCK;
    if (largest == 0) return NO_THRESHOLD;
    u32 unit = shift_of(largest) > 18 ? shift_of(largest) - 18 : 0;
    // The mean was rounded, so the float before it is below the true mean; one exponent less is half.
    u32 below = bits_of(mean) - (mean > 0.0f ? 1 : 0);
    u32 limit = larger(below > 1 << 23 ? below - (1 << 23) : 0, 1), edge = largest + 1, coarsest = 23;
    Front front = {0, 0};
    Choice best = nothing_coded();
    while (limit < edge) {
        Span span = Span::window(limit, edge, coarsest);
        u32 bins = span.bins();
        for (u32 i = threadIdx.x; i < SEARCH_BINS; i += BLOCK) table.counts[i] = table.low[i] = table.high[i] = 0;
        __syncthreads();
        walk<Element>(values, begin, end, threadIdx.x, BLOCK, [&](const Tile<Element> &tile) {
#pragma unroll
            for (u32 i = 0; i < 16; i++) {
                u32 pattern = magnitude(tile.patterns[i]), offset = pattern - span.first;
                if (i >= tile.count || offset >= span.end - span.first) continue;
                u32 bin = offset >> span.shift;
                atomicAdd(&table.counts[bin], 1u);
                atomicAdd(&table.low[bin], mantissa(pattern) & 0xFFF);
                atomicAdd(&table.high[bin], mantissa(pattern) >> 12);
            }
        });
        __syncthreads();
        // A thread has neighbours, and the first thread the topmost: thread by thread and bin by bin patterns fall.
        SearchBin own[OWN];
        Front sum = {0, 0};
#pragma unroll
        for (u32 i = 0; i < OWN; i++) {
            u32 from_top = threadIdx.x * OWN + i;
            own[i] = from_top < bins ? SearchBin::of(table, span, bins - 1 - from_top, unit) : SearchBin{};
            sum.add(own[i].content);
        }
        Front all;
        Front start = block_before(sum, &all);
        start.add(front);
        Front above = start;
#pragma unroll
        for (u32 i = 0; i < OWN; i++) {
            above.add(own[i].content);
            if (own[i].count > 0) best.merge(Choice{above.sum, (u32)above.count, own[i].first});
        }
        best = BlockTeam::all(best);
        f64 value = (f64)best.sum * (f64)best.sum / (f64)best.count * (1.0 - SLACK);
        Open open = {~0u, 0, {0, 0}};
        above = start;
#pragma unroll
        for (u32 i = 0; i < OWN; i++) {
            if (own[i].bound(above, unit) > value) open.merge(Open{own[i].first, own[i].last + 1, above});
            above.add(own[i].content);
        }
        open = BlockTeam::all(open);
        bool reached = span.first <= limit;
        if (open.top != 0) {
            edge = open.top;
            front = open.above;
            if (reached) limit = open.lowest;
            // Strictly finer here, so the search ends; a single pattern is never open.
            u32 fitting = Span::window(open.lowest, open.top, 23).shift;
            coarsest = smaller(fitting, span.shift > 0 ? span.shift - 1 : 0);
        } else if (reached) {
            break;
        } else {
            edge = span.first;
            front.add(all);
            coarsest = 23;
        }
    }
    return best.threshold;
}

}  // namespace tercet
