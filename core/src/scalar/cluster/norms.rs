//! Lengths of centroids.

use crate::arch;

/// Squared lengths of the centroids, `dims` coordinates each, one for each element of `out`.
pub fn norms(centroids: &[i8], dims: usize, out: &mut [i32]) {
    for (centroid, out) in centroids.chunks_exact(dims.max(1)).zip(out) {
        // At most 2¹⁴ · 43,690, below 2³¹.
        *out = arch::norm(centroid) as i32;
    }
}
