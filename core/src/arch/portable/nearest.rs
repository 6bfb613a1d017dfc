//! The nearest centroid of a point, four centroids at a time.
//!
//! Contract: [`crate::arch::plain::nearest`]. The scores are the same and in the same order.

use super::dot::{dot, dots, norm};
use crate::arch::plain::Nearest;

/// See the module docs.
pub fn nearest(point: &[i8], centroids: &[i8], norms: &[i32]) -> Nearest {
    let dims = point.len().max(1);
    let mut search = Search {
        best: i32::MAX,
        label: 0,
        next: 0,
    };
    let fours = centroids.chunks_exact(dims.saturating_mul(4).max(1));
    for (rows, norms) in fours.zip(norms.chunks_exact(4)) {
        for (&norm, dot) in norms.iter().zip(dots(rows, point)) {
            search.score(norm, dot);
        }
    }
    let done = search.next as usize;
    let rows = centroids.get(done * dims..).unwrap_or_default();
    let norms = norms.get(done..).unwrap_or_default();
    for (row, &norm) in rows.chunks_exact(dims).zip(norms) {
        search.score(norm, dot(row, point));
    }
    Nearest {
        label: search.label,
        distance: norm(point).wrapping_add_signed(search.best),
    }
}

/// The best centroid so far.
struct Search {
    best: i32,
    label: u32,
    /// Number of centroids seen.
    next: u32,
}

impl Search {
    #[inline(always)]
    fn score(&mut self, norm: i32, dot: i32) {
        let score = norm.wrapping_sub(dot.wrapping_mul(2));
        if score < self.best {
            (self.best, self.label) = (score, self.next);
        }
        self.next += 1;
    }
}
