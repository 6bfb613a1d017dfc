//! TQ2_0 × int8 with vectors, directly from the file.
//!
//! Sixteen bytes hold four fields of two bits, each for sixteen consecutive columns of `x`: field n of bytes m.. is
//! columns 32 n + m... A field is not shifted: masked, it is c · 4ⁿ, so the sums of fields 1 and 2 are exactly 4 and
//! 16 times as large. Field 3 would be negative as int8 and is shifted down. c = code + 1 is 0 to 3, so a block's sum
//! is Σ c·x − Σ x.
//!
//! Exact: in a block a field's products are below 127 · 48, and 64 of them are added, which is below 2¹⁹. A block's
//! sum is below 2¹⁷, and its product with 11 bits of scale below 2²⁸. `SMLAL` shifts it by up to 29 and adds it in 64
//! bits, because a [`Matrix`] keeps the sum below 2⁶².

use core::arch::global_asm;

use crate::linear::{I8Sym, Matrix, Sums};

/// Values and bytes of a block.
const LEN: usize = 256;
const BYTES: usize = 66;

// Sixteen bytes of two rows, at `at` from their blocks, with four times sixteen activations from `x`; `add` is "a" if
// sums continue.
macro_rules! sixteen {
    ($add:literal, $at:literal, $x0:literal, $x1:literal, $x2:literal, $x3:literal) => {
        concat!(
            "vldrb.u8 q1, [r0, #",
            $at,
            "]\n",
            "vldrb.u8 q2, [r1, #",
            $at,
            "]\n",
            "vldrb.u8 q0, [r2, #",
            $x0,
            "]\n",
            "vand q3, q1, q4\n",
            "vmladav",
            $add,
            ".s8 r4, q0, q3\n",
            "vand q3, q2, q4\n",
            "vmladav",
            $add,
            ".s8 r10, q0, q3\n",
            "vldrb.u8 q0, [r2, #",
            $x1,
            "]\n",
            "vand q3, q1, q5\n",
            "vmladav",
            $add,
            ".s8 r6, q0, q3\n",
            "vand q3, q2, q5\n",
            "vmladav",
            $add,
            ".s8 r12, q0, q3\n",
            "vldrb.u8 q0, [r2, #",
            $x2,
            "]\n",
            "vand q3, q1, q6\n",
            "vmladav",
            $add,
            ".s8 r8, q0, q3\n",
            "vand q3, q2, q6\n",
            "vmladav",
            $add,
            ".s8 lr, q0, q3\n",
            "vldrb.u8 q0, [r2, #",
            $x3,
            "]\n",
            "vshr.u8 q1, q1, #6\n",
            "vmladava.s8 r4, q0, q1\n",
            "vshr.u8 q2, q2, #6\n",
            "vmladava.s8 r10, q0, q2\n",
        )
    };
}

// Adds a block's sum times its scale to a row's. r6, r8 and r12 are overwritten.
macro_rules! scale {
    ($row:literal, $sum:literal, $low:literal, $high:literal) => {
        concat!(
            "ldrsh r8, [",
            $row,
            ", #64]\n",
            "ubfx r6, r8, #10, #5\n",
            "ubfx r12, r8, #0, #10\n",
            // ±1.
            "asr r8, r8, #31\n",
            "orr r8, r8, #1\n",
            // Subnormals have the unit of the smallest normal numbers, without the hidden bit.
            "cbz r6, 4f\n",
            "sub r6, r6, #1\n",
            "orr r12, r12, #1024\n",
            "4:\n",
            "lsl r8, r8, r6\n",
            "mul r12, r12, ",
            $sum,
            "\n",
            "smlal ",
            $low,
            ", ",
            $high,
            ", r12, r8\n",
        )
    };
}

global_asm!(
    ".arch armv8.1-m.main",
    ".arch_extension mve.fp",
    ".section .text.tercet_mve_tq2_0,\"ax\",%progbits",
    ".global tercet_mve_tq2_0",
    ".type tercet_mve_tq2_0,%function",
    ".thumb_func",
    // r0: first row, r1: bytes to the next, r2: x, r3: blocks, at least 1; on the stack: Σ x of each block, sums,
    // number of pairs of rows, at least 1.
    "tercet_mve_tq2_0:",
    "push {{r1-r11, lr}}",
    "vpush {{d8-d13}}",
    // The second row's sum; the arguments are at 56 and 104 from here.
    "sub sp, #8",
    "mov r5, #0x03",
    "vdup.8 q4, r5",
    "mov r5, #0x0C",
    "vdup.8 q5, r5",
    "mov r5, #0x30",
    "vdup.8 q6, r5",
    "add r1, r0",
    "3:",
    "ldr r11, [sp, #104]",
    // The first row's sum is in r5 and r7.
    "mov r5, #0",
    "mov r7, #0",
    "strd r5, r7, [sp]",
    "2:",
    sixteen!("", 0, 0, 32, 64, 96),
    sixteen!("a", 16, 16, 48, 80, 112),
    "add r2, #128",
    sixteen!("a", 32, 0, 32, 64, 96),
    sixteen!("a", 48, 16, 48, 80, 112),
    "add r2, #128",
    "ldr r9, [r11], #4",
    "add r4, r4, r6, asr #2",
    "add r4, r4, r8, asr #4",
    "sub r4, r4, r9",
    "add r10, r10, r12, asr #2",
    "add r10, r10, lr, asr #4",
    "sub r10, r10, r9",
    scale!("r0", "r4", "r5", "r7"),
    "ldrd r4, r9, [sp]",
    scale!("r1", "r10", "r4", "r9"),
    "strd r4, r9, [sp]",
    "add r0, #66",
    "add r1, #66",
    "subs r3, #1",
    "bne 2b",
    "ldrd r8, r10, [sp, #108]",
    "strd r5, r7, [r8], #8",
    "strd r4, r9, [r8], #8",
    "sub r10, #1",
    "strd r8, r10, [sp, #108]",
    "mov r0, r1",
    "ldrd r4, r2, [sp, #56]",
    "ldr r3, [sp, #64]",
    "add r1, r4",
    "cmp r10, #0",
    "bne 3b",
    "add sp, #8",
    "vpop {{d8-d13}}",
    "pop {{r1-r11, pc}}",
    ".size tercet_mve_tq2_0, . - tercet_mve_tq2_0",
    ".section .text.tercet_mve_totals,\"ax\",%progbits",
    ".global tercet_mve_totals",
    ".type tercet_mve_totals,%function",
    ".thumb_func",
    // r0: x, r1: totals, r2: blocks, at least 1.
    "tercet_mve_totals:",
    "mov r12, #0",
    ".rept 16",
    "vldrb.u8 q0, [r0], #16",
    "vaddva.s8 r12, q0",
    ".endr",
    "str r12, [r1], #4",
    "subs r2, #1",
    "bne tercet_mve_totals",
    "bx lr",
    ".size tercet_mve_totals, . - tercet_mve_totals",
);

unsafe extern "C" {
    /// Writes the sums of pairs of rows, `stride` bytes apart.
    fn tercet_mve_tq2_0(
        rows: *const u8,
        stride: usize,
        x: *const i8,
        blocks: usize,
        totals: *const u32,
        out: *mut i64,
        pairs: usize,
    );

    /// Writes Σ x of each block.
    fn tercet_mve_totals(x: *const i8, totals: *mut u32, blocks: usize);
}

/// Number of rows whose sums are passed on together; even.
const ROWS: usize = 8;

/// Computes the sums of a matrix in TQ2_0, two rows at once. `scratch` has one word per block of a row.
pub fn tq2_0(matrix: &Matrix<'_>, x: I8Sym<'_>, scratch: &mut [u32], out: &mut impl Sums) {
    let blocks = matrix.cols() / LEN;
    let x = x.get();
    let Some(totals) = scratch.get_mut(..blocks) else {
        return;
    };
    if blocks == 0 || x.len() != blocks * LEN {
        return;
    }
    // SAFETY: `x` has 256 activations for each of at least one total.
    unsafe { tercet_mve_totals(x.as_ptr(), totals.as_mut_ptr(), blocks) };
    let row_bytes = blocks * BYTES;
    let eights = matrix.bytes().chunks_exact((ROWS * row_bytes).max(1));
    let rest = eights.remainder().chunks_exact((2 * row_bytes).max(1));
    let last = rest.remainder().chunks_exact(row_bytes.max(1));
    let eights = eights.map(|rows| (rows, row_bytes, ROWS));
    let rest = rest.map(|rows| (rows, row_bytes, 2));
    // One row is two rows with a stride of 0.
    let last = last.map(|rows| (rows, 0, 1));
    for (rows, stride, count) in eights.chain(rest).chain(last) {
        let mut sums = [0; ROWS];
        // SAFETY: The rows of `blocks` blocks, `stride` bytes apart, lie in `rows`, `x` has 256 activations and
        // `totals` a word for each block, and `sums` has room for the pairs. Bytes need no alignment. The function
        // keeps the registers that its caller owns.
        unsafe {
            tercet_mve_tq2_0(
                rows.as_ptr(),
                stride,
                x.as_ptr(),
                blocks,
                totals.as_ptr(),
                sums.as_mut_ptr(),
                count.div_ceil(2),
            );
        }
        out.wide(sums.get(..count).unwrap_or(&sums));
    }
}
