//! Time by amount: measured points, with interpolation between and extrapolation beyond them.

use serde::{Deserialize, Serialize};

/// Smallest time: zero would have no logarithm.
const LEAST: f64 = 1e-12;

/// Seconds by amount (bytes, or units of work).
///
/// Between two measured points the time is a power of the amount: a straight line if both are drawn on logarithmic
/// scales. Below the first point and beyond the last one the rate of that point applies: caches are not faster below,
/// and memory is not slower beyond.
///
/// ```
/// use tercet_gpu::dispatch::Curve;
///
/// let curve = Curve::new([(1024, 1e-6), (4096, 4e-6), (1 << 20, 4e-3)])?;
/// assert!((curve.seconds(4096) - 4e-6).abs() < 1e-15);
/// assert_eq!(curve.seconds(0), 0.0);
/// // A quarter of the last point's rate up to there, then its rate.
/// assert!((curve.rate(1 << 30) / curve.rate(1 << 20) - 1.0).abs() < 1e-12);
/// # Ok::<(), tercet_gpu::dispatch::CurveError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, f64)>", into = "Vec<(u64, f64)>")]
pub struct Curve {
    /// Ordered by amount; the times do not decrease.
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    amount: u64,
    seconds: f64,
    /// Their natural logarithms.
    logs: (f64, f64),
}

impl Point {
    fn new(amount: u64, seconds: f64) -> Self {
        let seconds = seconds.max(LEAST);
        Self {
            amount,
            seconds,
            logs: ((amount as f64).ln(), seconds.ln()),
        }
    }
}

/// Why points do not form a curve.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CurveError {
    /// There is no point.
    #[error("a curve must have points")]
    Empty,
    /// An amount of 0 or one that occurs twice: zero takes no time, and points have different amounts.
    #[error("a curve has the amount {0}, which is 0 or occurs more than once")]
    Amount(u64),
    /// An invalid time.
    #[error("a curve has a time of {0} s")]
    Seconds(f64),
}

impl Curve {
    /// Returns the curve through points, each an amount and its seconds, in any order.
    ///
    /// Other programs on the machine can only make a measured time longer. So if a smaller amount took longer than a
    /// larger one, it gets the time of the larger one.
    ///
    /// # Errors
    /// [`CurveError::Empty`]; [`CurveError::Amount`] for 0 and for an amount that occurs twice; [`CurveError::Seconds`]
    /// for a time below 0 or not finite.
    pub fn new(points: impl IntoIterator<Item = (u64, f64)>) -> Result<Self, CurveError> {
        let mut points: Vec<(u64, f64)> = points.into_iter().collect();
        points.sort_by_key(|point| point.0);
        if points.is_empty() {
            return Err(CurveError::Empty);
        }
        let mut before = 0;
        for &(amount, seconds) in &points {
            if amount == before {
                return Err(CurveError::Amount(amount));
            }
            if !(seconds >= 0.0 && seconds.is_finite()) {
                return Err(CurveError::Seconds(seconds));
            }
            before = amount;
        }
        let mut most = f64::INFINITY;
        for point in points.iter_mut().rev() {
            most = most.min(point.1);
            point.1 = most;
        }
        let points = points.into_iter();
        Ok(Self {
            points: points
                .map(|(amount, seconds)| Point::new(amount, seconds))
                .collect(),
        })
    }

    /// Returns the curve of one rate, in amount per second. An invalid rate counts as the lowest possible one.
    pub fn constant(rate: f64) -> Self {
        let rate = if rate > 0.0 { rate.min(1e18) } else { 1.0 };
        // A point far out, so that the quotient keeps its digits.
        let amount = 1u64 << 40;
        Self {
            points: vec![Point::new(amount, amount as f64 / rate)],
        }
    }

    /// Returns the curve of a part of the time.
    pub(super) fn divided(&self, by: f64) -> Self {
        let points = self.points.iter();
        Self {
            points: points
                .map(|point| Point::new(point.amount, point.seconds / by))
                .collect(),
        }
    }

    /// Returns the seconds for an amount: never less for more, 0 for 0, and finite. O(log points).
    pub fn seconds(&self, amount: u64) -> f64 {
        if amount == 0 {
            return 0.0;
        }
        self.seconds_of(amount, (amount as f64).ln())
    }

    /// As [`Curve::seconds`], for an amount above 0 with a known logarithm.
    pub(super) fn seconds_of(&self, amount: u64, log: f64) -> f64 {
        let next = self.points.partition_point(|point| point.amount < amount);
        // A curve has at least one point.
        let at = |index: usize| self.points[index.min(self.points.len() - 1)];
        let (low, high) = (at(next.saturating_sub(1)), at(next));
        if next == 0 || next == self.points.len() {
            // Both are the first point, or both the last.
            let end = if next == 0 { high } else { low };
            return end.seconds / end.amount as f64 * amount as f64;
        }
        let part = (log - low.logs.0) / (high.logs.0 - low.logs.0);
        let seconds = (low.logs.1 + part * (high.logs.1 - low.logs.1)).exp();
        // Rounding must not change the time at a point.
        seconds.clamp(low.seconds, high.seconds)
    }

    /// Returns the amount per second at an amount, at least 1.
    pub fn rate(&self, amount: u64) -> f64 {
        let amount = amount.max(1);
        amount as f64 / self.seconds(amount).max(LEAST)
    }

    /// Returns the points, ordered by amount.
    pub fn points(&self) -> impl ExactSizeIterator<Item = (u64, f64)> + '_ {
        self.points
            .iter()
            .map(|point| (point.amount, point.seconds))
    }
}

impl TryFrom<Vec<(u64, f64)>> for Curve {
    type Error = CurveError;

    fn try_from(points: Vec<(u64, f64)>) -> Result<Self, CurveError> {
        Self::new(points)
    }
}

impl From<Curve> for Vec<(u64, f64)> {
    fn from(curve: Curve) -> Self {
        curve.points().collect()
    }
}
