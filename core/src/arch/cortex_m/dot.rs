//! Dot products of int8 vectors at any address, eight values a step.
//!
//! Contract: [`crate::scalar::dot`] and [`crate::scalar::norm`]. Sums wrap where theirs do, modulo 2³².

use super::dsp::{even_bytes, multiply_add, odd_bytes, partial_word, word};

/// Σ a·b over the length of the shorter one.
#[inline(never)]
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let whole = a.len().min(b.len()) & !7;
    let (Some((a, a_rest)), Some((b, b_rest))) =
        (a.split_at_checked(whole), b.split_at_checked(whole))
    else {
        return 0;
    };
    let mut sum = 0;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        if let (&[a0, a1, a2, a3, a4, a5, a6, a7], &[b0, b1, b2, b3, b4, b5, b6, b7]) = (a, b) {
            sum = step(sum, word(&[a0, a1, a2, a3]), word(&[b0, b1, b2, b3]));
            sum = step(sum, word(&[a4, a5, a6, a7]), word(&[b4, b5, b6, b7]));
        }
    }
    let rest = a_rest.len().min(b_rest.len());
    let a = a_rest.get(..rest).unwrap_or_default().chunks(4);
    let b = b_rest.get(..rest).unwrap_or_default().chunks(4);
    a.zip(b).fold(sum, |sum, (a, b)| {
        step(sum, partial_word(a), partial_word(b))
    })
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
