//! Consecutive rows of slices. `chunks_exact` panics for rows of length 0, and a zip of two divides by their length;
//! these functions do neither.

/// Returns rows of `len` elements. A remainder at the end is no row; with `len` 0 there are no rows.
#[inline(always)]
pub(crate) fn each_row<T>(mut all: &[T], len: usize) -> impl Iterator<Item = &[T]> {
    core::iter::from_fn(move || {
        let (row, rest) = all.split_at_checked(len)?;
        all = rest;
        (len > 0).then_some(row)
    })
}

/// Like [`each_row`], mutably.
#[inline(always)]
pub(crate) fn each_row_mut<T>(mut all: &mut [T], len: usize) -> impl Iterator<Item = &mut [T]> {
    core::iter::from_fn(move || {
        let (row, rest) = core::mem::take(&mut all).split_at_mut_checked(len)?;
        all = rest;
        (len > 0).then_some(row)
    })
}
