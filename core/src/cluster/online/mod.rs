//! k-means over a stream, one point at a time (MacQueen, *Some methods for classification and analysis of multivariate
//! observations*, 1967).

mod saved;

use core::num::NonZeroU32;

use super::{ClusterError, MAX_CAP, MAX_DIMS, Nearest, round};
use crate::scalar::cluster::squared_distance;

/// What became of a point that [`Online::observe`] took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Observation {
    /// The cluster it joined; the lowest of equally near ones.
    pub label: u32,
    /// Its squared distance to that cluster's centroid as it was before; 0 for a seed. Large for a point unlike all
    /// before it.
    pub distance: u32,
    /// Whether it became the first point of its cluster.
    pub seed: bool,
}

/// `K` clusters of `D` coordinates that follow a stream: what a sensor node runs, with no history and no heap.
///
/// Each point joins the nearest centroid, whose cluster's exact sum and count take it up; the centroid is the rounded
/// mean of that sum, so rounding never adds up. Where a count reaches the cap, sum and count are halved at the same
/// mean, rounded half away from zero: then a point of the past weighs less with every further one, and clusters
/// follow a drift. A smaller cap forgets sooner: the mean moves as one of cap/2 to cap points would.
///
/// Nothing wraps: a sum is at least −128 · 2²⁴ = −2³¹ and at most 127 · 2²⁴ < 2³¹ (a halved sum is within −128 to
/// 127 times its halved count), and squared distances are below 2³² for `D` up to [`MAX_DIMS`], which is checked
/// where the type is used.
///
/// The state takes K·(5·D + 4) + 8 bytes: 280 for 8 clusters of 6 coordinates, 5,192 for 16 of 64.
///
/// ```
/// use tercet_core::cluster::Online;
///
/// let mut clusters = Online::<2, 3>::new();
/// // The first two distinct points are the seeds.
/// assert!(clusters.observe(&[0, 0, 0]).seed);
/// assert!(clusters.observe(&[90, 90, 90]).seed);
/// let seen = clusters.observe(&[4, 1, 0]);
/// assert_eq!((seen.label, seen.distance), (0, 17));
/// // (0 + 4) / 2, (0 + 1) / 2 and 0, halves away from zero.
/// assert_eq!(clusters.centroids()[0], [2, 1, 0]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Online<const K: usize, const D: usize> {
    sums: [[i32; D]; K],
    counts: [u32; K],
    centroids: [[i8; D]; K],
    /// How many clusters have a centroid.
    used: u32,
    /// `None` stands for [`MAX_CAP`]: so new clusters are all zeros, and a `static` of them takes no flash.
    cap: Option<NonZeroU32>,
}

impl<const K: usize, const D: usize> Default for Online<K, D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const K: usize, const D: usize> Online<K, D> {
    /// No clusters yet; the first `K` distinct points found them. The cap is [`MAX_CAP`].
    pub const fn new() -> Self {
        const {
            assert!(K > 0 && K < u32::MAX as usize, "K is 1 to 2^32 - 2");
            assert!(
                D > 0 && D <= MAX_DIMS,
                "D is 1 to 43,690: scores fit 32 bits"
            );
        }
        Self {
            sums: [[0; D]; K],
            counts: [0; K],
            centroids: [[0; D]; K],
            used: 0,
            cap: None,
        }
    }

    /// Starts from given centroids, each of which counts as `weight` points.
    ///
    /// With weight 0 the first point of a cluster replaces its centroid; MacQueen's seeds have weight 1.
    ///
    /// # Errors
    /// [`ClusterError::Weight`] from [`MAX_CAP`] on.
    pub fn with_centroids(centroids: [[i8; D]; K], weight: u32) -> Result<Self, ClusterError> {
        if weight >= MAX_CAP {
            return Err(ClusterError::Weight {
                total: weight.into(),
                limit: (MAX_CAP - 1).into(),
            });
        }
        let mut online = Self::new();
        for (sums, centroid) in online.sums.iter_mut().zip(&centroids) {
            for (sum, &c) in sums.iter_mut().zip(centroid) {
                // At least −128 · 2²⁴.
                *sum = i32::from(c).wrapping_mul(weight as i32);
            }
        }
        online.counts = [weight; K];
        online.centroids = centroids;
        online.used = K as u32;
        Ok(online)
    }

    /// Sets the count at which a cluster's sum and count are halved, 2 to [`MAX_CAP`]; counts already there are halved
    /// until they are below.
    ///
    /// # Errors
    /// [`ClusterError::Cap`] outside that.
    pub fn set_cap(&mut self, cap: u32) -> Result<(), ClusterError> {
        if !(2..=MAX_CAP).contains(&cap) {
            return Err(ClusterError::Cap { cap });
        }
        self.cap = NonZeroU32::new(cap).filter(|cap| cap.get() < MAX_CAP);
        for (sums, count) in self.sums.iter_mut().zip(&mut self.counts) {
            fade(sums, count, cap);
        }
        self.update();
        Ok(())
    }

    /// Takes up a point and says where it went. O(K·D), with D divisions.
    pub fn observe(&mut self, x: &[i8; D]) -> Observation {
        let found = self.predict(x);
        let (label, distance, seed) = match found {
            // Until all clusters have one, a point that is not there yet is a seed. The members of a cluster are all
            // equal so far, so its centroid is still its seed.
            None => (self.used, 0, true),
            Some(near) if near.distance > 0 && (self.used as usize) < K => (self.used, 0, true),
            Some(near) => (near.label, near.distance, false),
        };
        self.used += u32::from(seed);
        let cap = self.cap();
        let index = label as usize;
        let centroids = self.centroids.iter_mut().skip(index);
        let sums = self.sums.iter_mut().skip(index);
        let counts = self.counts.iter_mut().skip(index);
        if let Some((centroid, (sums, count))) = centroids.zip(sums.zip(counts)).next() {
            for (sum, &x) in sums.iter_mut().zip(x) {
                // The count is below the cap before, so at most 2²⁴ points are in the sum.
                *sum = sum.wrapping_add(i32::from(x));
            }
            *count = count.wrapping_add(1);
            fade(sums, count, cap);
            mean(sums, *count, centroid);
        }
        Observation {
            label,
            distance,
            seed,
        }
    }

    /// The nearest centroid, the lowest of equals, and the squared distance to it; `None` while there are no clusters.
    /// O(K·D).
    pub fn predict(&self, x: &[i8; D]) -> Option<Nearest> {
        let mut best: Option<Nearest> = None;
        for (label, centroid) in (0..self.used).zip(&self.centroids) {
            let distance = squared_distance(x, centroid);
            if best.is_none_or(|best| distance < best.distance) {
                best = Some(Nearest { label, distance });
            }
        }
        best
    }

    /// The centroids of the clusters that have one: rounded means, halves away from zero.
    pub fn centroids(&self) -> &[[i8; D]] {
        self.centroids.get(..self.used as usize).unwrap_or_default()
    }

    /// The sum of each cluster's points, as far as they are not forgotten.
    pub const fn sums(&self) -> &[[i32; D]; K] {
        &self.sums
    }

    /// How many points each sum stands for.
    pub const fn counts(&self) -> &[u32; K] {
        &self.counts
    }

    /// The count at which a cluster's sum and count are halved.
    pub const fn cap(&self) -> u32 {
        match self.cap {
            Some(cap) => cap.get(),
            None => MAX_CAP,
        }
    }

    fn update(&mut self) {
        let rows = self.sums.iter().zip(&self.counts);
        for ((sums, &count), centroid) in rows.zip(&mut self.centroids) {
            mean(sums, count, centroid);
        }
    }
}

/// Halves a sum and its count while the count is `cap` or more.
fn fade(sums: &mut [i32], count: &mut u32, cap: u32) {
    while *count >= cap.max(2) {
        for sum in sums.iter_mut() {
            // Within 128 · count / 2, as the sum was within 128 · count.
            *sum = round::halved((*sum).into(), (*count).into()) as i32;
        }
        *count /= 2;
    }
}

/// Moves a centroid to the rounded mean of its cluster; one that never had a point stays.
fn mean(sums: &[i32], count: u32, centroid: &mut [i8]) {
    if count == 0 {
        return;
    }
    for (c, &sum) in centroid.iter_mut().zip(sums) {
        *c = round::rounded_mean(sum.into(), count.into());
    }
}
