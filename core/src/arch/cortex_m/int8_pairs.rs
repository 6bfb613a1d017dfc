//! int8 weights packed in pairs of columns, four rows at once.
//!
//! Contract: the sums of [`crate::arch::plain::linear::int8_pairs`], if the weights begin at a multiple of 4. Eight
//! columns of four rows take 27 instructions (0.84 per multiplication).
//!
//! A 16-bit lane of weights is h = e + 256·o, for the even column's weight e and the odd one's o. With activations
//! widened to x₁ and 256·x₀ − x₁, both within 16 bits (127 · 257 = 32,639),
//!
//! h·x₁ + e·(256·x₀ − x₁) = 256·(e·x₀ + o·x₁),
//!
//! so one `SXTB16` (the e of two lanes) and two `SMLAD` do four multiplications.
//!
//! Exact: for any bytes, |e| ≤ 128 and |o| ≤ 128, so 512 columns sum to at most 512 · 128 · 127 < 2²³. 256 times that
//! is below 2³¹, and arithmetic modulo 2³² gives it even if intermediate results wrap. So sums are computed over at
//! most 512 columns, divided by 256 and added; 2¹⁶ columns of 128 · 127 stay below 2³¹.

#![allow(unsafe_code, reason = "a loop in assembler")]

use core::arch::asm;

use super::dsp::{for_each_word, odd_bytes, subtract};
use crate::linear::{I8Sym, Sums};

/// Words per 512 columns, widened.
const X_WORDS: usize = 256;

/// Same result as `scalar`, for weights as words.
#[inline]
pub(super) fn sums(words: &[u32], x: I8Sym<'_>, scratch: &mut [u32], out: &mut impl Sums) {
    let len = x.len().div_ceil(8) * 4;
    let x_words = scratch.get_mut(..len).unwrap_or_default();
    widen(x.get(), x_words);
    for words in words.chunks_exact((2 * len).max(1)) {
        out.narrow(&four_rows(words, x_words));
    }
}

/// Writes each four columns as two words: x₁ of both pairs, 256·x₀ − x₁ of both.
#[inline(never)]
fn widen(x: &[i8], out: &mut [u32]) {
    if let Some(last) = out.last_chunk_mut() {
        // A row ends at a multiple of eight columns; x may end four earlier.
        *last = [0; 2];
    }
    let mut out = out.chunks_exact_mut(2);
    for_each_word(x, |word| {
        if let Some([plain, scaled]) = out.next() {
            *plain = odd_bytes(word);
            *scaled = subtract((word << 8) & 0xFF00_FF00, *plain);
        }
    });
}

/// Returns the sums of a group of rows.
#[inline(never)]
fn four_rows(words: &[u32], x: &[u32]) -> [i32; 4] {
    let mut sums = [0; 4];
    for (words, x) in words.chunks(2 * X_WORDS).zip(x.chunks(X_WORDS)) {
        for (sum, scaled) in sums.iter_mut().zip(tiles(words, x)) {
            *sum += scaled >> 8;
        }
    }
    sums
}

/// Four columns of one row: `$plain` is x₁, `$scaled` is 256·x₀ − x₁.
macro_rules! four_columns {
    ($word:literal, $plain:literal, $scaled:literal, $sum:literal) => {
        concat!(
            "smlad ", $sum, ", ", $word, ", ", $plain, ", ", $sum, "\n", "sxtb16 ", $word, ", ",
            $word, "\n", "smlad ", $sum, ", ", $word, ", ", $scaled, ", ", $sum, "\n",
        )
    };
}

/// Returns 256 times the four rows' sums, modulo 2³², with eight words of weights for four of `x`.
#[inline(always)]
fn tiles(words: &[u32], x: &[u32]) -> [i32; 4] {
    let steps = (words.len() / 8).min(x.len() / 4);
    if steps == 0 {
        return [0; 4];
    }
    let (a, b, c, d);
    // SAFETY: Reads 8 · steps words of weights and 4 · steps of x, which are there. All registers written are named
    // here but r6 and r7, which are restored. The four steps of a round have 108 bytes each; the table holds halfwords
    // from itself to each, so that the first round is entered at the point from which a multiple of four steps remains.
    unsafe {
        asm!(
            "push {{r2, r6, r7}}",
            "tbb [pc, r3]",
            ".byte 2, 56, 110, 164",
            "2:",
            ".rept 4",
            "ldmia.w r1!, {{r2, r3, r4, r5}}",
            "ldmia.w r0!, {{r6, r7, r8, r9}}",
            four_columns!("r6", "r2", "r3", "r10"),
            four_columns!("r7", "r2", "r3", "r11"),
            four_columns!("r8", "r2", "r3", "r12"),
            four_columns!("r9", "r2", "r3", "lr"),
            "ldmia.w r0!, {{r6, r7, r8, r9}}",
            four_columns!("r6", "r4", "r5", "r10"),
            four_columns!("r7", "r4", "r5", "r11"),
            four_columns!("r8", "r4", "r5", "r12"),
            four_columns!("r9", "r4", "r5", "lr"),
            ".endr",
            "ldr r2, [sp]",
            "cmp r1, r2",
            "bne 2b",
            "pop {{r2, r6, r7}}",
            inout("r0") words.as_ptr() => _,
            inout("r1") x.as_ptr() => _,
            inout("r2") x.as_ptr().wrapping_add(4 * steps) => _,
            inout("r3") steps.wrapping_neg() & 3 => _,
            inout("r10") 0 => a,
            inout("r11") 0 => b,
            inout("r12") 0 => c,
            inout("lr") 0 => d,
            out("r4") _, out("r5") _, out("r8") _, out("r9") _,
            options(readonly),
        );
    }
    [a, b, c, d]
}
