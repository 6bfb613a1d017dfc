//! Packs int4 weights, four rows per 16-bit lane; see [`Layout`](crate::linear::Layout).

use crate::linear::{Layout, LinearError};

/// The weight 0 in all four rows.
const ZEROS: u16 = 0x8888 ^ 0x8000;

/// Packs row-major int4 codes, given one per byte; see [`super::pack`] for lengths and errors.
pub fn int4(rows: usize, cols: usize, codes: &[i8], out: &mut [u8]) -> Result<(), LinearError> {
    super::check(Layout::Int4, rows, cols, codes, out)?;
    out.chunks_exact_mut(2)
        .for_each(|lane| lane.copy_from_slice(&ZEROS.to_le_bytes()));
    let group_bytes = Layout::Int4.group_bytes(cols)?;
    for (row, codes) in codes.chunks_exact(cols.max(1)).enumerate() {
        let group = out.get_mut(row / 4 * group_bytes..).unwrap_or_default();
        let shift = 4 * (row % 4);
        for (lane, &code) in group.chunks_exact_mut(2).zip(codes) {
            if let Some(lane) = lane.first_chunk_mut() {
                // From the code of 0 to this one: one exclusive or does both the addition of 8 and the flip of row
                // 3's sign.
                let flips = u16::from((code as u8) & 15) << shift;
                *lane = (u16::from_le_bytes(*lane) ^ flips).to_le_bytes();
            }
        }
    }
    Ok(())
}
