// Seeds of k-means: draws by w·D² from exact prefix sums, distances to candidates, and points by distance.
//
// Roofline: each pass reads d or 8 bytes a point and writes 4: memory is the limit, with up to eight candidates a pass.

#include "tercet/cluster.cuh"

using namespace tercet;

// Points whose w·D² are summed together: what a draw looks through last.
const u32 SHARE = 1024;

// D² of a point to a row: ‖x‖² + ‖c‖² − 2·x·c, below 2^32 whatever wraps on the way. Eight threads of a warp together, each with
// what it has of the products; all get the sum.
TERCET_FN i32 team_sum(i32 value) {
#pragma unroll
    for (u32 step = 4; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step);
    return value;
}

// Where the steps of 32 teams over a share end when `left` points are left: the same for all teams, since warps work together.
TERCET_FN u32 steps_end(u64 left) { return left < SHARE ? ((u32)left + 31) / 32 * 32 : SHARE; }

// Σ w·D² of each share of points.
extern "C" __global__ void __launch_bounds__(256) seed_masses(const u32 *distances, const u32 *weights, u32 count, u64 *masses) {
    const u64 first = (u64)blockIdx.x * SHARE;
    u64 mass = 0;
    for (u32 i = threadIdx.x; i < SHARE && first + i < count; i += 256) {
        mass += (u64)weight_of(weights, first + i) * distances[first + i];
    }
    if (threadIdx.x == 0) masses[blockIdx.x] = 0;
    // `block_add` has a barrier before it adds.
    block_add(mass, masses + blockIdx.x);
}

// Shortens distances to those to `centroid` where it is nearer. Leaves Σ w·D² of each share and of all.
extern "C" __global__ void __launch_bounds__(256) seed_shorten(const i8 *points, u32 stride, u32 count, const u32 *weights,
                                                               const u32 *lengths, const i8 *centroid, u32 *distances, u64 *masses,
                                                               u64 *result) {
    const u32 team = threadIdx.x / 8, lane = threadIdx.x % 8;
    i32 norm = 0;
    for (u32 at = lane * 16; at < stride; at += 128) {
        u32x4 c = load16(centroid + at);
        norm = dot16(c, c, norm);
    }
    norm = team_sum(norm);
    const u64 first = (u64)blockIdx.x * SHARE;
    u64 mass = 0;
    for (u32 i = team, end = steps_end(count - first); i < end; i += 32) {
        const u64 point = first + i;
        i32 dot = 0;
        if (point < count) {
            for (u32 at = lane * 16; at < stride; at += 128) {
                dot = dot16(load16(points + point * stride + at), load16(centroid + at), dot);
            }
        }
        dot = team_sum(dot);
        if (lane == 0 && point < count) {
            u32 found = lengths[point] + (u32)(norm - 2 * dot), distance = distances[point];
            if (found < distance) distances[point] = distance = found;
            mass += (u64)weight_of(weights, point) * distance;
        }
    }
    if (threadIdx.x == 0) masses[blockIdx.x] = 0;
    block_add(mass, masses + blockIdx.x);
    block_add(mass, result + FOUND);
}

// For up to eight candidates, what the sum of `seed_shorten` would be with a centroid at that point.
extern "C" __global__ void __launch_bounds__(256) seed_potentials(const i8 *points, u32 stride, u32 count, const u32 *weights,
                                                                  const u32 *lengths, const u32 *candidates, u32 tried,
                                                                  const u32 *distances, u64 *totals) {
    const u32 team = threadIdx.x / 8, lane = threadIdx.x % 8;
    const i8 *rows[8];
#pragma unroll
    for (u32 j = 0; j < 8; j++) rows[j] = points + (u64)candidates[j < tried ? j : 0] * stride;
    // Lane j sums for candidate j.
    const u32 norm = lengths[candidates[lane < tried ? lane : 0]];
    const u64 first = (u64)blockIdx.x * SHARE;
    u64 total = 0;
    for (u32 i = team, end = steps_end(count - first); i < end; i += 32) {
        const u64 point = first + i;
        i32 dots[8] = {};
        if (point < count) {
            for (u32 at = lane * 16; at < stride; at += 128) {
                u32x4 x = load16(points + point * stride + at);
#pragma unroll
                for (u32 j = 0; j < 8; j++) {
                    if (j < tried) dots[j] = dot16(x, load16(rows[j] + at), dots[j]);
                }
            }
        }
        i32 mine = 0;
#pragma unroll
        for (u32 j = 0; j < 8; j++) {
            i32 dot = team_sum(dots[j]);
            mine = lane == j ? dot : mine;
        }
        if (point < count && lane < tried) {
            u32 found = lengths[point] + norm - 2u * (u32)mine, distance = distances[point];
            total += (u64)weight_of(weights, point) * (found < distance ? found : distance);
        }
    }
    total += __shfl_xor_sync(FULL_WARP, total, 8);
    total += __shfl_xor_sync(FULL_WARP, total, 16);
    if (threadIdx.x % WARP < tried) atomicAdd(totals + threadIdx.x % WARP, total);
}

// The prefix sums of what 256 threads have: each gets the sum of those before it.
TERCET_FN u64 sum_before(u64 value, u64 *scratch) {
    __syncthreads();
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (u32 distance = 1; distance < 256; distance *= 2) {
        u64 other = threadIdx.x >= distance ? scratch[threadIdx.x - distance] : 0;
        __syncthreads();
        scratch[threadIdx.x] += other;
        __syncthreads();
    }
    return scratch[threadIdx.x] - value;
}

// The lowest point at which the running sum of w·D² exceeds `r`, as its index plus one; 0 where the total does not. One block.
extern "C" __global__ void __launch_bounds__(256) seed_pick(const u64 *masses, u32 shares, const u32 *distances, const u32 *weights,
                                                            u32 count, u64 r, u64 *result) {
    __shared__ u64 scratch[256];
    __shared__ u32 share;
    __shared__ u64 rest;
    if (threadIdx.x == 0) share = UNLABELLED;
    // A thread has neighbouring shares, so that prefix sums are in order.
    const u32 each = (u32)(((u64)shares + 255) / 256);
    const u64 begin = (u64)threadIdx.x * each, end = begin + each < shares ? begin + each : shares;
    u64 sum = 0;
    for (u64 i = begin; i < end; i++) sum += masses[i];
    u64 before = sum_before(sum, scratch);
    // Of one thread at most: sums do not wrap, and those of others end at r or begin beyond it.
    if (before <= r && r - before < sum) {
        u64 i = begin;
        for (; masses[i] <= r - before; i++) before += masses[i];
        share = (u32)i;
        rest = r - before;
    }
    __syncthreads();
    if (share == UNLABELLED) return;
    const u64 first = (u64)share * SHARE + threadIdx.x * 4;
    u64 parts[4];
    sum = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u64 point = first + i;
        parts[i] = point < count ? (u64)weight_of(weights, point) * distances[point] : 0;
        sum += parts[i];
    }
    before = sum_before(sum, scratch);
    if (before <= rest && rest - before < sum) {
        u64 left = rest - before;
        u32 found = 0;
#pragma unroll
        for (u32 i = 0; i < 3; i++) {
            if (found == i && left >= parts[i]) {
                left -= parts[i];
                found = i + 1;
            }
        }
        result[FOUND] = first + found + 1;
    }
}

// The point of positive weight and distance that comes next after `last` in order of falling distance, rising index: the largest of
// D² · 2^32 + (2^32 − 1 − index) below `last`; 0 for none.
extern "C" __global__ void __launch_bounds__(256) seed_farthest(const u32 *distances, const u32 *weights, u32 count, u64 last,
                                                                u64 *result) {
    u64 best = 0;
    for (u64 point = (u64)blockIdx.x * 256 + threadIdx.x; point < count; point += (u64)gridDim.x * 256) {
        u64 rank = (u64)distances[point] << 32 | (0xFFFFFFFFu - (u32)point);
        if (rank > best && rank < last && distances[point] > 0 && weight_of(weights, point) > 0) best = rank;
    }
    best = warp_max(best);
    if (threadIdx.x % WARP == 0 && best != 0) atomicMax(result + FOUND, best);
}

// The lowest point of positive weight without a label, as `count` less its index, so that 0 is none.
extern "C" __global__ void __launch_bounds__(256) seed_unlabelled(const u32 *labels, const u32 *weights, u32 count, u64 *result) {
    u64 best = 0;
    for (u64 point = (u64)blockIdx.x * 256 + threadIdx.x; point < count; point += (u64)gridDim.x * 256) {
        if (labels[point] == UNLABELLED && weight_of(weights, point) > 0) {
            best = count - point;
            // Later points have higher indices.
            break;
        }
    }
    best = warp_max(best);
    if (threadIdx.x % WARP == 0 && best != 0) atomicMax(result + FOUND, best);
}

// Gives a centroid a point's coordinates. With `labels`, the point gets the cluster's label and the distance 0, its share of `masses`
// is less by it (null where there are none), and its weight is left in the result. One block.
extern "C" __global__ void __launch_bounds__(256) seed_place(const i8 *points, u32 stride, u32 point, const u32 *weights, i8 *centroids,
                                                             u32 cluster, u32 *labels, u32 *distances, u64 *masses, u64 *result) {
    for (u32 at = threadIdx.x * 16; at < stride; at += 256 * 16) {
        store16(centroids + (u64)cluster * stride + at, load16(points + (u64)point * stride + at));
    }
    if (labels == nullptr || threadIdx.x != 0) return;
    u32 weight = weight_of(weights, point);
    if (masses != nullptr) masses[point / SHARE] -= (u64)weight * distances[point];
    labels[point] = cluster;
    distances[point] = 0;
    result[FOUND] = weight;
}
