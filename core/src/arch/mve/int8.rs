//! int8 × int8 with vectors: `VMLADAVA.S8` multiplies sixteen pairs and adds all of them in 32 bits.
//!
//! Exact: every product of two int8 is below 2¹⁴ + 1, and 2¹⁶ of them ([`MAX_COLS`](crate::linear::MAX_COLS)) stay
//! within 2³⁰. No pair is added separately, so −128 · −128 is no special case. The loop is predicated by the number
//! of columns: lanes after a row's end are neither loaded nor multiplied.

use core::arch::global_asm;

use crate::linear::{I8Sym, Matrix, Sums};

global_asm!(
    ".arch armv8.1-m.main",
    ".arch_extension mve.fp",
    ".section .text.tercet_mve_int8,\"ax\",%progbits",
    ".global tercet_mve_int8",
    ".type tercet_mve_int8,%function",
    ".thumb_func",
    // r0: first row, r1: bytes to the next, r2: x, r3: columns, at least 1; on the stack: sums, number of fours of
    // rows, at least 1.
    "tercet_mve_int8:",
    "push {{r1-r11, lr}}",
    "ldr r11, [sp, #48]",
    "mov r9, r0",
    "3:",
    "ldrd r1, r2, [sp]",
    "ldr r3, [sp, #8]",
    "mov r0, r9",
    "add r9, r9, r1, lsl #2",
    "add r5, r0, r1",
    "add r7, r5, r1",
    "add r1, r7",
    "mov r4, #0",
    "mov r6, #0",
    "mov r8, #0",
    "mov r10, #0",
    "dlstp.8 lr, r3",
    "2:",
    "vldrb.u8 q0, [r2], #16",
    "vldrb.u8 q1, [r0], #16",
    "vmladava.s8 r4, q0, q1",
    "vldrb.u8 q1, [r5], #16",
    "vmladava.s8 r6, q0, q1",
    "vldrb.u8 q1, [r7], #16",
    "vmladava.s8 r8, q0, q1",
    "vldrb.u8 q1, [r1], #16",
    "vmladava.s8 r10, q0, q1",
    "letp lr, 2b",
    "strd r4, r6, [r11], #8",
    "strd r8, r10, [r11], #8",
    "ldr r0, [sp, #52]",
    "subs r0, #1",
    "str r0, [sp, #52]",
    "bne 3b",
    "pop {{r1-r11, pc}}",
    ".size tercet_mve_int8, . - tercet_mve_int8",
);

unsafe extern "C" {
    /// Writes the dot products of four times `fours` rows, `stride` bytes apart, with `x`.
    fn tercet_mve_int8(
        rows: *const u8,
        stride: usize,
        x: *const i8,
        cols: usize,
        out: *mut i32,
        fours: usize,
    );
}

/// Computes the sums of a matrix in [`Layout::Int8`](crate::linear::Layout::Int8), four rows at once.
pub fn int8(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let x = x.get();
    for group in Group::all(matrix.bytes(), x.len()) {
        let sums = group.dots(x);
        out.narrow(sums.get(..group.count).unwrap_or(&sums));
    }
}

/// Largest number of rows of a group.
const MOST: usize = 16;

/// Rows that one call processes.
pub(super) struct Group<'a, T> {
    rows: &'a [T],
    stride: usize,
    fours: usize,
    /// Number of the dot products that belong to rows.
    pub(super) count: usize,
}

impl<'a, T: Byte> Group<'a, T> {
    /// Returns all whole rows of `cols` values, as many as possible in large groups.
    pub(super) fn all(rows: &'a [T], cols: usize) -> impl Iterator<Item = Self> {
        let cols = cols.max(1);
        let group = move |stride, fours, count| {
            move |rows| Self {
                rows,
                stride,
                fours,
                count,
            }
        };
        let most = rows.chunks_exact(cols.saturating_mul(MOST).max(1));
        let fours = most.remainder().chunks_exact(cols.saturating_mul(4).max(1));
        let rest = fours.remainder().chunks_exact(cols);
        most.map(group(cols, MOST / 4, MOST))
            .chain(fours.map(group(cols, 1, 4)))
            // One row is four rows with a stride of 0.
            .chain(rest.map(group(0, 1, 1)))
    }

    /// Returns the dot products of the rows with `x`; zeros if the lengths differ.
    #[inline]
    pub(super) fn dots(&self, x: &[i8]) -> [i32; MOST] {
        let mut dots = [0; MOST];
        if x.is_empty() || x.len().checked_mul(self.count) != Some(self.rows.len()) {
            return dots;
        }
        // SAFETY: By `all`, `rows` are `count` = 4 · `fours` rows, `stride` apart, or one and `stride` is 0. `x` has
        // as many values as each, at least 1, and `dots` has room for 4 · `fours`. Bytes need no alignment. The
        // function keeps the registers that its caller owns.
        unsafe {
            tercet_mve_int8(
                self.rows.as_ptr().cast(),
                self.stride,
                x.as_ptr(),
                x.len(),
                dots.as_mut_ptr(),
                self.fours,
            )
        };
        dots
    }
}

/// A byte that contains an int8.
pub(super) trait Byte {}

impl Byte for u8 {}
impl Byte for i8 {}
