//! Rows of int8 as in a file: two rows at once, with activations widened beforehand.
//!
//! Contract: the sums of [`crate::arch::plain::linear::int8`], for rows at any address. If both begin at multiples of
//! 4, eight columns of two rows take 19 instructions (1.19 per multiplication), otherwise 21 (1.31).
//!
//! Exact: every lane is a sign-extended byte, a product at most 128 · 127, and 2¹⁶ columns of them stay below 2³¹, so
//! no `SMLAD` wraps.

#![allow(unsafe_code, reason = "a loop in assembler")]

use core::arch::asm;

use super::dsp::{even_bytes, for_each_word, odd_bytes};
use crate::linear::{I8Sym, Matrix, Sums};

/// See the module docs.
#[inline]
pub(super) fn sums(matrix: &Matrix<'_>, x: I8Sym<'_>, scratch: &mut [u32], out: &mut impl Sums) {
    let whole = matrix.cols() & !7;
    let Some((x, x_rest)) = x.get().split_at_checked(whole) else {
        return;
    };
    let scratch = scratch.get_mut(..whole / 2).unwrap_or_default();
    widen(x, scratch);
    let mut rows = matrix.bytes().chunks_exact(matrix.cols().max(1));
    while let Some(first) = rows.next() {
        let second = rows.next();
        let mut sums = two_rows(first, second.unwrap_or(first), scratch);
        if whole < matrix.cols() {
            let weights = [Some(first), second].into_iter().flatten();
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum += dot(weights.get(whole..).unwrap_or_default(), x_rest);
            }
        }
        out.narrow(&sums);
    }
}

/// Returns the products of fewer than eight columns.
fn dot(weights: &[u8], x: &[i8]) -> i32 {
    let pairs = weights.iter().zip(x);
    pairs
        .map(|(&w, &x)| i32::from(w as i8) * i32::from(x))
        .sum()
}

/// Writes each four columns as two words: the even ones, the odd ones.
#[inline(never)]
pub(super) fn widen(x: &[i8], out: &mut [u32]) {
    let mut out = out.chunks_exact_mut(2);
    for_each_word(x, |word| {
        if let Some([even, odd]) = out.next() {
            (*even, *odd) = (even_bytes(word), odd_bytes(word));
        }
    });
}

/// Four columns of the row with the sum `$sum`.
macro_rules! four_columns {
    ($word:literal, $even:literal, $odd:literal, $sum:literal) => {
        concat!(
            "sxtb16 r8, ",
            $word,
            "\n",
            "smlad ",
            $sum,
            ", r8, ",
            $even,
            ", ",
            $sum,
            "\n",
            "sxtb16 r8, ",
            $word,
            ", ror #8\n",
            "smlad ",
            $sum,
            ", r8, ",
            $odd,
            ", ",
            $sum,
            "\n",
        )
    };
}

#[cfg(not(tercet_mve))]
pub(super) use four_columns;

/// The loop, with four times eight columns per round. It is entered at the step that leaves a multiple of them.
macro_rules! rounds {
    ($a:ident, $b:ident, $x:ident, $steps:ident, $entries:literal, $load_a:literal, $load_b:literal) => {{
        let sums: [i32; 2];
        let (sum_a, sum_b);
        // SAFETY: The caller of this macro has checked that `steps` is not 0, that both rows have 8 · steps bytes,
        // that x has 4 · steps words, and what the loads ask of the rows' addresses. All registers written are named
        // here but r6 and r7, which are restored.
        unsafe {
            asm!(
                "push {{r6, r7}}",
                "tbb [pc, r3]",
                $entries,
                "2:",
                ".rept 4",
                "ldmia.w r2!, {{r3, r4, r5, r6}}",
                $load_a,
                four_columns!("r7", "r3", "r4", "r10"),
                four_columns!("r9", "r5", "r6", "r10"),
                $load_b,
                four_columns!("r7", "r3", "r4", "r11"),
                four_columns!("r9", "r5", "r6", "r11"),
                ".endr",
                "cmp r2, r12",
                "bne 2b",
                "pop {{r6, r7}}",
                inout("r0") $a.as_ptr() => _,
                inout("r1") $b.as_ptr() => _,
                inout("r2") $x.as_ptr() => _,
                inout("r3") $steps.wrapping_neg() & 3 => _,
                in("r12") $x.as_ptr().wrapping_add(4 * $steps),
                inout("r10") 0 => sum_a,
                inout("r11") 0 => sum_b,
                out("r4") _, out("r5") _, out("r8") _, out("r9") _,
                options(readonly),
            );
        }
        sums = [sum_a, sum_b];
        sums
    }};
}

/// Returns the sums of two rows over all multiples of eight columns for which `x` has words.
#[inline(never)]
pub(super) fn two_rows(a: &[u8], b: &[u8], x: &[u32]) -> [i32; 2] {
    let steps = (x.len() / 4).min(a.len() / 8).min(b.len() / 8);
    if steps == 0 {
        return [0; 2];
    }
    // Entries of the jump tables: halfwords from the table to each of the four steps, which have 76 or 84 bytes.
    if (a.as_ptr().addr() | b.as_ptr().addr()).is_multiple_of(4) {
        rounds!(
            a,
            b,
            x,
            steps,
            ".byte 2, 40, 78, 116",
            "ldrd r7, r9, [r0], #8",
            "ldrd r7, r9, [r1], #8"
        )
    } else {
        // LDR accepts any address on these cores, as compiled code for this target assumes; LDRD does not.
        rounds!(
            a,
            b,
            x,
            steps,
            ".byte 2, 44, 86, 128",
            "ldr.w r7, [r0], #4\nldr.w r9, [r0], #4",
            "ldr.w r7, [r1], #4\nldr.w r9, [r1], #4"
        )
    }
}
