//! The index of Davies and Bouldin (*A cluster separation measure*, 1979).

use super::{ClusterError, Points, check, mean, root};

/// Returns the scratch length of [`davies_bouldin`]: k · (d + 2).
pub const fn davies_bouldin_scratch(clusters: usize, dims: usize) -> usize {
    clusters.saturating_mul(dims.saturating_add(2))
}

/// Returns the Davies–Bouldin index of labelled points: the mean over clusters of the worst (sᵢ + sⱼ) / mᵢⱼ.
///
/// s is the mean distance of a cluster's points to their mean; m is the distance between two such means. Means have
/// 16 fraction bits; they are not rounded to int8. Two clusters with the same mean are not compared, as in
/// scikit-learn. The ratios and their mean are rounded to 2⁻³⁰.
///
/// `labels` has length n, with labels below `clusters`; `scratch` has length [`davies_bouldin_scratch`]`(clusters,
/// d)`. O(n·d + k²·d), less than one step of Lloyd's loop while k is below n.
///
/// # Errors
/// [`ClusterError::Length`]; [`ClusterError::Index`] for a label of `clusters` or more; [`ClusterError::Weight`]
/// above [`super::MAX_SCORE_WEIGHT`]; [`ClusterError::Score`] unless two clusters have members.
///
/// ```
/// use tercet_core::cluster::Points;
/// use tercet_core::cluster::score::{davies_bouldin, davies_bouldin_scratch};
///
/// let points = Points::new(&[0, 2, 10, 14], 1)?;
/// let mut scratch = [0; davies_bouldin_scratch(2, 1)];
/// // Means 1 and 12, mean distances 1 and 2.
/// let found = davies_bouldin(&points, &[0, 0, 1, 1], 2, &mut scratch)?;
/// assert!((found - 3.0 / 11.0).abs() < 1e-9);
/// # Ok::<(), tercet_core::cluster::ClusterError>(())
/// ```
pub fn davies_bouldin(
    points: &Points<'_>,
    labels: &[u32],
    clusters: usize,
    scratch: &mut [i64],
) -> Result<f64, ClusterError> {
    check(points, labels, clusters)?;
    let dims = points.dims().max(1);
    let (found, expected) = (scratch.len(), davies_bouldin_scratch(clusters, dims));
    let refused = ClusterError::Length { expected, found };
    if found != expected {
        return Err(refused);
    }
    scratch.fill(0);
    let (weights, rest) = scratch.split_at_mut_checked(clusters).ok_or(refused)?;
    let (spreads, means) = rest.split_at_mut_checked(clusters).ok_or(refused)?;

    for ((row, weight), &label) in points.rows().zip(labels) {
        let label = label as usize;
        let sums = means.get_mut(label * dims..).unwrap_or_default();
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum += i64::from(x) * i64::from(weight);
        }
        if let Some(sum) = weights.get_mut(label) {
            *sum += i64::from(weight);
        }
    }
    let filled = weights.iter().filter(|&&weight| weight > 0).count();
    if filled < 2 {
        return Err(ClusterError::Score { clusters: filled });
    }
    for (means, &weight) in means.chunks_exact_mut(dims).zip(weights.iter()) {
        for mean in means {
            // A sum is at most 2⁷ · 2³¹.
            *mean = divided(*mean << 16, weight);
        }
    }
    for ((row, weight), &label) in points.rows().zip(labels) {
        let label = label as usize;
        let mean = means.get(label * dims..).unwrap_or_default();
        let distance = distance(
            row.iter().map(|&x| i64::from(x) << 16),
            mean.iter().copied(),
        );
        if let Some(sum) = spreads.get_mut(label) {
            // Below 2³¹ · 2³².
            *sum += i64::from(weight) * distance as i64;
        }
    }
    for (spread, &weight) in spreads.iter_mut().zip(weights.iter()) {
        // A mean of distances below 2³² units, with 16 more bits: below 2⁴⁸.
        let scaled = i128::from(*spread) << 16;
        *spread = scaled.checked_div(weight.into()).unwrap_or(0) as i64;
    }

    let rows = || {
        means
            .chunks_exact(dims)
            .zip(weights.iter().zip(spreads.iter()))
    };
    let mut total = 0i128;
    for (i, (a, (&weight, &spread))) in rows().enumerate() {
        if weight == 0 {
            continue;
        }
        let mut worst = 0;
        for (j, (b, (&weight, &other))) in rows().enumerate() {
            if weight == 0 || j == i {
                continue;
            }
            // 2⁻³² divided by 2⁻¹⁶ gives units of 2⁻³⁰: below 2⁴⁹ · 2¹⁴.
            let both = ((spread + other) as u64) << 14;
            let apart = distance(a.iter().copied(), b.iter().copied());
            worst = worst.max(both.checked_div(apart).unwrap_or(0));
        }
        total += i128::from(worst);
    }
    Ok(mean(total, filled as u64))
}

/// Returns the distance between two points in units of 2⁻¹⁶, from coordinates in the same units.
///
/// Differences are at most 255 · 2¹⁶, so the sum of squares is at most 65,025 · 43,690 · 2³² < 2⁶⁴.
fn distance(a: impl Iterator<Item = i64>, b: impl Iterator<Item = i64>) -> u64 {
    root(
        a.zip(b)
            .map(|(a, b)| a.abs_diff(b).wrapping_mul(a.abs_diff(b)))
            .sum(),
    )
}

/// Returns `sum / weight` rounded to nearest, halves away from zero; 0 for a weight of 0.
fn divided(sum: i64, weight: i64) -> i64 {
    let magnitude = sum.unsigned_abs() + weight.unsigned_abs() / 2;
    let mean = magnitude.checked_div(weight.unsigned_abs()).unwrap_or(0) as i64;
    if sum < 0 { -mean } else { mean }
}
