//! The expected squared error of a grid on the values of a histogram.

use super::super::{Grid, Histogram};
use super::nearest;

/// Returns Σ over buckets, from the smallest value up, of count · the mean of (x − its grid point)² over the bucket.
///
/// The mean is an integral in closed form. Over the values u (in steps of the grid) that share the grid point n, ∫(u
/// − n)² = (r_b³ − r_a³) / 3 with r = u − n; a whole cell gives 1/12. So a bucket wider than a step costs no more
/// than a narrow one, and neither aliases with the grid.
pub(super) fn expected<const B: u32>(histogram: &Histogram<'_, B>, grid: &Grid) -> f64 {
    let scale = f64::from(grid.scale);
    let mut sum = 0.0;
    for bucket in histogram.iter() {
        let a = f64::from(bucket.low) / scale;
        let b = f64::from(bucket.high) / scale;
        sum += bucket.count as f64 * mean_squared_error(a, b, grid);
    }
    sum * (scale * scale)
}

/// Returns the mean of (u − its grid point)² over [a, b], in squared steps.
fn mean_squared_error(a: f64, b: f64, grid: &Grid) -> f64 {
    let (from, to) = (nearest(a, grid), nearest(b, grid));
    let (ra, rb) = (a - from, b - to);
    if from == to {
        // (r_b³ − r_a³) / 3 over (r_b − r_a), divided out: no cancellation, and correct for a = b.
        return (rb * rb + rb * ra + ra * ra) / 3.0;
    }
    ((to - from) / 12.0 + (rb * rb * rb - ra * ra * ra) / 3.0) / (b - a)
}
