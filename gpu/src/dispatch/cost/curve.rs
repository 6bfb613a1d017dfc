//! How long an amount takes: measured points, and what lies between and beyond them.

use serde::{Deserialize, Serialize};

/// No time at all would have no logarithm.
const LEAST: f64 = 1e-12;

/// Seconds by amount (bytes, or steps of work).
///
/// Between two measured points time goes as a power of the amount, a straight line where both are drawn by their logarithms. Below the
/// first and beyond the last point the rate of that point holds: caches do not get better below, and memory not worse beyond.
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
    /// By rising amount, their times not falling.
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

/// Why points make no curve.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CurveError {
    /// There is no point.
    #[error("a curve of no points")]
    Empty,
    /// Nothing takes no time, and points stand at different amounts.
    #[error("a curve with the amount {0} more than once, or 0")]
    Amount(u64),
    /// A time that is none.
    #[error("a curve with a time of {0} s")]
    Seconds(f64),
}

impl Curve {
    /// The curve through points of an amount and its seconds, in any order.
    ///
    /// What else ran on the machine only ever made a measured time longer. So where a smaller amount took longer than a larger one,
    /// it gets the time of that.
    ///
    /// # Errors
    /// [`CurveError::Empty`]; [`CurveError::Amount`] for 0 and for one that comes twice; [`CurveError::Seconds`] for a time
    /// below 0 or not finite.
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

    /// The curve of one rate, in amount a second. A rate that is none counts as the least there is.
    pub fn constant(rate: f64) -> Self {
        let rate = if rate > 0.0 { rate.min(1e18) } else { 1.0 };
        // A point far out, so that the quotient keeps its digits.
        let amount = 1u64 << 40;
        Self {
            points: vec![Point::new(amount, amount as f64 / rate)],
        }
    }

    /// Seconds of an amount: never less for more, 0 for nothing, and finite. O(log points).
    pub fn seconds(&self, amount: u64) -> f64 {
        if amount == 0 {
            return 0.0;
        }
        self.seconds_of(amount, (amount as f64).ln())
    }

    /// As [`Curve::seconds`], of an amount above 0 whose logarithm is known.
    pub(super) fn seconds_of(&self, amount: u64, log: f64) -> f64 {
        let next = self.points.partition_point(|point| point.amount < amount);
        // A curve has a point at least.
        let at = |index: usize| self.points[index.min(self.points.len() - 1)];
        let (low, high) = (at(next.saturating_sub(1)), at(next));
        if next == 0 || next == self.points.len() {
            // Both are the first, or the last.
            let end = if next == 0 { high } else { low };
            return end.seconds / end.amount as f64 * amount as f64;
        }
        let part = (log - low.logs.0) / (high.logs.0 - low.logs.0);
        let seconds = (low.logs.1 + part * (high.logs.1 - low.logs.1)).exp();
        // A rounding must not show at the points.
        seconds.clamp(low.seconds, high.seconds)
    }

    /// Amount a second at an amount, at least 1.
    pub fn rate(&self, amount: u64) -> f64 {
        let amount = amount.max(1);
        amount as f64 / self.seconds(amount).max(LEAST)
    }

    /// The points, by rising amount.
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
