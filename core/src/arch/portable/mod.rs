//! Loops for processors that have a multiplier of 32 bits and nothing more: Cortex-M0 and M3, RV32.
//!
//! Ternary layouts: two rows' codes lie far enough apart in one word that one multiplication by an activation serves both, and sums
//! stay apart until they are read out. int8: several values without a branch, four rows at once where there are registers.

mod blocks;
mod dot;
mod five_trits;
pub mod int8;
mod nearest;
#[cfg(not(tercet_mve))]
pub(crate) mod one_scale;
mod ternary_lanes;
mod tq1_0;

pub(crate) use blocks::fixed;
pub use dot::{dot, dots, norm};
pub use nearest::nearest;
#[cfg(not(any(tercet_dsp, tercet_mve)))]
pub(crate) use tq1_0::Portable as Tq1_0;

use crate::block::Format;
use crate::linear::{I8Sym, Layout, Matrix, Sums};

/// [`crate::arch::plain::linear::sums`] of the layouts in a set that have such a loop; false, and nothing done, for another. `scratch` has
/// [`Matrix::scratch_len`] words or more.
#[inline]
pub(crate) fn sums<const SET: u32>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    const TQ1_0: Layout = Layout::Block(Format::Tq1_0);
    const TQ2_0: Layout = Layout::Block(Format::Tq2_0);
    const Q8_0: Layout = Layout::Block(Format::Q8_0);
    // Each arm's guard is a constant.
    match matrix.layout() {
        // Where there is an operating system there are vectors, and compilers make better ones of a single row's loop.
        Layout::Int8 if Layout::Int8.is_in(SET) && cfg!(target_os = "none") => {
            int8::sums(matrix, x, out);
        }
        Layout::TernaryLanes if Layout::TernaryLanes.is_in(SET) => {
            ternary_lanes::sums(matrix, x, scratch, out);
        }
        Layout::FiveTrits if Layout::FiveTrits.is_in(SET) => five_trits::sums(matrix, x, out),
        TQ1_0 if TQ1_0.is_in(SET) => {
            // What kernels for the DSP extension leave has too little scratch for tables.
            if cfg!(tercet_dsp) || !tq1_0::sums(matrix, x, scratch, out) {
                blocks::sums::<54>(matrix, x, blocks::tq1_0, out);
            }
        }
        TQ2_0 if TQ2_0.is_in(SET) => blocks::sums::<66>(matrix, x, blocks::tq2_0, out),
        Q8_0 if Q8_0.is_in(SET) && cfg!(target_os = "none") => blocks::q8_0(matrix, x, out),
        _ => return false,
    }
    true
}
