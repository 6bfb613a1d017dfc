//! TQ1_0 as in a file, with the tables of [`super::trits`], where sums are proved to be exact. Weights may have any
//! address; other loops process fewer than four rows.
//!
//! A block is four passes of twelve bytes, and one that adds the other four and multiplies by the row's scale.
//!
//! Proof of exactness: a block has 26 even and 26 odd bytes, fewer than [`super::trits::BYTES`] allows. Its sum, |Σ|
//! ≤ 256·127 < 2¹⁵, times 11 bits of scale is below 2²⁶. `SMLAL` shifts it by up to 30 and adds it in 64 bits, in
//! halves of the unit, because a [`Matrix`] keeps the total below 2⁶³.

use core::arch::asm;

use super::trits::{self, Rows, TABLE};
#[cfg(not(tercet_mve))]
use crate::arch::portable::one_scale::Loops;
use crate::linear::{I8Sym, Matrix, Sums};

/// Values and bytes of a block.
const VALUES: usize = 256;
const BYTES: usize = 54;

/// The sums of blocks with one scale.
#[cfg(not(tercet_mve))]
pub(crate) struct Dsp;

#[cfg(not(tercet_mve))]
impl Loops for Dsp {
    const PAIRS: usize = 6;
    const LEAST_ROWS: usize = 4;

    #[inline]
    fn fill(x: &[i8], columns: (usize, usize, usize), table: &mut [u32]) {
        trits::fill(x, columns, table);
    }

    #[inline]
    fn add((tables, pairs): (&[u32], usize), bytes: (&[u8], usize), sums: &mut [u32], begin: bool) {
        match pairs {
            Self::PAIRS if begin => trits::begin_twelve(tables, bytes, sums),
            Self::PAIRS => trits::add_twelve(tables, bytes, sums),
            // The bytes of a block after four times twelve.
            _ => trits::add_four(tables, bytes, sums),
        }
    }
}

/// Same contract as [`crate::arch::plain::linear::blocks`], for TQ1_0. Returns false and does nothing with fewer than
/// four rows or fewer than [`Matrix::fast_scratch_len`] words of scratch.
pub(super) fn sums(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    let row_bytes = matrix.cols() / VALUES * BYTES;
    trits::for_each_tile(matrix, row_bytes, 2, scratch, |mut rows, skip| {
        for (block, x) in x.get().chunks_exact(VALUES).enumerate() {
            rows.add_block(block * BYTES, x);
        }
        let [first, rest] = rows.in_order();
        for places in [skip..first.end, rest] {
            let words = 2 * places.start..2 * places.end;
            hand_on(rows.totals.get(words).unwrap_or_default(), out);
        }
    })
}

/// Passes totals to `out`, eight at a time: halves of the unit, 64 bits per place, the low word first.
#[inline(never)]
fn hand_on(totals: &[u32], out: &mut impl Sums) {
    for totals in totals.as_chunks::<2>().0.chunks(8) {
        let mut sums = [0; 8];
        for (sum, &[low, high]) in sums.iter_mut().zip(totals) {
            *sum = (u64::from(high) << 32 | u64::from(low)) as i64 >> 1;
        }
        out.wide(sums.get(..totals.len()).unwrap_or_default());
    }
}

impl Rows<'_> {
    /// Adds a block that begins at byte `at` of each row.
    fn add_block(&mut self, at: usize, x: &[i8]) {
        self.clear_sums();
        for pass in 0..4 {
            self.add(x, at + 12 * pass, |byte| match 12 * pass + byte {
                byte @ 0..32 => (byte, 32),
                byte => (160 - 32 + byte, 16),
            });
        }
        for (pair, table) in self.tables.chunks_exact_mut(TABLE).take(2).enumerate() {
            trits::fill(x, (240 + 2 * pair, 4, 4), table);
        }
        self.add_last(at + 48);
    }

    /// Adds the entries of the first two tables for bytes `at`..`at` + 4 to each row's sums. Then adds the sum of
    /// both, times the scale after these bytes, to the row's total.
    fn add_last(&mut self, at: usize) {
        for (row, places) in self.runs() {
            let bytes = self.bytes.get(row * self.row_bytes + at..);
            let range = 2 * places.start..2 * places.end;
            let (sums, totals) = (self.sums.get(range.clone()), self.totals.get_mut(range));
            let (Some(bytes), Some(sums), Some(totals)) = (bytes, sums, totals) else {
                return;
            };
            if sums.is_empty() || bytes.len() < (places.len() - 1) * self.row_bytes + 6 {
                continue;
            }
            // SAFETY: reads six bytes of each of `places.len()` rows, which lie in `bytes` as was checked, words of
            // two tables by bytes, and the places' sums; reads and writes their totals. The stack comes back as it
            // was, and so do r6, r7 and r9, which cannot be operands.
            unsafe {
                asm!(
                    "push {{r6, r7, r9}}",
                    "add r1, r0, #1024",
                    "2:",
                    "ldrd r6, r7, [r4], #8",
                    "ldrb r9, [r2]",
                    "ldrb r11, [r2, #2]",
                    "ldrb r12, [r2, #1]",
                    "ldrb lr, [r2, #3]",
                    "ldr r9, [r0, r9, lsl #2]",
                    "ldr r11, [r1, r11, lsl #2]",
                    "ldr r12, [r0, r12, lsl #2]",
                    "ldr lr, [r1, lr, lsl #2]",
                    "add r6, r6, r9",
                    "add r6, r6, r11",
                    "add r7, r7, r12",
                    "add r7, r7, lr",
                    "ldrsh lr, [r2, #4]",
                    "add r2, r2, r3",
                    "asr r7, r7, #16",
                    "sxtah r7, r7, r6",
                    "ldrd r11, r12, [r5]",
                    // Eleven bits of the scale, the first of them 1 unless it is subnormal; then its unit.
                    "ubfx r6, lr, #10, #5",
                    "bfi r10, lr, #0, #10",
                    "cbz r6, 4f",
                    "mul r9, r7, r10",
                    "3:",
                    "asr lr, lr, #31",
                    "orr lr, lr, #1",
                    "lsl lr, lr, r6",
                    "smlal r11, r12, r9, lr",
                    "strd r11, r12, [r5], #8",
                    "cmp r4, r8",
                    "bne 2b",
                    "b 5f",
                    "4:",
                    "mov r6, #1",
                    "ubfx r9, lr, #0, #10",
                    "mul r9, r7, r9",
                    "b 3b",
                    "5:",
                    "pop {{r6, r7, r9}}",
                    in("r0") self.tables.as_ptr(),
                    out("r1") _,
                    inout("r2") bytes.as_ptr() => _,
                    in("r3") self.row_bytes,
                    inout("r4") sums.as_ptr() => _,
                    inout("r5") totals.as_mut_ptr() => _,
                    in("r8") sums.as_ptr_range().end,
                    inout("r10") 1024 => _,
                    out("r11") _,
                    out("r12") _,
                    out("lr") _,
                );
            }
        }
    }
}
