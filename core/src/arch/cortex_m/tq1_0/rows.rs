//! The rows of a tile: what they sum up to, and the passes that add to it.

use core::arch::asm;
use core::ops::Range;

use super::table::TABLE;

/// Words of the tables of a pass.
const TABLES: usize = 6 * TABLE;

/// Rows, four or more, and where their sums are.
///
/// Passes take four rows at a time, and a sum has a place. Where rows are no multiple of four, the last four places belong to
/// the last four rows, although some of these have places before.
pub(super) struct Rows<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
    tables: &'a mut [u32],
    /// Sums in the block, two words a place: of even bytes in the low half of the first, of odd bytes in the high half of the
    /// second.
    sums: &'a mut [u32],
    /// In halves of the unit, 64 bits a place, the low word first.
    totals: &'a mut [u32],
}

impl<'a> Rows<'a> {
    /// `None` for fewer than four rows or too little scratch. Totals begin with 0.
    pub(super) fn new(bytes: &'a [u8], row_bytes: usize, scratch: &'a mut [u32]) -> Option<Self> {
        let rows = bytes.len().checked_div(row_bytes)?;
        let places = rows.next_multiple_of(4);
        let (tables, rest) = scratch.split_at_mut_checked(TABLES)?;
        let (sums, rest) = rest.split_at_mut_checked(2 * places)?;
        let totals = rest.get_mut(..2 * places)?;
        totals.fill(0);
        (rows >= 4).then_some(Self {
            bytes,
            row_bytes,
            tables,
            sums,
            totals,
        })
    }

    pub(super) fn tables(&mut self) -> &mut [u32] {
        self.tables
    }

    /// Begins a block. 2¹⁵ below the sum of odd bytes takes up what the lower halves borrow.
    pub(super) fn clear_sums(&mut self) {
        let sums = self.sums.chunks_exact_mut(2);
        sums.for_each(|sum| sum.copy_from_slice(&[0, 1 << 15]));
    }

    /// Calls `emit` with each row and its total.
    pub(super) fn totals(&self, mut emit: impl FnMut(usize, i64)) {
        let [(_, fours), (last, _)] = self.runs();
        let doubled = fours.end.saturating_sub(last);
        for (place, total) in self.totals.chunks_exact(2).enumerate() {
            let row = match place < fours.end {
                true => place,
                // Rows that have had a place are passed over.
                false if place < fours.end + doubled => continue,
                false => place - doubled,
            };
            if let &[low, high] = total {
                let total = (u64::from(high) << 32 | u64::from(low)) as i64;
                emit(row, total >> 1);
            }
        }
    }

    /// A first row and the places from it on: whole fours, then the last four rows where some are left.
    fn runs(&self) -> [(usize, Range<usize>); 2] {
        let rows = self.bytes.len() / self.row_bytes.max(1);
        let fours = rows / 4 * 4;
        [
            (0, 0..fours),
            (rows.saturating_sub(4), fours..self.sums.len() / 2),
        ]
    }
}

/// Adds the entries of two bytes to a sum; r11 and r12 are lost.
macro_rules! two_entries {
    ($sum:literal, $first:literal, $table:literal, $second:literal, $next:literal) => {
        concat!(
            "ldrb r11, [lr, #",
            $first,
            "]\n",
            "ldrb r12, [lr, #",
            $second,
            "]\n",
            "ldr r11, [",
            $table,
            ", r11, lsl #2]\n",
            "ldr r12, [",
            $next,
            ", r12, lsl #2]\n",
            // The sum of all three; r11 becomes the carry.
            "umaal ",
            $sum,
            ", r11, r12, r10\n",
        )
    };
}

/// A row's twelve bytes.
macro_rules! row {
    () => {
        concat!(
            "ldrd r6, r7, [r8]\n",
            two_entries!("r6", 0, "r0", 2, "r1"),
            two_entries!("r7", 1, "r0", 3, "r1"),
            two_entries!("r6", 4, "r2", 6, "r3"),
            two_entries!("r7", 5, "r2", 7, "r3"),
            two_entries!("r6", 8, "r4", 10, "r5"),
            two_entries!("r7", 9, "r4", 11, "r5"),
            "add lr, lr, r9\n",
            "strd r6, r7, [r8], #8\n",
        )
    };
}

impl Rows<'_> {
    /// Adds to each row's sums what the tables say of its bytes `at`..`at` + 12.
    pub(super) fn add_twelve(&mut self, at: usize) {
        for (row, places) in self.runs() {
            let bytes = self.bytes.get(row * self.row_bytes + at..);
            let sums = self.sums.get_mut(2 * places.start..2 * places.end);
            let (Some(bytes), Some(sums)) = (bytes, sums) else {
                return;
            };
            if sums.is_empty() || bytes.len() < (places.len() - 1) * self.row_bytes + 12 {
                continue;
            }
            let ends = sums.as_mut_ptr_range();
            // SAFETY: reads twelve bytes of each of `places.len()` rows, which lie in `bytes` as was checked, and words of
            // the six tables by bytes; reads and writes the places' sums, a multiple of four places. The stack comes back
            // as it was, and so do r6, r7 and r9, which cannot be operands.
            unsafe {
                asm!(
                    "push {{r5, r6, r7, r9}}",
                    "mov r9, r4",
                    "add r1, r0, #1024",
                    "add r2, r0, #2048",
                    "add r3, r0, #3072",
                    "add r4, r0, #4096",
                    "add r5, r0, #5120",
                    "2:",
                    row!(),
                    row!(),
                    row!(),
                    row!(),
                    "ldr r7, [sp]",
                    "cmp r8, r7",
                    "bne 2b",
                    "pop {{r5, r6, r7, r9}}",
                    in("r0") self.tables.as_ptr(),
                    out("r1") _,
                    out("r2") _,
                    out("r3") _,
                    inout("r4") self.row_bytes => _,
                    in("r5") ends.end,
                    inout("r8") ends.start => _,
                    in("r10") 1,
                    out("r11") _,
                    out("r12") _,
                    inout("lr") bytes.as_ptr() => _,
                );
            }
        }
    }

    /// Adds to each row's sums what the first two tables say of its bytes `at`..`at` + 4, and the sum of both times the
    /// scale behind them to the row's total.
    pub(super) fn add_last(&mut self, at: usize) {
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
            // SAFETY: reads six bytes of each of `places.len()` rows, which lie in `bytes` as was checked, words of two
            // tables by bytes, and the places' sums; reads and writes their totals. The stack comes back as it was, and so
            // do r6, r7 and r9, which cannot be operands.
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
                    // Eleven bits of the scale, the first of them 1 unless it is subnormal; then what it counts in.
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
