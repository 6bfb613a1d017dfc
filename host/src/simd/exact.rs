//! The exact Σ|x| in f64 lanes: the common method of the kernels of all sets, and why it is exact.
//!
//! A magnitude pattern m, shifted up by 29 bits, is the pattern of the f64 |x| · 2⁻⁸⁹⁶: the exponent keeps its field,
//! and the fields' biases, 127 and 1023, differ by 896. Subnormals stay subnormal and are correct too. So two integer
//! instructions widen a vector, while a conversion also needs a shuffle.
//!
//! If the exponent fields of values are in `low..=high` (a subnormal's counts as 1), each value is a multiple of 2^(low
//! − 150) below 2^(high − 126). A lane adds at most [`LANE`] = 2⁶ of them, so each of its partial sums is a multiple of
//! that unit below 2^(high − 120): fewer than 2⁵² units if `high − low` ≤ [`SPREAD`] = 22, which an f64 represents
//! exactly. The extremes, which are computed anyway, show after the block if this was so. For 4,096 normal values, one
//! block in some hundreds has its smallest value so far below its largest. Such a block, and one with zeros in it, is
//! summed again from the first-level cache, window by window of [`SPREAD`] exponents.

use tercet_core::number::bits::{self, INFINITE};
use tercet_core::number::{Element, ExactSum, Stats};

/// Maximum number of additions per lane between two checks of the exponents.
pub(super) const LANE: usize = 64;
/// The largest difference of exponent fields for which [`LANE`] additions are exact.
pub(super) const SPREAD: u32 = 22;
/// The bits of an f64 that a magnitude pattern is shifted to.
#[cfg(target_arch = "x86_64")]
pub(super) const WIDENED: i64 = 0x0FFF_FFFF_E000_0000;

/// The extremes of raw patterns, two as unsigned integers and two as signed ones.
///
/// As unsigned integers, negative floats are above the others; as signed integers, below them. In both orders, patterns
/// of the same sign grow with their magnitude. So the four numbers are the extremes of either sign, if that sign
/// occurs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The largest pattern: of the negative float of largest magnitude, if there is a negative one.
    pub(super) unsigned_max: u32,
    /// The largest signed pattern: of the positive float of largest magnitude, if there is a positive one.
    pub(super) signed_max: i32,
    /// The smallest pattern: of the positive float of smallest magnitude, if there is a positive one.
    pub(super) unsigned_min: u32,
    /// The smallest signed pattern: of the negative float of smallest magnitude, if there is a negative one.
    pub(super) signed_min: i32,
}

impl Extent {
    /// The extent of no patterns.
    pub(super) const EMPTY: Self = Self {
        unsigned_max: 0,
        signed_max: i32::MIN,
        unsigned_min: u32::MAX,
        signed_min: i32::MAX,
    };

    /// Returns the largest magnitude, 0 if empty.
    pub(super) fn largest(&self) -> u32 {
        // Magnitudes of either sign; without a positive float the pattern is `i32::MIN`, whose magnitude is 0.
        let negative = self.unsigned_max & 0x7FFF_FFFF;
        negative.max(self.signed_max as u32 & 0x7FFF_FFFF)
    }

    /// Returns the smallest magnitude; arbitrary if empty.
    pub(super) fn smallest(&self) -> u32 {
        let negative = self.signed_min as u32 & 0x7FFF_FFFF;
        negative.min(self.unsigned_min & 0x7FFF_FFFF)
    }

    /// Returns the smallest float in the order of [`bits::ordered`].
    fn min(&self) -> f32 {
        // Without a negative float the largest pattern has no sign bit, and the smallest pattern is the minimum.
        let negative = self.unsigned_max >> 31 == 1;
        f32::from_bits(if negative {
            self.unsigned_max
        } else {
            self.unsigned_min
        })
    }

    /// Returns the largest float in that order.
    fn max(&self) -> f32 {
        let positive = self.signed_max >= 0;
        f32::from_bits(if positive {
            self.signed_max
        } else {
            self.signed_min
        } as u32)
    }

    fn join(self, other: Self) -> Self {
        Self {
            unsigned_max: self.unsigned_max.max(other.unsigned_max),
            signed_max: self.signed_max.max(other.signed_max),
            unsigned_min: self.unsigned_min.min(other.unsigned_min),
            signed_min: self.signed_min.min(other.signed_min),
        }
    }
}

/// The results of some blocks of a slice.
#[derive(Debug)]
pub(super) struct Total {
    pub(super) sum: ExactSum,
    extent: Extent,
}

impl Total {
    pub(super) const EMPTY: Self = Self {
        sum: ExactSum::ZERO,
        extent: Extent::EMPTY,
    };

    /// Adds the extremes of a block; `false` if a value is not finite.
    #[inline]
    pub(super) fn join(&mut self, block: Extent) -> bool {
        self.extent = self.extent.join(block);
        block.largest() < INFINITE
    }

    /// True if there are negative values and others: then the largest magnitudes of both signs are the two ends of the
    /// range.
    pub(super) fn has_both_signs(&self) -> bool {
        self.extent.unsigned_max >> 31 == 1 && self.extent.signed_max >= 0
    }

    /// Returns the statistics of `values`, all of which were added unless one is not finite.
    pub(super) fn stats<T: Element>(&self, values: &[T]) -> Stats {
        let count = values.len() as u64;
        let empty = Stats {
            count,
            ..Stats::EMPTY
        };
        if values.is_empty() {
            return empty;
        }
        if self.extent.largest() >= INFINITE {
            let index = values.iter().position(|x| !x.to_f32().is_finite());
            return Stats {
                first_bad: index.map(|index| index as u64),
                ..empty
            };
        }
        Stats {
            min: self.extent.min(),
            max: self.extent.max(),
            sum: self.sum,
            ..empty
        }
    }
}

/// Exponent fields of magnitudes in a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    low: u32,
}

impl Window {
    /// Returns the fields of the patterns `smallest..=largest`, `None` if they are too far apart for exact lanes.
    #[inline]
    pub(super) fn new(smallest: u32, largest: u32) -> Option<Self> {
        let low = bits::shift(smallest) + 1;
        let high = bits::shift(largest) + 1;
        (high - low <= SPREAD).then_some(Self { low })
    }

    /// Returns the widest window that contains `largest`, and its smallest pattern.
    pub(super) fn below(largest: u32) -> (Self, u32) {
        let high = bits::shift(largest) + 1;
        match high.checked_sub(SPREAD) {
            Some(low) if low > 1 => (Self { low }, low << 23),
            _ => (Self { low: 1 }, 0),
        }
    }

    /// Returns the two factors that, one after the other, convert a lane to a number of units below 2⁵²; both products
    /// are exact.
    ///
    /// The first factor compensates for the 2⁻⁸⁹⁶ of the widening, so that the second, 2^(150 − low), is representable
    /// too.
    #[inline]
    pub(super) fn factors(self) -> [f64; 2] {
        let power = |exponent: u32| f64::from_bits(u64::from(exponent) << 52);
        [power(1023 + 896), power(1023 + 150 - self.low)]
    }

    /// Adds a sum of units.
    #[inline]
    pub(super) fn add(self, units: u64, sum: &mut ExactSum) {
        sum.add_shifted(units, self.low - 1);
    }
}
