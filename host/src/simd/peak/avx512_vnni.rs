//! Multiply-adds over registers, as in [`crate::simd::avx512::peak`].

use crate::simd::avx512;
use crate::simd::peak::{Peak, Turns, turns};

/// The loops that measure arithmetic.
pub(in crate::simd) const KERNELS: Peak = Peak {
    int8: INT8,
    ternary: INT8,
    ..avx512::peak::KERNELS
};

/// `vpdpbusd`.
const INT8: Turns = Turns::new(bytes, 12 * 64);

#[target_feature(enable = "avx512f,avx512vnni")]
fn bytes(turns: u64) {
    // SAFETY: the code only writes the registers that are named.
    unsafe {
        turns!(turns, ".irp r,0,1,2,3,4,5,6,7,8,9,10,11
            vpdpbusd zmm\\r, zmm14, zmm15
            .endr",
            "zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11");
    }
}
