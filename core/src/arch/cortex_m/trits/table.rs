//! A table for two neighbouring bytes of five digits each: word b is the first byte's sum for the value b, plus 2¹⁶
//! times the second's.
//!
//! Byte b represents the digits of v = ⌊243·b/256⌋, so the 243 sums are in the order of v, and thirteen of them occur
//! twice: v = 0, 18, 37 and so on. Nine sums of the last two digits stay in registers. From one value of the first
//! three digits to the next, all nine change by the same difference.

use core::arch::asm;

/// Words of a table.
pub(in super::super) const TABLE: usize = 256;

/// Stores nine sums.
macro_rules! nine {
    () => {
        "stm lr!, {{r0-r8}}\n"
    };
}

/// Stores one sum.
macro_rules! one {
    ($sum:literal) => {
        concat!("str ", $sum, ", [lr], #4\n")
    };
}

/// Stores nine sums, with the one between both lists stored twice.
macro_rules! ten {
    ($to:literal, $from:literal) => {
        concat!("stm lr!, {{", $to, "}}\n", "stm lr!, {{", $from, "}}\n")
    };
}

/// Moves to the next value of the first three digits.
macro_rules! step {
    ($by:literal) => {
        concat!(
            "add r0, r0, ",
            $by,
            "\n",
            "add r1, r1, ",
            $by,
            "\n",
            "add r2, r2, ",
            $by,
            "\n",
            "add r3, r3, ",
            $by,
            "\n",
            "add r4, r4, ",
            $by,
            "\n",
            "add r5, r5, ",
            $by,
            "\n",
            "add r6, r6, ",
            $by,
            "\n",
            "add r7, r7, ",
            $by,
            "\n",
            "add r8, r8, ",
            $by,
            "\n",
        )
    };
}

/// Fills a table with Σ (d − 1)·x over the digits d: for the first byte with the columns `at`, `at + stride` and so
/// on, `digits` (4 or 5) of them, and for the second byte with the columns after each of these.
#[inline(never)]
pub(in super::super) fn fill(
    x: &[i8],
    (at, stride, digits): (usize, usize, usize),
    table: &mut [u32],
) {
    let pair = |digit: usize| x.get(at + digit * stride..)?.first_chunk::<2>();
    let fifth = if digits == 5 { pair(4) } else { Some(&[0; 2]) };
    let (Some(first), Some(_), Some(fifth)) = (pair(0), pair(3), fifth) else {
        return;
    };
    let Some(table) = table.first_chunk_mut::<TABLE>() else {
        return;
    };
    // SAFETY: reads four pairs of activations from `first` on, `stride` apart, and one at `fifth`: the last of the
    // four was looked up above. Writes the table's 256 words: 27 times nine and, thirteen times, one more. The stack
    // comes back as it was, and so do r6 and r7, which cannot be operands.
    unsafe {
        asm!(
            "push {{r6, r7}}",
            "ldrsb r3, [r10]",
            "ldrsb r4, [r10, #1]",
            "add r10, r10, r11",
            "add r3, r3, r4, lsl #16",
            "ldrsb r4, [r10]",
            "ldrsb r5, [r10, #1]",
            "add r10, r10, r11",
            "add r4, r4, r5, lsl #16",
            "ldrsb r5, [r10]",
            "ldrsb r6, [r10, #1]",
            "add r10, r10, r11",
            "add r5, r5, r6, lsl #16",
            "ldrsb r6, [r10]",
            "ldrsb r7, [r10, #1]",
            "add r6, r6, r7, lsl #16",
            "ldrsb r7, [r12]",
            "ldrsb r8, [r12, #1]",
            "add r7, r7, r8, lsl #16",
            // One more in the first digit, with 0 for 2 in the two after it; in the second; in the third.
            "sub r10, r3, r4, lsl #1",
            "sub r10, r10, r5, lsl #1",
            "sub r11, r4, r5, lsl #1",
            "mov r12, r5",
            // The sums of the last two digits.
            "rsb r0, r3, #0",
            "sub r0, r0, r4",
            "sub r0, r0, r5",
            "sub r0, r0, r6",
            "sub r0, r0, r7",
            "add r3, r0, r6",
            "add r6, r3, r6",
            "add r1, r0, r7",
            "add r2, r1, r7",
            "add r4, r3, r7",
            "add r5, r4, r7",
            "add r8, r6, r7, lsl #1",
            "add r7, r6, r7",
            one!("r0"), nine!(), step!("r12"),
            nine!(), step!("r12"),
            one!("r0"), nine!(), step!("r11"),
            nine!(), step!("r12"),
            ten!("r0, r1", "r1-r8"), step!("r12"),
            nine!(), step!("r11"),
            ten!("r0-r2", "r2-r8"), step!("r12"),
            nine!(), step!("r12"),
            ten!("r0-r2", "r2-r8"), step!("r10"),
            nine!(), step!("r12"),
            ten!("r0-r3", "r3-r8"), step!("r12"),
            nine!(), step!("r11"),
            ten!("r0-r4", "r4-r8"), step!("r12"),
            nine!(), step!("r12"),
            ten!("r0-r4", "r4-r8"), step!("r11"),
            nine!(), step!("r12"),
            ten!("r0-r5", "r5-r8"), step!("r12"),
            nine!(), step!("r10"),
            ten!("r0-r6", "r6-r8"), step!("r12"),
            nine!(), step!("r12"),
            ten!("r0-r6", "r6-r8"), step!("r11"),
            nine!(), step!("r12"),
            ten!("r0-r7", "r7, r8"), step!("r12"),
            nine!(), step!("r11"),
            nine!(), one!("r8"), step!("r12"),
            nine!(), step!("r12"),
            nine!(),
            "pop {{r6, r7}}",
            out("r0") _,
            out("r1") _,
            out("r2") _,
            out("r3") _,
            out("r4") _,
            out("r5") _,
            out("r8") _,
            inout("r10") first.as_ptr() => _,
            inout("r11") stride => _,
            inout("r12") fifth.as_ptr() => _,
            inout("lr") table.as_mut_ptr() => _,
        );
    }
}
