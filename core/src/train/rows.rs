//! Rows of slices, one after another. `chunks_exact` panics for rows of nothing, and a zip of two divides by their length; these do neither.

/// Rows of `len` elements; what is left at the end is none, and so are rows of nothing.
#[inline(always)]
pub(crate) fn each_row<T>(mut all: &[T], len: usize) -> impl Iterator<Item = &[T]> {
    core::iter::from_fn(move || {
        let (row, rest) = all.split_at_checked(len)?;
        all = rest;
        (len > 0).then_some(row)
    })
}

/// As [`each_row`].
#[inline(always)]
pub(crate) fn each_row_mut<T>(mut all: &mut [T], len: usize) -> impl Iterator<Item = &mut [T]> {
    core::iter::from_fn(move || {
        let (row, rest) = core::mem::take(&mut all).split_at_mut_checked(len)?;
        all = rest;
        (len > 0).then_some(row)
    })
}
