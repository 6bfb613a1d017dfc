//! TQ1_0 as in a file, with tables: the sum of a byte's five digits is looked up, so that five products become a load
//! and an addition.
//!
//! Two neighbouring bytes share a table. Word b is Σ (d − 1)·x over the digits d of byte value b and the first byte's
//! columns, plus 2¹⁶ times that of the second's, modulo 2³². A row adds the words of its even bytes to [0], and those
//! of its odd bytes to [2¹⁵]. The low half of the first, read as signed, is the sum of even bytes, and the high half
//! of the second is that of odd bytes: a block has 26 of either and an entry is at most 5·127, so that neither
//! exceeds 16 bits. Tables serve a tile of [`TABLE_ROWS`] rows.
//!
//! Scratch: two tables of 256 words; for each row of a tile two words for its sums, and the words of its total.

use super::blocks::scale;
use crate::linear::{I8Sym, Matrix, Sums, TABLE_ROWS};

/// Values and bytes of a block, of which the last two bytes are its scale.
pub(super) const VALUES: usize = 256;
pub(super) const BYTES: usize = 54;
/// Words of a table.
pub(super) const TABLE: usize = 256;
/// With fewer rows, tables do not pay off.
const LEAST_ROWS: usize = 96;

/// The loops for blocks with one scale.
#[cfg(not(any(tercet_dsp, tercet_mve)))]
pub(crate) struct Portable;

#[cfg(not(any(tercet_dsp, tercet_mve)))]
impl super::one_scale::Loops for Portable {
    const PAIRS: usize = 2;
    const LEAST_ROWS: usize = LEAST_ROWS;

    fn fill(x: &[i8], columns: (usize, usize, usize), table: &mut [u32]) {
        if let Some(table) = table.first_chunk_mut() {
            fill(x, columns, table);
        }
    }

    fn add(
        (tables, _): (&[u32], usize),
        (bytes, row_bytes): (&[u8], usize),
        sums: &mut [u32],
        begin: bool,
    ) {
        let sums = sums.as_chunks_mut().0;
        if begin {
            sums.fill([0; 2]);
        }
        if let [first, second, ..] = tables.as_chunks().0 {
            add(bytes, row_bytes, (first, second), sums);
        }
    }
}

/// Computes the sums of a matrix. Returns false and does nothing for few rows or too little scratch.
pub(super) fn sums(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    let rows = matrix.rows().min(TABLE_ROWS);
    let row_bytes = matrix.cols() / VALUES * BYTES;
    let Some((tables, work)) = scratch.split_first_chunk_mut::<{ 2 * TABLE }>() else {
        return false;
    };
    if rows < LEAST_ROWS || work.len() < 4 * rows {
        return false;
    }
    let (tables, _) = tables.as_chunks_mut::<TABLE>();
    let [first, second] = tables else {
        return false;
    };
    for tile in matrix.bytes().chunks((TABLE_ROWS * row_bytes).max(1)) {
        let rows = tile.len() / row_bytes.max(1);
        let pairs = work.as_chunks_mut::<2>().0;
        let (sums, rest) = pairs.split_at_mut_checked(rows).unwrap_or_default();
        let totals = rest.get_mut(..rows).unwrap_or_default();
        totals.fill([0; 2]);
        for (block, x) in x.get().chunks_exact(VALUES).enumerate() {
            let from = tile.get(block * BYTES..).unwrap_or_default();
            sums.fill([0, 1 << 15]);
            for at in (0..BYTES - 2).step_by(4) {
                let (column, stride, digits) = match at {
                    0..32 => (at, 32, 5),
                    32..48 => (160 - 32 + at, 16, 5),
                    _ => (240 - 48 + at, 4, 4),
                };
                fill(x, (column, stride, digits), first);
                fill(x, (column + 2, stride, digits), second);
                add(
                    from.get(at..).unwrap_or_default(),
                    row_bytes,
                    (first, second),
                    sums,
                );
            }
            finish(from, row_bytes, sums, totals);
        }
        hand_on(totals, out);
    }
    true
}

/// For each three consecutive values, the one that two bytes represent; 3 for none. Byte b represents ⌊243·b/256⌋.
const TWICE: [u8; 81] = {
    let mut twice = [3; 81];
    let mut byte = 1;
    while byte < 256 {
        let value = (243 * byte) >> 8;
        if value == (243 * (byte - 1)) >> 8 {
            twice[value / 3] = (value % 3) as u8;
        }
        byte += 1;
    }
    twice
};

/// Fills a table: for the first byte with the columns `at`, `at + stride` and so on, `digits` (4 or 5) of them, and
/// for the second byte with the columns after each of these.
///
/// Each further digit triples the number of the first digits' sums, from the last one on, so that they can stay in
/// place.
#[inline(never)]
fn fill(x: &[i8], (at, stride, digits): (usize, usize, usize), table: &mut [u32; TABLE]) {
    let pair = |digit: usize| {
        let pair = x.get(at + digit * stride..).and_then(<[i8]>::first_chunk);
        let &[first, second] = pair.unwrap_or(&[0; 2]);
        (first as u32).wrapping_add((second as u32) << 16)
    };
    table[0] = 0;
    for (digit, len) in [1, 3, 9, 27].into_iter().enumerate() {
        let x = pair(digit);
        for at in (0..len).rev() {
            let sum = table[at & 31];
            let three = table.get_mut(3 * at..);
            if let Some(three) = three.and_then(<[u32]>::first_chunk_mut) {
                *three = [sum.wrapping_sub(x), sum, sum.wrapping_add(x)];
            }
        }
    }
    let x = if digits == 5 { pair(4) } else { 0 };
    let mut to = TABLE;
    for (at, &twice) in TWICE.iter().enumerate().rev() {
        let sum = table[at];
        let (low, high) = (sum.wrapping_sub(x), sum.wrapping_add(x));
        if twice == 3 {
            to -= 3;
            if let Some(three) = table.get_mut(to..).and_then(<[u32]>::first_chunk_mut) {
                *three = [low, sum, high];
            }
            continue;
        }
        to -= 4;
        if let Some(four) = table.get_mut(to..).and_then(<[u32]>::first_chunk_mut) {
            *four = match twice {
                0 => [low, low, sum, high],
                1 => [low, sum, sum, high],
                _ => [low, sum, high, high],
            };
        }
    }
}

/// Adds the tables' entries for each row's four bytes to its sums; `bytes` begins with the first row's.
#[inline(never)]
fn add(
    bytes: &[u8],
    row_bytes: usize,
    (first, second): (&[u32; TABLE], &[u32; TABLE]),
    sums: &mut [[u32; 2]],
) {
    #[cfg(tercet_thumb1)]
    return crate::arch::thumb1::add_entries(bytes, row_bytes, (first, second), sums);
    #[cfg(not(tercet_thumb1))]
    for (row, [even, odd]) in bytes.chunks(row_bytes.max(1)).zip(sums) {
        let Some(&[a, b, c, d]) = row.first_chunk() else {
            return;
        };
        *even = even
            .wrapping_add(first[usize::from(a)])
            .wrapping_add(second[usize::from(c)]);
        *odd = odd
            .wrapping_add(first[usize::from(b)])
            .wrapping_add(second[usize::from(d)]);
    }
}

/// Adds each row's block sum times the scale after it to the row's total, the low word first; `bytes` begins with the
/// first row's block.
#[inline(never)]
fn finish(bytes: &[u8], row_bytes: usize, sums: &[[u32; 2]], totals: &mut [[u32; 2]]) {
    let rows = bytes.chunks(row_bytes.max(1));
    for ((row, &[even, odd]), [low, high]) in rows.zip(sums).zip(totals) {
        let sum = i32::from(even as i16) + (odd as i32 >> 16);
        let total = u64::from(*high) << 32 | u64::from(*low);
        let block = row.get(..BYTES).unwrap_or_default();
        let total = total.wrapping_add((i64::from(sum) * scale(block)) as u64);
        (*low, *high) = (total as u32, (total >> 32) as u32);
    }
}

/// Passes totals to `out`, eight at a time.
fn hand_on(totals: &[[u32; 2]], out: &mut impl Sums) {
    for totals in totals.chunks(8) {
        let mut sums = [0; 8];
        for (sum, &[low, high]) in sums.iter_mut().zip(totals) {
            *sum = (u64::from(high) << 32 | u64::from(low)) as i64;
        }
        out.wide(sums.get(..totals.len()).unwrap_or_default());
    }
}
