//! The silhouette (Rousseeuw, *Silhouettes: a graphical aid to the interpretation and validation of cluster analysis*,
//! 1987).

use core::ops::Range;

use super::{ClusterError, Points, check, mean, root, sample};
use crate::arch::plain::squared_distance;

/// Largest number of points that are all scored; from more points, a sample of this size is drawn.
pub const SILHOUETTE_EXACT: usize = 4096;

/// The number 1 in the fixed-point format of a point's score.
const ONE: i64 = 1 << 30;

/// Result of [`silhouette`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SilhouetteScore {
    /// Mean of the points' scores by weight, −1 to 1, rounded to 2⁻³⁰.
    pub score: f64,
    /// Number of points that were scored and compared with.
    pub points: usize,
    /// True if these points are a sample, because there were more than [`SILHOUETTE_EXACT`].
    pub sampled: bool,
    /// Number of clusters that have members among them.
    pub clusters: usize,
}

/// Returns the scratch length of [`silhouette`]: 2·k, plus [`SILHOUETTE_EXACT`] if there are more points than that.
pub const fn silhouette_scratch(points: usize, clusters: usize) -> usize {
    silhouette_plan(points, clusters).saturating_add(clusters)
}

/// Returns the scratch length of [`Silhouette::new`]: k, plus [`SILHOUETTE_EXACT`] if there are more points than
/// that.
pub const fn silhouette_plan(points: usize, clusters: usize) -> usize {
    if points > SILHOUETTE_EXACT {
        clusters.saturating_add(SILHOUETTE_EXACT)
    } else {
        clusters
    }
}

/// Returns the mean silhouette of labelled points.
///
/// A point scores (b − a) / max(a, b). a is its mean distance to the other points of its cluster; b is the least mean
/// distance to the points of another cluster. A point that is alone in its cluster scores 0, and so does one with a =
/// b. Scores are rounded to 2⁻³⁰. If there are more than [`SILHOUETTE_EXACT`] points of positive weight, `seed` draws
/// that many without replacement, and the silhouette is that of these points alone, like scikit-learn's
/// `sample_size`. The result reports this.
///
/// `labels` has length n, with labels below `clusters`; `scratch` has length [`silhouette_scratch`]`(n, clusters)`.
/// O(m²·d) for m scored points.
///
/// # Errors
/// [`ClusterError::Length`]; [`ClusterError::Index`] for a label of `clusters` or more; [`ClusterError::Weight`]
/// above [`super::MAX_SCORE_WEIGHT`]; [`ClusterError::Score`] unless two clusters have members among the scored
/// points.
///
/// ```
/// use tercet_core::cluster::Points;
/// use tercet_core::cluster::score::{silhouette, silhouette_scratch};
///
/// let points = Points::new(&[0, 2, 10, 12], 1)?;
/// let mut scratch = [0; silhouette_scratch(4, 2)];
/// let found = silhouette(&points, &[0, 0, 1, 1], 2, 0, &mut scratch)?;
/// // 1 − 2/11 for the outer points, 1 − 2/9 for the inner ones.
/// assert!((found.score - (18.0 / 22.0 + 14.0 / 18.0) / 2.0).abs() < 1e-6);
/// assert!(!found.sampled);
/// # Ok::<(), tercet_core::cluster::ClusterError>(())
/// ```
pub fn silhouette(
    points: &Points<'_>,
    labels: &[u32],
    clusters: usize,
    seed: u64,
    scratch: &mut [u64],
) -> Result<SilhouetteScore, ClusterError> {
    let expected = silhouette_scratch(points.len(), clusters);
    let found = scratch.len();
    let parts = scratch.split_at_mut_checked(clusters);
    let Some((sums, plan)) = parts.filter(|_| found == expected) else {
        return Err(ClusterError::Length { expected, found });
    };
    let silhouette = Silhouette::new(*points, labels, clusters, seed, plan)?;
    let part = silhouette.part(0..silhouette.len(), sums);
    Ok(silhouette.finish(&part))
}

/// A silhouette in parts, for threads: every part returns integers that merge exactly.
#[derive(Clone, Copy, Debug)]
pub struct Silhouette<'a> {
    points: Points<'a>,
    labels: &'a [u32],
    /// Weight of each cluster among the scored points.
    members: &'a [u64],
    /// The scored points, if they are a sample.
    sample: Option<&'a [u64]>,
    clusters: usize,
}

/// Contribution of some points to a silhouette.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SilhouettePart {
    /// Σ w·score in units of 2⁻³⁰; at most 2³¹ · 2³⁰.
    sum: i64,
    /// Σ w.
    weight: u64,
}

impl SilhouettePart {
    /// Adds another part. Exact in any order.
    pub fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.weight += other.weight;
    }
}

impl<'a> Silhouette<'a> {
    /// Draws the sample, if needed, and computes the clusters' weights. O(n).
    ///
    /// `scratch` has length [`silhouette_plan`]`(n, clusters)`.
    ///
    /// # Errors
    /// Those of [`silhouette`].
    pub fn new(
        points: Points<'a>,
        labels: &'a [u32],
        clusters: usize,
        seed: u64,
        scratch: &'a mut [u64],
    ) -> Result<Self, ClusterError> {
        check(&points, labels, clusters)?;
        let expected = silhouette_plan(points.len(), clusters);
        let found = scratch.len();
        let parts = scratch.split_at_mut_checked(clusters);
        let Some((members, drawn)) = parts.filter(|_| found == expected) else {
            return Err(ClusterError::Length { expected, found });
        };
        let sample = if points.counted() > SILHOUETTE_EXACT {
            sample::sample(&points, seed, drawn);
            Some(&*drawn)
        } else {
            None
        };
        members.fill(0);
        let mut silhouette = Self {
            points,
            labels,
            members: &[],
            sample,
            clusters: 0,
        };
        silhouette.each(&mut |_, weight, label| {
            if let Some(members) = members.get_mut(label as usize) {
                *members += u64::from(weight);
            }
        });
        silhouette.clusters = members.iter().filter(|&&members| members > 0).count();
        if silhouette.clusters < 2 {
            return Err(ClusterError::Score {
                clusters: silhouette.clusters,
            });
        }
        silhouette.members = members;
        Ok(silhouette)
    }

    /// Returns the number of points for [`Silhouette::part`], at least 1: all, or the sample.
    #[expect(
        clippy::len_without_is_empty,
        reason = "there is always at least one point"
    )]
    pub const fn len(&self) -> usize {
        match self.sample {
            Some(sample) => sample.len(),
            None => self.points.len(),
        }
    }

    /// Returns the number of clusters: the scratch length of [`Silhouette::part`].
    pub const fn clusters(&self) -> usize {
        self.members.len()
    }

    /// Scores a range of the points against all. `sums` is scratch of length [`Silhouette::clusters`]. O(m·d) per
    /// point.
    pub fn part(&self, range: Range<usize>, sums: &mut [u64]) -> SilhouettePart {
        let mut part = SilhouettePart::default();
        for position in range.start..range.end.min(self.len()) {
            let (row, weight, label) = self.point(position);
            if weight == 0 {
                continue;
            }
            sums.fill(0);
            self.each(&mut |other, weight, label| {
                if let Some(sum) = sums.get_mut(label as usize) {
                    // D² is below 2³², Σw·D below 2⁶³.
                    *sum += u64::from(weight) * root(u64::from(squared_distance(row, other)) << 32);
                }
            });
            part.sum += i64::from(weight) * self.score(label, sums);
            part.weight += u64::from(weight);
        }
        part
    }

    /// Returns the score from the merged parts.
    pub fn finish(&self, all: &SilhouettePart) -> SilhouetteScore {
        SilhouetteScore {
            score: mean(all.sum.into(), all.weight),
            points: self.sample.map_or(self.points.counted(), <[u64]>::len),
            sampled: self.sample.is_some(),
            clusters: self.clusters,
        }
    }

    /// Returns a point's score in units of 2⁻³⁰, from its sums of distances.
    fn score(&self, own: u32, sums: &[u64]) -> i64 {
        // Sums of distances and their weights.
        let (mut a, mut b) = ((0, 0), None);
        for (label, (&sum, &members)) in (0u32..).zip(sums.iter().zip(self.members)) {
            if label == own {
                // The point itself, once, is not one of the others.
                a = (sum, members.saturating_sub(1));
            } else if members > 0 && b.is_none_or(|b| less((sum, members), b)) {
                b = Some((sum, members));
            }
        }
        let Some(b) = b.filter(|_| a.1 > 0) else {
            return 0;
        };
        if less(a, b) {
            ONE - ratio(a, b)
        } else if less(b, a) {
            ratio(b, a) - ONE
        } else {
            0
        }
    }

    /// Returns the coordinates, weight and label of the point at a position.
    fn point(&self, position: usize) -> (&'a [i8], u32, u32) {
        let index = match self.sample {
            Some(sample) => sample.get(position).map_or(0, |&index| index as usize),
            None => position,
        };
        let weight = match self.points.weights() {
            Some(weights) => weights.get(index).copied().unwrap_or(0),
            None => 1,
        };
        let label = self.labels.get(index).copied().unwrap_or(0);
        (self.points.row(index), weight, label)
    }

    /// Calls `each` with the coordinates, weight and label of every scored point.
    fn each(&self, each: &mut impl FnMut(&'a [i8], u32, u32)) {
        if self.sample.is_some() {
            for position in 0..self.len() {
                let (row, weight, label) = self.point(position);
                each(row, weight, label);
            }
        } else {
            for ((row, weight), &label) in self.points.rows().zip(self.labels) {
                each(row, weight, label);
            }
        }
    }
}

/// Returns true if one mean is less than another. Sums are below 2⁶³, weights at most 2³¹.
fn less(a: (u64, u64), b: (u64, u64)) -> bool {
    u128::from(a.0) * u128::from(b.1) < u128::from(b.0) * u128::from(a.1)
}

/// Returns the ratio of a mean to a larger one, in units of 2⁻³⁰, rounded to nearest. Products are below 2⁹⁴.
fn ratio(small: (u64, u64), large: (u64, u64)) -> i64 {
    let numerator = u128::from(small.0) * u128::from(large.1);
    let denominator = u128::from(large.0) * u128::from(small.1);
    let scaled = (numerator << 30) + denominator / 2;
    // At most 2³⁰.
    scaled.checked_div(denominator).unwrap_or(0) as i64
}
