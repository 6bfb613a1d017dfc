// One warp shows what each intrinsic gives.
#include "tercet/device.cuh"

// A word of each of the four inputs a lane; 40 words out a lane.
extern "C" __global__ void test_words(const u32 *in, u32 *out) {
    u32 t = threadIdx.x;
    u32 a = in[4 * t], b = in[4 * t + 1], c = in[4 * t + 2], selector = in[4 * t + 3];
    u32 *o = out + 40 * t;
    o[0] = static_cast<u32>(dp4a(static_cast<i32>(a), static_cast<i32>(b), static_cast<i32>(c)));
    o[1] = dp4a(a, b, c);
    o[2] = static_cast<u32>(dp4a_unsigned_signed(a, static_cast<i32>(b), static_cast<i32>(c)));
    o[3] = byte_permute(a, b, selector);
    o[4] = popcount(a);
    o[5] = leading_zeros(a);
    o[6] = find_first_set(a);
    o[7] = bits_of(f16_to_f32(static_cast<u16>(a)));
    o[8] = f32_to_f16(float_of(b));
    o[9] = f32_to_bf16(float_of(c));
    o[10] = bits_of(bf16_to_f32(static_cast<u16>(c)));
    o[11] = __shfl_sync(FULL_WARP, a, static_cast<i32>(selector));
    o[12] = __shfl_up_sync(FULL_WARP, a, selector & 15u);
    o[13] = __shfl_down_sync(FULL_WARP, a, selector & 15u);
    o[14] = __shfl_xor_sync(FULL_WARP, a, 5);
    o[15] = __shfl_down_sync(FULL_WARP, a, 3u, 8);
    o[16] = __shfl_sync(FULL_WARP, a, static_cast<i32>(selector), 16);
    o[17] = __ballot_sync(FULL_WARP, a & 1u);
    o[18] = static_cast<u32>(__any_sync(FULL_WARP, a == in[4 * 7]));
    o[19] = static_cast<u32>(__all_sync(FULL_WARP, a == in[4 * 7]));
    o[20] = __match_any_sync(FULL_WARP, a & 3u);
    o[21] = warp_sum(a);
    o[22] = warp_min(a);
    o[23] = warp_max(static_cast<i32>(a));
    u64 wide = static_cast<u64>(a) << 32 | b;
    u64 moved = __shfl_xor_sync(FULL_WARP, wide, 1);
    o[24] = static_cast<u32>(moved);
    o[25] = static_cast<u32>(moved >> 32);
    // Each half of the warp by itself.
    o[26] = t < 16 ? __ballot_sync(0x0000FFFFu, a & 1u) : __ballot_sync(0xFFFF0000u, a & 2u);
    o[27] = __umulhi(a, b);
    o[28] = static_cast<u32>(__mulhi(static_cast<i32>(a), static_cast<i32>(b)));
    o[29] = __funnelshift_r(a, b, selector);
    o[30] = __brev(a);
    o[31] = static_cast<u32>(__float2int_rn(float_of(b)));
    o[32] = bits_of(__fdiv_rn(float_of(a), float_of(b)));
    o[33] = bits_of(__fsqrt_rn(float_of(b)));
    o[34] = leading_zeros(wide);
    o[35] = find_first_set(wide);
    o[36] = popcount(wide);
    o[37] = min(static_cast<i32>(a), static_cast<i32>(b));
    o[38] = max(a, b);
    o[39] = static_cast<u32>(__syncthreads_count(static_cast<i32>(a & 1u)));
}

// A 16 x 32 matrix by a 32 x 8 one, both by rows, through fragments and through matrix loads; plus `d`.
extern "C" __global__ void test_mma(const i8 *a, const i8 *b, const i32 *d, i32 *out, i32 *out_by_loads) {
    alignas(16) __shared__ u8 tile[16 * 32];
    u32 lane = threadIdx.x, g = lane / 4, t = lane % 4;
    i32 sums[4], again[4];
    u32 fa[4], fb[2];
    for (u32 i = 0; i < 4; i++) {
        u32 row = g + 8 * (i & 1), column = 4 * t + 16 * (i >> 1);
        fa[i] = 0;
        for (u32 k = 0; k < 4; k++) {
            fa[i] |= static_cast<u32>(static_cast<u8>(a[row * 32 + column + k])) << (8 * k);
        }
        sums[i] = again[i] = d[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)];
    }
    for (u32 i = 0; i < 2; i++) {
        fb[i] = 0;
        for (u32 k = 0; k < 4; k++) {
            fb[i] |= static_cast<u32>(static_cast<u8>(b[(16 * i + 4 * t + k) * 8 + g])) << (8 * k);
        }
    }
    mma_m16n8k32(sums, fa, fb);
    copy_async16(tile + 16 * lane, a + 16 * lane);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    u32 loaded[4];
    // Matrix i: rows 8 (i & 1).., bytes 16 (i >> 1)..
    load_matrices(loaded, tile + (lane % 8 + 8 * (lane / 8 & 1)) * 32 + 16 * (lane / 16));
    mma_m16n8k32(again, loaded, fb);
    for (u32 i = 0; i < 4; i++) {
        u32 at = (g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1);
        out[at] = sums[i];
        out_by_loads[at] = again[i];
    }
}

// Every f16 pattern widened; the value of every pattern narrowed again, and those halfway to the next.
extern "C" __global__ void test_halves(u32 *wide, u16 *narrow, u16 *half_way) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    f32 value = f16_to_f32(static_cast<u16>(i));
    wide[i] = bits_of(value);
    narrow[i] = f32_to_f16(value);
    f64 next = f16_to_f32(static_cast<u16>(i + 1));
    half_way[i] = f32_to_f16(static_cast<f32>((static_cast<f64>(value) + next) / 2));
}

// Atomics of 32 and 64 bits.
extern "C" __global__ void test_atomics(u32 *words, u64 *wide, i32 *signs) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(words, i);
    atomicMax(words + 1, i);
    atomicMin(words + 2, i);
    atomicOr(words + 3, 1u << (i % 32));
    atomicCAS(words + 4, 0u, i + 1);
    atomicAdd(wide, static_cast<u64>(i) << 30);
    atomicMin(wide + 1, static_cast<u64>(i) << 40);
    atomicMin(signs, -static_cast<i32>(i));
    atomicAdd(signs + 1, -1);
}
