//! TQ1_0 × int8 with vectors, directly from the file, for blocks that all have one scale.
//!
//! A byte is a base-3 fraction in units of 1/256: three times it is a digit (its high half, `VMULH`) and the
//! remaining fraction (its low half, `VMUL`). So sixteen bytes give five times sixteen digits, 0 to 2, with
//! consecutive activations in `x`: digit n of bytes 0 to 31 is columns 32 n and on, that of bytes 32 to 47 columns
//! 160 + 16 n and on. The last four bytes hold four digits each: sixteen lanes of them, times 1, 3, 9 and 27, leave
//! the fractions of all sixteen at once. Four rows share the activations: 223 instructions for 1,024 products.
//!
//! Exact: a digit's product is at most 254, and 2¹⁶ of them ([`MAX_COLS`](crate::linear::MAX_COLS)) stay below 2²⁴. A
//! sum begins with −Σ x, so it ends as Σ (digit − 1) · x.

use core::arch::global_asm;

use crate::linear::{I8Sym, Matrix, Sums};

/// Values and bytes of a block.
const LEN: usize = 256;
const BYTES: usize = 54;

// Digit by digit, with sixteen activations each, for the bytes of four rows in q1 to q4; r4, r6, r8 and r10 are the
// rows' sums.
macro_rules! digits {
    ($($x:literal),+; $last:literal) => {
        concat!($("vldrb.u8 q0, ", $x, "\n", digits!(digit "q1", "r4", "vmul.i8 q1, q1, q7\n"), digits!(digit "q2", "r6", "vmul.i8 q2, q2, q7\n"),
            digits!(digit "q3", "r8", "vmul.i8 q3, q3, q7\n"), digits!(digit "q4", "r10", "vmul.i8 q4, q4, q7\n"),)+
            "vldrb.u8 q0, ", $last, "\n", digits!(digit "q1", "r4", ""), digits!(digit "q2", "r6", ""), digits!(digit "q3", "r8", ""),
            digits!(digit "q4", "r10", ""))
    };
    (digit $bytes:literal, $sum:literal, $rest:expr) => {
        concat!("vmulh.u8 q5, ", $bytes, ", q7\n", "vmladava.s8 ", $sum, ", q0, q5\n", $rest)
    };
}

// Sixteen bytes of each row, from `at` on.
macro_rules! sixteen {
    ($at:literal) => {
        concat!(
            "vldrb.u8 q1, [r0, #",
            $at,
            "]\n",
            "vldrb.u8 q2, [r5, #",
            $at,
            "]\n",
            "vldrb.u8 q3, [r7, #",
            $at,
            "]\n",
            "vldrb.u8 q4, [r9, #",
            $at,
            "]\n",
        )
    };
}

// The last four bytes of a row.
macro_rules! four {
    ($row:literal, $sum:literal) => {
        concat!(
            "ldr r3, [",
            $row,
            ", #48]\n",
            "vdup.32 q1, r3\n",
            "vmul.i8 q1, q1, q6\n",
            "vmulh.u8 q1, q1, q7\n",
            "vmladava.s8 ",
            $sum,
            ", q0, q1\n",
            "adds ",
            $row,
            ", #54\n",
        )
    };
}

global_asm!(
    ".arch armv8.1-m.main",
    ".arch_extension mve.fp",
    ".section .text.tercet_mve_tq1_0,\"ax\",%progbits",
    ".global tercet_mve_tq1_0",
    ".type tercet_mve_tq1_0,%function",
    ".thumb_func",
    // r0: first row, r1: bytes to the next, r2: x, r3: blocks, at least 1; on the stack: sums, number of fours of
    // rows, at least 1.
    "tercet_mve_tq1_0:",
    "push {{r1-r11, lr}}",
    "vpush {{d8-d15}}",
    // Σ x; the arguments are at 72 and 120 from here.
    "mov r4, #0",
    "mov r5, r2",
    "lsl r6, r3, #4",
    "dls lr, r6",
    "4:",
    "vldrb.u8 q0, [r5], #16",
    "vaddva.s8 r4, q0",
    "le lr, 4b",
    "push {{r4, r5}}",
    "mov r4, #3",
    "vdup.8 q7, r4",
    "mov r4, #0x01010101",
    "mov r5, #0x03030303",
    "mov r6, #0x09090909",
    "mov r7, #0x1B1B1B1B",
    "vmov.32 q6[0], r4",
    "vmov.32 q6[1], r5",
    "vmov.32 q6[2], r6",
    "vmov.32 q6[3], r7",
    "3:",
    "ldrd r1, r2, [sp, #72]",
    "ldr lr, [sp, #80]",
    "add r5, r0, r1",
    "add r7, r5, r1",
    "add r9, r7, r1",
    "add r11, r9, r1",
    "ldr r4, [sp]",
    "rsb r4, r4, #0",
    "mov r6, r4",
    "mov r8, r4",
    "mov r10, r4",
    "add r12, r2, #128",
    "dls lr, lr",
    "2:",
    sixteen!(0),
    digits!("[r2]", "[r2, #32]", "[r2, #64]", "[r2, #96]"; "[r12]"),
    sixteen!(16),
    digits!("[r2, #16]", "[r2, #48]", "[r2, #80]", "[r2, #112]"; "[r12, #16]"),
    sixteen!(32),
    digits!("[r12, #32]", "[r12, #48]", "[r12, #64]", "[r12, #80]"; "[r12, #96]"),
    "vldrb.u8 q0, [r12, #112]",
    four!("r0", "r4"),
    four!("r5", "r6"),
    four!("r7", "r8"),
    four!("r9", "r10"),
    "add r2, r2, #256",
    "add r12, r12, #256",
    "le lr, 2b",
    "ldrd r1, r2, [sp, #120]",
    "stm r1!, {{r4, r6, r8, r10}}",
    "subs r2, #1",
    "strd r1, r2, [sp, #120]",
    "mov r0, r11",
    "bne 3b",
    "add sp, #8",
    "vpop {{d8-d15}}",
    "pop {{r1-r11, pc}}",
    ".size tercet_mve_tq1_0, . - tercet_mve_tq1_0",
);

unsafe extern "C" {
    /// Writes the sums of four times `fours` rows, `stride` bytes apart.
    fn tercet_mve_tq1_0(
        rows: *const u8,
        stride: usize,
        x: *const i8,
        blocks: usize,
        out: *mut i32,
        fours: usize,
    );
}

/// Largest number of rows per call.
const ROWS: usize = 32;

/// Computes the sums of a matrix in TQ1_0, four rows at once. Returns false and does nothing unless all blocks have
/// one scale.
pub(super) fn tq1_0(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) -> bool {
    let Some(scale) = matrix.one_block_scale() else {
        return false;
    };
    let x = x.get();
    let blocks = matrix.cols() / LEN;
    if blocks == 0 || x.len() != blocks * LEN {
        return false;
    }
    let row_bytes = blocks * BYTES;
    let most = matrix.bytes().chunks_exact((ROWS * row_bytes).max(1));
    let fours = most.remainder().chunks_exact((4 * row_bytes).max(1));
    let rest = fours.remainder().chunks_exact(row_bytes.max(1));
    let most = most.map(|rows| (rows, row_bytes, ROWS));
    let fours = fours.map(|rows| (rows, row_bytes, 4));
    // One row is four rows with a stride of 0.
    let rest = rest.map(|rows| (rows, 0, 1));
    let scale = (scale, 127 * x.len() as u32);
    let mut sums = [0; ROWS];
    for (rows, stride, count) in most.chain(fours).chain(rest) {
        // SAFETY: The rows of `blocks` blocks, `stride` bytes apart, lie in `rows`, `x` has 256 activations for each
        // block, and `sums` has room for whole fours of rows. Bytes need no alignment. The function keeps the
        // registers that its caller owns.
        unsafe {
            tercet_mve_tq1_0(
                rows.as_ptr(),
                stride,
                x.as_ptr(),
                blocks,
                sums.as_mut_ptr(),
                count.div_ceil(4),
            );
        }
        let sums = sums.get(..count).unwrap_or_default();
        out.by_scale(sums.iter().copied(), scale);
    }
    true
}
