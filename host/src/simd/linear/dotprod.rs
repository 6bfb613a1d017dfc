//! Rows of weights times activations, with `sdot`.

use std::arch::aarch64::*;
use std::arch::asm;

use crate::simd::neon::linear::{Products, kernels};

/// Products with DotProd.
pub(in crate::simd) struct DotProd;

impl Products for DotProd {
    /// In assembly, because its intrinsic is not stable.
    #[inline(always)]
    unsafe fn add(sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
        let mut sum = sum;
        // SAFETY: the set runs here, and the instruction touches no memory.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
                sum = inout(vreg) sum,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
}

kernels!(DotProd, "neon,dotprod");
