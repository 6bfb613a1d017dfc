//! The nearest centroid of a point, two centroids at once.
//!
//! Contract: [`crate::scalar::cluster::nearest`].

use super::dots::dots;
use crate::scalar::{cluster::Nearest, norm};

/// See the head of this file.
pub fn nearest(point: &[i8], centroids: &[i8], norms: &[i32]) -> Nearest {
    let mut best = (i32::MAX, 0);
    let mut label = 0;
    let mut rows = centroids.chunks_exact(point.len().max(1)).zip(norms);
    while let Some((first, norm)) = rows.next() {
        let second = rows.next();
        let both = two(first, second.map_or(first, |(row, _)| row), point);
        let norms = [Some(norm), second.map(|(_, norm)| norm)];
        for (norm, dot) in norms.into_iter().flatten().zip(both) {
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

#[inline(never)]
fn two(a: &[i8], b: &[i8], x: &[i8]) -> [i32; 2] {
    dots(a, b, x, i32::from)
}
