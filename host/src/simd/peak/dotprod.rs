//! Multiply-adds over registers, as in [`crate::simd::neon::peak`].

use crate::simd::neon;
use crate::simd::peak::{Peak, Turns, turns};

/// The loops that measure arithmetic.
pub(in crate::simd) const KERNELS: Peak = Peak {
    int8: INT8,
    ternary: INT8,
    ..neon::peak::KERNELS
};

/// `sdot`.
const INT8: Turns = Turns::new(bytes, 12 * 16);

#[target_feature(enable = "neon,dotprod")]
fn bytes(turns: u64) {
    // SAFETY: the code only writes the registers that are named.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            sdot v\\r\\().4s, v30.16b, v31.16b
            .endr",
            "v0" "v1" "v2" "v3" "v4" "v5" "v6" "v7" "v8" "v9" "v10" "v11");
    }
}
