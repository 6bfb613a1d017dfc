//! Scores for judging k, without knowing true labels.
//!
//! | | | best | cost |
//! |---|---|---|---|
//! | [`silhouette`] | how much nearer a point is to its own cluster than to the next | 1, of −1 to 1 | O(m²·d), m at most [`SILHOUETTE_EXACT`] |
//! | [`davies_bouldin`] | how wide clusters are for how far apart they lie | 0 | O(n·d + k²·d) |
//!
//! Both sum Euclidean distances in fixed point of 16 fraction bits, each rounded once, so no order of points, no thread
//! and no machine can show. A weight of w counts as w points. Empty clusters are left out; fewer than two with members are
//! refused ([`super::ClusterError::Score`]). Weights may add up to [`MAX_SCORE_WEIGHT`].

mod davies_bouldin;
mod sample;
mod silhouette;

use super::{ClusterError, Points};

pub use davies_bouldin::{davies_bouldin, davies_bouldin_scratch};
pub use silhouette::{
    SILHOUETTE_EXACT, Silhouette, SilhouettePart, SilhouetteScore, silhouette, silhouette_plan,
    silhouette_scratch,
};

/// The largest sum of weights that scores take: distances are below 2³² units, so their sums stay below 2⁶³.
pub const MAX_SCORE_WEIGHT: u64 = 1 << 31;

/// The root of a squared distance given in units of 2⁻³², in units of 2⁻¹⁶, to the nearest.
fn root(square: u64) -> u64 {
    let root = square.isqrt();
    // (r + ½)² = r² + r + ¼: above it from r² + r + 1 on.
    root + u64::from(square - root * root > root)
}

/// `sum / weight`, both in units of 2⁻³⁰ after the division is rounded half away from zero, as a float.
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
