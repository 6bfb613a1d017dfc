//! Packs int8 weights, two columns per 16-bit lane, tiles of four rows; see [`Layout`](crate::linear::Layout).

use crate::linear::{Layout, LinearError};

/// Packs row-major int8 codes; see [`super::pack`] for lengths and errors. Refuses −128: the layout has no pattern
/// for it in an odd column after a negative weight.
pub fn int8_pairs(
    rows: usize,
    cols: usize,
    codes: &[i8],
    out: &mut [u8],
) -> Result<(), LinearError> {
    super::check(Layout::Int8Pairs, rows, cols, codes, out)?;
    out.fill(0);
    let group_bytes = Layout::Int8Pairs.group_bytes(cols)?;
    for (row, codes) in codes.chunks_exact(cols.max(1)).enumerate() {
        let group = out.get_mut(row / 4 * group_bytes..).unwrap_or_default();
        // Every fourth word holds four columns of this row.
        let words = group.chunks_exact_mut(4).skip(row % 4).step_by(4);
        for (word, codes) in words.zip(codes.chunks(4)) {
            let halves = word.chunks_exact_mut(2).filter_map(<[u8]>::first_chunk_mut);
            for (half, codes) in halves.zip(codes.chunks(2)) {
                let (even, odd) = match *codes {
                    [even, odd] => (even, odd),
                    [even] => (even, 0),
                    _ => (0, 0),
                };
                let lane = i16::from(even) + 256 * i16::from(odd);
                *half = lane.to_le_bytes();
            }
        }
    }
    Ok(())
}
