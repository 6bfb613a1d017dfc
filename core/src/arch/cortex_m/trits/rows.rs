//! The rows of a tile: their sums, and the passes that add to them.

use core::arch::asm;
use core::ops::Range;

use super::table::{self, TABLE};

/// Words of the tables of a pass.
const TABLES: usize = 6 * TABLE;

/// Four or more rows, and the places of their sums.
///
/// Passes process four rows at a time, and a sum has a place. If the number of rows is not a multiple of four, the
/// last four places belong to the last four rows, although some of these have earlier places too.
pub(in super::super) struct Rows<'a> {
    pub(in super::super) bytes: &'a [u8],
    pub(in super::super) row_bytes: usize,
    pub(in super::super) tables: &'a mut [u32],
    /// Two words per place: the sum of even bytes in the low half of the first, that of odd bytes in the high half of
    /// the second.
    pub(in super::super) sums: &'a mut [u32],
    /// As many words per place as the layout's totals have.
    pub(in super::super) totals: &'a mut [u32],
}

impl<'a> Rows<'a> {
    /// Returns `None` for fewer than four rows or too little scratch. Totals of `words` words begin with 0.
    pub(super) fn new(
        bytes: &'a [u8],
        row_bytes: usize,
        words: usize,
        scratch: &'a mut [u32],
    ) -> Option<Self> {
        let rows = bytes.len().checked_div(row_bytes)?;
        let places = rows.next_multiple_of(4);
        let (tables, rest) = scratch.split_at_mut_checked(TABLES)?;
        let (sums, rest) = rest.split_at_mut_checked(2 * places)?;
        let totals = rest.get_mut(..words * places)?;
        totals.fill(0);
        (rows >= 4).then_some(Self {
            bytes,
            row_bytes,
            tables,
            sums,
            totals,
        })
    }

    /// Resets sums. 2¹⁵ below the sum of odd bytes absorbs the borrows and carries of the lower halves.
    pub(in super::super) fn clear_sums(&mut self) {
        let sums = self.sums.chunks_exact_mut(2);
        sums.for_each(|sum| sum.copy_from_slice(&[0, 1 << 15]));
    }

    /// Adds twelve bytes of each row, `at`..`at` + 12. The columns of byte m are five elements of `x`, from `columns`
    /// of m on, one stride apart.
    #[inline]
    pub(in super::super) fn add(
        &mut self,
        x: &[i8],
        at: usize,
        columns: impl Fn(usize) -> (usize, usize),
    ) {
        for (pair, table) in self.tables.chunks_exact_mut(TABLE).enumerate() {
            let (first, stride) = columns(2 * pair);
            table::fill(x, (first, stride, 5), table);
        }
        self.add_twelve(at);
    }

    /// Returns the places of rows' totals, in the order of rows.
    pub(in super::super) fn in_order(&self) -> [Range<usize>; 2] {
        let [(_, fours), (last, rest)] = self.runs();
        // Skip rows that already have a place.
        let doubled = fours.end.saturating_sub(last);
        let start = (fours.end + doubled).min(rest.end);
        [fours, start..rest.end]
    }

    /// Returns two runs, each a first row and the places from it on: all groups of four, then the last four rows if
    /// some remain.
    pub(in super::super) fn runs(&self) -> [(usize, Range<usize>); 2] {
        let rows = self.bytes.len() / self.row_bytes.max(1);
        let fours = rows / 4 * 4;
        [
            (0, 0..fours),
            (rows.saturating_sub(4), fours..self.sums.len() / 2),
        ]
    }
}

/// Adds the entries of two bytes to a sum; r11 and r12 are overwritten. `begin` starts the sum with them.
macro_rules! two_entries {
    (begin $sum:literal, $first:literal, $table:literal, $second:literal, $next:literal) => {
        concat!(
            two_entries!(load $first, $table, $second, $next),
            "add ",
            $sum,
            ", r11, r12\n",
        )
    };
    ($sum:literal, $first:literal, $table:literal, $second:literal, $next:literal) => {
        concat!(
            two_entries!(load $first, $table, $second, $next),
            // The sum of all three; r11 becomes the carry.
            "umaal ",
            $sum,
            ", r11, r12, r10\n",
        )
    };
    (load $first:literal, $table:literal, $second:literal, $next:literal) => {
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
        )
    };
}

/// A row's twelve bytes, added to existing sums or as their start.
macro_rules! row {
    () => {
        concat!(
            "ldrd r6, r7, [r8]\n",
            two_entries!("r6", 0, "r0", 2, "r1"),
            two_entries!("r7", 1, "r0", 3, "r1"),
            row!(rest),
        )
    };
    (begin) => {
        concat!(
            two_entries!(begin "r6", 0, "r0", 2, "r1"),
            two_entries!(begin "r7", 1, "r0", 3, "r1"),
            row!(rest),
        )
    };
    (rest) => {
        concat!(
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
    /// Adds the tables' entries for bytes `at`..`at` + 12 to each row's sums.
    fn add_twelve(&mut self, at: usize) {
        for (row, places) in self.runs() {
            let bytes = self.bytes.get(row * self.row_bytes + at..);
            let sums = self.sums.get_mut(2 * places.start..2 * places.end);
            let (Some(bytes), Some(sums)) = (bytes, sums) else {
                return;
            };
            if !sums.is_empty() {
                add_twelve(self.tables, (bytes, self.row_bytes), sums);
            }
        }
    }
}

/// Returns true if the data of a loop over rows is present: `sums` has places, in a multiple of four and at least
/// that many, and `bytes` has `len` bytes for each place's row.
#[inline]
fn are_there((bytes, row_bytes): (&[u8], usize), sums: &[u32], len: usize) -> bool {
    let places = sums.len() / 2;
    places > 0 && places % 4 == 0 && bytes.len() >= (places - 1) * row_bytes + len
}

/// Adds the entries of six tables for the first twelve of `bytes` in each row to the sums of rows, whose number is a
/// multiple of four; `bytes` begins with the first row's.
#[inline(never)]
pub(in super::super) fn add_twelve(
    tables: &[u32],
    (bytes, row_bytes): (&[u8], usize),
    sums: &mut [u32],
) {
    if !are_there((bytes, row_bytes), sums, 12) || tables.len() < TABLES {
        return;
    }
    let ends = sums.as_mut_ptr_range();
    // SAFETY: reads twelve bytes of each place's row, which lie in `bytes`, and words of the six tables by bytes;
    // reads and writes the places' sums, a multiple of four places: all was checked. The stack comes back as it was,
    // and so do r6, r7 and r9, which cannot be operands.
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
            in("r0") tables.as_ptr(),
            out("r1") _,
            out("r2") _,
            out("r3") _,
            inout("r4") row_bytes => _,
            in("r5") ends.end,
            inout("r8") ends.start => _,
            in("r10") 1,
            out("r11") _,
            out("r12") _,
            inout("lr") bytes.as_ptr() => _,
        );
    }
}

/// Like [`add_twelve`], but starts the sums, independent of their content. The 2¹⁵ below those of odd bytes is
/// missing here.
#[cfg(not(tercet_mve))]
#[inline(never)]
pub(in super::super) fn begin_twelve(
    tables: &[u32],
    (bytes, row_bytes): (&[u8], usize),
    sums: &mut [u32],
) {
    if !are_there((bytes, row_bytes), sums, 12) || tables.len() < TABLES {
        return;
    }
    let ends = sums.as_mut_ptr_range();
    // SAFETY: as in `add_twelve`; the places' sums are only written.
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
            row!(begin),
            row!(begin),
            "ldr r7, [sp]",
            "cmp r8, r7",
            "bne 2b",
            "pop {{r5, r6, r7, r9}}",
            in("r0") tables.as_ptr(),
            out("r1") _,
            out("r2") _,
            out("r3") _,
            inout("r4") row_bytes => _,
            in("r5") ends.end,
            inout("r8") ends.start => _,
            in("r10") 1,
            out("r11") _,
            out("r12") _,
            inout("lr") bytes.as_ptr() => _,
        );
    }
}

/// Like [`add_twelve`], for four bytes and two tables.
#[cfg(not(tercet_mve))]
#[inline(never)]
pub(in super::super) fn add_four(
    tables: &[u32],
    (bytes, row_bytes): (&[u8], usize),
    sums: &mut [u32],
) {
    if !are_there((bytes, row_bytes), sums, 4) || tables.len() < 2 * TABLE {
        return;
    }
    let ends = sums.as_mut_ptr_range();
    // SAFETY: as in `add_twelve`, of four bytes of each row and two tables.
    unsafe {
        asm!(
            "push {{r6, r7}}",
            "add r1, r0, #1024",
            "2:",
            ".rept 2",
            "ldrd r6, r7, [r8]",
            two_entries!("r6", 0, "r0", 2, "r1"),
            two_entries!("r7", 1, "r0", 3, "r1"),
            "add lr, lr, r4",
            "strd r6, r7, [r8], #8",
            ".endr",
            "cmp r8, r5",
            "bne 2b",
            "pop {{r6, r7}}",
            in("r0") tables.as_ptr(),
            out("r1") _,
            in("r4") row_bytes,
            in("r5") ends.end,
            inout("r8") ends.start => _,
            in("r10") 1,
            out("r11") _,
            out("r12") _,
            inout("lr") bytes.as_ptr() => _,
        );
    }
}
