//! Scores for judging k: the silhouette on all threads, and the Davies–Bouldin index.

use crate::parallel::each::numbers;
use tercet_core::cluster::score::{
    Silhouette, SilhouettePart, SilhouetteScore, davies_bouldin_scratch, silhouette_plan,
};
use tercet_core::cluster::{ClusterError, Points, score};

/// Points that one task scores. Each is compared with up to 4,096 others.
const PART: usize = 32;

/// Computes [`tercet_core::cluster::score::silhouette`] on all threads, with the same bits and errors.
///
/// Memory: 8 bytes per cluster and thread, and 32 KiB if a sample is drawn.
///
/// ```
/// use tercet_core::cluster::Points;
/// use tercet_host::cluster::silhouette;
///
/// let points = Points::new(&[0, 2, 10, 12], 1)?;
/// let found = silhouette(&points, &[0, 0, 1, 1], 2, 0)?;
/// assert!((found.score - (18.0 / 22.0 + 14.0 / 18.0) / 2.0).abs() < 1e-6);
/// # Ok::<(), tercet_core::cluster::ClusterError>(())
/// ```
pub fn silhouette(
    points: &Points<'_>,
    labels: &[u32],
    clusters: usize,
    seed: u64,
) -> Result<SilhouetteScore, ClusterError> {
    let mut plan = vec![0; silhouette_plan(points.len(), clusters)];
    let scored = Silhouette::new(*points, labels, clusters, seed, &mut plan)?;
    let all = numbers(0..scored.len().div_ceil(PART)).reduce_with(
        || vec![0; clusters],
        |sums, _, part| scored.part(part * PART..(part + 1) * PART, sums),
        |mut left: SilhouettePart, right| {
            left.merge(&right);
            left
        },
    );
    Ok(scored.finish(&all.unwrap_or_default()))
}

/// Computes [`score::davies_bouldin`] on the calling thread, since it is quick. Allocates 8 · k · (d + 2) bytes.
///
/// # Errors
/// Those of [`score::davies_bouldin`].
pub fn davies_bouldin(
    points: &Points<'_>,
    labels: &[u32],
    clusters: usize,
) -> Result<f64, ClusterError> {
    let mut scratch = vec![0; davies_bouldin_scratch(clusters, points.dims())];
    score::davies_bouldin(points, labels, clusters, &mut scratch)
}
