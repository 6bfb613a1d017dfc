//! Squared lengths of centroids.

use crate::arch;

/// Writes the squared lengths of the centroids, with `dims` coordinates each, one per element of `out`.
pub fn norms(centroids: &[i8], dims: usize, out: &mut [i32]) {
    for (centroid, out) in centroids.chunks_exact(dims.max(1)).zip(out) {
        // At most 2¹⁴ · 43,690, below 2³¹.
        *out = arch::norm(centroid) as i32;
    }
}
