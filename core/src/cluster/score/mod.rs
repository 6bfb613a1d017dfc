//! Scores that compare values of k without true labels.
//!
//! | | | best | cost |
//! |---|---|---|---|
//! | [`silhouette`] | how much nearer a point is to its own cluster than to the next | 1, in −1 to 1 | O(m²·d), m at most [`SILHOUETTE_EXACT`] |
//! | [`davies_bouldin`] | width of clusters relative to the distance between them | 0 | O(n·d + k²·d) |
//!
//! Both scores sum Euclidean distances in fixed point with 16 fraction bits, each rounded once. So the result does
//! not depend on the order of points, the threads or the machine. A weight of w counts as w points. Empty clusters
//! are left out; with fewer than two clusters that have members, both return [`super::ClusterError::Score`]. The sum
//! of the weights may be up to [`MAX_SCORE_WEIGHT`].

mod davies_bouldin;
mod sample;
mod silhouette;

use super::{ClusterError, Points};

pub use davies_bouldin::{davies_bouldin, davies_bouldin_scratch};
pub use silhouette::{
    SILHOUETTE_EXACT, Silhouette, SilhouettePart, SilhouetteScore, silhouette, silhouette_plan,
    silhouette_scratch,
};

/// Largest sum of weights for scores: distances are below 2³² units, so their sums stay below 2⁶³.
pub const MAX_SCORE_WEIGHT: u64 = 1 << 31;

/// Returns the root, in units of 2⁻¹⁶ and rounded to nearest, of a squared distance in units of 2⁻³².
fn root(square: u64) -> u64 {
    let root = square.isqrt();
    // (r + ½)² = r² + r + ¼: integers exceed it from r² + r + 1 on.
    root + u64::from(square - root * root > root)
}

/// Returns `sum / weight` as a float. `sum` and the quotient are in units of 2⁻³⁰; the division is rounded half away
/// from zero.
fn mean(sum: i128, weight: u64) -> f64 {
    let weight = u128::from(weight.max(1));
    let magnitude = (sum.unsigned_abs() + weight / 2) / weight;
    let mean = magnitude as f64 / (1u64 << 30) as f64;
    if sum < 0 { -mean } else { mean }
}

fn check(points: &Points<'_>, labels: &[u32], clusters: usize) -> Result<(), ClusterError> {
    points.check_labels(labels, clusters)?;
    if points.weight() > MAX_SCORE_WEIGHT {
        return Err(ClusterError::Weight {
            total: points.weight(),
            limit: MAX_SCORE_WEIGHT,
        });
    }
    Ok(())
}
