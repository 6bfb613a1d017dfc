//! Counts of values for [`tercet_core::quant::Histogram`]s on a host.

use tercet_core::number::{Element, bits};
use tercet_core::quant::{HOST_BITS, Histogram, QuantError};

use super::{Ahead, Backend};

/// Counts by the upper 16 bits of [`bits::ordered`], in parts.
pub(in crate::simd) type Tables = [[u32; Histogram::<HOST_BITS>::BUCKETS]; TABLES];

/// Number of parts, so that an increment need not wait for the one before.
pub(in crate::simd) const TABLES: usize = 4;

/// Values that are read before they are counted from the first-level cache.
const TILE: usize = 4096;

/// A thread's counts of the values of one histogram, with a backend's kernels: 1 MiB.
#[derive(Debug)]
pub(crate) struct Counts {
    tables: Box<Tables>,
    counted: u64,
    /// Extremes as ordered patterns.
    low: u32,
    high: u32,
}

impl Counts {
    /// Counts stay below 2³² if at most this many values are counted between two calls of [`Self::add_to`].
    pub(crate) const MOST: u64 = u32::MAX as u64;

    /// Returns empty counts.
    pub(crate) fn new() -> Self {
        // The memory of a vector is zeroed, and was never on the stack.
        let tables = vec![[0; Histogram::<HOST_BITS>::BUCKETS]; TABLES].into_boxed_slice();
        Self {
            tables: tables.try_into().expect("as many tables"),
            counted: 0,
            low: u32::MAX,
            high: 0,
        }
    }

    /// Returns the number of values counted since the last call of [`Self::add_to`].
    pub(crate) fn counted(&self) -> u64 {
        self.counted
    }

    /// Counts values.
    ///
    /// # Errors
    /// [`QuantError::NotFinite`] at the first NaN or infinity, with its index in `values`; the values before it are
    /// counted.
    pub(crate) fn push<T: Element>(
        &mut self,
        backend: Backend,
        values: &[T],
    ) -> Result<(), QuantError> {
        debug_assert!(self.counted + values.len() as u64 <= Self::MOST);
        for (tile, values) in values.chunks(TILE).enumerate() {
            let stats = backend.extremes(values, Ahead::STREAM);
            if let Some(bad) = stats.first_bad {
                let finite = &values[..bad as usize];
                if !finite.is_empty() {
                    self.push(backend, finite)?;
                }
                let index = (tile * TILE) as u64 + bad;
                return Err(QuantError::NotFinite { index });
            }
            backend.count(values, &mut self.tables);
            self.counted += values.len() as u64;
            self.low = self.low.min(bits::ordered(stats.min));
            self.high = self.high.max(bits::ordered(stats.max));
        }
        Ok(())
    }

    /// Adds the counts to a histogram with at most [`HOST_BITS`] bits, and resets them.
    pub(crate) fn add_to<const B: u32>(&mut self, histogram: &mut Histogram<'_, B>) {
        if self.counted == 0 {
            return;
        }
        let [counts, others @ ..] = &mut *self.tables;
        for other in others.iter_mut() {
            for (count, more) in counts.iter_mut().zip(other.iter_mut()) {
                *count += *more;
                *more = 0;
            }
        }
        let (min, max) = (bits::from_ordered(self.low), bits::from_ordered(self.high));
        // Buckets of fewer bits are runs of these; their sums are at most the total count.
        let run = 1 << HOST_BITS.saturating_sub(B);
        if run > 1 {
            for bucket in 0..Histogram::<B>::BUCKETS {
                counts[bucket] = counts[bucket * run..][..run].iter().sum();
            }
        }
        histogram
            .add_counts(&counts[..Histogram::<B>::BUCKETS], min, max)
            .expect("the extremes are of values that were counted");
        counts.fill(0);
        (self.counted, self.low, self.high) = (0, u32::MAX, 0);
    }
}
