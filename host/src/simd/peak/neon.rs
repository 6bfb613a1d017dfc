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

/// `fmul`, `fadd`.
const FLOATS: Turns = Turns::new(floats, 12 * 4);
/// `smull`, `smlal2`, `sadalp`.
const INT8: Turns = Turns::new(bytes, 12 * 16);

#[target_feature(enable = "neon")]
fn floats(turns: u64) {
    // SAFETY: the code only writes the registers that are named.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            fmul v12.4s, v30.4s, v31.4s
            fadd v\\r\\().4s, v\\r\\().4s, v12.4s
            .endr",
            "v0" "v1" "v2" "v3" "v4" "v5" "v6" "v7" "v8" "v9" "v10" "v11" "v12");
    }
}

#[target_feature(enable = "neon")]
fn bytes(turns: u64) {
    // SAFETY: as above.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            smull v12.8h, v30.8b, v31.8b
            smlal2 v12.8h, v30.16b, v31.16b
            sadalp v\\r\\().4s, v12.8h
            .endr",
            "v0" "v1" "v2" "v3" "v4" "v5" "v6" "v7" "v8" "v9" "v10" "v11" "v12");
    }
}
