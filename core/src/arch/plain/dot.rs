//! Dot products, lengths and distances of int8 vectors, exact in 32 bits.

/// Returns Σ a_i · b_i over the length of the shorter one.
///
/// Exact up to 131,071 values (16,384 · n < 2³¹); longer sums wrap. A plain loop, which compilers convert to widening
/// multiplications of whole vectors.
#[inline]
pub fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).fold(0i32, |sum, (&a, &b)| {
        sum.wrapping_add(i32::from(a) * i32::from(b))
    })
}

/// Returns Σ a_i², the squared length. Exact up to 262,143 values (16,384 · n < 2³²); longer sums wrap.
#[inline]
pub fn norm(a: &[i8]) -> u32 {
    a.iter().fold(0u32, |sum, &a| {
        sum.wrapping_add(u32::from(a.unsigned_abs()) * u32::from(a.unsigned_abs()))
    })
}

/// Returns Σ code_i · x_i of a packed ternary row (see [`crate::search::TernaryRows`]) and an int8 vector of its
/// length.
///
/// Exact up to 16,777,215 values (128 · n < 2³¹), except for the bits 3, which count as 2; longer sums wrap.
#[inline]
pub fn ternary_dot(row: &[u8], x: &[i8]) -> i32 {
    let mut sum = 0i32;
    for (run, shift) in x.chunks(row.len().max(1)).zip([0, 2, 4, 6]) {
        for (&byte, &x) in row.iter().zip(run) {
            let code = i32::from((byte >> shift) & 3) - 1;
            sum = sum.wrapping_add(code * i32::from(x));
        }
    }
    sum
}

/// Returns the squared distance of two points of at most 43,690 coordinates.
#[inline]
pub fn squared_distance(a: &[i8], b: &[i8]) -> u32 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2))
        .sum()
}
