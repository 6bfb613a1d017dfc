//! Finds the nearest of given centroids, of which there may be more than points.

use tercet_core::cluster::{Points, Update, check_nearest};
use tercet_core::engine::{Buffers, ClusterEngine, ClusterProblem};

use crate::engine::CudaError;

/// Does [`ClusterEngine::nearest`] with the steps of clustering. These accept at most as many clusters as points, so
/// that many centroids are processed at a time.
pub(super) fn nearest<E: ClusterEngine<Error = CudaError>>(
    engine: &mut E,
    points: Points<'_>,
    centroids: &[i8],
    labels: &mut [u32],
    distances: &mut [u32],
) -> Result<(), CudaError> {
    check_nearest(&points, centroids, labels.len(), distances.len())?;
    let (n, dims) = (points.len(), points.dims());
    // Weights do not matter.
    let points = Points::new(points.values(), dims)?;
    let all = centroids.len() / dims;
    let (mut part_labels, mut part_distances) = (vec![0; n], vec![0; n]);
    for first in (0..all).step_by(n) {
        let k = n.min(all - first);
        let mut clusters = engine.clusters(points, k, Update::Mean, nothing())?;
        clusters.set_centroids(&centroids[first * dims..(first + k) * dims])?;
        clusters.measure()?;
        clusters.read_labels(&mut part_labels)?;
        clusters.read_distances(&mut part_distances)?;
        let found = part_labels.iter().zip(&part_distances);
        for ((label, distance), (&part, &near)) in labels.iter_mut().zip(&mut *distances).zip(found)
        {
            // Of equal centroids, the lowest is in an earlier part.
            if first == 0 || near < *distance {
                // There are fewer than 2³² centroids, so a label fits.
                (*label, *distance) = (first as u32 + part, near);
            }
        }
    }
    Ok(())
}

/// Returns empty buffers, for an engine that uses its own memory.
fn nothing() -> Buffers<'static> {
    Buffers {
        labels: &mut [],
        distances: &mut [],
        centroids: &mut [],
        kept: &mut [],
        norms: &mut [],
        sums: &mut [],
        counts: &mut [],
    }
}
