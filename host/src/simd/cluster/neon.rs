//! Clustering, 4 points per vector, with `smlal` on widened coordinates.

use std::arch::aarch64::*;

use super::vectors::Neon;
use crate::simd::cluster::products::{Format, Products};
use crate::simd::vectors::operations;

impl Products for Neon {
    type Vectors = Self;
    const FORMAT: Format = Format::Pairs;

    #[inline(always)]
    fn vectors(self) -> Self {
        self
    }

    operations! {
        /// Each half of a vector has one coordinate of the four points.
        fn operands(self, coordinates: int32x4_t) -> [int32x4_t; 2] {
            let words = vreinterpretq_s16_s32(coordinates);
            let halves = |v: int16x8_t| {
                let (low, high) = (vuzp1q_s16(v, v), vuzp2q_s16(v, v));
                vreinterpretq_s32_s16(vcombine_s16(vget_low_s16(low), vget_low_s16(high)))
            };
            let first_third = vshrq_n_s16::<8>(vshlq_n_s16::<8>(words));
            [halves(first_third), halves(vshrq_n_s16::<8>(words))]
        }
        fn product(self, sum: int32x4_t, points: int32x4_t, centroid: int32x4_t) -> int32x4_t {
            let (points, centroid) = (vreinterpretq_s16_s32(points), vreinterpretq_s16_s32(centroid));
            let sum = vmlal_laneq_s16::<0>(sum, vget_low_s16(points), centroid);
            vmlal_high_laneq_s16::<1>(sum, points, centroid)
        }
    }
}

crate::simd::cluster::cluster_kernels!(Neon, 4, "neon");
