//! TQ1_0 whose blocks all have one scale, as in a ternary tensor with one scale: sums stay 32 bits, and tables serve
//! the rows of all matrices that take the same activations.
//!
//! Tables and sums are those of [`super::tq1_0`], with the loops of any processor ([`Loops`]). Proof of exactness:
//! even bytes of two blocks hold 2 · (24 · 5 + 2 · 4) = 256 columns, and so do odd ones; their sums are at most 256 ·
//! 127 < 2¹⁵. The sums of two blocks are added in 32 bits: |Σ| ≤ 127 · 2¹⁶.
//!
//! Scratch: the tables of a pass; for each row of a tile two words for its sums and, with more than two blocks, one
//! for its total.

use half::f16;

use super::tq1_0::{BYTES, TABLE, VALUES};
use crate::block::Format;
use crate::linear::{I8Sym, Layout, Matrix, Sums};

/// Largest number of matrices whose rows share tables.
const MOST: usize = 3;

/// The loops of a processor.
pub(crate) trait Loops {
    /// Tables per pass, each for two neighbouring bytes.
    const PAIRS: usize;

    /// With fewer rows, tables do not pay off.
    const LEAST_ROWS: usize;

    /// Fills a table of 256 words: for the first byte with the columns `at`, `at + stride` and so on, `digits` (4
    /// or 5) of them, and for the second byte with the columns after each of these.
    fn fill(x: &[i8], columns: (usize, usize, usize), table: &mut [u32]);

    /// Adds the entries of the first `pairs` tables for each row's bytes to the row's sums, or starts the sums with
    /// them. `bytes` begins with those of the first row; the number of rows is a multiple of four.
    fn add(tables: (&[u32], usize), bytes: (&[u8], usize), sums: &mut [u32], begin: bool);
}

/// Passes each output the sums of its matrix. Returns false and does nothing unless these are at most [`MOST`]
/// matrices in TQ1_0, with one scale each and a multiple of four rows, or if scratch is too short for four rows.
#[inline]
pub(crate) fn sums<L: Loops, S: Sums>(
    products: &mut [(&Matrix<'_>, S)],
    x: I8Sym<'_>,
    scratch: &mut [u32],
) -> bool {
    let mut matrices = [None; MOST];
    if products.len() > MOST {
        return false;
    }
    for (place, (matrix, _)) in matrices.iter_mut().zip(&*products) {
        *place = Some(*matrix);
    }
    all::<L>(&matrices, x.get(), scratch, &mut |part, found, scale| {
        if let Some((_, out)) = products.get_mut(part) {
            match found {
                MatrixSums::Sums(sums) => out.by_scale(sums.iter().map(sum), scale),
                MatrixSums::Totals(totals) => {
                    out.by_scale(totals.iter().map(|&total| total as i32), scale);
                }
            }
        }
    })
}

/// Sums of the next rows of a matrix.
enum MatrixSums<'a> {
    Sums(&'a [[u32; 2]]),
    Totals(&'a [u32]),
}

/// Receives the index of a matrix, its sums, its scale, and their largest magnitude.
type Each<'e> = dyn FnMut(usize, MatrixSums<'_>, (f16, u32)) + 'e;

/// Like [`sums`], with `each` called for each matrix's sums, its scale and their largest magnitude: one function body
/// for any receiver.
#[inline(never)]
fn all<L: Loops>(
    matrices: &[Option<&Matrix<'_>>; MOST],
    x: &[i8],
    scratch: &mut [u32],
    each: &mut Each<'_>,
) -> bool {
    let row_bytes = x.len() / VALUES * BYTES;
    let fits = |matrix: &Matrix<'_>| {
        matrix.layout() == Layout::Block(Format::Tq1_0)
            && matrix.one_block_scale().is_some()
            && matrix.rows().is_multiple_of(4)
            && matrix.cols() == x.len()
            && matrix.bytes().len() == matrix.rows() * row_bytes
    };
    let Some((tables, rest)) = scratch.split_at_mut_checked(L::PAIRS * TABLE) else {
        return false;
    };
    // With more than two blocks, a total is stored too.
    let totals = usize::from(x.len() > 2 * VALUES);
    let most = rest.len() / (2 + totals) / 4 * 4;
    let mut rows = 0;
    for matrix in matrices.iter().flatten() {
        if !fits(matrix) {
            return false;
        }
        rows += matrix.rows();
    }
    if most.min(rows) < L::LEAST_ROWS.max(1) {
        return false;
    }
    let (sums, totals) = rest.split_at_mut_checked(2 * most).unwrap_or_default();
    let mut first = 0;
    while first < rows {
        let tile = tile(matrices, first, most, row_bytes);
        add_blocks::<L>(
            &tile,
            row_bytes,
            x,
            (&mut *tables, &mut *sums, &mut *totals),
        );
        let (mut sums, mut totals) = (sums.as_chunks().0, &*totals);
        for (part, (matrix, bytes)) in matrices.iter().zip(tile).enumerate() {
            let rows = bytes.len() / row_bytes.max(1);
            let scale = matrix.and_then(|matrix| matrix.one_block_scale());
            let (own, rest) = sums.split_at_checked(rows).unwrap_or_default();
            sums = rest;
            let mut found = MatrixSums::Sums(own);
            if !totals.is_empty() {
                let (own, rest) = totals.split_at_checked(rows).unwrap_or_default();
                totals = rest;
                found = MatrixSums::Totals(own);
            }
            if rows > 0 {
                each(
                    part,
                    found,
                    (scale.unwrap_or_default(), 127 * x.len() as u32),
                );
            }
        }
        first += most;
    }
    true
}

/// Returns the bytes of at most `most` rows, by matrix, from the row `first` of all on.
fn tile<'a>(
    matrices: &[Option<&Matrix<'a>>; MOST],
    first: usize,
    most: usize,
    row_bytes: usize,
) -> [&'a [u8]; MOST] {
    let (mut skip, mut left) = (first, most);
    let mut tile = [&[][..]; MOST];
    for (part, matrix) in tile.iter_mut().zip(matrices.iter().flatten()) {
        let from = skip.min(matrix.rows());
        let count = (matrix.rows() - from).min(left);
        skip -= from;
        left -= count;
        let bytes = matrix.bytes().get(from * row_bytes..);
        *part = bytes
            .and_then(|bytes| bytes.get(..count * row_bytes))
            .unwrap_or_default();
    }
    tile
}

/// Returns the total of a row's two sums.
fn sum(&[even, odd]: &[u32; 2]) -> i32 {
    i32::from(even as i16) + (odd.wrapping_add(1 << 15) as i32 >> 16)
}

/// Computes the sums of the rows of a tile, or their totals with more than two blocks, in their order.
fn add_blocks<L: Loops>(
    tile: &[&[u8]],
    row_bytes: usize,
    x: &[i8],
    (tables, sums, totals): (&mut [u32], &mut [u32], &mut [u32]),
) {
    totals.fill(0);
    let cols = x.len();
    for (block, x) in x.chunks_exact(VALUES).enumerate() {
        for at in (0..BYTES - 2).step_by(2 * L::PAIRS) {
            let pairs = L::PAIRS.min((BYTES - 2 - at) / 2);
            for (pair, table) in tables.chunks_exact_mut(TABLE).take(pairs).enumerate() {
                let byte = at + 2 * pair;
                let columns = match byte {
                    0..32 => (byte, 32, 5),
                    32..48 => (160 - 32 + byte, 16, 5),
                    _ => (240 - 48 + byte, 4, 4),
                };
                L::fill(x, columns, table);
            }
            let mut rest = &mut *sums;
            for bytes in tile {
                let rows = bytes.len() / row_bytes.max(1);
                let (own, after) = rest.split_at_mut_checked(2 * rows).unwrap_or_default();
                rest = after;
                if let Some(bytes) = bytes.get(block * BYTES + at..) {
                    let begin = at == 0 && block % 2 == 0;
                    L::add((tables, pairs), (bytes, row_bytes), own, begin);
                }
            }
        }
        let last = block % 2 == 1 || (block + 1) * VALUES == cols;
        if last && !totals.is_empty() {
            for (total, sums) in totals.iter_mut().zip(sums.as_chunks().0) {
                *total = total.wrapping_add_signed(sum(sums));
            }
        }
    }
}
