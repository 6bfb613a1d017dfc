//! From row-major codes to the layouts that are Tercet's own.

mod int4;
mod int8_pairs;
mod ternary_lanes;

pub use int4::int4;
pub use int8_pairs::int8_pairs;
pub(super) use ternary_lanes::check_ternary_lanes;
pub use ternary_lanes::ternary_lanes;

use core::ops::RangeInclusive;

use super::{Layout, LinearError, expect};

/// Refuses lengths that do not fit the matrix, and the first code outside a range.
fn check(
    layout: Layout,
    (rows, cols): (usize, usize),
    codes: &[i8],
    out: usize,
    range: RangeInclusive<i8>,
) -> Result<(), LinearError> {
    expect(layout.bytes(rows, cols)?, out)?;
    expect(
        rows.checked_mul(cols).ok_or(LinearError::TooLarge)?,
        codes.len(),
    )?;
    match codes.iter().position(|code| !range.contains(code)) {
        // `cols` is not 0; the maximum only tells the compiler.
        Some(index) => Err(LinearError::CodeRange {
            row: index / cols.max(1),
            col: index % cols.max(1),
        }),
        None => Ok(()),
    }
}
