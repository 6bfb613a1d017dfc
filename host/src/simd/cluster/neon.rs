//! Clustering, 4 points a vector, by `smlal` on widened coordinates.

use std::arch::aarch64::*;
use std::arch::asm;

use crate::simd::cluster::lanes::{Format, Lanes};

/// 4 lanes.
pub(in crate::simd) struct Neon;

impl Lanes for Neon {
    type Vector = int32x4_t;
    const WIDTH: usize = 4;
    const FORMAT: Format = Format::Pairs;

    #[inline(always)]
    unsafe fn splat(value: i32) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { vdupq_n_s32(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i32) -> int32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vld1q_s32(from) }
    }

    #[inline(always)]
    unsafe fn store(vector: int32x4_t, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { vst1q_s32(to, vector) }
    }

    #[inline(always)]
    unsafe fn turn(rows: *const i8, stride: usize) -> [int32x4_t; 4] {
        // SAFETY: the caller's promise about 4 rows.
        unsafe {
            let row = |row: usize| vreinterpretq_s32_s8(vld1q_s8(rows.add(row * stride)));
            let rows = [row(0), row(1), row(2), row(3)];
            // A matrix of 4 × 4 words.
            let even01 = vreinterpretq_s64_s32(vtrn1q_s32(rows[0], rows[1]));
            let even23 = vreinterpretq_s64_s32(vtrn1q_s32(rows[2], rows[3]));
            let odd01 = vreinterpretq_s64_s32(vtrn2q_s32(rows[0], rows[1]));
            let odd23 = vreinterpretq_s64_s32(vtrn2q_s32(rows[2], rows[3]));
            [
                vreinterpretq_s32_s64(vzip1q_s64(even01, even23)),
                vreinterpretq_s32_s64(vzip1q_s64(odd01, odd23)),
                vreinterpretq_s32_s64(vzip2q_s64(even01, even23)),
                vreinterpretq_s32_s64(vzip2q_s64(odd01, odd23)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe {
            asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
        }
    }

    /// One coordinate of the four points in each half of a vector.
    #[inline(always)]
    unsafe fn operands(coordinates: int32x4_t) -> [int32x4_t; 2] {
        // SAFETY: the set runs here.
        unsafe {
            let words = vreinterpretq_s16_s32(coordinates);
            let halves = |v: int16x8_t| {
                let (low, high) = (vuzp1q_s16(v, v), vuzp2q_s16(v, v));
                vreinterpretq_s32_s16(vcombine_s16(vget_low_s16(low), vget_low_s16(high)))
            };
            let first_third = vshrq_n_s16::<8>(vshlq_n_s16::<8>(words));
            [halves(first_third), halves(vshrq_n_s16::<8>(words))]
        }
    }

    #[inline(always)]
    unsafe fn product(sum: int32x4_t, points: int32x4_t, centroid: int32x4_t) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe {
            let (points, centroid) = (
                vreinterpretq_s16_s32(points),
                vreinterpretq_s16_s32(centroid),
            );
            let sum = vmlal_laneq_s16::<0>(sum, vget_low_s16(points), centroid);
            vmlal_high_laneq_s16::<1>(sum, points, centroid)
        }
    }

    #[inline(always)]
    unsafe fn better(
        best: (int32x4_t, int32x4_t),
        sum: int32x4_t,
        tag: int32x4_t,
    ) -> (int32x4_t, int32x4_t) {
        // SAFETY: the set runs here.
        unsafe {
            let greater = vcgtq_s32(sum, best.0);
            (vmaxq_s32(sum, best.0), vbslq_s32(greater, tag, best.1))
        }
    }

    #[inline(always)]
    unsafe fn differ(a: int32x4_t, b: int32x4_t) -> u64 {
        // SAFETY: the set runs here; four values are read.
        unsafe {
            let bits = vld1q_u32([1, 2, 4, 8].as_ptr());
            vaddvq_u32(vbicq_u32(bits, vceqq_s32(a, b))).into()
        }
    }

    #[inline(always)]
    unsafe fn found(length: int32x4_t, best: int32x4_t, tag: int32x4_t) -> (int32x4_t, int32x4_t) {
        // SAFETY: the set runs here.
        unsafe {
            let label = vreinterpretq_s32_u32(vshrq_n_u32::<1>(vreinterpretq_u32_s32(tag)));
            let even = vsubq_s32(length, vshlq_n_s32::<1>(best));
            (label, vaddq_s32(even, vandq_s32(tag, vdupq_n_s32(1))))
        }
    }

    #[inline(always)]
    unsafe fn add(sums: &mut [i16; 32], row: *const i8) {
        for half in [0, 16] {
            // SAFETY: the set runs here; 32 sums, and 32 bytes of a row as promised.
            unsafe {
                let sums = sums.as_mut_ptr().add(half);
                let row = vld1q_s8(row.add(half));
                vst1q_s16(sums, vaddw_s8(vld1q_s16(sums), vget_low_s8(row)));
                let sums = sums.add(8);
                vst1q_s16(sums, vaddw_high_s8(vld1q_s16(sums), row));
            }
        }
    }

    #[inline(always)]
    unsafe fn subtract(sums: &mut [i16; 32], row: *const i8) {
        for half in [0, 16] {
            // SAFETY: the set runs here; 32 sums, and 32 bytes of a row as promised.
            unsafe {
                let sums = sums.as_mut_ptr().add(half);
                let row = vld1q_s8(row.add(half));
                vst1q_s16(sums, vsubw_s8(vld1q_s16(sums), vget_low_s8(row)));
                let sums = sums.add(8);
                vst1q_s16(sums, vsubw_high_s8(vld1q_s16(sums), row));
            }
        }
    }
}

crate::simd::cluster::cluster_kernels!(Neon, 4, "neon");
