//! Five ternary digits per byte without blocks, with the tables of [`super::trits`], where sums are proved to be
//! exact. Weights may have any address; other loops process fewer than four rows.
//!
//! A group is one pass. The sums of [`FOLD`] groups, 96 bytes, fit their halves of words; then they are added to
//! 32-bit totals: |Σ| ≤ 127·2¹⁶ < 2²³. After the last column activations are 0, so the padding of a row adds nothing.

use super::trits::{self, Rows};
use crate::linear::five_trits::{BYTES, COLS, whole};
use crate::linear::{I8Sym, Matrix, Sums};

/// Number of groups whose sums fit 16 bits.
const FOLD: usize = trits::BYTES / BYTES;

/// Same contract as [`crate::arch::plain::linear::five_trits`]. Returns false and does nothing with fewer than four
/// rows or fewer than [`Matrix::fast_scratch_len`] words of scratch.
pub(super) fn sums(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    let row_bytes = matrix.cols().div_ceil(COLS) * BYTES;
    trits::for_each_tile(matrix, row_bytes, 1, scratch, |mut rows, skip| {
        rows.clear_sums();
        for (group, x) in x.get().chunks(COLS).enumerate() {
            if group % FOLD == 0 && group > 0 {
                rows.fold();
            }
            let mut padded = [0; COLS];
            let x = whole(x, &mut padded);
            rows.add(x, group * BYTES, |byte| (byte, BYTES));
        }
        rows.fold();
        let [first, rest] = rows.in_order();
        for places in [skip..first.end, rest] {
            let totals = rows.totals.get(places).unwrap_or_default();
            // SAFETY: every pattern of a u32 is an i32, of the same size and alignment.
            let (_, totals, _) = unsafe { totals.align_to() };
            out.narrow(totals);
        }
    })
}

impl Rows<'_> {
    /// Adds sums to totals, and resets them.
    #[inline(never)]
    fn fold(&mut self) {
        for (sum, total) in self.sums.chunks_exact_mut(2).zip(&mut *self.totals) {
            if let [even, odd] = sum {
                let found = i32::from(*even as i16) + (*odd as i32 >> 16);
                *total = total.wrapping_add_signed(found);
                [*even, *odd] = [0, 1 << 15];
            }
        }
    }
}
