//! Kernels for Cortex-M processors with the DSP extension (Armv7E-M, and Armv8-M Mainline where it has it).

use crate::linear::{I8Sym, Matrix};

/// [`crate::scalar::linear::for_each_sum`] by kernels; false, and nothing done, where a layout has none.
#[inline]
pub fn for_each_sum(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    emit: &mut impl FnMut(usize, i64),
) -> bool {
    let _ = (x, scratch, emit);
    match matrix.layout() {
        _ => false,
    }
}
