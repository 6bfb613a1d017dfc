//! The block operations for vectors of 128 bits.

use std::arch::aarch64::*;

use crate::simd::blocks::lanes::Lanes;
use crate::simd::neon::vectors::Neon;
use crate::simd::vectors::operations;

impl Lanes for Neon {
    type Count = uint32x4_t;

    #[inline(always)]
    fn ask(self, _line: &[f32]) {}

    operations! {
        fn none(self) -> uint32x4_t { vdupq_n_u32(0) }
        fn count(self, count: uint32x4_t, yes: uint32x4_t) -> uint32x4_t {
            // All ones for yes: −1.
            vsubq_u32(count, yes)
        }
        fn counted(self, count: uint32x4_t) -> u32 { vaddvq_u32(count) }
        fn keep(self, yes: uint32x4_t, x: int32x4_t) -> int32x4_t {
            vandq_s32(vreinterpretq_s32_u32(yes), x)
        }
        fn add_kept_f32(self, sum: int32x4_t, yes: uint32x4_t, x: int32x4_t) -> int32x4_t {
            let kept = vreinterpretq_f32_u32(vandq_u32(yes, vreinterpretq_u32_s32(x)));
            vreinterpretq_s32_f32(vaddq_f32(vreinterpretq_f32_s32(sum), kept))
        }
        fn both(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t { vandq_u32(a, b) }
        fn top(self, x: int32x4_t) -> i32 { vmaxvq_s32(x) }
        fn sum_f32(self, x: int32x4_t) -> f32 { vaddvq_f32(vreinterpretq_f32_s32(x)) }
        fn sum_f64(self, x: float64x2_t) -> f64 { vaddvq_f64(x) }
    }
}
