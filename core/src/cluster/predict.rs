//! Labels, distances and inertia of points for given centroids.

use super::{ClusterError, Points};
use crate::arch::plain::squared_distance;

pub use crate::arch::plain::Nearest;

/// Returns the nearest of the centroids (k · d, row-major), the lowest of equal ones, and the squared distance to it.
/// O(k·d).
///
/// Needs no scratch; [`crate::engine::ClusterProblem::measure`] is faster over many points.
///
/// # Errors
/// Those of [`Points::new`] for the centroids, with `point.len()` coordinates each.
///
/// ```
/// use tercet_core::cluster::nearest;
///
/// let found = nearest(&[3, 4], &[0, 0, 9, 4])?;
/// assert_eq!((found.label, found.distance), (0, 25));
/// # Ok::<(), tercet_core::cluster::ClusterError>(())
/// ```
pub fn nearest(point: &[i8], centroids: &[i8]) -> Result<Nearest, ClusterError> {
    let centroids = Points::new(centroids, point.len())?;
    Ok(nearest_of(point, &centroids))
}

/// Writes for every point the label of its nearest centroid, the lowest of equal ones, and its squared distance.
/// O(n·k·d).
///
/// `centroids` has length k · d, `labels` and `distances` have length n. Returns Σ w·D².
///
/// # Errors
/// Those of [`Points::new`] for the centroids; [`ClusterError::Length`].
pub fn predict(
    points: &Points<'_>,
    centroids: &[i8],
    labels: &mut [u32],
    distances: &mut [u32],
) -> Result<u64, ClusterError> {
    check_nearest(points, centroids, labels.len(), distances.len())?;
    let centroids = Points::new(centroids, points.dims())?;
    let mut inertia = 0;
    let state = labels.iter_mut().zip(distances);
    for ((row, weight), (label, distance)) in points.rows().zip(state) {
        let found = nearest_of(row, &centroids);
        *label = found.label;
        *distance = found.distance;
        // Σw · 65,025 · d is below 2⁶⁴.
        inertia += u64::from(weight) * u64::from(found.distance);
    }
    Ok(inertia)
}

/// Checks the arguments of [`predict`], as every engine must before it finds the nearest centroids: whole centroids,
/// at least one, and as many labels and distances as there are points.
///
/// # Errors
/// Those of [`Points::new`] for the centroids; [`ClusterError::Length`].
pub fn check_nearest(
    points: &Points<'_>,
    centroids: &[i8],
    labels: usize,
    distances: usize,
) -> Result<(), ClusterError> {
    Points::new(centroids, points.dims())?;
    points.check_length(labels)?;
    points.check_length(distances)
}

/// Writes the squared distance of every point to every centroid: `out` is n · k, row-major. O(n·k·d).
///
/// # Errors
/// Those of [`Points::new`] for the centroids; [`ClusterError::Length`].
pub fn transform(
    points: &Points<'_>,
    centroids: &[i8],
    out: &mut [u32],
) -> Result<(), ClusterError> {
    let centroids = Points::new(centroids, points.dims())?;
    let expected = points.len().saturating_mul(centroids.len());
    if out.len() != expected {
        return Err(ClusterError::Length {
            expected,
            found: out.len(),
        });
    }
    // There is at least one centroid; the maximum only informs the compiler.
    for ((row, _), out) in points
        .rows()
        .zip(out.chunks_exact_mut(centroids.len().max(1)))
    {
        for ((centroid, _), out) in centroids.rows().zip(out) {
            *out = squared_distance(row, centroid);
        }
    }
    Ok(())
}

/// Returns Σ w·D² between labelled points and their centroids (k · d). O(n·d).
///
/// # Errors
/// Those of [`Points::new`] for the centroids; [`ClusterError::Length`] unless there are n labels;
/// [`ClusterError::Index`] for a label without a centroid.
pub fn inertia(points: &Points<'_>, centroids: &[i8], labels: &[u32]) -> Result<u64, ClusterError> {
    let centroids = Points::new(centroids, points.dims())?;
    points.check_labels(labels, centroids.len())?;
    let terms = points.rows().zip(labels).map(|((row, weight), &label)| {
        let centroid = centroids.row(label as usize);
        u64::from(weight) * u64::from(squared_distance(row, centroid))
    });
    Ok(terms.sum())
}

fn nearest_of(point: &[i8], centroids: &Points<'_>) -> Nearest {
    let mut best = Nearest {
        label: 0,
        distance: u32::MAX,
    };
    for (label, (centroid, _)) in (0u32..).zip(centroids.rows()) {
        let distance = squared_distance(point, centroid);
        // No distance is u32::MAX: 65,025 · 43,690 is less.
        if distance < best.distance {
            best = Nearest { label, distance };
        }
    }
    best
}
