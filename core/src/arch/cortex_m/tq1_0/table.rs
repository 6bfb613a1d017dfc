//! A table for two neighbouring bytes of a TQ1_0 block: word b is the first byte's sum for the value b, plus 2¹⁶ times the second's.
//!
//! Byte b stands for the digits of v = ⌊243·b/256⌋, so the 243 sums lie in the order of v, and thirteen of them twice: v = 0,
//! 18, 37 and so on. Nine sums of the last two digits stay in registers; from one value of the first three digits to the next, all nine move by the
//! same difference.

use core::arch::asm;

/// Words of a table.
pub(super) const TABLE: usize = 256;

/// What the builder loads: the sums with all digits 0, and how digits change them.
#[repr(C)]
pub(super) struct Columns {
    /// Σ −x.
    zero: i32,
    /// One more in the last digit.
    fifth: i32,
    /// One more in the last but one.
    fourth: i32,
    /// From 2 to 0 in the second and third, and one more in the first.
    first: i32,
    /// From 2 to 0 in the third, and one more in the second.
    second: i32,
    /// One more in the third.
    third: i32,
}

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

/// Stores nine sums, the one where both lists meet twice.
macro_rules! ten {
    ($to:literal, $from:literal) => {
        concat!("stm lr!, {{", $to, "}}\n", "stm lr!, {{", $from, "}}\n")
    };
}

/// The next value of the first three digits.
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

impl Columns {
    /// The columns `at`, `at + stride` and so on, `digits` (at most 5) of them, of the first byte, and those after each of
    /// the second.
    pub(super) fn new(x: &[i8], at: usize, stride: usize, digits: usize) -> Self {
        let pair = |digit: usize| {
            let pair = x.get(at + digit * stride..).and_then(<[i8]>::first_chunk);
            let &[a, b] = pair.filter(|_| digit < digits).unwrap_or(&[0; 2]);
            i32::from(a) + (i32::from(b) << 16)
        };
        let [x0, x1, x2, x3, x4] = [pair(0), pair(1), pair(2), pair(3), pair(4)];
        Self {
            zero: -(x0 + x1 + x2 + x3 + x4),
            fifth: x4,
            fourth: x3,
            first: x0 - 2 * (x1 + x2),
            second: x1 - 2 * x2,
            third: x2,
        }
    }

    /// Fills a table; each sum is `offset` more.
    #[inline(never)]
    pub(super) fn fill(&self, offset: i16, table: &mut [u32]) {
        let Some(table) = table.first_chunk_mut::<TABLE>() else {
            return;
        };
        // SAFETY: reads this struct's six words, in their order; writes the table's 256 words: 27 times nine and, thirteen times, one more.
        // The stack comes back as it was, and so do r6, r7 and r9, which cannot be operands.
        unsafe {
            asm!(
                "push {{r6, r7}}",
                "ldm r10, {{r0, r1, r3, r10, r11, r12}}",
                "add r0, r0, r2",
                "add r6, r0, r3, lsl #1",
                "add r3, r0, r3",
                "add r2, r0, r1, lsl #1",
                "add r4, r3, r1",
                "add r5, r3, r1, lsl #1",
                "add r7, r6, r1",
                "add r8, r6, r1, lsl #1",
                "add r1, r0, r1",
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
                inout("r2") i32::from(offset) * 0x1_0001 => _,
                out("r3") _,
                out("r4") _,
                out("r5") _,
                out("r8") _,
                inout("r10") self => _,
                out("r11") _,
                out("r12") _,
                inout("lr") table.as_mut_ptr() => _,
            );
        }
    }
}
