//! The nearest centroid of a point.

use super::{dot, norm};

/// A point's nearest centroid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Index of the centroid; of equal ones the lowest.
    pub label: u32,
    /// Squared distance between the point and the centroid.
    pub distance: u32,
}

/// Returns the centroid of least score ‖c‖² − 2·x·c.
///
/// `centroids` holds rows of the length of `point`, at most 43,690 coordinates; `norms` holds their squared lengths.
/// O(k·d).
pub fn nearest(point: &[i8], centroids: &[i8], norms: &[i32]) -> Nearest {
    let mut best = (i32::MAX, 0);
    let rows = centroids.chunks_exact(point.len().max(1));
    for (label, (centroid, &norm)) in (0u32..).zip(rows.zip(norms)) {
        let score = norm.wrapping_sub(dot(point, centroid).wrapping_mul(2));
        if score < best.0 {
            best = (score, label);
        }
    }
    Nearest {
        label: best.1,
        // ‖x − c‖² = ‖x‖² + score: between 0 and 65,025 · d, below 2³², even if intermediate results wrap.
        distance: norm(point).wrapping_add_signed(best.0),
    }
}
