//! The keys that rows must reach for a threshold, computed as in the kernels (`kernels/include/tercet/search.cuh`).

use tercet_core::number::bits;
use tercet_core::search::{Bar, Metric, MetricKind};

/// Keys of integer cosines that are in the wrong order differ by at most this.
pub(super) const COSINE_SLACK: u32 = 1;

/// Returns how far below the k-th best key a row of integers may be and still be among the best k.
pub(super) const fn slack(kind: MetricKind) -> u32 {
    match kind {
        MetricKind::Cosine => COSINE_SLACK,
        MetricKind::Dot | MetricKind::SquaredL2 => 0,
    }
}

/// Returns the kernels' number of a metric.
pub(super) const fn number(kind: MetricKind) -> u32 {
    match kind {
        MetricKind::Dot => 0,
        MetricKind::Cosine => 1,
        MetricKind::SquaredL2 => 2,
    }
}

/// Returns the least key of integer rows that reach a threshold, which is not NaN; `None` if no row does.
pub(super) fn of_integers<M: Metric>(threshold: f32, query_norm: u32) -> Option<u32> {
    match M::bar_at(threshold, query_norm) {
        Bar::Open => Some(0),
        // dot > above.
        Bar::Dot(above) => (above.cast_unsigned() ^ 1 << 31).checked_add(1),
        // distance < below, and keys are complements.
        Bar::Distance { below, .. } => (!below).checked_add(1),
        Bar::Cosine(square) => {
            let key = bits::ordered(square + 0.0) >> 6;
            Some(key.saturating_sub(COSINE_SLACK))
        }
    }
}

/// Returns the least key of rows of floats that reach a threshold, which is not NaN.
pub(super) fn of_floats(kind: MetricKind, threshold: f32) -> u32 {
    match kind {
        MetricKind::Dot => bits::ordered(threshold + 0.0),
        MetricKind::SquaredL2 => bits::ordered(-threshold + 0.0),
        MetricKind::Cosine => {
            // Exact, because the factors are f32.
            let square = f64::from(threshold) * f64::from(threshold.abs());
            let upper = ((square + 0.0).to_bits() >> 32) as u32;
            // As `bits::ordered`, for the upper half of an f64.
            upper ^ ((upper.cast_signed() >> 31).cast_unsigned() | 1 << 31)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tercet_core::search::{Cosine, Dot, SquaredL2};

    #[test]
    fn thresholds_become_the_keys_that_kernels_compute() {
        let key = |dot: i32| dot.cast_unsigned() ^ 1 << 31;
        assert_eq!(of_integers::<Dot>(4.5, 0), Some(key(5)));
        assert_eq!(of_integers::<Dot>(-4.0, 0), Some(key(-4)));
        assert_eq!(of_integers::<Dot>(f32::NEG_INFINITY, 0), Some(0));
        assert_eq!(of_integers::<Dot>(f32::INFINITY, 0), None);
        // Distances of 0 to 9.
        assert_eq!(of_integers::<SquaredL2>(9.5, 3), Some(!9));
        assert_eq!(of_integers::<SquaredL2>(-1.0, 3), None);
        assert_eq!(of_integers::<SquaredL2>(f32::INFINITY, 3), Some(0));
        // A query of zeros has cosine 0 with every row.
        assert_eq!(of_integers::<Cosine>(0.5, 0), Some(0));
        let (lower, higher) = (
            of_integers::<Cosine>(0.5, 100),
            of_integers::<Cosine>(0.6, 100),
        );
        assert!(lower < higher);
    }

    #[test]
    fn floats_of_both_signs_are_in_order() {
        let thresholds = [
            f32::NEG_INFINITY,
            -2.0,
            -0.5,
            -0.0,
            0.0,
            0.5,
            2.0,
            f32::INFINITY,
        ];
        for kind in [MetricKind::Dot, MetricKind::Cosine] {
            let keys = thresholds.map(|threshold| of_floats(kind, threshold));
            assert!(keys.is_sorted(), "{kind:?} {keys:?}");
            assert_eq!(keys[3], keys[4]);
        }
        let keys = thresholds.map(|threshold| of_floats(MetricKind::SquaredL2, threshold));
        assert!(keys.is_sorted_by(|a, b| a >= b), "{keys:?}");
    }
}
