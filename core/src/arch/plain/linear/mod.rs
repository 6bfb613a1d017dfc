//! Row sums of every layout with plain loops, with which kernels are compared.

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

/// Passes the exact sums of the rows to `out`, in order: Σ w·x, or Σ d·2²⁴·(Σ w·x) + m·2²⁴·Σ x over blocks.
///
/// `x` has one activation per column; otherwise the sums have no meaning. Needs no scratch. O(rows · cols).
#[inline]
pub fn sums(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    sums_of::<{ u32::MAX }>(matrix, x, out);
}

/// Does [`sums`] for the layouts in a set. Returns false and does nothing for another. The code of the others is not
/// linked.
#[inline]
pub(crate) fn sums_of<const SET: u32>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    out: &mut impl Sums,
) -> bool {
    // Each condition is a constant.
    macro_rules! taken {
        ($layout:expr, $sums:expr) => {{
            if $layout.is_in(SET) {
                $sums;
            }
            $layout.is_in(SET)
        }};
    }
    macro_rules! of_blocks {
        ($format:expr, $($name:ident)+) => {
            match $format {
                $(Format::$name => taken!(
                    Layout::Block(Format::$name),
                    blocks(Format::$name, matrix, x, out)
                ),)+
            }
        };
    }
    match matrix.layout() {
        Layout::Int8 => taken!(Layout::Int8, int8(matrix, x, out)),
        Layout::Int8Pairs => taken!(Layout::Int8Pairs, int8_pairs(matrix, x, out)),
        Layout::Int4 => taken!(Layout::Int4, int4(matrix, x, out)),
        Layout::TernaryLanes => taken!(Layout::TernaryLanes, ternary_lanes(matrix, x, out)),
        Layout::FiveTrits => taken!(Layout::FiveTrits, five_trits(matrix, x, out)),
        Layout::Block(format) => {
            of_blocks!(format, Tq1_0 Tq2_0 Q2_0 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4K Q6K)
        }
    }
}

/// Calls `each` with each row and its sum, as [`sums`] computes them.
#[inline]
pub fn for_each_sum(matrix: &Matrix<'_>, x: I8Sym<'_>, each: impl FnMut(usize, i64)) {
    let rows = 0..matrix.rows();
    sums(matrix, x, &mut Each { rows, each });
}
