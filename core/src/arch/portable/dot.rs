//! Dot products of int8 vectors: several values per step without a branch, and four rows at once if there are enough
//! registers.
//!
//! Contract: [`crate::arch::plain::dot`] and [`crate::arch::plain::norm`]. Sums wrap where theirs do, modulo 2³², so
//! their order does not matter.

/// Values of one row per step.
const LONG: usize = 16;
/// Values of each of four rows per step.
#[cfg(not(tercet_thumb1))]
const SHORT: usize = 8;

/// A stored int8: the byte of a weight, or a coordinate.
pub trait Int8: Copy {
    /// Returns its value.
    fn value(self) -> i32;

    /// Returns the bytes of a row.
    #[cfg(tercet_thumb1)]
    fn bytes(row: &[Self]) -> &[u8];
}

impl Int8 for i8 {
    #[inline(always)]
    fn value(self) -> i32 {
        self.into()
    }

    #[cfg(tercet_thumb1)]
    fn bytes(row: &[Self]) -> &[u8] {
        crate::arch::thumb1::bytes(row)
    }
}

impl Int8 for u8 {
    #[inline(always)]
    fn value(self) -> i32 {
        (self as i8).into()
    }

    #[cfg(tercet_thumb1)]
    fn bytes(row: &[Self]) -> &[u8] {
        row
    }
}

/// Returns Σ a·b over the length of the shorter one.
#[inline(never)]
pub fn dot<T: Int8>(a: &[T], b: &[i8]) -> i32 {
    let len = a.len().min(b.len());
    let a = a.get(..len).unwrap_or_default();
    let b = b.get(..len).unwrap_or_default();
    // Of known length, and so without a loop.
    let (a, a_rest) = a.as_chunks::<LONG>();
    let (b, b_rest) = b.as_chunks::<LONG>();
    let rest = add(0, a_rest, b_rest);
    a.iter().zip(b).fold(rest, |sum, (a, b)| add(sum, a, b))
}

/// Returns Σ a².
pub fn norm(a: &[i8]) -> u32 {
    dot(a, a) as u32
}

/// Returns [`dot`] of `x` and each of up to four consecutive rows of the length of `x`; 0 for a missing row.
pub fn dots<T: Int8>(rows: &[T], x: &[i8]) -> [i32; 4] {
    if let Some(rows) = apart(rows, x.len()) {
        return four(rows, x);
    }
    let mut sums = [0_i32; 4];
    for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(x.len().max(1))) {
        *sum = dot(row, x);
    }
    sums
}

/// Returns four rows of a length; `None` if there are fewer or more.
fn apart<T>(rows: &[T], len: usize) -> Option<[&[T]; 4]> {
    let (a, rows) = rows.split_at_checked(len)?;
    let (b, rows) = rows.split_at_checked(len)?;
    let (c, d) = rows.split_at_checked(len)?;
    (d.len() == len).then_some([a, b, c, d])
}

/// Loads each value of `x` once for two rows.
#[cfg(tercet_thumb1)]
fn four<T: Int8>([a, b, c, d]: [&[T]; 4], x: &[i8]) -> [i32; 4] {
    use crate::arch::thumb1::two;
    let ([first, second], len) = two(T::bytes(a), T::bytes(b), x);
    let ([third, fourth], _) = two(T::bytes(c), T::bytes(d), x);
    let mut sums = [first, second, third, fourth];
    add_rests([a, b, c, d], x, len, &mut sums);
    sums
}

/// Loads each value of `x` once for four rows.
#[cfg(not(tercet_thumb1))]
#[inline(never)]
fn four<T: Int8>([a, b, c, d]: [&[T]; 4], x: &[i8]) -> [i32; 4] {
    let mut sums = [0_i32; 4];
    let steps = |row| <[T]>::as_chunks::<SHORT>(row).0;
    let rows = steps(a).iter().zip(steps(b)).zip(steps(c)).zip(steps(d));
    for (x, (((a, b), c), d)) in x.as_chunks::<SHORT>().0.iter().zip(rows) {
        for ((((&x, &a), &b), &c), &d) in x.iter().zip(a).zip(b).zip(c).zip(d) {
            let products = [a, b, c, d].map(|weight| weight.value() * i32::from(x));
            for (sum, product) in sums.iter_mut().zip(products) {
                *sum = sum.wrapping_add(product);
            }
        }
    }
    add_rests([a, b, c, d], x, x.len() & !(SHORT - 1), &mut sums);
    sums
}

/// Adds the products from a column on.
fn add_rests<T: Int8>(rows: [&[T]; 4], x: &[i8], from: usize, sums: &mut [i32; 4]) {
    let x = x.get(from..).unwrap_or_default();
    if !x.is_empty() {
        for (sum, row) in sums.iter_mut().zip(rows) {
            *sum = sum.wrapping_add(dot(row.get(from..).unwrap_or_default(), x));
        }
    }
}

#[inline(always)]
fn add<T: Int8>(sum: i32, a: &[T], b: &[i8]) -> i32 {
    a.iter().zip(b).fold(sum, |sum, (&a, &b)| {
        sum.wrapping_add(a.value() * i32::from(b))
    })
}
