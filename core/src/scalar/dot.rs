//! The integer product of two int8 vectors.

/// Σ a_i · b_i over the shorter of the two; exact up to 131,071 elements. O(n).
#[inline]
pub fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| i32::from(a) * i32::from(b))
        .sum()
}

/// Σ a_i²; exact up to 131,071 elements. O(n).
#[inline]
pub fn squared_length(a: &[i8]) -> i32 {
    dot(a, a)
}
