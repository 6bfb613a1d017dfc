//! int8 × int8 with vectors: `VMLADAVA.S8` multiplies sixteen pairs and adds all of them to 32 bits.
//!
//! Exact: every product of two int8 is below 2¹⁴ + 1, and 2¹⁶ of them ([`MAX_COLS`](crate::linear::MAX_COLS)) stay within 2³⁰.
//! No pair is added on its own, so −128 · −128 is no special case. The loop is predicated by the number of columns: lanes past a row's
//! end are neither loaded nor multiplied.

use core::arch::global_asm;

use crate::linear::{I8Sym, Matrix, Sums};

global_asm!(
    ".arch armv8.1-m.main",
    ".arch_extension mve.fp",
    ".section .text.tercet_mve_int8,\"ax\",%progbits",
    ".global tercet_mve_int8",
    ".type tercet_mve_int8,%function",
    ".thumb_func",
    // r0: first row, r1: bytes to the next, r2: x, r3: columns, at least 1; on the stack: four sums.
    "tercet_mve_int8:",
    "push {{r4-r8, r10, lr}}",
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
    "ldr r0, [sp, #28]",
    "strd r4, r6, [r0]",
    "strd r8, r10, [r0, #8]",
    "pop {{r4-r8, r10, pc}}",
    ".size tercet_mve_int8, . - tercet_mve_int8",
);

unsafe extern "C" {
    /// Writes the dot products of four rows, `stride` bytes apart, with `x`.
    fn tercet_mve_int8(rows: *const u8, stride: usize, x: *const i8, cols: usize, out: *mut i32);
}

/// The sums of a matrix in [`Layout::Int8`](crate::linear::Layout::Int8), four rows at once.
pub fn int8(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let cols = matrix.cols();
    if x.len() != cols {
        return;
    }
    let fours = matrix.bytes().chunks_exact(4 * cols.max(1));
    let rest = fours.remainder().chunks_exact(cols.max(1));
    // One row is four rows no bytes apart.
    let rest = rest.map(|rows| (rows, 0, 1));
    for (rows, stride, count) in fours.map(|rows| (rows, cols, 4)).chain(rest) {
        let sums = four_rows(rows, stride, x.get());
        out.narrow(sums.get(..count).unwrap_or(&sums));
    }
}

/// The dot products of `x` with four rows of its length, `stride` values apart; zeros where that is more than `rows` holds.
#[inline]
pub(super) fn four_rows<T: Byte>(rows: &[T], stride: usize, x: &[i8]) -> [i32; 4] {
    let mut sums = [0; 4];
    if x.is_empty() || stride.saturating_mul(3).saturating_add(x.len()) > rows.len() {
        return sums;
    }
    // SAFETY: The four rows lie in `rows`, `x` has as many values as each, at least 1, and `sums` has room
    // for four. Bytes need no alignment. The function keeps the registers that its caller owns.
    unsafe {
        tercet_mve_int8(
            rows.as_ptr().cast(),
            stride,
            x.as_ptr(),
            x.len(),
            sums.as_mut_ptr(),
        )
    };
    sums
}

/// int8, however it is written.
pub(super) trait Byte {}

impl Byte for u8 {}
impl Byte for i8 {}
