//! The nearest centroid, four at once.
//!
//! Contract: what [`crate::scalar::cluster::nearest`] gives, for points and centroids at any address, −128 among them. Scores wrap where its
//! do, modulo 2³².

use super::dot::norm;
use super::int8::four_rows;
use crate::scalar::cluster::Nearest;

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

/// The nearest centroid of a point.
pub(crate) fn nearest(point: &[i8], centroids: &[i8], norms: &[i32]) -> Nearest {
    let mut best = (i32::MAX, 0);
    let dims = point.len().max(1);
    let fours = centroids.chunks_exact(4 * dims);
    // The last few one at a time: one row is four rows no bytes apart.
    let rest = fours.remainder().chunks_exact(dims);
    let rest = rest.map(|rows| (rows, 0, 1));
    let mut norms = norms.iter();
    let mut labels = 0u32..;
    for (rows, stride, count) in fours.map(|rows| (rows, dims, 4)).chain(rest) {
        let dots = four_rows(rows, stride, point);
        for (dot, (&norm, label)) in dots
            .into_iter()
            .take(count)
            .zip(norms.by_ref().zip(&mut labels))
        {
            let score = norm.wrapping_sub(dot.wrapping_mul(2));
            if score < best.0 {
                best = (score, label);
            }
        }
    }
    Nearest {
        label: best.1,
        distance: norm(point).wrapping_add_signed(best.0),
    }
}
