//! Kernels for Cortex-M processors with vectors (Helium: Cortex-M52, M55, M85).
//!
//! Each is a function in assembly, since compilers for Armv8-M Mainline do not know the vector instructions: the
//! feature `mve` states that the processor has them.
#![allow(unsafe_code, reason = "calls of functions in assembly")]

pub(super) mod attention;
mod dot;
mod int8;
mod nearest;
pub(super) mod q8_0;
mod tq1_0;
mod tq2_0;

pub(crate) use dot::{dot, norm};
pub use int8::int8;
pub(crate) use nearest::{for_each_nearest, nearest};
pub use tq2_0::tq2_0;

use crate::block::Format;
use crate::linear::{I8Sym, Layout, Matrix, Sums};

/// Does [`crate::arch::plain::linear::sums`] with kernels, for the layouts in a set. Returns false and does nothing
/// if a layout has none.
#[inline]
pub fn sums<const SET: u32>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    const TQ1_0: Layout = Layout::Block(Format::Tq1_0);
    const TQ2_0: Layout = Layout::Block(Format::Tq2_0);
    match matrix.layout() {
        Layout::Int8 if Layout::Int8.is_in(SET) => int8(matrix, x, out),
        TQ1_0 if TQ1_0.is_in(SET) => return tq1_0::tq1_0(matrix, x, out),
        TQ2_0 if TQ2_0.is_in(SET) => tq2_0(matrix, x, scratch, out),
        _ => return false,
    }
    true
}
