//! Dot products of int8 vectors at any address, eight values per step.
//!
//! Contract: [`crate::arch::plain::dot`] and [`crate::arch::plain::norm`]. Sums wrap where theirs do, modulo 2³².

use super::dsp::{even_bytes, multiply_add, odd_bytes, partial_word, word};

/// Returns Σ a·b over the length of the shorter one.
#[inline(never)]
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let len = a.len().min(b.len());
    let a = a.get(..len).unwrap_or_default();
    let b = b.get(..len).unwrap_or_default();
    let (mut a, mut b) = (a.chunks_exact(8), b.chunks_exact(8));
    let mut sum = 0;
    for (a, b) in (&mut a).zip(&mut b) {
        if let (&[a0, a1, a2, a3, a4, a5, a6, a7], &[b0, b1, b2, b3, b4, b5, b6, b7]) = (a, b) {
            sum = step(sum, word(&[a0, a1, a2, a3]), word(&[b0, b1, b2, b3]));
            sum = step(sum, word(&[a4, a5, a6, a7]), word(&[b4, b5, b6, b7]));
        }
    }
    let (a, b) = (a.remainder().chunks(4), b.remainder().chunks(4));
    a.zip(b).fold(sum, |sum, (a, b)| {
        step(sum, partial_word(a), partial_word(b))
    })
}

/// Returns Σ a².
pub(crate) fn norm(a: &[i8]) -> u32 {
    dot(a, a) as u32
}

#[inline(always)]
fn step(sum: i32, a: u32, b: u32) -> i32 {
    let sum = multiply_add(sum, even_bytes(a), even_bytes(b));
    multiply_add(sum, odd_bytes(a), odd_bytes(b))
}
