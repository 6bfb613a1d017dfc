//! Packs ternary weights, five per byte; see [`Layout`](crate::linear::Layout).

use crate::block::pack_digits;
use crate::linear::five_trits::{BYTES, COLS, whole};
use crate::linear::{Layout, LinearError};

/// Packs row-major ternary codes, given one per byte; see [`super::pack`] for lengths and errors.
pub fn five_trits(
    rows: usize,
    cols: usize,
    codes: &[i8],
    out: &mut [u8],
) -> Result<(), LinearError> {
    super::check(Layout::FiveTrits, rows, cols, codes, out)?;
    let mut groups = out.chunks_exact_mut(BYTES);
    for codes in codes.chunks_exact(cols.max(1)) {
        for (codes, group) in codes.chunks(COLS).zip(&mut groups) {
            pack_digits::<BYTES>(whole(codes, &mut [0; COLS]), group);
        }
    }
    Ok(())
}
