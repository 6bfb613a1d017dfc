//! k-means over a stream, one point at a time (MacQueen, *Some methods for classification and analysis of multivariate
//! observations*, 1967).

mod saved;
mod view;

use super::{ClusterError, MAX_CAP, MAX_DIMS, Nearest, Points, round};

pub use view::{OnlineHead, OnlineMut, OnlineRef};

/// Result of [`Online::observe`] for one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Observation {
    /// The cluster that the point joined; of equally near ones the lowest.
    pub label: u32,
    /// Squared distance between the point and that cluster's previous centroid; 0 for a seed. Large for a point
    /// unlike all before it.
    pub distance: u32,
    /// True if the point became the first of its cluster.
    pub seed: bool,
}

/// `K` clusters of `D` coordinates that follow a stream, for a sensor node: no history and no heap.
///
/// Each point joins the nearest centroid and is added to that cluster's exact sum and count. The centroid is the
/// rounded mean of that sum, so rounding errors never accumulate. If a count reaches the cap, sum and count are
/// halved at the same mean, rounded half away from zero. Then every further point lowers the weight of past points,
/// and the clusters follow a drift. A smaller cap forgets sooner: the mean moves like the mean of the last cap/2 to
/// cap points.
///
/// Nothing wraps. A sum is at least −128 · 2²⁴ = −2³¹ and at most 127 · 2²⁴ < 2³¹ (a halved sum is within −128 to 127
/// times its halved count). Squared distances are below 2³² for `D` up to [`MAX_DIMS`], which is checked where the
/// type is used.
///
/// The state takes K·(5·D + 4) + 8 bytes: 280 for 8 clusters of 6 coordinates, 5,192 for 16 of 64. If K and D are
/// known only at run time, [`OnlineMut`] does the same over slices.
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
    head: OnlineHead,
}

impl<const K: usize, const D: usize> Default for Online<K, D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const K: usize, const D: usize> Online<K, D> {
    /// Returns an empty state; the first `K` distinct points become the seeds. The cap is [`MAX_CAP`].
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
            head: OnlineHead::new(),
        }
    }

    /// Starts from given centroids, each of which counts as `weight` points.
    ///
    /// With weight 0, the first point of a cluster replaces its centroid. MacQueen's seeds have weight 1.
    ///
    /// # Errors
    /// [`ClusterError::Weight`] for a weight of [`MAX_CAP`] or more.
    pub fn with_centroids(centroids: [[i8; D]; K], weight: u32) -> Result<Self, ClusterError> {
        let mut online = Self::new();
        online.slices().restart(centroids.as_flattened(), weight)?;
        Ok(online)
    }

    /// Sets the count at which a cluster's sum and count are halved, 2 to [`MAX_CAP`]. Current counts are halved
    /// until they are below it.
    ///
    /// # Errors
    /// [`ClusterError::Cap`] for any other cap.
    pub fn set_cap(&mut self, cap: u32) -> Result<(), ClusterError> {
        self.slices().set_cap(cap)
    }

    /// Adds a point and returns the cluster that it joined. O(K·D), with D divisions.
    pub fn observe(&mut self, x: &[i8; D]) -> Observation {
        self.slices().take_up(x)
    }

    /// Returns the nearest centroid, the lowest of equal ones, and the squared distance to it; `None` while there are
    /// no clusters. O(K·D).
    pub fn predict(&self, x: &[i8; D]) -> Option<Nearest> {
        self.view().nearest(x)
    }

    /// Returns the centroids of the clusters that have one: rounded means, halves away from zero.
    pub fn centroids(&self) -> &[[i8; D]] {
        let used = self.head.used as usize;
        self.centroids.get(..used).unwrap_or_default()
    }

    /// Returns the sum of each cluster's points, as far as they are not forgotten.
    pub const fn sums(&self) -> &[[i32; D]; K] {
        &self.sums
    }

    /// Returns the number of points in each sum.
    pub const fn counts(&self) -> &[u32; K] {
        &self.counts
    }

    /// Returns the count at which a cluster's sum and count are halved.
    pub const fn cap(&self) -> u32 {
        self.head.cap()
    }

    /// Returns the clusters as slices, for code in which K and D are known only at run time.
    #[inline]
    pub fn view(&self) -> OnlineRef<'_> {
        OnlineRef {
            dims: D,
            head: self.head,
            sums: self.sums.as_flattened(),
            counts: &self.counts,
            centroids: self.centroids.as_flattened(),
        }
    }

    /// Like [`Online::view`], but mutable.
    #[inline]
    pub fn slices(&mut self) -> OnlineMut<'_> {
        OnlineMut {
            dims: D,
            head: &mut self.head,
            sums: self.sums.as_flattened_mut(),
            counts: &mut self.counts,
            centroids: self.centroids.as_flattened_mut(),
        }
    }
}
