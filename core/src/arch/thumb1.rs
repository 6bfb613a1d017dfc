//! Loops for Thumb-1 code (Cortex-M0, M0+, M23), for which compilers keep half of the values in memory: there are
//! only eight registers.
//!
//! Two dot products at once: [`crate::arch::plain::dot`] of each row with `x`; sums wrap where its sums do. One value
//! of `x` times two rows takes 8 instructions, so 4.06 per multiplication with the branch. Entries of TQ1_0's tables:
//! four bytes of a row take 22 instructions.
//!
//! Exact: every lane is a sign-extended byte, and MULS and ADDS are the operations modulo 2³² of the plain loop.

#![allow(unsafe_code, reason = "a loop in assembler")]

use core::arch::asm;

/// Values per step.
const STEP: usize = 8;

/// Returns the sums of the products of two rows with `x`, over the whole steps of the shortest, and the number of
/// these values.
#[inline(never)]
pub(crate) fn two(a: &[u8], b: &[u8], x: &[i8]) -> ([i32; 2], usize) {
    let len = a.len().min(b.len()).min(x.len()) & !(STEP - 1);
    let mut sums = [0; 2];
    if len > 0 {
        let [first, second] = &mut sums;
        // SAFETY: The index goes from −len to 0, exclusive, and is added to what lies `len` bytes behind each slice's
        // start, no slice being shorter. Bytes may lie at any address. r6 and r7, of which compilers keep one to
        // themselves, are saved and restored; no operand is relative to the stack's pointer.
        unsafe {
            asm!(
                "push {{r6, r7}}",
                "2:",
                ".rept 8",
                "ldrsb r6, [r0, r3]",
                "ldrsb r7, [r1, r3]",
                "muls r7, r6, r7",
                "adds r4, r4, r7",
                "ldrsb r7, [r2, r3]",
                "muls r7, r6, r7",
                "adds r5, r5, r7",
                "adds r3, r3, #1",
                ".endr",
                "bne 2b",
                "pop {{r6, r7}}",
                in("r0") x.as_ptr().add(len),
                in("r1") a.as_ptr().add(len),
                in("r2") b.as_ptr().add(len),
                inout("r3") len.wrapping_neg() => _,
                inout("r4") *first,
                inout("r5") *second,
                options(readonly),
            );
        }
    }
    (sums, len)
}

/// Adds the entries of two tables for each row's four bytes to its sums, as in [`super::portable`] for TQ1_0; `bytes`
/// begins with the first row's.
pub(crate) fn add_entries(
    bytes: &[u8],
    row_bytes: usize,
    (first, second): (&[u32; 256], &[u32; 256]),
    sums: &mut [[u32; 2]],
) {
    if sums.is_empty() || bytes.len() < (sums.len() - 1) * row_bytes + 4 {
        return;
    }
    let ends = sums.as_mut_ptr_range();
    // SAFETY: reads four bytes of each row, which lie in `bytes` as was checked, and words of both tables by bytes;
    // reads and writes the sums of as many rows. r6 and r7, of which compilers keep one to themselves, are saved and
    // restored; no operand is relative to the stack's pointer.
    unsafe {
        asm!(
            "push {{r6, r7}}",
            "mov r12, r5",
            "2:",
            "ldr r5, [r2]",
            "ldr r6, [r2, #4]",
            "ldrb r7, [r0]",
            "lsls r7, r7, #2",
            "ldr r7, [r1, r7]",
            "adds r5, r5, r7",
            "ldrb r7, [r0, #2]",
            "lsls r7, r7, #2",
            "ldr r7, [r4, r7]",
            "adds r5, r5, r7",
            "ldrb r7, [r0, #1]",
            "lsls r7, r7, #2",
            "ldr r7, [r1, r7]",
            "adds r6, r6, r7",
            "ldrb r7, [r0, #3]",
            "lsls r7, r7, #2",
            "ldr r7, [r4, r7]",
            "adds r6, r6, r7",
            "stm r2!, {{r5, r6}}",
            "adds r0, r0, r3",
            "cmp r2, r12",
            "bne 2b",
            "pop {{r6, r7}}",
            inout("r0") bytes.as_ptr() => _,
            in("r1") first.as_ptr(),
            inout("r2") ends.start => _,
            in("r3") row_bytes,
            in("r4") second.as_ptr(),
            inout("r5") ends.end => _,
            out("r12") _,
        );
    }
}

/// Returns an int8 vector's bytes.
pub(crate) fn bytes(values: &[i8]) -> &[u8] {
    // SAFETY: The two types have one size, alignment and set of values.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}
