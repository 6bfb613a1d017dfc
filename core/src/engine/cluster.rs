//! The engine traits for clustering.

use crate::cluster::{ClusterError, Points, Update, predict};

/// State of a clustering problem, in the caller's slices.
///
/// An engine with its own memory takes empty slices ([`ClusterEngine::needs_buffers`]). [`crate::scalar`] and the
/// engine with threads use all of them. `n` points of `d` coordinates, `k` clusters.
#[derive(Debug)]
pub struct Buffers<'a, S = i64> {
    /// n: cluster of each point.
    pub labels: &'a mut [u32],
    /// n: squared distance of each point to its centroid, or to the nearest seed.
    pub distances: &'a mut [u32],
    /// k · d: centroids.
    pub centroids: &'a mut [i8],
    /// k · d, or empty if nothing will be kept ([`ClusterProblem::keep`]): best centroids so far.
    pub kept: &'a mut [i8],
    /// k: squared lengths of the centroids.
    pub norms: &'a mut [i32],
    /// k · d: sums of the members' coordinates.
    pub sums: &'a mut [S],
    /// k: weights of the members.
    pub counts: &'a mut [u64],
}

/// The lengths of the slices of [`Buffers`].
///
/// ```
/// use tercet_core::engine::BufferLengths;
///
/// // 1000 points of 16 coordinates in 8 clusters, one run.
/// let lengths = BufferLengths::of(1000, 16, 8, false);
/// assert_eq!((lengths.labels, lengths.sums, lengths.kept), (1000, 128, 0));
/// assert_eq!(lengths.bytes(), 1000 * 8 + 128 * 9 + 8 * 12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BufferLengths {
    /// Length of [`Buffers::labels`].
    pub labels: usize,
    /// Length of [`Buffers::distances`].
    pub distances: usize,
    /// Length of [`Buffers::centroids`].
    pub centroids: usize,
    /// Length of [`Buffers::kept`].
    pub kept: usize,
    /// Length of [`Buffers::norms`].
    pub norms: usize,
    /// Length of [`Buffers::sums`].
    pub sums: usize,
    /// Length of [`Buffers::counts`].
    pub counts: usize,
}

impl BufferLengths {
    /// Returns the lengths for `points` points of `dims` coordinates and `clusters` clusters. `keeps` is true if
    /// centroids are kept ([`ClusterProblem::keep`]), as restarts and batches do. Lengths beyond an address stay at the
    /// largest `usize`.
    pub const fn of(points: usize, dims: usize, clusters: usize, keeps: bool) -> Self {
        let table = clusters.saturating_mul(dims);
        Self {
            labels: points,
            distances: points,
            centroids: table,
            kept: if keeps { table } else { 0 },
            norms: clusters,
            sums: table,
            counts: clusters,
        }
    }

    /// Returns the lengths that [`predict`] needs for `points` points: labels, distances and centroids.
    pub const fn of_labels(points: usize, dims: usize, clusters: usize) -> Self {
        Self {
            kept: 0,
            norms: 0,
            sums: 0,
            counts: 0,
            ..Self::of(points, dims, clusters, false)
        }
    }

    /// Returns the bytes of all of them, with sums of 64 bits; the largest `usize` if there are more.
    pub const fn bytes(&self) -> usize {
        let points = self.labels.saturating_add(self.distances);
        let codes = self.centroids.saturating_add(self.kept);
        let bytes = codes.saturating_add(points.saturating_add(self.norms).saturating_mul(4));
        let wide = self.sums.saturating_add(self.counts);
        bytes.saturating_add(wide.saturating_mul(8))
    }
}

/// An engine that clusters points.
pub trait ClusterEngine {
    /// The engine's error; clustering errors convert into it.
    type Error: From<ClusterError> + core::fmt::Display;

    /// The engine's representation of points and their clusters.
    type Clusters<'a>: ClusterProblem<Error = Self::Error>
    where
        Self: 'a;

    /// Creates a problem of `points` and `k` clusters, with no centroids yet (all zeros, no labels).
    ///
    /// Drivers such as [`crate::cluster::kmeans`] run over it. [`ClusterProblem::read_labels`] and the other `read_`
    /// methods return the results.
    ///
    /// # Errors
    /// [`ClusterError::Clusters`]; [`ClusterError::Length`]; [`ClusterError::Weight`] if `update` or the accumulator
    /// allows less weight than the points have.
    fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
        update: Update,
        buffers: Buffers<'a>,
    ) -> Result<Self::Clusters<'a>, Self::Error>;

    /// Returns true if [`ClusterEngine::clusters`] uses the caller's [`Buffers`]. Otherwise it takes empty ones.
    fn needs_buffers(&self) -> bool {
        true
    }

    /// Writes for every point the label of its nearest centroid (k · d codes), the lowest of equal ones, and its
    /// squared distance. The default implementation is [`predict`]. O(n·k·d). `labels` and `distances` have length n;
    /// there may be more centroids than points.
    ///
    /// # Errors
    /// Those of [`predict`] and of the engine.
    fn nearest(
        &mut self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), Self::Error> {
        predict(&points, centroids, labels, distances)?;
        Ok(())
    }
}

/// Points that an engine holds while a driver clusters them.
///
/// Distances D² are squared distances between int8 points and int8 centroids, exact. The score of a centroid is ‖c‖²
/// − 2·x·c. The nearest centroid has the least score, with ties to the lowest index. Points of weight 0 get labels
/// and distances, but are never picked, never farthest and never counted.
pub trait ClusterProblem {
    /// The engine's error; clustering errors convert into it.
    type Error: From<ClusterError>;

    /// Returns the numbers of points and clusters, and the weight.
    fn shape(&self) -> Shape;

    /// Sets every D² to `distance` and removes every label.
    fn fill(&mut self, distance: u32) -> Result<(), Self::Error>;

    /// Returns the lowest index at which the running sum of w·D² exceeds `r`; `None` if the total does not.
    fn pick(&mut self, r: u64) -> Result<Option<usize>, Self::Error>;

    /// Returns the lowest point of positive weight without a label.
    fn lowest_unlabelled(&mut self) -> Result<Option<usize>, Self::Error>;

    /// Makes a point the seed of a cluster: the centroid gets its coordinates, the point gets the label and D² = 0.
    /// Returns the point's weight.
    fn seed(&mut self, cluster: usize, point: usize) -> Result<u32, Self::Error>;

    /// Reduces every D² to the distance to a cluster's centroid if that is nearer. Returns Σ w·D².
    fn shorten(&mut self, cluster: usize) -> Result<u64, Self::Error>;

    /// Writes for each candidate the total that [`ClusterProblem::shorten`] would return with a centroid at that
    /// point. Changes nothing else.
    ///
    /// `totals` has the length of `candidates`.
    fn potentials(&mut self, candidates: &[usize], totals: &mut [u64]) -> Result<(), Self::Error>;

    /// Sets all centroids, k · d coordinates, and removes every label.
    fn set_centroids(&mut self, centroids: &[i8]) -> Result<(), Self::Error>;

    /// Sets every point's label to its nearest centroid, and its D². Sums do not change.
    fn measure(&mut self) -> Result<Assigned, Self::Error>;

    /// Does [`ClusterProblem::measure`], and computes each cluster's sum of coordinates and its count from zero.
    fn assign(&mut self) -> Result<Assigned, Self::Error>;

    /// Moves each centroid with a positive count by the update rule: to the rounded mean of its sum, or onto the
    /// sphere.
    fn update(&mut self) -> Result<(), Self::Error>;

    /// Does one step of Lloyd's loop: [`ClusterProblem::assign`], then [`ClusterProblem::update`]. An engine may fuse
    /// them.
    fn assign_update(&mut self) -> Result<Assigned, Self::Error> {
        let assigned = self.assign()?;
        self.update()?;
        Ok(assigned)
    }

    /// Returns the lowest cluster from `first` on with a count of 0.
    fn next_empty(&mut self, first: usize) -> Result<Option<usize>, Self::Error>;

    /// Returns the next point of positive weight after `last`, in order of falling D², then of rising index. Only
    /// points with D² > 0.
    fn farthest(&mut self, last: Option<Farthest>) -> Result<Option<Farthest>, Self::Error>;

    /// Moves a cluster's centroid to a point; no label changes.
    fn place(&mut self, cluster: usize, point: usize) -> Result<(), Self::Error>;

    /// Sets all sums and counts to 0, for [`ClusterProblem::batch`].
    fn start_batches(&mut self) -> Result<(), Self::Error>;

    /// Does one step of mini-batch: assigns the points (an index may occur twice) to the current centroids, adds them
    /// to the running sums and counts, halves both for a cluster while its count is `cap` or more, then updates the
    /// centroids. Labels and distances do not change.
    ///
    /// The driver has checked that counts stay at 2²⁴ or below.
    fn batch(&mut self, points: &[u32], cap: u32) -> Result<(), Self::Error>;

    /// Keeps a copy of the centroids.
    fn keep(&mut self) -> Result<(), Self::Error>;

    /// Restores the kept centroids; labels do not change.
    fn restore(&mut self) -> Result<(), Self::Error>;

    /// Copies the k · d centroids.
    fn read_centroids(&mut self, out: &mut [i8]) -> Result<(), Self::Error>;

    /// Copies the n labels.
    fn read_labels(&mut self, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Copies the n squared distances.
    fn read_distances(&mut self, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Copies the k · d sums and the k counts of the last [`ClusterProblem::assign`].
    fn read_sums(&mut self, sums: &mut [i64], counts: &mut [u64]) -> Result<(), Self::Error>;
}

/// The sizes of a clustering problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    /// Number of points.
    pub points: usize,
    /// Coordinates per point.
    pub dims: usize,
    /// Number of clusters.
    pub clusters: usize,
    /// Sum of the weights.
    pub weight: u64,
    /// Largest weight.
    pub heaviest: u32,
    /// Rule that computes centroids from sums.
    pub update: Update,
}

/// Result of an assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Assigned {
    /// Σ w·D² to the assigned centroids.
    pub inertia: u64,
    /// Number of points of positive weight that changed their label.
    pub changed: u64,
}

impl Assigned {
    /// Adds the result for other points. Exact in any order.
    pub fn merge(&mut self, other: &Self) {
        self.inertia += other.inertia;
        self.changed += other.changed;
    }
}

/// A point far from its centroid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Farthest {
    /// Squared distance of the point.
    pub distance: u32,
    /// Index of the point.
    pub index: usize,
}

impl Farthest {
    /// Returns true if this point comes before `other`: farther, or equally far with a lower index.
    pub const fn before(&self, other: &Self) -> bool {
        self.distance > other.distance
            || (self.distance == other.distance && self.index < other.index)
    }
}
