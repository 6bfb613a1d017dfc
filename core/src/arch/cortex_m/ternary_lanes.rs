//! `Layout::TernaryLanes`: eight rows at once, with one `AND` and one `SMLAD` for two rows and two columns.
//!
//! Scratch: for each 64 columns a bias and 32 pairs of activations. Weights must begin at a multiple of 4.
//!
//! Proof of exactness: for two rows with weights a and b, lane times activation is (a + 1)·x + 2¹⁴·b·x. So over 64
//! columns an accumulator that began with 8192 − Σx holds
//!     F + 2¹⁴·S_b, F = 8192 + Σa·x,
//! modulo 2³². |Σa·x| ≤ 64·127 = 8128, so F is in 64..=16320: the low 14 bits are F. They are added to row a's total
//! and replaced by the next bias, which is also in 64..=16320, since |Σx| ≤ 8128. S_b continues to grow above them,
//! in 18 signed bits, which hold 1024 columns: 1024·127 = 130,048 < 2¹⁷. So a strip of at most 16 blocks of 64 ends
//! with S_b = accumulator >> 14. Totals: |Σ| ≤ 2¹⁶·127 < 2²³, plus 8192 per block meanwhile.

use core::arch::asm;

use super::dsp::{ONES, even_bytes, lower, multiply_add, odd_bytes, upper, word};
use crate::linear::{I8Sym, Matrix, Sums};

/// Number of columns after which the low fields are read.
const BLOCK: usize = 64;
/// Scratch words per block: its bias and pairs.
const STREAM: usize = 1 + BLOCK / 2;
/// Bytes of a block in a group of rows.
const BYTES: usize = BLOCK * 2;
/// Number of blocks after which the high fields are read.
const STRIP: usize = 16;
/// Offset that keeps the low field from being negative.
const OFFSET: i32 = 1 << 13;

/// Same contract as [`crate::arch::plain::linear::ternary_lanes`]. Returns false and does nothing for weights that do
/// not begin at a multiple of 4. `scratch` has at least [`Matrix::scratch_len`] words.
pub(super) fn sums(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    if !matrix.bytes().as_ptr().addr().is_multiple_of(4) {
        return false;
    }
    let blocks = matrix.cols().div_ceil(BLOCK);
    let Some(scratch) = scratch.get_mut(..blocks * STREAM) else {
        return false;
    };
    widen(x.get(), scratch);
    // A matrix has at least one column; the compiler does not know this.
    let groups = matrix.bytes().chunks_exact((blocks * BYTES).max(1));
    for group in groups {
        let mut totals = [0; 8];
        totals[..4].fill(-OFFSET * blocks as i32);
        let strips = group.chunks(STRIP * BYTES);
        for (weights, stream) in strips.zip(scratch.chunks(STRIP * STREAM)) {
            add_strip(weights, stream, &mut totals);
        }
        // First rows 0, 2, 4, 6, then second rows 1, 3, 5, 7.
        let [a, c, e, g, b, d, f, h] = totals;
        out.narrow(&[a, b, c, d, e, f, g, h]);
    }
    true
}

/// Writes each block's bias and pairs; columns after the last are 0.
fn widen(x: &[i8], stream: &mut [u32]) {
    let mut blocks = x.chunks_exact(BLOCK);
    for (words, x) in stream.chunks_exact_mut(STREAM).zip(&mut blocks) {
        widen_block(x, words);
    }
    let rest = blocks.remainder();
    if let (Some(words), false) = (stream.rchunks_exact_mut(STREAM).next(), rest.is_empty()) {
        let mut x = [0; BLOCK];
        x.iter_mut().zip(rest).for_each(|(x, &rest)| *x = rest);
        widen_block(&x, words);
    }
}

fn widen_block(x: &[i8], words: &mut [u32]) {
    let Some((bias, words)) = words.split_first_mut() else {
        return;
    };
    let mut sum = 0;
    let fours = x.chunks_exact(4).filter_map(<[i8]>::first_chunk);
    for (x, pairs) in fours.zip(words.chunks_exact_mut(2)) {
        let x = word(x);
        let (even, odd) = (even_bytes(x), odd_bytes(x));
        sum = multiply_add(multiply_add(sum, even, ONES), odd, ONES);
        pairs.copy_from_slice(&[lower(even, odd), upper(even, odd)]);
    }
    *bias = (OFFSET - sum) as u32;
}

/// Four row pairs of a word times a pair of activations. r0 to r3 are the accumulators, r11 is the mask; r10 and the
/// word are overwritten.
macro_rules! four_pairs {
    ($x:literal, $word:literal) => {
        concat!(
            "and r10, r11, ",
            $word,
            "\n",
            "smlad r0, r10, ",
            $x,
            ", r0\n",
            "and r10, r11, ",
            $word,
            ", ror #4\n",
            "smlad r1, r10, ",
            $x,
            ", r1\n",
            "and r10, r11, ",
            $word,
            ", ror #8\n",
            "smlad r2, r10, ",
            $x,
            ", r2\n",
            "and ",
            $word,
            ", r11, ",
            $word,
            ", ror #12\n",
            "smlad r3, ",
            $word,
            ", ",
            $x,
            ", r3\n",
        )
    };
}

/// Adds up to [`STRIP`] blocks of eight rows: the totals of the first rows of each pair, plus [`OFFSET`] per block,
/// then those of the second rows.
#[inline(never)]
fn add_strip(weights: &[u8], stream: &[u32], totals: &mut [i32; 8]) {
    if weights.len() / BYTES != stream.len() / STREAM || stream.len() < STREAM {
        return;
    }
    // SAFETY: reads `weights` and `stream` from their starts to their ends, since both hold as many blocks, and the
    // loop ends with the stream; reads and writes the eight totals. Both slices lie at multiples of 4: the caller
    // checked the weights. The stack comes back as it was, and so do r6, r7 and r9, which cannot be operands.
    unsafe {
        asm!(
            "push {{r0, r1, r6, r7, r9}}",
            "ldm r1, {{r4-r7}}",
            "push {{r4-r7}}",
            "ldr r0, [r12], #4",
            "mov r1, r0",
            "mov r2, r0",
            "mov r3, r0",
            // A bias is not 0. Not equal: the first half of a block.
            "cmp r0, #0",
            // Sixteen words and sixteen pairs with six registers, four at a time.
            "2:",
            "ldm r12!, {{r4-r7}}",
            "ldm lr!, {{r8, r9}}",
            four_pairs!("r4", "r8"),
            four_pairs!("r5", "r9"),
            "ldm lr!, {{r4, r5, r8, r9}}",
            four_pairs!("r6", "r4"),
            four_pairs!("r7", "r5"),
            "ldm r12!, {{r4-r7}}",
            four_pairs!("r4", "r8"),
            four_pairs!("r5", "r9"),
            "ldm lr!, {{r4, r5, r8, r9}}",
            four_pairs!("r6", "r4"),
            four_pairs!("r7", "r5"),
            "ldm r12!, {{r4-r7}}",
            four_pairs!("r4", "r8"),
            four_pairs!("r5", "r9"),
            "ldm lr!, {{r4, r5, r8, r9}}",
            four_pairs!("r6", "r4"),
            four_pairs!("r7", "r5"),
            "ldm r12!, {{r4-r7}}",
            four_pairs!("r4", "r8"),
            four_pairs!("r5", "r9"),
            "ldm lr!, {{r4, r5}}",
            four_pairs!("r6", "r4"),
            four_pairs!("r7", "r5"),
            "beq 3f",
            "cmp r0, r0",
            "b 2b",
            // Add the low fields to the first rows' totals.
            "3:",
            "ldm sp, {{r4-r7}}",
            "ubfx r8, r0, #0, #14",
            "ubfx r9, r1, #0, #14",
            "add r4, r4, r8",
            "add r5, r5, r9",
            "ubfx r8, r2, #0, #14",
            "ubfx r9, r3, #0, #14",
            "add r6, r6, r8",
            "add r7, r7, r9",
            "stm sp, {{r4-r7}}",
            "ldr r8, [sp, #16]",
            "cmp r12, r8",
            "beq 4f",
            "ldr r9, [r12], #4",
            "bfi r0, r9, #0, #14",
            "bfi r1, r9, #0, #14",
            "bfi r2, r9, #0, #14",
            "bfi r3, r9, #0, #14",
            "b 2b",
            // Add the high fields to the second rows' totals.
            "4:",
            "add sp, sp, #20",
            "ldr r8, [sp], #4",
            "stm r8!, {{r4-r7}}",
            "ldm r8, {{r4-r7}}",
            "add r4, r4, r0, asr #14",
            "add r5, r5, r1, asr #14",
            "add r6, r6, r2, asr #14",
            "add r7, r7, r3, asr #14",
            "stm r8, {{r4-r7}}",
            "pop {{r6, r7, r9}}",
            inout("r0") stream.as_ptr_range().end => _,
            inout("r1") totals.as_mut_ptr() => _,
            out("r2") _,
            out("r3") _,
            out("r4") _,
            out("r5") _,
            out("r8") _,
            out("r10") _,
            in("r11") 0xC003_C003u32,
            inout("r12") stream.as_ptr() => _,
            inout("lr") weights.as_ptr() => _,
        );
    }
}
