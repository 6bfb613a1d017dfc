//! Clustering, 4 points per vector, with `sdot`.

use std::arch::aarch64::*;
use std::arch::asm;

use crate::simd::cluster::products::{Format, Products};
use crate::simd::neon::vectors::Neon;

/// [`Neon`]'s vectors, with byte products.
#[derive(Clone, Copy)]
pub(in crate::simd) struct DotProd(Neon);

impl DotProd {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    pub(in crate::simd) fn here() -> Self {
        Self(Neon::here())
    }
}

impl Products for DotProd {
    type Vectors = Neon;
    const FORMAT: Format = Format::Signed;

    #[inline(always)]
    fn vectors(self) -> Neon {
        self.0
    }

    #[inline(always)]
    fn operands(self, coordinates: int32x4_t) -> [int32x4_t; 2] {
        [coordinates; 2]
    }

    /// In assembly, because its intrinsic is not stable.
    #[inline(always)]
    fn product(self, sum: int32x4_t, points: int32x4_t, centroid: int32x4_t) -> int32x4_t {
        let mut sum = sum;
        // SAFETY: the value is made only where the set runs, and the instruction touches no memory.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {sum:v}.4s, {points:v}.16b, {centroid:v}.16b",
                sum = inout(vreg) sum,
                points = in(vreg) points,
                centroid = in(vreg) centroid,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
}

crate::simd::cluster::cluster_kernels!(DotProd, 4, "neon,dotprod");
