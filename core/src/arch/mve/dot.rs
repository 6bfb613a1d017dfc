//! Dot products of int8 vectors at any address, sixteen values per step.
//!
//! Contract: [`crate::arch::plain::dot`] and [`crate::arch::plain::norm`]. Sums wrap where theirs do, modulo 2³². The
//! loop is predicated, as in [`super::int8`].

use core::arch::global_asm;

global_asm!(
    ".arch armv8.1-m.main",
    ".arch_extension mve.fp",
    ".section .text.tercet_mve_dot,\"ax\",%progbits",
    ".global tercet_mve_dot",
    ".type tercet_mve_dot,%function",
    ".thumb_func",
    // r0, r1: values, r2: number of values, at least 1.
    "tercet_mve_dot:",
    "push {{r4, lr}}",
    "mov r4, #0",
    "dlstp.8 lr, r2",
    "2:",
    "vldrb.u8 q0, [r0], #16",
    "vldrb.u8 q1, [r1], #16",
    "vmladava.s8 r4, q0, q1",
    "letp lr, 2b",
    "mov r0, r4",
    "pop {{r4, pc}}",
    ".size tercet_mve_dot, . - tercet_mve_dot",
);

unsafe extern "C" {
    fn tercet_mve_dot(a: *const i8, b: *const i8, len: usize) -> i32;
}

/// Returns Σ a·b over the length of the shorter one.
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let len = a.len().min(b.len());
    if len == 0 {
        return 0;
    }
    // SAFETY: Both have `len` values, at least 1. Bytes need no alignment.
    unsafe { tercet_mve_dot(a.as_ptr(), b.as_ptr(), len) }
}

/// Returns Σ a².
pub(crate) fn norm(a: &[i8]) -> u32 {
    dot(a, a) as u32
}
