//! The rows of a tile: what they sum up to, and the passes that add to it.

use core::arch::asm;
use core::ops::Range;

use super::table::TABLE;

/// Words of the tables of a pass.
const TABLES: usize = 4 * TABLE;

/// Rows, four or more, and where their sums are.
///
/// Passes take four rows at a time, and a sum has a place. Where rows are no multiple of four, the last four places belong to
/// the last four rows, although some of these have places before.
pub(super) struct Rows<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
    tables: &'a mut [u32],
    /// Sums in the block, 16 bits a place.
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
        let (sums, rest) = rest.split_at_mut_checked(places / 2)?;
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

    /// Begins a block: every sum is 1.
    pub(super) fn clear_sums(&mut self) {
        self.sums.fill(0x1_0001);
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
            (rows.saturating_sub(4), fours..2 * self.sums.len()),
        ]
    }
}

/// The sum of the entries of four bytes, of every other one from a byte on; r7 and lr are lost.
macro_rules! four_entries {
    ($sum:literal, $a:literal, $b:literal, $c:literal, $d:literal) => {
        concat!(
            "ldrb ",
            $sum,
            ", [r5, #",
            $a,
            "]\n",
            "ldrb r7, [r5, #",
            $b,
            "]\n",
            "ldrb lr, [r5, #",
            $c,
            "]\n",
            "ldr ",
            $sum,
            ", [r0, ",
            $sum,
            ", lsl #2]\n",
            "ldr r7, [r1, r7, lsl #2]\n",
            "ldr lr, [r2, lr, lsl #2]\n",
            // The sum of all three; r7 becomes the carry.
            "umaal ",
            $sum,
            ", r7, lr, r4\n",
            "ldrb r7, [r5, #",
            $d,
            "]\n",
            "ldr r7, [r3, r7, lsl #2]\n",
            "add ",
            $sum,
            ", ",
            $sum,
            ", r7\n",
        )
    };
}

/// Two rows' eight bytes, added to the word of their sums.
macro_rules! two_rows {
    () => {
        concat!(
            four_entries!("r9", 0, 2, 4, 6),
            four_entries!("r10", 1, 3, 5, 7),
            "add r5, r5, r6\n",
            four_entries!("r11", 0, 2, 4, 6),
            four_entries!("r12", 1, 3, 5, 7),
            "add r5, r5, r6\n",
            "pkhbt r7, r9, r11, lsl #16\n",
            "pkhtb lr, r12, r10, asr #16\n",
            "ldr r9, [r8]\n",
            "umaal r9, r7, lr, r4\n",
            "str r9, [r8], #4\n",
        )
    };
}

impl Rows<'_> {
    /// Adds to each row's sum what the tables say of its bytes `at`..`at` + 8.
    ///
    /// Even bytes select low halves, odd bytes high ones. Halves are at most 1270, four of them stay below 2¹⁶: none
    /// carries into the other, and those not asked for do no harm.
    pub(super) fn add_eight(&mut self, at: usize) {
        for (row, places) in self.runs() {
            let bytes = self.bytes.get(row * self.row_bytes + at..);
            let sums = self.sums.get_mut(places.start / 2..places.end / 2);
            let (Some(bytes), Some(sums)) = (bytes, sums) else {
                return;
            };
            if sums.is_empty() || bytes.len() < (places.len() - 1) * self.row_bytes + 8 {
                continue;
            }
            debug_assert_eq!(self.tables.len(), TABLES);
            let ends = sums.as_mut_ptr_range();
            // SAFETY: reads eight bytes of each of `places.len()` rows, which lie in `bytes` as was checked, and words of the
            // four tables by bytes; reads and writes the places' sums, two a word, an even number of words. The stack comes back as it was, and so do
            // r6, r7 and r9, which cannot be operands.
            unsafe {
                asm!(
                    "push {{r6, r7, r9, r12}}",
                    "mov r6, r1",
                    "add r1, r0, #1024",
                    "add r2, r0, #2048",
                    "add r3, r0, #3072",
                    "mov r4, #1",
                    "2:",
                    two_rows!(),
                    two_rows!(),
                    "ldr r7, [sp, #12]",
                    "cmp r8, r7",
                    "bne 2b",
                    "pop {{r6, r7, r9, r12}}",
                    inout("r0") self.tables.as_ptr() => _,
                    inout("r1") self.row_bytes => _,
                    out("r2") _,
                    out("r3") _,
                    out("r4") _,
                    inout("r5") bytes.as_ptr() => _,
                    inout("r8") ends.start => _,
                    out("r10") _,
                    out("r11") _,
                    inout("r12") ends.end => _,
                    out("lr") _,
                );
            }
        }
    }

    /// Adds to each row's sum what the first two tables say of its bytes `at`..`at` + 4, and the sum times the scale behind
    /// them to the row's total.
    ///
    /// Entries lie between −8255 and −6985 here. The two of even bytes give their sum in the low half, signed; the
    /// two of odd bytes theirs in the high half less 1, which the halves below, between −16510 and −13970, always borrow.
    pub(super) fn add_last(&mut self, at: usize) {
        for (row, places) in self.runs() {
            let bytes = self.bytes.get(row * self.row_bytes + at..);
            let sums = self.sums.get(places.start / 2..places.end / 2);
            let totals = self.totals.get_mut(2 * places.start..2 * places.end);
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
                    "ldrb r9, [r2]",
                    "ldrb r12, [r2, #2]",
                    "ldrb r11, [r2, #1]",
                    "ldrb r7, [r2, #3]",
                    "ldr r9, [r0, r9, lsl #2]",
                    "ldr r12, [r1, r12, lsl #2]",
                    "ldr r11, [r0, r11, lsl #2]",
                    "ldr r7, [r1, r7, lsl #2]",
                    "ldrsh lr, [r2, #4]",
                    "add r2, r2, r3",
                    "add r9, r9, r12",
                    "add r11, r11, r7",
                    "ldrh r7, [r4], #2",
                    "add r7, r7, r11, asr #16",
                    "sxtah r7, r7, r9",
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
