//! Scores: their order, and the number that is reported.

use core::cmp::Ordering;

use crate::number::bits;

/// The score of a query and a row under a metric.
pub trait Score: Copy + Default + PartialEq + core::fmt::Debug + Send + Sync {
    /// Returns `Greater` if `self` is the better score. A total order, exact for integers.
    fn rank(&self, other: &Self) -> Ordering;

    /// Returns the score as a number for display, rounded to nearest once (see each type).
    ///
    /// It is never out of order: a better score has a value at least as good.
    fn value(self) -> f32;

    /// Returns true if the score itself, not its rounded value, is at least as good as `threshold`. False for NaN.
    fn reaches(self, threshold: f32) -> bool;
}

/// A score for which more is better: a dot product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Larger<T>(pub T);

/// A score for which less is better: a squared distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Smaller<T>(pub T);

impl Score for Larger<i32> {
    #[inline]
    fn rank(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }

    fn value(self) -> f32 {
        self.0 as f32
    }

    fn reaches(self, threshold: f32) -> bool {
        // Both are exact in f64.
        f64::from(self.0) >= f64::from(threshold)
    }
}

impl Score for Smaller<u32> {
    #[inline]
    fn rank(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0)
    }

    fn value(self) -> f32 {
        self.0 as f32
    }

    fn reaches(self, threshold: f32) -> bool {
        f64::from(self.0) <= f64::from(threshold)
    }
}

/// Finite rows can have products that overflow. ∞ ranks as the number that it is. NaN (∞ − ∞), whose bits differ
/// between machines, ranks as the worst. Zeros of both signs are equal.
impl Score for Larger<f32> {
    #[inline]
    fn rank(&self, other: &Self) -> Ordering {
        key(self.0).cmp(&key(other.0))
    }

    fn value(self) -> f32 {
        self.0
    }

    fn reaches(self, threshold: f32) -> bool {
        self.0 >= threshold
    }
}

/// A sum of squares is never NaN if rows are finite; ∞ is the worst.
impl Score for Smaller<f32> {
    #[inline]
    fn rank(&self, other: &Self) -> Ordering {
        key(-self.0).cmp(&key(-other.0))
    }

    fn value(self) -> f32 {
        self.0
    }

    fn reaches(self, threshold: f32) -> bool {
        self.0 <= threshold
    }
}

/// Returns an integer that orders like the floats, with −0 equal to +0 and NaN below all.
#[inline]
fn key(x: f32) -> u32 {
    // −0 + 0 is +0.
    if x.is_nan() {
        0
    } else {
        bits::ordered(x + 0.0)
    }
}
