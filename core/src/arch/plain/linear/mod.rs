//! Row sums of every layout by plain loops: what kernels are compared with.

mod blocks;
mod five_trits;
mod int4;
mod int8;
mod int8_pairs;
mod ternary_lanes;

pub use blocks::blocks;
pub use five_trits::five_trits;
pub use int4::int4;
pub use int8::int8;
pub use int8_pairs::int8_pairs;
pub use ternary_lanes::ternary_lanes;

use crate::block::Format;
use crate::linear::{Each, I8Sym, Layout, Matrix, Sums};

/// Gives `out` the exact sums of the rows, in order: Σ w·x, or Σ d·2²⁴·(Σ w·x) over blocks.
///
/// `x` holds an activation a column, else the sums mean nothing. Needs no scratch. O(rows · cols).
#[inline]
pub fn sums(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    sums_of::<{ u32::MAX }>(matrix, x, out);
}

/// [`sums`] of the layouts in a set; false, and nothing done, for another. The code of those left out is not linked.
#[inline]
pub(crate) fn sums_of<const SET: u32>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    out: &mut impl Sums,
) -> bool {
    // Each arm's guard is a constant.
    match matrix.layout() {
        Layout::Int8 if Layout::Int8.is_in(SET) => int8(matrix, x, out),
        Layout::Int8Pairs if Layout::Int8Pairs.is_in(SET) => int8_pairs(matrix, x, out),
        Layout::Int4 if Layout::Int4.is_in(SET) => int4(matrix, x, out),
        Layout::TernaryLanes if Layout::TernaryLanes.is_in(SET) => ternary_lanes(matrix, x, out),
        Layout::FiveTrits if Layout::FiveTrits.is_in(SET) => five_trits(matrix, x, out),
        Layout::Block(format) => return blocks_of::<SET>(format, matrix, x, out),
        _ => return false,
    }
    true
}

#[inline]
fn blocks_of<const SET: u32>(
    format: Format,
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    out: &mut impl Sums,
) -> bool {
    macro_rules! each {
        ($($format:ident)+) => {
            match format {
                $(Format::$format if Layout::Block(Format::$format).is_in(SET) => {
                    blocks(Format::$format, matrix, x, out);
                })+
                _ => return false,
            }
        };
    }
    each!(Tq1_0 Tq2_0 Q2_0 Q8_0 Q4_0);
    true
}

/// Calls `each` with each row and its sum, as [`sums`] finds them.
#[inline]
pub fn for_each_sum(matrix: &Matrix<'_>, x: I8Sym<'_>, each: impl FnMut(usize, i64)) {
    let rows = 0..matrix.rows();
    sums(matrix, x, &mut Each { rows, each });
}
