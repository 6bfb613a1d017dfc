//! Q8_0 as in a file, at any address: two rows at once, with activations widened beforehand as for [`super::int8`].
//! If consecutive blocks have the same scale in each of the two rows, they form one sum, which is multiplied by the
//! scale once: a whole row, if each row has one scale.
//!
//! Eight columns of two rows take 21 instructions, and two blocks of them 4 more.
//!
//! Proof of exactness: every lane is a sign-extended byte, and a product is at most 128 · 127. A row's products, at
//! most 2¹⁶ ([`MAX_COLS`](crate::linear::MAX_COLS)), stay below 2³¹, so no `SMLAD` wraps. Times 41 bits of scale, a
//! run's sum stays within 64 bits, because a [`Matrix`] keeps the total of all magnitudes below 2⁶³.

#![allow(unsafe_code, reason = "a loop in assembler")]

#[cfg(not(tercet_mve))]
use core::arch::asm;

use super::batch::Batch;
#[cfg(not(tercet_mve))]
use super::int8::{four_columns, widen};
#[cfg(tercet_mve)]
use crate::arch::mve::q8_0::{STEP, run};
use crate::arch::portable::fixed;
use crate::linear::{I8Sym, Matrix, Sums};
use half::f16;
use heapless::Vec;

/// Values and bytes of a block, of which the first two are its scale.
const VALUES: usize = 32;
const BYTES: usize = 34;

/// Activations in the form of a run, and the number of elements per block.
#[cfg(not(tercet_mve))]
type X = u32;
#[cfg(not(tercet_mve))]
const STEP: usize = VALUES / 2;
#[cfg(tercet_mve)]
type X = i8;

/// Same contract as [`crate::arch::plain::linear::blocks`], for Q8_0. Returns false and does nothing with fewer than
/// [`Matrix::fast_scratch_len`] words of scratch.
pub(super) fn sums(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    let Some(words) = scratch.get_mut(..matrix.cols() / 2) else {
        return false;
    };
    let words = activations(x.get(), words);
    let row_bytes = matrix.cols() / VALUES * BYTES;
    let mut pairs = matrix.bytes().chunks((2 * row_bytes).max(1)).map(|rows| {
        let (first, second) = rows.split_at_checked(row_bytes).unwrap_or_default();
        // The last of an odd number of rows is paired with itself; receivers ignore sums after the last row.
        (first, if second.is_empty() { first } else { second })
    });
    // As long as each row has one scale, as the head of a model: its sum and its scale are all there is.
    let mut rest = None;
    let mut scaled: Vec<(i32, f16), 8> = Vec::new();
    for (a, b) in &mut pairs {
        let (Some(scale_a), Some(scale_b)) = (scale(a), scale(b)) else {
            break;
        };
        let (sum_a, sum_b, blocks) = run(a, b, words, scales(scale_a, scale_b));
        if blocks * BYTES != row_bytes {
            rest = Some((a, b));
            break;
        }
        let row = |sum, scale| (sum, f16::from_bits(scale));
        let _ = scaled.extend_from_slice(&[row(sum_a, scale_a), row(sum_b, scale_b)]);
        if scaled.is_full() {
            out.by_scales(&scaled);
            scaled.clear();
        }
    }
    out.by_scales(&scaled);
    let mut out = Batch::new(out);
    for (a, b) in rest.into_iter().chain(pairs) {
        let [a, b] = two_rows(a, b, words);
        out.push(a);
        out.push(b);
    }
    out.flush();
    true
}

/// Returns activations in the form of a run.
#[cfg(not(tercet_mve))]
fn activations<'a>(x: &[i8], words: &'a mut [u32]) -> &'a [X] {
    widen(x, words);
    words
}

/// Returns activations in the form of a run: unchanged.
#[cfg(tercet_mve)]
fn activations<'a>(x: &'a [i8], _: &mut [u32]) -> &'a [X] {
    x
}

/// Returns the sums of two rows.
fn two_rows(mut a: &[u8], mut b: &[u8], mut x: &[X]) -> [i64; 2] {
    let (mut total_a, mut total_b) = (0, 0);
    while let (Some(scale_a), Some(scale_b)) = (scale(a), scale(b)) {
        let (sum_a, sum_b, blocks) = run(a, b, x, scales(scale_a, scale_b));
        if blocks == 0 {
            break;
        }
        total_a += i64::from(sum_a) * fixed(scale_a);
        total_b += i64::from(sum_b) * fixed(scale_b);
        a = a.get(blocks * BYTES..).unwrap_or_default();
        b = b.get(blocks * BYTES..).unwrap_or_default();
        x = x.get(blocks * STEP..).unwrap_or_default();
    }
    [total_a, total_b]
}

/// Returns two rows' scales as a run takes them.
#[inline(always)]
fn scales(a: u16, b: u16) -> u32 {
    u32::from(a) | u32::from(b) << 16
}

/// Returns the scale of the first block.
#[inline(always)]
fn scale(row: &[u8]) -> Option<u16> {
    row.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

/// Returns the sums of blocks of two rows, without scales, while both scales are those in `scales` (the first row's
/// in the low half), and the number of these blocks.
#[cfg(not(tercet_mve))]
#[inline(never)]
fn run(a: &[u8], b: &[u8], x: &[u32], scales: u32) -> (i32, i32, usize) {
    let blocks = (x.len() * 2 / VALUES)
        .min(a.len() / BYTES)
        .min(b.len() / BYTES);
    if blocks == 0 {
        return (0, 0, 0);
    }
    let (sum_a, sum_b): (i32, i32);
    let end: usize;
    // SAFETY: Both rows have 34 · blocks bytes and x has 16 · blocks words, of which there is one block at least. LDR
    // takes any address on these cores, as compiled code for this target takes for granted. All registers written are
    // named here but r6 and r7, which are restored.
    unsafe {
        asm!(
            "push {{r6, r7}}",
            "2:",
            "ldrh r3, [r0], #2",
            "ldrh r4, [r1], #2",
            "orr r3, r3, r4, lsl #16",
            "cmp r3, lr",
            "bne 3f",
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
            "3:",
            "pop {{r6, r7}}",
            inout("r0") a.as_ptr() => _,
            inout("r1") b.as_ptr() => _,
            inout("r2") x.as_ptr() => end,
            in("r12") x.as_ptr().wrapping_add(STEP * blocks),
            inout("r10") 0 => sum_a,
            inout("r11") 0 => sum_b,
            inout("lr") scales => _,
            out("r3") _, out("r4") _, out("r5") _, out("r8") _, out("r9") _,
            options(readonly),
        );
    }
    (sum_a, sum_b, (end - x.as_ptr().addr()) / (4 * STEP))
}
