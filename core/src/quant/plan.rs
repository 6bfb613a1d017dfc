//! Data that engines and drivers exchange: only scalars.

use super::{Grid, QuantError};
use crate::number::ExactSum;

/// Division of a tensor's values into groups that share a scale.
///
/// Values are row-major; a group is `len` neighbours. Per tensor: one group. Per row (channel): one group per row.
/// Per block: `cols / block` groups per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Groups {
    /// Number of groups.
    pub count: usize,
    /// Number of values per group.
    pub len: usize,
}

impl Groups {
    /// Returns one group of all `len` values.
    ///
    /// # Errors
    /// [`QuantError::Empty`] if there are none.
    pub const fn tensor(len: usize) -> Result<Self, QuantError> {
        if len == 0 {
            return Err(QuantError::Empty);
        }
        Ok(Self { count: 1, len })
    }

    /// Returns one group per row of `cols` values.
    ///
    /// # Errors
    /// [`QuantError::Empty`] if there are no values.
    pub const fn rows(rows: usize, cols: usize) -> Result<Self, QuantError> {
        if rows == 0 || cols == 0 {
            return Err(QuantError::Empty);
        }
        Ok(Self {
            count: rows,
            len: cols,
        })
    }

    /// Returns groups of `block` neighbours within each row.
    ///
    /// # Errors
    /// [`QuantError::Empty`] if there are no values; [`QuantError::GroupLength`] if `block` is 0 or does not divide
    /// `cols`, or if the number of blocks exceeds `usize`.
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

    /// Returns the number of values of all groups; `None` if it exceeds `usize`.
    pub const fn values(&self) -> Option<usize> {
        self.count.checked_mul(self.len)
    }

    /// Checks that the groups hold `len` values.
    ///
    /// # Errors
    /// [`QuantError::Empty`] without values; [`QuantError::Length`] unless the groups hold `len` values.
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

/// Codes of a group, decided from its [`crate::number::Stats`] or its magnitudes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Plan {
    /// Code = sign(x) if `magnitude(x) >= threshold`, else 0.
    ///
    /// `threshold` is a bit pattern of |x| ([`crate::number::bits::magnitude`]); `u32::MAX` makes all codes 0.
    Ternary {
        /// Smallest pattern that becomes ±1.
        threshold: u32,
        /// True if the engine must compute [`Applied::coded_sum`], which the least-squares scale needs; otherwise it
        /// stays 0.
        sum: bool,
    },
    /// Code = `clamp(half_even(fl(x / scale)) + zero_point, low, high)`; with a scale of 0 all codes are
    /// `zero_point`.
    Affine(Grid),
}

/// Counts that an engine makes while it applies a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Applied {
    /// Codes other than the zero point.
    pub coded: u64,
    /// The exact Σ|x| over those, if a ternary plan asks for it. The least-squares scale is its mean.
    pub coded_sum: ExactSum,
    /// Values that the grid's ends clipped (affine plans only).
    pub clipped: u64,
}

impl Applied {
    /// Adds the counts and the sum of other values; the result does not depend on order and split.
    pub fn merge(&mut self, other: &Self) {
        self.coded += other.coded;
        self.coded_sum.merge(&other.coded_sum);
        self.clipped += other.clipped;
    }
}
