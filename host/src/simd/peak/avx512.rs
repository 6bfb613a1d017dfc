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
const FLOATS: Turns = Turns::new(floats, 12 * 16);
/// `vpmaddwd`, `vpaddd`, on widened int8.
const INT8: Turns = Turns::new(words, 12 * 32);
/// `vpmaddubsw`, `vpaddw`: exact for a few steps of ternary codes, before sums are widened.
const TERNARY: Turns = Turns::new(bytes, 12 * 64);

#[target_feature(enable = "avx512f,avx512bw")]
fn floats(turns: u64) {
    // SAFETY: the code only writes the registers that are named.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            vmulps zmm12, zmm14, zmm15
            vaddps zmm\\r, zmm\\r, zmm12
            .endr",
            "zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12");
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn words(turns: u64) {
    // SAFETY: as above.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            vpmaddwd zmm12, zmm14, zmm15
            vpaddd zmm\\r, zmm\\r, zmm12
            .endr",
            "zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12");
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn bytes(turns: u64) {
    // SAFETY: as above.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            vpmaddubsw zmm12, zmm14, zmm15
            vpaddw zmm\\r, zmm\\r, zmm12
            .endr",
            "zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12");
    }
}
