//! The exact Σ|x| in f64 lanes: what the kernels of every set agree on, and why nothing is lost.
//!
//! A magnitude pattern m, shifted 29 bits up, is the pattern of the f64 |x| · 2⁻⁸⁹⁶: the exponent keeps its field, and the
//! fields' biases, 127 and 1023, differ by 896. Subnormals stay subnormal and are right too. So two integer instructions
//! widen a vector, where a conversion takes a shuffle as well.
//!
//! Of values whose exponent fields lie in `low..=high` (a subnormal's counts as 1), each is a multiple of 2^(low − 150) below
//! 2^(high − 126). A lane takes at most [`LANE`] = 2⁶ of them, so each of its partial sums is a multiple of that unit below
//! 2^(high − 120): fewer than 2⁵² units while `high − low` ≤ [`SPREAD`] = 22, which an f64 holds exactly. Whether that was so
//! is known after the block, from extremes that are taken anyway; until then the additions cost nothing but themselves. Of
//! 4,096 normal values the smallest lies that far under the largest in one block of some hundreds. Such a block, and one with
//! zeros in it, is summed again from the first cache, window by window of [`SPREAD`] exponents.

use tercet_core::number::bits::{self, INFINITE};
use tercet_core::number::{Element, ExactSum, Stats};

/// Additions a lane takes at most between two looks at the exponents.
pub(super) const LANE: usize = 64;
/// The largest distance of exponent fields for which [`LANE`] additions are exact.
pub(super) const SPREAD: u32 = 22;
/// The bits of an f64 that a magnitude pattern is shifted to.
#[cfg(target_arch = "x86_64")]
pub(super) const WIDENED: i64 = 0x0FFF_FFFF_E000_0000;

/// The extremes of raw patterns, two as unsigned integers and two as signed ones.
///
/// As unsigned integers negative floats lie above the others, as signed ones below them, and in both orders a pattern of one
/// sign grows with its magnitude. So the four hold the extremes of either sign, whichever of them occur.
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
    /// Of no patterns.
    pub(super) const EMPTY: Self = Self {
        unsigned_max: 0,
        signed_max: i32::MIN,
        unsigned_min: u32::MAX,
        signed_min: i32::MAX,
    };

    /// The largest magnitude, 0 when empty.
    pub(super) fn largest(&self) -> u32 {
        // Magnitudes of either sign; the pattern of no positive float is `i32::MIN`, whose magnitude is 0.
        let negative = self.unsigned_max & 0x7FFF_FFFF;
        negative.max(self.signed_max as u32 & 0x7FFF_FFFF)
    }

    /// The smallest magnitude; any when empty.
    pub(super) fn smallest(&self) -> u32 {
        let negative = self.signed_min as u32 & 0x7FFF_FFFF;
        negative.min(self.unsigned_min & 0x7FFF_FFFF)
    }

    /// The smallest float in the order of [`bits::ordered`].
    fn min(&self) -> f32 {
        // Without a negative float the largest pattern has no sign, and the smallest one is the least.
        let negative = self.unsigned_max >> 31 == 1;
        f32::from_bits(if negative {
            self.unsigned_max
        } else {
            self.unsigned_min
        })
    }

    /// The largest float in that order.
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

/// What some blocks of a slice have told.
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

    /// Takes the extremes of a block; `false` where a value is not finite.
    #[inline]
    pub(super) fn join(&mut self, block: Extent) -> bool {
        self.extent = self.extent.join(block);
        block.largest() < INFINITE
    }

    /// Whether there are negative values and others: then the largest magnitudes of either are both ends of the range.
    pub(super) fn has_both_signs(&self) -> bool {
        self.extent.unsigned_max >> 31 == 1 && self.extent.signed_max >= 0
    }

    /// The statistics of `values`, all of which were taken in unless one is not finite.
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
    /// The fields of the patterns `smallest..=largest`, `None` where they lie too far apart for exact lanes.
    #[inline]
    pub(super) fn new(smallest: u32, largest: u32) -> Option<Self> {
        let low = bits::shift(smallest) + 1;
        let high = bits::shift(largest) + 1;
        (high - low <= SPREAD).then_some(Self { low })
    }

    /// The widest window with `largest` in it, and its smallest pattern.
    pub(super) fn below(largest: u32) -> (Self, u32) {
        let high = bits::shift(largest) + 1;
        match high.checked_sub(SPREAD) {
            Some(low) if low > 1 => (Self { low }, low << 23),
            _ => (Self { low: 1 }, 0),
        }
    }

    /// The two factors that, one after the other, turn a lane into a count of units below 2⁵²; both products are exact.
    ///
    /// The first undoes the widening's 2⁻⁸⁹⁶, so that the second, 2^(150 − low), is a float too.
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
