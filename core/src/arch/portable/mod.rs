//! Loops in plain Rust for processors without vectors or DSP instructions: Cortex-M0 to M3, RISC-V.
//!
//! They run on every machine, and are chosen where no operating system is and no kernel for the processor.

mod dots;
pub mod int8;
mod nearest;

pub use nearest::nearest;

use crate::linear::{I8Sym, Layout, Matrix, Sums};

/// [`crate::scalar::linear::sums`] by these loops, of the layouts in a set; false, and nothing done, where a layout has none.
#[inline]
pub fn sums<const SET: u32>(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) -> bool {
    match matrix.layout() {
        Layout::Int8 if Layout::Int8.is_in(SET) => {
            int8::sums(matrix, x, out);
            true
        }
        _ => false,
    }
}
