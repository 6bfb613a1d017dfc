//! Q8_0 as it lies in a file, at any address: two rows at once over activations widened beforehand, as [`super::int8`] takes them. Blocks that follow one
//! another with one scale in each of the two rows are one sum, which is multiplied by it once: a whole row, where rows have a scale each.
//!
//! Eight columns of two rows are 21 instructions, and two blocks of them 4 more.
//!
//! Why it is exact. Every lane is a sign-extended byte, a product at most 128 · 127, and [`MOST`] blocks of them stay below 2³¹, so no `SMLAD` wraps. Times
//! 41 bits of scale a run's sum stays within 64 bits where a [`Matrix`] keeps the total of all magnitudes below 2⁶³.

#![allow(unsafe_code, reason = "a loop in assembler")]

use core::arch::asm;

use super::batch::Batch;
use super::int8::{four_columns, widen};
use crate::arch::portable::fixed;
use crate::linear::{I8Sym, Matrix, Sums};

/// Values and bytes of a block, the first two its scale.
const VALUES: usize = 32;
const BYTES: usize = 34;
/// The most blocks of a run: 2¹⁶ columns.
const MOST: usize = 2048;

/// [`crate::arch::plain::linear::blocks`] of Q8_0. False, and nothing done, with fewer than [`Matrix::fast_scratch_len`] words of scratch.
pub(super) fn sums(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    let Some(words) = scratch.get_mut(..matrix.cols() / 2) else {
        return false;
    };
    widen(x.get(), words);
    let mut out = Batch::new(out);
    let row_bytes = matrix.cols() / VALUES * BYTES;
    let mut rows = matrix.bytes().chunks_exact(row_bytes.max(1));
    while let Some(first) = rows.next() {
        let second = rows.next();
        let [a, b] = two_rows(first, second.unwrap_or(first), words);
        out.push(a);
        if second.is_some() {
            out.push(b);
        }
    }
    out.flush();
    true
}

/// The sums of two rows.
fn two_rows(mut a: &[u8], mut b: &[u8], mut x: &[u32]) -> [i64; 2] {
    let mut totals = [0; 2];
    while let (Some(scale_a), Some(scale_b)) = (scale(a, 0), scale(b, 0)) {
        let mut blocks = 1;
        while blocks < MOST
            && scale(a, blocks) == Some(scale_a)
            && scale(b, blocks) == Some(scale_b)
        {
            blocks += 1;
        }
        let (Some((run_a, rest_a)), Some((run_b, rest_b)), Some((run_x, rest_x))) = (
            a.split_at_checked(blocks * BYTES),
            b.split_at_checked(blocks * BYTES),
            x.split_at_checked(blocks * VALUES / 2),
        ) else {
            break;
        };
        let sums = run(run_a, run_b, run_x);
        let scales = [scale_a, scale_b].map(fixed);
        for ((total, sum), scale) in totals.iter_mut().zip(sums).zip(scales) {
            *total += i64::from(sum) * scale;
        }
        (a, b, x) = (rest_a, rest_b, rest_x);
    }
    totals
}

/// The scale of a block of a row.
#[inline(always)]
fn scale(row: &[u8], block: usize) -> Option<u16> {
    let bytes = row.get(block * BYTES..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

/// The sums of a run of blocks of two rows, without scales.
#[inline(never)]
fn run(a: &[u8], b: &[u8], x: &[u32]) -> [i32; 2] {
    let blocks = (x.len() * 2 / VALUES)
        .min(a.len() / BYTES)
        .min(b.len() / BYTES);
    if blocks == 0 {
        return [0; 2];
    }
    let (sum_a, sum_b);
    // SAFETY: Both rows have 34 · blocks bytes and x has 16 · blocks words, of which there is one block at least. LDR takes any address on these cores, as
    // compiled code for this target takes for granted. All registers written are named here but r6 and r7, which are restored.
    unsafe {
        asm!(
            "push {{r6, r7}}",
            "2:",
            "add r0, r0, #2",
            "add r1, r1, #2",
            ".rept 4",
            "ldmia.w r2!, {{r3, r4, r5, r6}}",
            "ldr.w r7, [r0], #4\nldr.w r9, [r0], #4",
            four_columns!("r7", "r3", "r4", "r10"),
            four_columns!("r9", "r5", "r6", "r10"),
            "ldr.w r7, [r1], #4\nldr.w r9, [r1], #4",
            four_columns!("r7", "r3", "r4", "r11"),
            four_columns!("r9", "r5", "r6", "r11"),
            ".endr",
            "cmp r2, r12",
            "bne 2b",
            "pop {{r6, r7}}",
            inout("r0") a.as_ptr() => _,
            inout("r1") b.as_ptr() => _,
            inout("r2") x.as_ptr() => _,
            in("r12") x.as_ptr().wrapping_add(VALUES / 2 * blocks),
            inout("r10") 0 => sum_a,
            inout("r11") 0 => sum_b,
            out("r3") _, out("r4") _, out("r5") _, out("r8") _, out("r9") _,
            options(readonly),
        );
    }
    [sum_a, sum_b]
}
