//! Loops for processors with a 32-bit multiplier and nothing more: Cortex-M0 and M3, RV32.
//!
//! Ternary layouts: two rows' codes are far enough apart in one word that one multiplication by an activation serves
//! both, and their sums stay separate until they are read. int8: several values without a branch, and four rows at
//! once if there are enough registers.

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

/// Does [`crate::arch::plain::linear::sums`] for the layouts in a set that have such a loop. Returns false and does
/// nothing for another. `scratch` has at least [`Matrix::scratch_len`] words.
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
        // Targets with an operating system have vectors, and compilers make better ones from a single row's loop.
        Layout::Int8 if Layout::Int8.is_in(SET) && cfg!(target_os = "none") => {
            int8::sums(matrix, x, out);
        }
        Layout::TernaryLanes if Layout::TernaryLanes.is_in(SET) => {
            ternary_lanes::sums(matrix, x, scratch, out);
        }
        Layout::FiveTrits if Layout::FiveTrits.is_in(SET) => five_trits::sums(matrix, x, out),
        TQ1_0 if TQ1_0.is_in(SET) => {
            // Matrices that the kernels for the DSP extension leave have too little scratch for tables.
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
