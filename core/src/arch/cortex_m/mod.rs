//! Kernels for Cortex-M processors with the DSP extension (Armv7E-M, and Armv8-M Mainline where it has it).
#![allow(
    unsafe_code,
    reason = "inline assembly: compilers' scalar code takes several times the instructions"
)]

mod dot;
mod dsp;
mod int4;
mod int8;
mod int8_pairs;
mod nearest;
mod ternary_lanes;
mod tq2_0;
mod widen;

pub(crate) use dot::{dot, norm};
pub(crate) use nearest::{for_each_nearest, nearest};

use crate::block::Format;
use crate::linear::{I8Sym, Layout, Matrix};

/// [`crate::scalar::linear::for_each_sum`] by kernels; false, and nothing done, where a layout has none, or none for the address.
#[inline]
pub fn for_each_sum(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    emit: &mut impl FnMut(usize, i64),
) -> bool {
    let packed = match matrix.layout() {
        Layout::Int8 => {
            int8::for_each_sum(matrix, x, scratch, emit);
            return true;
        }
        Layout::TernaryLanes => return ternary_lanes::sums(matrix, x, scratch, emit),
        Layout::Block(Format::Tq2_0) => return tq2_0::sums(matrix, x, scratch, emit),
        Layout::Int8Pairs => int8_pairs::for_each_sum,
        Layout::Int4 => int4::for_each_sum,
        Layout::Block(_) => return false,
    };
    let Some(words) = words(matrix.bytes()) else {
        return false;
    };
    packed(matrix.rows(), words, x, scratch, emit);
    true
}

/// Bytes as little-endian words, where they begin at a multiple of 4.
fn words(bytes: &[u8]) -> Option<&[u32]> {
    // SAFETY: Every pattern is a u32; these processors are compiled for little-endian.
    let (before, words, after) = unsafe { bytes.align_to() };
    (before.is_empty() && after.is_empty()).then_some(words)
}
