//! A histogram that threads record to without waiting for one another.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use metrics::HistogramFn;

/// Upper ends of the bins of times, in seconds; longer times have one more bin.
pub const LATENCIES: [f64; 12] = [
    1e-6, 4e-6, 1.6e-5, 6.4e-5, 2.56e-4, 1.024e-3, 4.096e-3, 1.6384e-2, 6.5536e-2, 0.262_144,
    1.048_576, 4.194_304,
];

/// Upper ends of the bins of integers: requests, bytes.
const POWERS: [f64; 16] = [
    1.0,
    2.0,
    4.0,
    8.0,
    16.0,
    32.0,
    64.0,
    128.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    1_048_576.0,
    16_777_216.0,
];

/// Number of values up to each end, and their sum.
#[derive(Debug)]
pub(super) struct Bins {
    ends: &'static [f64],
    /// One more than ends, for values beyond all ends.
    counts: Box<[AtomicU64]>,
    /// An `f64`.
    sum: AtomicU64,
}

/// The content of [`Bins`] at a moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) ends: &'static [f64],
    /// Number of values in each bin, not cumulative.
    pub(super) counts: Vec<u64>,
    pub(super) sum: f64,
}

impl Bins {
    /// Returns bins of times in seconds, or of anything else.
    pub(super) fn new(seconds: bool) -> Self {
        let ends: &'static [f64] = if seconds { &LATENCIES } else { &POWERS };
        Self {
            ends,
            counts: (0..=ends.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    pub(super) fn counted(&self) -> Counted {
        let counts = self.counts.iter().map(|count| count.load(Relaxed));
        Counted {
            ends: self.ends,
            counts: counts.collect(),
            sum: f64::from_bits(self.sum.load(Relaxed)),
        }
    }
}

impl HistogramFn for Bins {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        // NaN is beyond all ends, as in Prometheus.
        let bin = self.ends.iter().position(|&end| value <= end);
        let bin = bin.unwrap_or(self.ends.len());
        self.counts[bin].fetch_add(count as u64, Relaxed);
        let add = value * count as f64;
        let added = |sum: u64| Some((f64::from_bits(sum) + add).to_bits());
        // The closure always gives a value.
        let _ = self.sum.fetch_update(Relaxed, Relaxed, added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_up_to_their_ends_and_add_up_over_threads() {
        let bins = Bins::new(true);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for value in [0.0, 1e-6, 1.1e-6, 1e9] {
                        bins.record(value);
                    }
                });
            }
        });
        let counted = bins.counted();
        let (first, rest) = counted.counts.split_at(2);
        assert_eq!(first, [8, 4]);
        assert_eq!(rest[rest.len() - 1], 4);
        assert_eq!(counted.counts.iter().sum::<u64>(), 16);
        assert!((counted.sum - 4e9).abs() < 1.0, "{}", counted.sum);
        let bins = Bins::new(false);
        bins.record_many(64.0, 3);
        bins.record(f64::NAN);
        let counted = bins.counted();
        assert_eq!((counted.counts[6], counted.counts[16]), (3, 1));
    }
}
