//! Statistics of a group of values from one pass.

use super::exact_sum::BLOCK;
use super::max::Extent;
use super::{Element, ExactSum, bits, max};

/// Count, extremes and exact sum of magnitudes of a group, and the first value that is not finite.
///
/// Mergeable: [`Stats::merge`] of two neighbours gives the statistics of their concatenation, bit for bit. If a value
/// is not finite, only [`Stats::count`] and [`Stats::first_bad`] are set, and the other fields are those of
/// [`Stats::EMPTY`], so that this holds then too.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stats {
    /// Number of values.
    pub count: u64,
    /// Smallest value; +∞ if empty. −0 is below +0.
    pub min: f32,
    /// Largest value; −∞ if empty.
    pub max: f32,
    /// The exact Σ|x|.
    pub sum: ExactSum,
    /// Index of the first NaN or infinity.
    pub first_bad: Option<u64>,
}

impl Stats {
    /// The statistics of no values.
    pub const EMPTY: Self = Self {
        count: 0,
        min: f32::INFINITY,
        max: f32::NEG_INFINITY,
        sum: ExactSum::ZERO,
        first_bad: None,
    };

    /// Computes the statistics of `values` in one pass, which ends at the first block of 256 with a value that is not
    /// finite.
    ///
    /// O(n) with 100 bytes of state. The time is that of [`ExactSum::add_slice`]: the largest magnitude per block
    /// comes from the same extremes.
    pub fn of<T: Element>(values: &[T]) -> Self {
        let mut stats = Self {
            count: values.len() as u64,
            ..Self::EMPTY
        };
        let (mut sum, mut extent) = (ExactSum::ZERO, Extent::EMPTY);
        for (number, block) in values.chunks(BLOCK).enumerate() {
            let within = Extent::of(block);
            if !within.is_finite() {
                let index = max::first_not_finite(block).unwrap_or(0);
                stats.first_bad = Some((number * BLOCK + index) as u64);
                return stats;
            }
            sum.add_block(block, within.magnitude());
            extent = extent.join(within);
        }
        if !values.is_empty() {
            stats.min = bits::from_ordered(extent.low);
            stats.max = bits::from_ordered(extent.high);
            stats.sum = sum;
        }
        stats
    }

    /// Like [`Stats::of`] without the sum, which stays 0.
    pub fn extremes_of<T: Element>(values: &[T]) -> Self {
        let count = values.len() as u64;
        let mut extent = Extent::EMPTY;
        for (number, block) in values.chunks(BLOCK).enumerate() {
            let within = Extent::of(block);
            if !within.is_finite() {
                let index = max::first_not_finite(block).unwrap_or(0);
                return Self {
                    count,
                    first_bad: Some((number * BLOCK + index) as u64),
                    ..Self::EMPTY
                };
            }
            extent = extent.join(within);
        }
        if values.is_empty() {
            return Self::EMPTY;
        }
        Self {
            count,
            min: bits::from_ordered(extent.low),
            max: bits::from_ordered(extent.high),
            ..Self::EMPTY
        }
    }

    /// Returns the largest magnitude; 0 if empty or if a value is not finite.
    pub fn abs_max(&self) -> f32 {
        if self.count == 0 || self.first_bad.is_some() {
            return 0.0;
        }
        let magnitude = bits::magnitude(self.min).max(bits::magnitude(self.max));
        f32::from_bits(magnitude)
    }

    /// Returns the mean of |x|, rounded once; `None` if empty or if a value is not finite.
    pub fn abs_mean(&self) -> Option<f32> {
        match self.first_bad {
            None => self.sum.mean(self.count),
            Some(_) => None,
        }
    }

    /// Appends the statistics of the values that follow these.
    pub fn merge(&mut self, next: &Self) {
        let first_bad = match (self.first_bad, next.first_bad) {
            (Some(index), _) => Some(index),
            (None, Some(index)) => Some(self.count.saturating_add(index)),
            (None, None) => None,
        };
        let count = self.count.saturating_add(next.count);
        if first_bad.is_some() {
            *self = Self {
                count,
                first_bad,
                ..Self::EMPTY
            };
            return;
        }
        self.count = count;
        self.sum.merge(&next.sum);
        self.min = bits::from_ordered(bits::ordered(self.min).min(bits::ordered(next.min)));
        self.max = bits::from_ordered(bits::ordered(self.max).max(bits::ordered(next.max)));
    }
}
