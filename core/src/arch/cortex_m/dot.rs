//! Dot products of int8 vectors at any address, four values a step.
//!
//! Contract: [`crate::scalar::dot`] and [`crate::scalar::norm`]. Sums wrap where theirs do, modulo 2³².

use super::dsp::{even_bytes, multiply_add, odd_bytes, partial_word, word};

/// Σ a·b over the length of the shorter one.
#[inline(never)]
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let len = a.len().min(b.len());
    let a = a.get(..len).unwrap_or_default();
    let b = b.get(..len).unwrap_or_default();
    let (mut a, mut b) = (a.chunks_exact(4), b.chunks_exact(4));
    let mut sum = 0;
    for (a, b) in (&mut a).zip(&mut b) {
        if let (Some(a), Some(b)) = (a.first_chunk(), b.first_chunk()) {
            sum = step(sum, word(a), word(b));
        }
    }
    step(
        sum,
        partial_word(a.remainder()),
        partial_word(b.remainder()),
    )
}

/// Σ a².
pub(crate) fn norm(a: &[i8]) -> u32 {
    dot(a, a) as u32
}

#[inline(always)]
fn step(sum: i32, a: u32, b: u32) -> i32 {
    let sum = multiply_add(sum, even_bytes(a), even_bytes(b));
    multiply_add(sum, odd_bytes(a), odd_bytes(b))
}
