//! TQ2_0 × int8 with vectors, straight from the file.
//!
//! Sixteen bytes hold four fields of two bits, each sixteen columns that lie together in `x`: field n of bytes m.. is columns
//! 32 n + m... A field stays where it is: masked, it is c · 4ⁿ, so the sums of fields 1 and 2 come out 4 and 16 times as large, exactly; field 3
//! would be negative as int8 and is shifted down. c = code + 1 is 0 to 3, so a block's sum is Σ c·x − Σ x.
//!
//! Exact: in a block a field's products are below 127 · 48 and 64 of them are added, below 2¹⁹.

use core::arch::global_asm;

use half::f16;

use crate::linear::{I8Sym, Matrix, Sums};

/// Values and bytes of a block.
const LEN: usize = 256;
const BYTES: usize = 66;

// Sixteen bytes of two rows, at `at` from their blocks, with four times sixteen activations from `x`.
macro_rules! sixteen {
    ($at:literal, $x0:literal, $x1:literal, $x2:literal, $x3:literal) => {
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
            "vmladava.s8 r4, q0, q3\n",
            "vand q3, q2, q4\n",
            "vmladava.s8 r10, q0, q3\n",
            "vldrb.u8 q0, [r2, #",
            $x1,
            "]\n",
            "vand q3, q1, q5\n",
            "vmladava.s8 r6, q0, q3\n",
            "vand q3, q2, q5\n",
            "vmladava.s8 r12, q0, q3\n",
            "vldrb.u8 q0, [r2, #",
            $x2,
            "]\n",
            "vand q3, q1, q6\n",
            "vmladava.s8 r8, q0, q3\n",
            "vand q3, q2, q6\n",
            "vmladava.s8 lr, q0, q3\n",
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

global_asm!(
    ".arch armv8.1-m.main",
    ".arch_extension mve.fp",
    ".section .text.tercet_mve_tq2_0,\"ax\",%progbits",
    ".global tercet_mve_tq2_0",
    ".type tercet_mve_tq2_0,%function",
    ".thumb_func",
    // r0, r1: two rows, r2: x, r3: blocks, at least 1; on the stack: two sums for each block.
    "tercet_mve_tq2_0:",
    "push {{r4-r8, r10, r11, lr}}",
    "vpush {{d8-d13}}",
    "ldr r11, [sp, #80]",
    "mov r5, #0x03",
    "vdup.8 q4, r5",
    "mov r5, #0x0C",
    "vdup.8 q5, r5",
    "mov r5, #0x30",
    "vdup.8 q6, r5",
    "2:",
    "mov r4, #0",
    "mov r6, #0",
    "mov r8, #0",
    "mov r10, #0",
    "mov r12, #0",
    "mov lr, #0",
    sixteen!(0, 0, 32, 64, 96),
    sixteen!(16, 16, 48, 80, 112),
    "add r2, #128",
    sixteen!(32, 0, 32, 64, 96),
    sixteen!(48, 16, 48, 80, 112),
    "add r2, #128",
    "add r4, r4, r6, asr #2",
    "add r4, r4, r8, asr #4",
    "add r10, r10, r12, asr #2",
    "add r10, r10, lr, asr #4",
    "strd r4, r10, [r11], #8",
    "add r0, #66",
    "add r1, #66",
    "subs r3, #1",
    "bne 2b",
    "vpop {{d8-d13}}",
    "pop {{r4-r8, r10, r11, pc}}",
    ".size tercet_mve_tq2_0, . - tercet_mve_tq2_0",
);

unsafe extern "C" {
    /// Writes Σ c·x of each block of two rows, both rows' first block first.
    fn tercet_mve_tq2_0(
        a: *const u8,
        b: *const u8,
        x: *const i8,
        blocks: usize,
        out: *mut [i32; 2],
    );
}

/// Blocks that one call takes: their sums lie on the stack.
const RUN: usize = 8;

/// The sums of a matrix in TQ2_0, two rows at once. `scratch` has a word for each block of a row.
pub fn tq2_0(matrix: &Matrix<'_>, x: I8Sym<'_>, scratch: &mut [u32], out: &mut impl Sums) {
    let blocks = matrix.cols() / LEN;
    let Some(totals) = scratch.get_mut(..blocks) else {
        return;
    };
    for (total, x) in totals.iter_mut().zip(x.get().chunks_exact(LEN)) {
        *total = x.iter().map(|&x| i32::from(x)).sum::<i32>() as u32;
    }
    let row_bytes = (blocks * BYTES).max(1);
    for rows in matrix.bytes().chunks(2 * row_bytes) {
        let (a, b) = rows.split_at_checked(row_bytes).unwrap_or((rows, rows));
        // A last row alone is both rows.
        let b = if b.is_empty() { a } else { b };
        let mut sums = [0i64; 2];
        let runs = a.chunks(RUN * BYTES).zip(b.chunks(RUN * BYTES));
        let runs = runs.zip(x.get().chunks(RUN * LEN)).zip(totals.chunks(RUN));
        for (((a, b), x), totals) in runs {
            let mut dots = [[0; 2]; RUN];
            let count = totals.len();
            if a.len() != count * BYTES || b.len() != count * BYTES || x.len() != count * LEN {
                return;
            }
            // SAFETY: Both rows have `count` blocks, at least 1 and at most `RUN`, `x` 256 activations for each, and `dots` two sums.
            // Bytes need no alignment. The function keeps the registers that its caller owns.
            unsafe {
                tercet_mve_tq2_0(a.as_ptr(), b.as_ptr(), x.as_ptr(), count, dots.as_mut_ptr());
            }
            let blocks = a.chunks_exact(BYTES).zip(b.chunks_exact(BYTES));
            for (((a, b), dots), &total) in blocks.zip(dots).zip(totals.iter()) {
                for ((sum, block), dot) in sums.iter_mut().zip([a, b]).zip(dots) {
                    *sum += scaled(block, dot.wrapping_sub(total as i32));
                }
            }
        }
        out.wide(&sums);
    }
}

/// d·2²⁴·dot of a block, d finite: its 11 bits times 17 fit 32, and the exponent moves them up by 29 at most.
fn scaled(block: &[u8], dot: i32) -> i64 {
    let bits = match block.last_chunk() {
        Some(&bytes) => f16::from_le_bytes(bytes).to_bits(),
        None => 0,
    };
    let exponent = i32::from(bits >> 10) & 31;
    let mantissa = i32::from(bits & 0x3FF) | i32::from(exponent != 0) << 10;
    let product = i64::from(mantissa * dot) << (exponent - 1).max(0);
    if bits >> 15 == 1 { -product } else { product }
}
