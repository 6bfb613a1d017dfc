//! Attention's products with vectors: bytes are loaded as lanes of 16 or 32 bits. Eight values of two keys take six
//! instructions; sixteen columns of a position take eleven.

use core::arch::global_asm;

use crate::model::PAGE;
use crate::model::attention::MAX_HEAD;

/// Largest number of values of a head.
pub(in super::super) const LONGEST: usize = MAX_HEAD;

/// Columns per step.
pub(in super::super) const COLUMNS: usize = 16;

const LEN: usize = PAGE as usize;

global_asm!(
    ".arch armv8.1-m.main",
    ".arch_extension mve.fp",
    ".section .text.tercet_mve_two_keys,\"ax\",%progbits",
    ".global tercet_mve_two_keys",
    ".type tercet_mve_two_keys,%function",
    ".thumb_func",
    // r0: the query, r1 and r2: keys, r3: their length, at least 1; on the stack: both sums.
    "tercet_mve_two_keys:",
    "push {{r4, r6, r7, lr}}",
    "ldr r12, [sp, #16]",
    "mov r4, #0",
    "mov r6, #0",
    "dlstp.16 lr, r3",
    "2:",
    "vldrh.u16 q0, [r0], #16",
    "vldrb.s16 q1, [r1], #8",
    "vmladava.s16 r4, q0, q1",
    "vldrb.s16 q1, [r2], #8",
    "vmladava.s16 r6, q0, q1",
    "letp lr, 2b",
    "strd r4, r6, [r12]",
    "pop {{r4, r6, r7, pc}}",
    ".size tercet_mve_two_keys, . - tercet_mve_two_keys",
    ".section .text.tercet_mve_values,\"ax\",%progbits",
    ".global tercet_mve_values",
    ".type tercet_mve_values,%function",
    ".thumb_func",
    // r0: sixteen columns of the first position, r1: bytes to the next position's, r2: weights, r3: positions, at
    // least 1; on the stack: sums.
    "tercet_mve_values:",
    "push {{r4, lr}}",
    "vpush {{d8, d9}}",
    "vmov.i32 q0, #0",
    "vmov.i32 q1, #0",
    "vmov.i32 q2, #0",
    "vmov.i32 q3, #0",
    "dls lr, r3",
    "2:",
    "ldr r4, [r2], #4",
    "vldrb.s32 q4, [r0]",
    "vmla.s32 q0, q4, r4",
    "vldrb.s32 q4, [r0, #4]",
    "vmla.s32 q1, q4, r4",
    "vldrb.s32 q4, [r0, #8]",
    "vmla.s32 q2, q4, r4",
    "vldrb.s32 q4, [r0, #12]",
    "vmla.s32 q3, q4, r4",
    "add r0, r1",
    "le lr, 2b",
    "ldr r4, [sp, #24]",
    "vstrw.32 q0, [r4]",
    "vstrw.32 q1, [r4, #16]",
    "vstrw.32 q2, [r4, #32]",
    "vstrw.32 q3, [r4, #48]",
    "vpop {{d8, d9}}",
    "pop {{r4, pc}}",
    ".size tercet_mve_values, . - tercet_mve_values",
);

unsafe extern "C" {
    /// Writes the products of a query with two keys.
    fn tercet_mve_two_keys(
        query: *const i16,
        first: *const i8,
        second: *const i8,
        len: usize,
        out: *mut i32,
    );

    /// Writes Σ w · v of sixteen columns of positions `stride` bytes apart.
    fn tercet_mve_values(
        values: *const i8,
        stride: usize,
        weights: *const i32,
        positions: usize,
        out: *mut i32,
    );
}

/// Room that a query does not need here.
pub(in super::super) type Words = ();

/// A query, unchanged.
pub(in super::super) struct Query<'q>(&'q [i16]);

impl<'q> Query<'q> {
    pub(in super::super) const fn new(query: &'q [i16], (): &mut Words) -> Self {
        Self(query)
    }

    pub(in super::super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns its products with two keys; zeros if they are shorter.
    #[inline(always)]
    pub(in super::super) fn dots(&self, first: &[i8], second: &[i8]) -> [i32; 2] {
        let mut dots = [0; 2];
        let len = self.0.len();
        if len > 0 && first.len() >= len && second.len() >= len {
            // SAFETY: All three have `len` elements, at least 1, halfwords at multiples of 2, and `dots` has room for
            // both. The function keeps the registers that its caller owns.
            unsafe {
                tercet_mve_two_keys(
                    self.0.as_ptr(),
                    first.as_ptr(),
                    second.as_ptr(),
                    len,
                    dots.as_mut_ptr(),
                );
            }
        }
        dots
    }
}

/// Weights of a page's positions, unchanged.
pub(in super::super) struct Weights<'w>(&'w [i32]);

impl<'w> Weights<'w> {
    /// Takes the first `len` weights; those after them are 0.
    pub(in super::super) fn new(weights: &'w [i32; LEN], len: usize) -> Self {
        Self(weights.get(..len).unwrap_or_default())
    }

    /// Returns Σ w · v of sixteen columns: the first ones in `values` at each position, with positions `stride` bytes
    /// apart. Zeros if there are fewer.
    #[inline(always)]
    pub(in super::super) fn sums(&self, values: &[i8], stride: usize) -> [i32; COLUMNS] {
        let mut sums = [0; COLUMNS];
        let positions = self.0.len();
        if positions > 0 && values.len() >= (positions - 1) * stride + COLUMNS {
            // SAFETY: `values` has the sixteen columns of each weight's position, at least one, and `sums` has room
            // for their sums. The function keeps the registers that its caller owns.
            unsafe {
                tercet_mve_values(
                    values.as_ptr(),
                    stride,
                    self.0.as_ptr(),
                    positions,
                    sums.as_mut_ptr(),
                );
            }
        }
        sums
    }
}
