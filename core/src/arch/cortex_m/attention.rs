//! What heads multiply over a cache of int8: scores, two keys at once as rows of [`super::int8`]; sums of values, eight columns and two positions a
//! step, in 34 instructions for sixteen products.
//!
//! Why it is exact. A query's code has 16 bits and a key's 8: [`MAX_HEAD`](crate::model::attention::MAX_HEAD) products stay below 2³¹, and so do 64 of a
//! weight below 2¹⁵ and a value's code.

use core::arch::asm;

use super::dsp::lower;
use super::int8::two_rows;
use crate::model::attention::{HeadProducts, PlainProducts};
use crate::model::{CacheType, PAGE, PageCodes};

/// The most values of a head whose query is put in the order of [`two_rows`].
const LONGEST: usize = 128;

/// Positions of a page.
const LEN: usize = PAGE as usize;

/// Eight columns of a position, by the instructions that take its weight of the two in r3.
macro_rules! position {
    ($low:literal, $high:literal) => {
        concat!(
            "ldr r7, [r0]\n",
            four!("r7", "r4", "r5", "r6", "r8", $low, $high),
            "ldr r7, [r0, #4]\n",
            four!("r7", "r9", "r10", "r11", "r12", $low, $high),
        )
    };
}

/// Four columns of a word.
macro_rules! four {
    ($word:literal, $s0:literal, $s1:literal, $s2:literal, $s3:literal, $low:literal, $high:literal) => {
        concat!(
            "sxtb16 lr, ",
            $word,
            "\n",
            $low,
            " ",
            $s0,
            ", lr, r3, ",
            $s0,
            "\n",
            $high,
            " ",
            $s2,
            ", lr, r3, ",
            $s2,
            "\n",
            "sxtb16 lr, ",
            $word,
            ", ror #8\n",
            $low,
            " ",
            $s1,
            ", lr, r3, ",
            $s1,
            "\n",
            $high,
            " ",
            $s3,
            ", lr, r3, ",
            $s3,
            "\n",
        )
    };
}

/// By the DSP extension where keys or values are int8.
#[derive(Clone, Copy)]
pub(crate) struct Products;

impl HeadProducts for Products {
    #[inline(always)]
    fn scores(
        self,
        kind: CacheType,
        (query, scale): (&[i16], f32),
        (keys, scales, first): (PageCodes<'_>, &[f32], usize),
        scores: &mut [f32],
    ) {
        match keys {
            PageCodes::Narrow(keys)
                if kind != CacheType::Fp8
                    && query.len() <= LONGEST
                    && query.len().is_multiple_of(8) =>
            {
                let keys = keys.get(first * query.len()..).unwrap_or_default();
                let scales = scales.get(first..).unwrap_or_default();
                narrow_scores((query, scale), (keys, scales), scores);
            }
            keys => PlainProducts.scores(kind, (query, scale), (keys, scales, first), scores),
        }
    }

    #[inline(always)]
    fn values(
        self,
        kind: CacheType,
        weights: &[i32; LEN],
        values: PageCodes<'_>,
        shift: u32,
        sums: &mut [i64],
    ) {
        match values {
            PageCodes::Narrow(values)
                if kind != CacheType::Fp8
                    && sums.len().is_multiple_of(8)
                    && values.len() >= sums.len() * LEN =>
            {
                narrow_values(weights, values, shift, sums);
            }
            values => PlainProducts.values(kind, weights, values, shift, sums),
        }
    }
}

#[inline(never)]
fn narrow_scores(
    (query, scale): (&[i16], f32),
    (keys, scales): (&[i8], &[f32]),
    scores: &mut [f32],
) {
    let mut words = [0; LONGEST / 2];
    let pairs = words.as_chunks_mut::<2>().0.iter_mut();
    for ([even, odd], &[a, b, c, d]) in pairs.zip(query.as_chunks::<4>().0) {
        (*even, *odd) = (lower(a as u32, c as u32), lower(b as u32, d as u32));
    }
    let words = words.get(..query.len() / 2).unwrap_or_default();
    // SAFETY: Every pattern of an i8 is a u8, of the same size and alignment.
    let (_, keys, _) = unsafe { keys.align_to::<u8>() };
    let mut keys = keys.chunks_exact(query.len().max(1));
    let mut scales = scales.iter();
    for scores in scores.chunks_mut(2) {
        let Some(first) = keys.next() else { return };
        let dots = two_rows(first, keys.next().unwrap_or(first), words);
        for ((score, dot), &own) in scores.iter_mut().zip(dots).zip(&mut scales) {
            *score = dot as f32 * (scale * own);
        }
    }
}

#[inline(never)]
fn narrow_values(weights: &[i32; LEN], values: &[i8], shift: u32, sums: &mut [i64]) {
    // Two weights a word, up to the last that is not 0.
    let mut pairs = [0; LEN / 2];
    let mut len = 0;
    for (at, (pair, &[first, second])) in (1..).zip(pairs.iter_mut().zip(weights.as_chunks().0)) {
        *pair = lower(first as u32, second as u32);
        if *pair != 0 {
            len = at;
        }
    }
    let pairs = pairs.get(..len).unwrap_or_default();
    let stride = sums.len();
    if pairs.is_empty() || values.len() < stride * LEN {
        return;
    }
    for (column, sums) in sums.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let Some(values) = values.get(8 * column..) else {
            return;
        };
        let mut eight = [0i32; 8];
        // SAFETY: `values` has the eight columns of at most 64 positions, `stride` bytes apart, from its beginning on; there is at least one pair of weights,
        // and `eight` has eight words. LDR takes any address on these cores, as compiled code for this target takes for granted. All registers written are
        // named here but r6 and r7, which are restored, as the stack is.
        unsafe {
            asm!(
                "push {{r2, r3, r6, r7}}",
                "mov r2, r12",
                "mov r4, #0",
                "mov r5, #0",
                "mov r6, #0",
                "mov r8, #0",
                "mov r9, #0",
                "mov r10, #0",
                "mov r11, #0",
                "mov r12, #0",
                "2:",
                "ldr r3, [r1], #4",
                position!("smlabb", "smlatb"),
                "add r0, r0, r2",
                position!("smlabt", "smlatt"),
                "add r0, r0, r2",
                "ldr r7, [sp]",
                "cmp r1, r7",
                "bne 2b",
                "ldr r7, [sp, #4]",
                "strd r4, r5, [r7]",
                "strd r6, r8, [r7, #8]",
                "strd r9, r10, [r7, #16]",
                "strd r11, r12, [r7, #24]",
                "pop {{r2, r3, r6, r7}}",
                inout("r0") values.as_ptr() => _,
                inout("r1") pairs.as_ptr() => _,
                in("r2") pairs.as_ptr_range().end,
                in("r3") eight.as_mut_ptr(),
                inout("r12") stride => _,
                out("r4") _, out("r5") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("lr") _,
            );
        }
        for (sum, part) in sums.iter_mut().zip(eight) {
            *sum = sum.wrapping_add(i64::from(part) << shift);
        }
    }
}
