//! Kernels for one kind of processor each, and the choice between them and the plain loops of [`crate::scalar`].
//!
//! A kernel gives the plain loop's bits for every legal input; its proof of that is at its head. Which are compiled in,
//! `build.rs` decides by the target.

#[cfg(tercet_dsp)]
pub mod cortex_m;

use crate::linear::{I8Sym, Matrix};
use crate::scalar;

/// [`scalar::linear::for_each_sum`] by the best code here. `scratch` has [`Matrix::scratch_len`] words, and `x` an activation a
/// column.
#[inline]
pub(crate) fn for_each_sum(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    mut emit: impl FnMut(usize, i64),
) {
    #[cfg(tercet_dsp)]
    if cortex_m::for_each_sum(matrix, x, scratch, &mut emit) {
        return;
    }
    let _ = scratch;
    scalar::linear::for_each_sum(matrix, x, &mut emit);
}
