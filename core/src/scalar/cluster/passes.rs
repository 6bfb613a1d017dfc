//! The passes over points. Each works on any part of them, and the results merge exactly.

use crate::arch::for_each_nearest;
use crate::arch::plain::squared_distance;
use crate::cluster::Points;
use crate::engine::{Assigned, Farthest};

/// Writes for every point the label of its nearest centroid and its squared distance. O(n·k·d).
pub fn measure(
    points: &Points<'_>,
    centroids: &[i8],
    norms: &[i32],
    labels: &mut [u32],
    distances: &mut [u32],
) -> Assigned {
    let mut assigned = Assigned::default();
    let mut state = points.rows().zip(labels.iter_mut().zip(distances));
    for_each_nearest(points.values(), points.dims(), centroids, norms, |found| {
        let Some(((_, weight), (label, distance))) = state.next() else {
            return;
        };
        assigned.changed += u64::from(weight > 0 && *label != found.label);
        assigned.inertia += u64::from(weight) * u64::from(found.distance);
        *label = found.label;
        *distance = found.distance;
    });
    assigned
}

/// Returns the lowest index at which the running sum of w·D² exceeds `r`.
pub fn pick(points: &Points<'_>, distances: &[u32], r: u64) -> Option<usize> {
    let mut sum = 0;
    points
        .rows()
        .zip(distances)
        .position(|((_, weight), &distance)| {
            sum += u64::from(weight) * u64::from(distance);
            sum > r
        })
}

/// Reduces distances to those to a centroid if that is nearer. Returns Σ w·D². O(n·d).
pub fn shorten(points: &Points<'_>, centroid: &[i8], distances: &mut [u32]) -> u64 {
    let mut total = 0;
    for ((row, weight), distance) in points.rows().zip(distances) {
        *distance = squared_distance(row, centroid).min(*distance);
        total += u64::from(weight) * u64::from(*distance);
    }
    total
}

/// Returns the total that [`shorten`] would return, without changes.
pub fn potential(points: &Points<'_>, centroid: &[i8], distances: &[u32]) -> u64 {
    let state = points.rows().zip(distances);
    state
        .map(|((row, weight), &distance)| {
            u64::from(weight) * u64::from(squared_distance(row, centroid).min(distance))
        })
        .sum()
}

/// Returns the next point after `last`, among points whose indices begin at `first`; see
/// [`crate::engine::ClusterProblem::farthest`].
pub fn farthest(
    points: &Points<'_>,
    distances: &[u32],
    first: usize,
    last: Option<Farthest>,
) -> Option<Farthest> {
    // Indices rise, so of equally far points the first remains.
    let mut best = Farthest {
        distance: 0,
        index: 0,
    };
    for (index, ((_, weight), &distance)) in points.rows().zip(distances).enumerate() {
        let index = first + index;
        let found = Farthest { distance, index };
        if weight > 0 && distance > best.distance && last.is_none_or(|last| last.before(&found)) {
            best = found;
        }
    }
    (best.distance > 0).then_some(best)
}
