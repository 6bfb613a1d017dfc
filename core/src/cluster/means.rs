//! Float means of clusters.

use super::ClusterError;
use crate::number::round;

/// Writes the mean of each cluster: sum / count, rounded once to `f32` (half to even), or 0 if the count is 0.
///
/// `sums` and `out` have length k · d, `counts` has length k; see [`crate::engine::ClusterProblem::read_sums`].
/// O(k·d).
///
/// # Errors
/// [`ClusterError::Length`] unless `sums` and `out` hold the same number of values per count.
pub fn means(sums: &[i64], counts: &[u64], out: &mut [f32]) -> Result<(), ClusterError> {
    let length = |expected, found| Err(ClusterError::Length { expected, found });
    if out.len() != sums.len() {
        return length(sums.len(), out.len());
    }
    let Some(dims) = sums.len().checked_div(counts.len()) else {
        return length(0, sums.len());
    };
    if dims * counts.len() != sums.len() || dims == 0 {
        return length(dims * counts.len(), sums.len());
    }
    let rows = sums.chunks_exact(dims).zip(out.chunks_exact_mut(dims));
    for ((sums, out), &count) in rows.zip(counts) {
        for (&sum, mean) in sums.iter().zip(out) {
            *mean = round::ratio(sum, count);
        }
    }
    Ok(())
}
