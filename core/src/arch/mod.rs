//! Kernels for one kind of processor each, and the choice between them and the plain loops of [`crate::scalar`].
//!
//! A kernel gives the plain loop's bits for every legal input; its proof of that is at its head. Which are compiled in,
//! `build.rs` decides by the target.

#[cfg(tercet_dsp)]
pub mod cortex_m;
#[cfg(tercet_mve)]
pub mod mve;

use crate::linear::{I8Sym, Matrix, Sums};
use crate::scalar;

/// [`scalar::linear::sums`] by the best code here, of the layouts in a set; false, and nothing done, for another. `scratch` has
/// [`Matrix::scratch_len`] words, and `x` an activation a column.
#[inline]
pub(crate) fn sums<const SET: u32>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    #[cfg(tercet_mve)]
    if mve::sums::<SET>(matrix, x, scratch, out) {
        return true;
    }
    #[cfg(tercet_dsp)]
    if cortex_m::sums::<SET>(matrix, x, scratch, out) {
        return true;
    }
    let _ = scratch;
    scalar::linear::sums_of::<SET>(matrix, x, out)
}
