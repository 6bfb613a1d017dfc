//! Kernels for Cortex-M processors with the DSP extension (Armv7E-M, and Armv8-M Mainline where it has it).
#![allow(
    unsafe_code,
    reason = "inline assembly: compilers' scalar code takes several times the instructions"
)]

mod ternary_lanes;
mod tq1_0;
mod tq2_0;
mod widen;

use crate::block::Format;
use crate::linear::{I8Sym, Layout, Matrix};

/// [`crate::scalar::linear::for_each_sum`] by kernels; false, and nothing done, where a layout has none.
#[inline]
pub fn for_each_sum(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    emit: &mut impl FnMut(usize, i64),
) -> bool {
    match matrix.layout() {
        Layout::TernaryLanes => ternary_lanes::sums(matrix, x, scratch, emit),
        Layout::Block(Format::Tq1_0) => tq1_0::sums(matrix, x, scratch, emit),
        Layout::Block(Format::Tq2_0) => tq2_0::sums(matrix, x, scratch, emit),
        _ => false,
    }
}
