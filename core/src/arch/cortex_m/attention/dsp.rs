//! Attention's products with the DSP extension: keys as rows of [`super::super::int8`]; for values, eight columns and
//! two positions per step, with 34 instructions for sixteen products.

use core::arch::asm;

use super::LEN;
use crate::arch::cortex_m::dsp::{bytes, lower};
use crate::arch::cortex_m::int8::two_rows;

/// Largest number of values of a head.
pub(super) const LONGEST: usize = 128;

/// Columns per step.
pub(super) const COLUMNS: usize = 8;

/// A query in the order that [`two_rows`] needs: of each four values first the even ones, then the odd ones.
pub(super) struct Query {
    words: [u32; LONGEST / 2],
    len: usize,
}

impl Query {
    /// Converts a query of a multiple of eight values, at most [`LONGEST`].
    #[inline(always)]
    pub(super) fn new(query: &[i16]) -> Self {
        let mut words = [0; LONGEST / 2];
        let pairs = words.as_chunks_mut::<2>().0.iter_mut();
        for ([even, odd], &[a, b, c, d]) in pairs.zip(query.as_chunks::<4>().0) {
            (*even, *odd) = (lower(a as u32, c as u32), lower(b as u32, d as u32));
        }
        Self {
            words,
            len: query.len().min(LONGEST),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns its products with two keys.
    #[inline(always)]
    pub(super) fn dots(&self, first: &[i8], second: &[i8]) -> [i32; 2] {
        let words = self.words.get(..self.len / 2).unwrap_or_default();
        two_rows(bytes(first), bytes(second), words)
    }
}

/// Weights of a page's positions, two per word.
pub(super) struct Weights {
    pairs: [u32; LEN / 2],
    len: usize,
}

/// Eight columns of a position, with instructions that use its weight, one of the two in r3.
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

impl Weights {
    /// Converts the first `len` weights; those after them are 0.
    #[inline(always)]
    pub(super) fn new(weights: &[i32; LEN], len: usize) -> Self {
        let mut pairs = [0; LEN / 2];
        for (pair, &[first, second]) in pairs.iter_mut().zip(weights.as_chunks().0) {
            *pair = lower(first as u32, second as u32);
        }
        Self {
            pairs,
            len: len.div_ceil(2),
        }
    }

    /// Returns Σ w · v of eight columns: the first ones in `values` at each position, with positions `stride` bytes
    /// apart. Zeros if there are fewer.
    #[inline(always)]
    pub(super) fn sums(&self, values: &[i8], stride: usize) -> [i32; COLUMNS] {
        let mut eight = [0; COLUMNS];
        let pairs = self.pairs.get(..self.len).unwrap_or_default();
        if pairs.is_empty() || values.len() < (2 * pairs.len() - 1) * stride + COLUMNS {
            return eight;
        }
        // SAFETY: `values` has the eight columns of each pair's two positions, `stride` bytes apart, from its
        // beginning on; there is at least one pair, and `eight` has eight words. LDR takes any address on these
        // cores, as compiled code for this target takes for granted. All registers written are named here but r6 and
        // r7, which are restored, as the stack is.
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
        eight
    }
}
