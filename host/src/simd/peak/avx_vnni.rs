//! Multiply-adds over registers, as in [`crate::simd::avx2::peak`].

use crate::simd::avx2;
use crate::simd::peak::{Peak, Turns, turns};

/// The loops that measure arithmetic.
pub(in crate::simd) const KERNELS: Peak = Peak {
    int8: INT8,
    ternary: INT8,
    ..avx2::peak::KERNELS
};

/// `vpdpbusd`.
const INT8: Turns = Turns::new(bytes, 12 * 32);

#[target_feature(enable = "avx2,avxvnni,f16c,fma")]
fn bytes(turns: u64) {
    // SAFETY: the code only writes the registers that are named.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            {{vex}} vpdpbusd ymm\\r, ymm14, ymm15
            .endr",
            "ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11");
    }
}
