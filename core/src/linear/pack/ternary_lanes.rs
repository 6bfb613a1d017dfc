//! Packs two ternary rows per 16-bit lane, eight rows per group; see [`Layout`](crate::linear::Layout).

use crate::linear::{Layout, LinearError};

/// Lower bit of each first row's code.
const FIRST_LOW: u32 = 0x1111_1111;

/// Packs row-major ternary codes; see [`super::pack`] for lengths and errors.
pub fn ternary_lanes(
    rows: usize,
    cols: usize,
    codes: &[i8],
    out: &mut [u8],
) -> Result<(), LinearError> {
    super::check(Layout::TernaryLanes, rows, cols, codes, out)?;
    let group_bytes = Layout::TernaryLanes.group_bytes(cols)?;
    // Start with code 0 everywhere: 1 in the first rows, 0 in the second.
    out.chunks_exact_mut(4)
        .for_each(|word| word.copy_from_slice(&FIRST_LOW.to_le_bytes()));
    for (row, codes) in codes.chunks_exact(cols.max(1)).enumerate() {
        let start = row / 8 * group_bytes;
        let group = out.get_mut(start..).unwrap_or_default();
        let words = group
            .chunks_exact_mut(4)
            .filter_map(<[u8]>::first_chunk_mut);
        for (word, pair) in words.zip(codes.chunks(2)) {
            let mut bits = u32::from_le_bytes(*word);
            for (half, &code) in pair.iter().enumerate() {
                bits = put(bits, row % 8, half, code);
            }
            *word = bits.to_le_bytes();
        }
    }
    Ok(())
}

/// Returns a word with the code of a row of the group (0..8) and a column of the pair (0 or 1) set.
fn put(word: u32, row: usize, half: usize, code: i8) -> u32 {
    let rotation = (row / 2 * 4) as u32;
    let (shift, bits) = match row % 2 {
        0 => (16 * half as u32, (code + 1) as u32),
        _ => (16 * half as u32 + 14, code as u32),
    };
    let lanes = word.rotate_right(rotation);
    ((lanes & !(3 << shift)) | ((bits & 3) << shift)).rotate_left(rotation)
}

/// Fails for the bits that are no code: 3 in a first row, 2 (−2) in a second.
pub(in crate::linear) fn check_ternary_lanes(cols: usize, bytes: &[u8]) -> Result<(), LinearError> {
    let group_bytes = Layout::TernaryLanes.group_bytes(cols)?;
    for (number, group) in bytes.chunks_exact(group_bytes.max(1)).enumerate() {
        let words = || group.chunks_exact(4).filter_map(<[u8]>::first_chunk);
        let words = || words().map(|&word| u32::from_le_bytes(word));
        if words().all(legal) {
            continue;
        }
        // Row by row, to find the lowest.
        for row in 0..8 {
            for (at, word) in words().enumerate() {
                for half in 0..2 {
                    let lanes = word.rotate_right((row / 2 * 4) as u32) >> (16 * half);
                    let bad = match row % 2 {
                        0 => lanes & 3 == 3,
                        _ => (lanes >> 14) & 3 == 2,
                    };
                    if bad {
                        return Err(LinearError::CodeRange {
                            row: 8 * number + row,
                            col: 2 * at + half,
                        });
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns true if all sixteen codes of a word are valid. For every rotation, bits 4i and 4i + 1 belong to a first
/// row, and the two bits above them to a second.
fn legal(word: u32) -> bool {
    let first_is_3 = word & (word >> 1);
    let second_is_2 = !(word >> 2) & (word >> 3);
    (first_is_3 | second_is_2) & FIRST_LOW == 0
}
