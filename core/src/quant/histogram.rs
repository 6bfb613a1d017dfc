//! A streaming histogram of floats by their bit patterns. Counts are integers, so the order of values does not
//! matter.

use super::QuantError;
use crate::number::max::Extent;
use crate::number::{Element, bits, first_not_finite};

/// Counts values by the top `B` bits of their sign-ordered pattern ([`bits::ordered`]), and keeps the exact smallest
/// and largest value.
///
/// A bucket is a run of neighbouring floats: 128 buckets per octave with `B` = 16 ([`HOST_BITS`]), 4 per octave with
/// `B` = 11 ([`SMALL_BITS`]). No range has to be guessed before the data is seen. Counts are integers, so the same
/// values give the same histogram in any order, chunking and merging.
///
/// The caller owns the buckets: 2^16 of them take 512 KiB, which belong in a box or a static and not on a stack; 2^11
/// take 16 KiB. `B` lies in 2..=24.
///
/// ```
/// use tercet_core::quant::{Histogram, SMALL_BITS};
///
/// let mut buckets = [0; Histogram::<SMALL_BITS>::BUCKETS];
/// let mut histogram = Histogram::<SMALL_BITS>::new(&mut buckets)?;
/// histogram.push(&[0.5_f32, -2.0, 1.25])?;
/// assert_eq!(histogram.count(), 3);
/// assert_eq!(histogram.range(), Some((-2.0, 1.25)));
/// # Ok::<(), tercet_core::quant::QuantError>(())
/// ```
#[derive(Debug, PartialEq)]
pub struct Histogram<'a, const B: u32> {
    buckets: &'a mut [u64],
    count: u64,
    /// Extremes, as ordered patterns.
    low: u32,
    high: u32,
}

/// Number of values whose extremes are found first; then they are counted while they are in the first-level cache.
const BLOCK: usize = 256;

/// Pattern bits of a histogram on a host: buckets are at most 1/128 of their value wide.
pub const HOST_BITS: u32 = 16;

/// Pattern bits of a histogram on a small machine: buckets are at most 1/4 of their value wide.
pub const SMALL_BITS: u32 = 11;

/// A bucket that holds values, with its edges limited to the data's extremes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bucket {
    /// Smallest value that it may hold.
    pub low: f32,
    /// Largest value that it may hold.
    pub high: f32,
    /// Number of values in it.
    pub count: u64,
}

impl<'a, const B: u32> Histogram<'a, B> {
    /// Length of the slice that [`Histogram::new`] takes: 2^B.
    pub const BUCKETS: usize = {
        assert!(B >= 2 && B <= 24, "a histogram counts the top 2 to 24 bits");
        1 << B
    };
    const SHIFT: u32 = 32 - B;

    /// Returns an empty histogram over `buckets`, which it clears.
    ///
    /// # Errors
    /// [`QuantError::Length`] unless there are [`Histogram::BUCKETS`] of them.
    pub fn new(buckets: &'a mut [u64]) -> Result<Self, QuantError> {
        if buckets.len() != Self::BUCKETS {
            return Err(QuantError::Length {
                expected: Self::BUCKETS,
                found: buckets.len(),
            });
        }
        buckets.fill(0);
        Ok(Self {
            buckets,
            count: 0,
            low: u32::MAX,
            high: 0,
        })
    }

    /// Counts the next values. O(1) per value.
    ///
    /// # Errors
    /// [`QuantError::NotFinite`] at the first NaN or infinity, with its index in the whole stream; the values before
    /// it are counted.
    pub fn push<T: Element>(&mut self, values: &[T]) -> Result<(), QuantError> {
        for block in values.chunks(BLOCK) {
            let extent = Extent::of(block);
            if !extent.is_finite() {
                let finite = first_not_finite(block).unwrap_or(0);
                let (before, _) = block.split_at_checked(finite).unwrap_or_default();
                self.count_finite(before, Extent::of(before));
                return Err(QuantError::NotFinite { index: self.count });
            }
            self.count_finite(block, extent);
        }
        Ok(())
    }

    fn count_finite<T: Element>(&mut self, values: &[T], extent: Extent) {
        for value in values {
            let key = bits::ordered(value.to_f32());
            if let Some(bucket) = self.buckets.get_mut((key >> Self::SHIFT) as usize) {
                *bucket += 1;
            }
        }
        self.low = self.low.min(extent.low);
        self.high = self.high.max(extent.high);
        self.count += values.len() as u64;
    }

    /// Adds values that an engine has counted itself: the number of them that the top `B` bits of [`bits::ordered`]
    /// place in each bucket, and their smallest and largest. O(buckets).
    ///
    /// # Errors
    /// [`QuantError::Length`] unless there are [`Histogram::BUCKETS`] counts; [`QuantError::Range`] unless both
    /// extremes are finite and lie in the first and the last bucket that holds values. Nothing is added then. If all
    /// counts are 0, the extremes are not checked.
    pub fn add_counts(&mut self, counts: &[u32], min: f32, max: f32) -> Result<(), QuantError> {
        if counts.len() != Self::BUCKETS {
            return Err(QuantError::Length {
                expected: Self::BUCKETS,
                found: counts.len(),
            });
        }
        let holds = |&count: &u32| count > 0;
        let (Some(first), Some(last)) = (
            counts.iter().position(holds),
            counts.iter().rposition(holds),
        ) else {
            return Ok(());
        };
        let (low, high) = (bits::ordered(min), bits::ordered(max));
        let within = |key: u32, bucket: usize| (key >> Self::SHIFT) as usize == bucket;
        let ordered = min.is_finite() && max.is_finite() && low <= high;
        if !(ordered && within(low, first) && within(high, last)) {
            return Err(QuantError::Range);
        }
        for (bucket, &add) in self.buckets.iter_mut().zip(counts) {
            *bucket += u64::from(add);
            self.count += u64::from(add);
        }
        self.low = self.low.min(low);
        self.high = self.high.max(high);
        Ok(())
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram<'_, B>) {
        for (bucket, add) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *bucket += add;
        }
        self.count += other.count;
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }

    /// Returns the number of counted values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact smallest and largest value; `None` if empty. −0 is below +0.
    pub fn range(&self) -> Option<(f32, f32)> {
        (self.count > 0).then(|| (bits::from_ordered(self.low), bits::from_ordered(self.high)))
    }

    /// Returns the exact largest magnitude; 0 if empty.
    pub fn abs_max(&self) -> f32 {
        self.range().map_or(0.0, |(low, high)| {
            f32::from_bits(bits::magnitude(low).max(bits::magnitude(high)))
        })
    }

    /// Returns the buckets that hold values, from the smallest value up.
    pub fn iter(&self) -> impl Iterator<Item = Bucket> + '_ {
        let (first, last) = (self.low >> Self::SHIFT, self.high >> Self::SHIFT);
        // An empty histogram has first > last, which gives an empty range.
        let length = (last + 1).saturating_sub(first) as usize;
        let counts = self.buckets.iter().skip(first as usize).take(length);
        counts
            .zip(first..=last)
            .filter(|(count, _)| **count > 0)
            .map(|(&count, index)| Bucket {
                low: bits::from_ordered((index << Self::SHIFT).max(self.low)),
                high: bits::from_ordered(Self::last_key(index).min(self.high)),
                count,
            })
    }

    /// Returns the bucket of the `rank`-th smallest value (0 is the smallest); `None` unless `rank < count`.
    /// O(buckets).
    pub fn at_rank(&self, rank: u64) -> Option<Bucket> {
        let mut below = 0;
        self.iter().find(|bucket| {
            below += bucket.count;
            below > rank
        })
    }

    /// Returns an upper bound of the `rank`-th smallest magnitude: the outer edge of its bucket of |x|, at most the
    /// exact largest magnitude. `None` unless `rank < count`. O(buckets).
    pub fn upper_magnitude(&self, rank: u64) -> Option<f32> {
        let (negative, positive) = self.buckets.split_at_checked(Self::BUCKETS / 2)?;
        let mut below = 0;
        let index = positive
            .iter()
            .zip(negative.iter().rev())
            .position(|(a, b)| {
                below += a + b;
                below > rank
            })?;
        let edge = Self::last_key(index as u32);
        Some(f32::from_bits(edge.min(self.abs_max().to_bits())))
    }

    /// Returns the largest key of a bucket.
    const fn last_key(index: u32) -> u32 {
        (index << Self::SHIFT) | ((1 << Self::SHIFT) - 1)
    }
}
