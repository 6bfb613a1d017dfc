//! Float search, 4 values per vector: 64 lanes are sixteen vectors of f32, or 32 of f64 in passes.

use std::arch::aarch64::*;

use super::vectors::Neon as Points;
use super::vectors::Neon;
use crate::simd::float_search::kernels::float_kernels;
use crate::simd::float_search::lanes::FloatSums;
use crate::simd::vectors::operations;

float_kernels!(
    Neon, "neon",
    sums: 16 of 1,
    products: 8 x 2 of 1,
    norms: 4 x 4
);

impl FloatSums for Neon {
    const PARTIAL: bool = false;

    operations! {
        fn take(self, places: u64, new: int32x4_t, old: int32x4_t) -> int32x4_t {
            let lanes = vld1q_u32([1, 2, 4, 8].as_ptr());
            vbslq_s32(vtstq_u32(vdupq_n_u32(places as u32), lanes), new, old)
        }
        fn halved(self, x: int32x4_t) -> f32 {
            let x = floats(x);
            vpadds_f32(vadd_f32(vget_low_f32(x), vget_high_f32(x)))
        }
        fn doubles(self, x: int32x4_t) -> [float64x2_t; 2] {
            let x = floats(x);
            [vcvt_f64_f32(vget_low_f32(x)), vcvt_high_f64_f32(x)]
        }
        fn add_product_f64(self, sum: float64x2_t, a: float64x2_t, b: float64x2_t) -> float64x2_t {
            vfmaq_f64(sum, a, b)
        }
        fn take_f64(self, places: u64, new: float64x2_t, old: float64x2_t) -> float64x2_t {
            let lanes = vld1q_u64([1, 2].as_ptr());
            vbslq_f64(vtstq_u64(vdupq_n_u64(places), lanes), new, old)
        }
        fn halved_f64(self, x: float64x2_t) -> f64 { vpaddd_f64(x) }
    }
}

/// Converts patterns to floats.
#[inline]
#[target_feature(enable = "neon")]
fn floats(patterns: int32x4_t) -> float32x4_t {
    vreinterpretq_f32_s32(patterns)
}
