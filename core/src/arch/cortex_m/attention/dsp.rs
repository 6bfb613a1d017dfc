//! Attention's products with the DSP extension: keys as rows of [`super::super::int8`]; for values, four columns and
//! four positions per step, with 29 instructions for sixteen products.

use core::arch::asm;

use super::LEN;
use crate::arch::cortex_m::dsp::{bytes, lower};
use crate::arch::cortex_m::int8::two_rows;

/// Largest number of values of a head.
pub(super) const LONGEST: usize = 128;

/// Columns per step.
pub(super) const COLUMNS: usize = 4;

/// Room for a query's words, of the longest.
pub(super) struct Words([u32; LONGEST / 2]);

impl Default for Words {
    fn default() -> Self {
        Self([0; LONGEST / 2])
    }
}

/// A query in the order that [`two_rows`] needs: of each four values first the even ones, then the odd ones.
pub(super) struct Query<'w> {
    words: &'w [u32],
    len: usize,
}

impl<'w> Query<'w> {
    /// Converts a query of a multiple of eight values, at most [`LONGEST`].
    #[inline(always)]
    pub(super) fn new(query: &[i16], Words(words): &'w mut Words) -> Self {
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

/// Four columns of two positions, with their weights in a register: r3 and lr are the positions' words, which become
/// pairs of a column each.
macro_rules! two_positions {
    ($weights:literal) => {
        concat!(
            "ldr lr, [r0, r2]\n",
            "ldr r3, [r0]\n",
            "add r0, r0, r2, lsl #1\n",
            "pkhbt r7, r3, lr, lsl #16\n",
            "pkhtb lr, lr, r3, asr #16\n",
            column!("r3", "r7", "", "r4", $weights),
            column!("r7", "r7", ", ror #8", "r5", $weights),
            column!("r3", "lr", "", "r8", $weights),
            column!("lr", "lr", ", ror #8", "r9", $weights),
        )
    };
}

/// A column of two positions.
macro_rules! column {
    ($pair:literal, $word:literal, $turned:literal, $sum:literal, $weights:literal) => {
        concat!(
            "sxtb16 ", $pair, ", ", $word, $turned, "\n", "smlad ", $sum, ", ", $pair, ", ",
            $weights, ", ", $sum, "\n",
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
            // Of four positions each.
            len: 2 * len.div_ceil(4),
        }
    }

    /// Returns Σ w · v of four columns: the first ones in `values` at each position, with positions `stride` bytes
    /// apart. Zeros if there are fewer.
    #[inline(always)]
    pub(super) fn sums(&self, values: &[i8], stride: usize) -> [i32; COLUMNS] {
        let mut sums = [0; COLUMNS];
        let pairs = self.pairs.get(..self.len).unwrap_or_default();
        if pairs.len() < 2
            || pairs.len() % 2 != 0
            || values.len() < (2 * pairs.len() - 1) * stride + COLUMNS
        {
            return sums;
        }
        let [a, b, c, d] = &mut sums;
        // SAFETY: `values` has the four columns of each pair's two positions, `stride` bytes apart, from its beginning
        // on; there are two pairs at least, an even number of them. LDR takes any address on these cores, as compiled
        // code for this target takes for granted; pairs are words, as LDRD needs. All registers written are named here
        // but r7, which is restored, as the stack is.
        unsafe {
            asm!(
                "push {{r7}}",
                "2:",
                "ldrd r10, r11, [r1], #8",
                two_positions!("r10"),
                two_positions!("r11"),
                "cmp r1, r12",
                "bne 2b",
                "pop {{r7}}",
                inout("r0") values.as_ptr() => _,
                inout("r1") pairs.as_ptr() => _,
                in("r2") stride,
                in("r12") pairs.as_ptr_range().end,
                inout("r4") *a,
                inout("r5") *b,
                inout("r8") *c,
                inout("r9") *d,
                out("r3") _,
                out("r10") _,
                out("r11") _,
                out("lr") _,
                options(readonly),
            );
        }
        sums
    }
}
