//! Multiply-adds over registers, with twelve sums, so that no product waits for the one before.
//!
//! In assembly, because a compiler would compute a product of constants once.

use crate::simd::peak::{Peak, Turns, turns};

/// The loops that measure arithmetic.
pub(in crate::simd) const KERNELS: Peak = Peak {
    f32: FLOATS,
    int8: INT8,
    ternary: TERNARY,
};

/// `vmulps`, `vaddps`.
const FLOATS: Turns = Turns::new(floats, 12 * 8);
/// `vpmaddwd`, `vpaddd`, on widened int8.
const INT8: Turns = Turns::new(words, 12 * 16);
/// `vpmaddubsw`, `vpaddw`: exact for a few steps of ternary codes, before sums are widened.
const TERNARY: Turns = Turns::new(bytes, 12 * 32);

#[target_feature(enable = "avx2")]
fn floats(turns: u64) {
    // SAFETY: the code only writes the registers that are named.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            vmulps ymm12, ymm14, ymm15
            vaddps ymm\\r, ymm\\r, ymm12
            .endr",
            "ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11" "ymm12");
    }
}

#[target_feature(enable = "avx2")]
fn words(turns: u64) {
    // SAFETY: as above.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            vpmaddwd ymm12, ymm14, ymm15
            vpaddd ymm\\r, ymm\\r, ymm12
            .endr",
            "ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11" "ymm12");
    }
}

#[target_feature(enable = "avx2")]
fn bytes(turns: u64) {
    // SAFETY: as above.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            vpmaddubsw ymm12, ymm14, ymm15
            vpaddw ymm\\r, ymm\\r, ymm12
            .endr",
            "ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11" "ymm12");
    }
}
