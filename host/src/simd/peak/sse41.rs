//! Multiply-adds over registers: with twelve sums, so that none is waited for.
//!
//! In assembly, because a compiler would compute a product of constants once.

use crate::simd::peak::{Peak, Turns, turns};

/// The loops that measure arithmetic.
pub(in crate::simd) const KERNELS: Peak = Peak {
    f32: FLOATS,
    int8: INT8,
    ternary: INT8,
};

/// `mulps`, `addps`.
const FLOATS: Turns = Turns::new(floats, 12 * 4);
/// `pmaddwd`, `paddd`, on widened int8.
const INT8: Turns = Turns::new(words, 12 * 8);

#[target_feature(enable = "sse4.1")]
fn floats(turns: u64) {
    // SAFETY: the code only writes the registers that are named.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            movaps xmm12, xmm15
            mulps xmm12, xmm14
            addps xmm\\r, xmm12
            .endr",
            "xmm0" "xmm1" "xmm2" "xmm3" "xmm4" "xmm5" "xmm6" "xmm7" "xmm8" "xmm9" "xmm10" "xmm11" "xmm12");
    }
}

#[target_feature(enable = "sse4.1")]
fn words(turns: u64) {
    // SAFETY: as above.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            movdqa xmm12, xmm15
            pmaddwd xmm12, xmm14
            paddd xmm\\r, xmm12
            .endr",
            "xmm0" "xmm1" "xmm2" "xmm3" "xmm4" "xmm5" "xmm6" "xmm7" "xmm8" "xmm9" "xmm10" "xmm11" "xmm12");
    }
}
