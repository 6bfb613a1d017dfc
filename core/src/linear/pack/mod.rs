//! Packs row-major codes in the layouts that are made from codes.

mod five_trits;
mod int4;
mod int8_pairs;
mod ternary_lanes;

pub use five_trits::five_trits;
pub use int4::int4;
pub use int8_pairs::int8_pairs;
pub(super) use ternary_lanes::check_ternary_lanes;
pub use ternary_lanes::ternary_lanes;

use super::{Layout, LinearError, expect};

/// Packs row-major codes in any layout except blocks, which [`crate::block::encode`] makes. `out` must hold exactly
/// [`Layout::bytes`] bytes. O(rows · cols).
///
/// # Errors
/// [`LinearError::Columns`]; [`LinearError::TooLarge`]; [`LinearError::Length`] for `codes` or `out`;
/// [`LinearError::CodeRange`] for the first code, row by row, outside [`Layout::codes`]; [`LinearError::Blocks`].
pub fn pack(
    layout: Layout,
    rows: usize,
    cols: usize,
    codes: &[i8],
    out: &mut [u8],
) -> Result<(), LinearError> {
    match layout {
        Layout::Int8 => int8(rows, cols, codes, out),
        Layout::Int8Pairs => int8_pairs(rows, cols, codes, out),
        Layout::Int4 => int4(rows, cols, codes, out),
        Layout::TernaryLanes => ternary_lanes(rows, cols, codes, out),
        Layout::FiveTrits => five_trits(rows, cols, codes, out),
        Layout::Block(_) => Err(LinearError::Blocks),
    }
}

/// Copies the codes: every i8 is a valid code.
fn int8(rows: usize, cols: usize, codes: &[i8], out: &mut [u8]) -> Result<(), LinearError> {
    check(Layout::Int8, rows, cols, codes, out)?;
    for (out, &code) in out.iter_mut().zip(codes) {
        *out = code as u8;
    }
    Ok(())
}

/// Checks both lengths, then the codes.
fn check(
    layout: Layout,
    rows: usize,
    cols: usize,
    codes: &[i8],
    out: &[u8],
) -> Result<(), LinearError> {
    expect(layout.bytes(rows, cols)?, out.len())?;
    let weights = rows.checked_mul(cols).ok_or(LinearError::TooLarge)?;
    expect(weights, codes.len())?;
    let (lowest, highest) = layout.codes();
    let bad = codes
        .iter()
        .position(|code| !(lowest..=highest).contains(code));
    match bad {
        Some(index) => Err(LinearError::CodeRange {
            row: index / cols.max(1),
            col: index % cols.max(1),
        }),
        None => Ok(()),
    }
}
