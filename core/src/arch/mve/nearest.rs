//! The nearest centroid: four dot products at once.
//!
//! Contract: the result of [`crate::arch::plain::nearest`], for points and centroids at any address, including −128.
//! Scores wrap where its do, modulo 2³².

use super::dot::norm;
use super::int8::Group;
use crate::arch::plain::Nearest;

/// Calls `each` with the nearest centroid of each point, in order.
#[inline]
pub(crate) fn for_each_nearest(
    points: &[i8],
    dims: usize,
    centroids: &[i8],
    norms: &[i32],
    mut each: impl FnMut(Nearest),
) {
    for point in points.chunks_exact(dims.max(1)) {
        each(nearest(point, centroids, norms));
    }
}

/// Returns the nearest centroid of a point.
pub(crate) fn nearest(point: &[i8], centroids: &[i8], mut norms: &[i32]) -> Nearest {
    let mut best = (i32::MAX, 0);
    let mut label = 0u32;
    for group in Group::all(centroids, point.len()) {
        let dots = group.dots(point);
        let (now, later) = norms.split_at(group.count.min(norms.len()));
        norms = later;
        for (dot, norm) in dots.iter().zip(now) {
            let score = norm.wrapping_sub(dot.wrapping_mul(2));
            if score < best.0 {
                best = (score, label);
            }
            label += 1;
        }
    }
    Nearest {
        label: best.1,
        distance: norm(point).wrapping_add_signed(best.0),
    }
}
