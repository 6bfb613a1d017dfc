//! What passes between an engine and the drivers: only scalars.

use super::{Grid, QuantError};
use crate::number::ExactSum;

/// How a tensor's values fall into groups that share a scale.
///
/// Values are row-major; a group is `len` neighbours. Per tensor: one group; per row (channel): one per
/// row; per block: `cols / block` a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Groups {
    /// How many groups.
    pub count: usize,
    /// Values in each.
    pub len: usize,
}

impl Groups {
    /// One group of all `len` values. [`QuantError::Empty`] when there are none.
    pub const fn tensor(len: usize) -> Result<Self, QuantError> {
        if len == 0 {
            return Err(QuantError::Empty);
        }
        Ok(Self { count: 1, len })
    }

    /// One group for each row of `cols` values. [`QuantError::Empty`] when there are no values.
    pub const fn rows(rows: usize, cols: usize) -> Result<Self, QuantError> {
        if rows == 0 || cols == 0 {
            return Err(QuantError::Empty);
        }
        Ok(Self {
            count: rows,
            len: cols,
        })
    }

    /// Groups of `block` neighbours within each row.
    ///
    /// [`QuantError::Empty`] when there are no values; [`QuantError::GroupLength`] when `block` is 0 or does
    /// not divide `cols`, or when the count of blocks exceeds `usize`.
    pub const fn blocks(rows: usize, cols: usize, block: usize) -> Result<Self, QuantError> {
        if rows == 0 || cols == 0 {
            return Err(QuantError::Empty);
        }
        let refused = QuantError::GroupLength {
            len: cols,
            group_len: block,
        };
        if block == 0 || !cols.is_multiple_of(block) {
            return Err(refused);
        }
        match rows.checked_mul(cols / block) {
            Some(count) => Ok(Self { count, len: block }),
            None => Err(refused),
        }
    }

    /// How many values the groups hold together; `None` when that exceeds `usize`.
    pub const fn values(&self) -> Option<usize> {
        self.count.checked_mul(self.len)
    }

    /// [`QuantError::Empty`] without values, [`QuantError::Length`] unless the groups hold `len` values.
    pub const fn check(&self, len: usize) -> Result<(), QuantError> {
        match self.values() {
            Some(0) => Err(QuantError::Empty),
            Some(expected) if expected == len => Ok(()),
            Some(expected) => Err(QuantError::Length {
                expected,
                found: len,
            }),
            None => Err(QuantError::GroupLength {
                len,
                group_len: self.len,
            }),
        }
    }
}

/// What to do with a group, decided from its [`crate::number::Stats`] or its magnitudes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Plan {
    /// Code = sign(x) where `magnitude(x) >= threshold`, else 0.
    ///
    /// `threshold` is a bit pattern of |x| ([`crate::number::bits::magnitude`]); `u32::MAX` sends all to 0.
    Ternary {
        /// Smallest pattern that becomes ±1.
        threshold: u32,
        /// Whether [`Applied::coded_sum`] is asked for, as the least-squares scale does; else it stays 0.
        sum: bool,
    },
    /// Code = `clamp(half_even(fl(x / scale)) + zero_point, low, high)`; a scale of 0 sends all to `zero_point`.
    Affine(Grid),
}

/// What an engine counted while it applied a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Applied {
    /// Codes other than the zero point.
    pub coded: u64,
    /// The exact Σ|x| over those, where a ternary plan asks for it; the least-squares scale is its mean.
    pub coded_sum: ExactSum,
    /// Values that the grid's ends clipped (affine plans only).
    pub clipped: u64,
}

impl Applied {
    /// Adds the counts and the sum of other values; order and split do not show.
    pub fn merge(&mut self, other: &Self) {
        self.coded += other.coded;
        self.coded_sum.merge(&other.coded_sum);
        self.clipped += other.clipped;
    }
}
