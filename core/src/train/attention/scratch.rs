//! Scratch of one head of attention's gradients.

use super::super::linear::GROUP;
use crate::model::PAGE;

/// Scratch of one head; [`ScratchLengths`] gives the lengths.
#[derive(Debug)]
pub struct Scratch<'a> {
    /// Powers and gradients of scores of a group of rows.
    pub floats: &'a mut [f32],
    /// Codes.
    pub bytes: &'a mut [i8],
    /// Partial sums, and exponents.
    pub ints: &'a mut [i32],
    /// Sums of keys and values.
    pub longs: &'a mut [i64],
}

/// Length of each slice of a [`Scratch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchLengths {
    /// Length of [`Scratch::floats`].
    pub floats: usize,
    /// Length of [`Scratch::bytes`].
    pub bytes: usize,
    /// Length of [`Scratch::ints`].
    pub ints: usize,
    /// Length of [`Scratch::longs`].
    pub longs: usize,
}

impl ScratchLengths {
    /// Returns the lengths for sequences of `length` rows and heads of `head` values.
    pub const fn of(length: usize, head: usize) -> Self {
        let padded = length.next_multiple_of(PAGE as usize);
        let group = if length < GROUP { length } else { GROUP };
        let codes = padded.saturating_mul(head);
        Self {
            floats: group
                .saturating_mul(padded)
                .saturating_mul(2)
                .saturating_add(group),
            bytes: group.saturating_mul(head),
            ints: codes.saturating_add(padded).saturating_add(head),
            longs: codes.saturating_mul(2).saturating_add(head),
        }
    }
}

/// The slices of a [`Scratch`], divided.
pub(super) struct SplitScratch<'a> {
    pub(super) powers: &'a mut [f32],
    /// Gradients of scores; weights of [`HeadProducts::outer`](crate::model::attention::HeadProducts::outer).
    pub(super) scores: &'a mut [f32],
    pub(super) totals: &'a mut [f32],
    pub(super) codes: &'a mut [i8],
    pub(super) partial: &'a mut [i32],
    /// Exponents of keys.
    pub(super) by_key: &'a mut [i32],
    /// Exponents of values' columns.
    pub(super) by_column: &'a mut [i32],
    /// Sums of a query.
    pub(super) query: &'a mut [i64],
    pub(super) keys: &'a mut [i64],
    pub(super) values: &'a mut [i64],
}

impl<'a> SplitScratch<'a> {
    pub(super) fn cut(scratch: &'a mut Scratch<'_>, length: usize, head: usize) -> Option<Self> {
        let padded = length.next_multiple_of(PAGE as usize);
        let group = length.min(GROUP);
        let codes = padded.checked_mul(head)?;
        let scores = group.checked_mul(padded)?;
        let (powers, rest) = scratch.floats.split_at_mut_checked(scores)?;
        let (scores, rest) = rest.split_at_mut_checked(scores)?;
        let totals = rest.get_mut(..group)?;
        let (partial, rest) = scratch.ints.split_at_mut_checked(codes)?;
        let (by_key, rest) = rest.split_at_mut_checked(padded)?;
        let by_column = rest.get_mut(..head)?;
        let (keys, rest) = scratch.longs.split_at_mut_checked(codes)?;
        let (values, rest) = rest.split_at_mut_checked(codes)?;
        Some(Self {
            powers,
            scores,
            totals,
            codes: scratch.bytes.get_mut(..group.checked_mul(head)?)?,
            partial,
            by_key,
            by_column,
            keys,
            values,
            query: rest.get_mut(..head)?,
        })
    }
}
