//! Scores of clusterings on rayon's threads.

use rayon::prelude::*;
use tercet_core::cluster::score::{
    Silhouette, SilhouettePart, SilhouetteScore, davies_bouldin_scratch, silhouette_plan,
};
use tercet_core::cluster::{ClusterError, Points, score};

/// Points that a task scores: each of them against thousands, so a few are enough.
const TASK: usize = 32;

/// [`score::silhouette`] on all threads, with the same bits and errors.
///
/// Memory: 8 bytes a cluster and task; 32 KiB more where there are more than [`score::SILHOUETTE_EXACT`] points.
///
/// # Example
/// ```
/// use tercet_core::cluster::Points;
///
/// let points = Points::new(&[0, 2, 10, 12], 1)?;
/// let found = tercet_host::parallel::silhouette(&points, &[0, 0, 1, 1], 2, 0)?;
/// assert!((found.score - 0.798).abs() < 1e-3);
/// # Ok::<(), tercet_core::cluster::ClusterError>(())
/// ```
pub fn silhouette(
    points: &Points<'_>,
    labels: &[u32],
    clusters: usize,
    seed: u64,
) -> Result<SilhouetteScore, ClusterError> {
    let mut plan = vec![0; silhouette_plan(points.len(), clusters)];
    let silhouette = Silhouette::new(*points, labels, clusters, seed, &mut plan)?;
    let all = (0..silhouette.len().div_ceil(TASK))
        .into_par_iter()
        .map_init(
            || vec![0; silhouette.clusters()],
            |sums, task| silhouette.part(task * TASK..(task + 1) * TASK, sums),
        )
        .reduce(SilhouettePart::default, |mut a, b| {
            a.merge(&b);
            a
        });
    Ok(silhouette.finish(&all))
}

/// [`score::davies_bouldin`] with memory of its own, 8 · k · (d + 2) bytes; on the calling thread, since it is quick.
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
