//! int4 weights, four rows per 16-bit lane.
//!
//! Contract: the sums of [`crate::arch::plain::linear::int4`], if the weights begin at a multiple of 4. Eight columns
//! of four rows take 30 instructions (0.94 per multiplication).
//!
//! A lane is a + 16·b + 256·c + 4096·d. a, b and c are the weights of rows 0 to 2 plus 8, so 0..=15; d is the weight
//! of row 3, and its sign is the lane's. With A = Σ a·x over the columns, and B, C and D likewise, four `SMLAD` of
//! lanes under decreasing masks give, modulo 2³²,
//!
//! T₀ = A + 16·B + 256·C + 4096·D, T₁ = A + 16·B + 256·C, T₂ = A + 16·B, T₃ = A,
//!
//! and three of the masks take one instruction each: 7 instructions for eight multiplications. Their differences are
//! 4096·D, 256·C and 16·B, and the rows' sums are A − 8·Σx, B − 8·Σx, C − 8·Σx and D.
//!
//! Exact: over 512 columns |D| ≤ 512 · 8 · 127 < 2¹⁹, and A, B and C stay below 512 · 15 · 127 < 2²⁰. So the
//! differences are below 2³¹ and correct even if something wraps. So sums are computed over at most 512 columns and
//! added; 2¹⁶ columns of 15 · 127 stay below 2³¹.

#![allow(unsafe_code, reason = "a loop in assembler")]

use core::arch::asm;

use super::dsp::{even_bytes, for_each_word, lower, multiply_add, odd_bytes, upper};
use crate::linear::{I8Sym, Sums};

/// Words per 512 columns: the same number for weights and for activations.
const WORDS: usize = 256;

/// Same result as `scalar`, for weights as words.
#[inline]
pub(super) fn sums(words: &[u32], x: I8Sym<'_>, scratch: &mut [u32], out: &mut impl Sums) {
    let len = x.len().div_ceil(8) * 4;
    let x_words = scratch.get_mut(..len).unwrap_or_default();
    let offset = 8 * widen(x.get(), x_words);
    for words in words.chunks_exact(len.max(1)) {
        out.narrow(&four_rows(words, x_words, offset));
    }
}

/// Writes each four columns as two words of two, in order. Returns Σx.
#[inline(never)]
fn widen(x: &[i8], out: &mut [u32]) -> i32 {
    if let Some(last) = out.last_chunk_mut() {
        // A row ends at a multiple of eight columns; x may end four earlier.
        *last = [0; 2];
    }
    let mut sum = 0;
    let mut out = out.chunks_exact_mut(2);
    for_each_word(x, |word| {
        let (even, odd) = (even_bytes(word), odd_bytes(word));
        sum = multiply_add(sum, even, 0x0001_0001);
        sum = multiply_add(sum, odd, 0x0001_0001);
        if let Some([first, second]) = out.next() {
            (*first, *second) = (lower(even, odd), upper(even, odd));
        }
    });
    sum
}

/// Returns the sums of a group of rows; `offset` is 8·Σx.
#[inline(never)]
fn four_rows(words: &[u32], x: &[u32], offset: i32) -> [i32; 4] {
    let mut sums = [-offset, -offset, -offset, 0];
    for (words, x) in words.chunks(WORDS).zip(x.chunks(WORDS)) {
        let t = tiles(words, x);
        let parts = [
            t[3],
            t[2].wrapping_sub(t[3]) >> 4,
            t[1].wrapping_sub(t[2]) >> 8,
            t[0].wrapping_sub(t[1]) >> 12,
        ];
        for (sum, part) in sums.iter_mut().zip(parts) {
            *sum += part;
        }
    }
    sums
}

/// Two columns of four rows.
macro_rules! two_columns {
    ($word:literal, $x:literal) => {
        concat!(
            "smlad r10, ",
            $word,
            ", ",
            $x,
            ", r10\n",
            "bic.w ",
            $word,
            ", ",
            $word,
            ", #0xF000F000\n",
            "smlad r11, ",
            $word,
            ", ",
            $x,
            ", r11\n",
            "uxtb16 ",
            $word,
            ", ",
            $word,
            "\n",
            "smlad r12, ",
            $word,
            ", ",
            $x,
            ", r12\n",
            "and.w ",
            $word,
            ", ",
            $word,
            ", #0x000F000F\n",
            "smlad lr, ",
            $word,
            ", ",
            $x,
            ", lr\n",
        )
    };
}

/// Returns T₀ to T₃ over equal numbers of words of weights and of `x`, in multiples of four.
#[inline(always)]
fn tiles(words: &[u32], x: &[u32]) -> [i32; 4] {
    let steps = words.len().min(x.len()) / 4;
    if steps == 0 {
        return [0; 4];
    }
    let (t0, t1, t2, t3);
    // SAFETY: Reads 4 · steps words of weights and of x, which are there. All registers written are named here but r6
    // and r7, which are restored. The four steps of a round have 120 bytes each; the table holds halfwords from itself
    // to each, so that the first round is entered at the point from which a multiple of four steps remains.
    unsafe {
        asm!(
            "push {{r2, r6, r7}}",
            "tbb [pc, r3]",
            ".byte 2, 62, 122, 182",
            "2:",
            ".rept 4",
            "ldmia.w r1!, {{r2, r3, r4, r5}}",
            "ldmia.w r0!, {{r6, r7, r8, r9}}",
            two_columns!("r6", "r2"),
            two_columns!("r7", "r3"),
            two_columns!("r8", "r4"),
            two_columns!("r9", "r5"),
            ".endr",
            "ldr r2, [sp]",
            "cmp r1, r2",
            "bne 2b",
            "pop {{r2, r6, r7}}",
            inout("r0") words.as_ptr() => _,
            inout("r1") x.as_ptr() => _,
            inout("r2") x.as_ptr().wrapping_add(4 * steps) => _,
            inout("r3") steps.wrapping_neg() & 3 => _,
            inout("r10") 0 => t0,
            inout("r11") 0 => t1,
            inout("r12") 0 => t2,
            inout("lr") 0 => t3,
            out("r4") _, out("r5") _, out("r8") _, out("r9") _,
            options(readonly),
        );
    }
    [t0, t1, t2, t3]
}
