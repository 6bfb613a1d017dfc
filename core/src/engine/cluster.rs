//! What an engine does with points to cluster.

use crate::cluster::{ClusterError, Points, Update, predict};

/// Where a clustering problem keeps its state: the caller's slices.
///
/// An engine with memory of its own takes them empty ([`ClusterEngine::needs_buffers`]); [`crate::scalar`] and the engine
/// of threads use them all. `n` points of `d` coordinates, `k` clusters.
#[derive(Debug)]
pub struct Buffers<'a, S = i64> {
    /// n: each point's cluster.
    pub labels: &'a mut [u32],
    /// n: the squared distance of each point to its centroid, or to the nearest seed.
    pub distances: &'a mut [u32],
    /// k · d: the centroids.
    pub centroids: &'a mut [i8],
    /// k · d, or empty where nothing will be kept ([`ClusterProblem::keep`]): the best centroids so far.
    pub kept: &'a mut [i8],
    /// k: squared lengths of the centroids.
    pub norms: &'a mut [i32],
    /// k · d: sums of the members' coordinates.
    pub sums: &'a mut [S],
    /// k: the members' weights.
    pub counts: &'a mut [u64],
}

/// An engine that clusters.
pub trait ClusterEngine {
    /// What can fail; refusals of clustering convert into it.
    type Error: From<ClusterError> + core::fmt::Display;

    /// The engine's holder of points and their clusters.
    type Clusters<'a>: ClusterProblem<Error = Self::Error>
    where
        Self: 'a;

    /// Takes up `points` for `k` clusters, with no centroids yet (all zeros, no labels).
    ///
    /// Drivers such as [`crate::cluster::kmeans`] run over it; [`ClusterProblem::read_labels`] and its siblings bring
    /// results out. Errors: [`ClusterError::Clusters`], [`ClusterError::Length`], and [`ClusterError::Weight`]
    /// where `update` or the accumulator allows less weight than the points have.
    fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
        update: Update,
        buffers: Buffers<'a>,
    ) -> Result<Self::Clusters<'a>, Self::Error>;

    /// Whether [`ClusterEngine::clusters`] works in the caller's [`Buffers`]; an engine that does not takes them empty.
    fn needs_buffers(&self) -> bool {
        true
    }

    /// Gives every point the label of its nearest centroid (k · d codes), the lowest of equals, and its squared distance:
    /// [`predict`], which it is unless an engine is faster. O(n·k·d). `labels` and `distances` are n; there may be more
    /// centroids than points.
    ///
    /// # Errors
    /// Those of [`predict`]; the engine's.
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

/// Points an engine holds while a driver clusters them.
///
/// Distances D² are squared, between int8 points and int8 centroids, exact. The score of a centroid is
/// ‖c‖² − 2·x·c, the nearest centroid the one of least score, the lowest index on ties. Points of weight 0
/// get labels and distances, and are never picked, never farthest and never counted.
pub trait ClusterProblem {
    /// The engine's failures; refusals of clustering convert into it.
    type Error: From<ClusterError>;

    /// Points, clusters and weight.
    fn shape(&self) -> Shape;

    /// Sets every D² to `distance` and forgets every label.
    fn fill(&mut self, distance: u32) -> Result<(), Self::Error>;

    /// The lowest index at which the running sum of w·D² exceeds `r`; `None` where the total does not.
    fn pick(&mut self, r: u64) -> Result<Option<usize>, Self::Error>;

    /// The lowest point of positive weight without a label.
    fn lowest_unlabelled(&mut self) -> Result<Option<usize>, Self::Error>;

    /// Makes a point the seed of a cluster: the centroid gets its coordinates, the point the label and D² = 0. Gives its
    /// weight.
    fn seed(&mut self, cluster: usize, point: usize) -> Result<u32, Self::Error>;

    /// Shortens every D² to the distance to a cluster's centroid where that is nearer, and gives Σ w·D².
    fn shorten(&mut self, cluster: usize) -> Result<u64, Self::Error>;

    /// For each candidate, what [`ClusterProblem::shorten`] would give with a centroid at that point. Nothing changes.
    ///
    /// `totals` has the length of `candidates`.
    fn potentials(&mut self, candidates: &[usize], totals: &mut [u64]) -> Result<(), Self::Error>;

    /// Sets all centroids, k · d coordinates, and forgets every label.
    fn set_centroids(&mut self, centroids: &[i8]) -> Result<(), Self::Error>;

    /// Gives every point the label of its nearest centroid and its D². Sums stay as they are.
    fn measure(&mut self) -> Result<Assigned, Self::Error>;

    /// [`ClusterProblem::measure`], and each cluster's sum of coordinates and count from nothing.
    fn assign(&mut self) -> Result<Assigned, Self::Error>;

    /// Moves each centroid with a positive count as the rule says: to the rounded mean of its sum, or onto the sphere.
    fn update(&mut self) -> Result<(), Self::Error>;

    /// One step of Lloyd's loop: [`ClusterProblem::assign`], then [`ClusterProblem::update`], fused where that is faster.
    fn assign_update(&mut self) -> Result<Assigned, Self::Error> {
        let assigned = self.assign()?;
        self.update()?;
        Ok(assigned)
    }

    /// The lowest cluster from `first` on whose count is 0.
    fn next_empty(&mut self, first: usize) -> Result<Option<usize>, Self::Error>;

    /// The point of positive weight that comes next after `last` in order of falling D², rising index; only D² > 0.
    fn farthest(&mut self, last: Option<Farthest>) -> Result<Option<Farthest>, Self::Error>;

    /// Moves a cluster's centroid to a point; no label changes.
    fn place(&mut self, cluster: usize, point: usize) -> Result<(), Self::Error>;

    /// Sets all sums and counts to 0, for [`ClusterProblem::batch`].
    fn start_batches(&mut self) -> Result<(), Self::Error>;

    /// A step of mini-batch: assigns the points (an index may come twice) to the centroids as they stand, adds
    /// them to the running sums and counts, halves both of a cluster while its count is `cap` or more, then updates
    /// the centroids. Labels and distances stay as they are.
    ///
    /// The driver has checked that counts stay at 2²⁴ or below.
    fn batch(&mut self, points: &[u32], cap: u32) -> Result<(), Self::Error>;

    /// Keeps a copy of the centroids.
    fn keep(&mut self) -> Result<(), Self::Error>;

    /// Brings the kept centroids back; labels stay as they are.
    fn restore(&mut self) -> Result<(), Self::Error>;

    /// Copies the centroids, k · d.
    fn read_centroids(&mut self, out: &mut [i8]) -> Result<(), Self::Error>;

    /// Copies the labels, n.
    fn read_labels(&mut self, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Copies the squared distances, n.
    fn read_distances(&mut self, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Copies the sums, k · d, and counts, k, of the last [`ClusterProblem::assign`].
    fn read_sums(&mut self, sums: &mut [i64], counts: &mut [u64]) -> Result<(), Self::Error>;
}

/// The sizes of a clustering problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    /// How many points.
    pub points: usize,
    /// Coordinates of a point.
    pub dims: usize,
    /// How many clusters.
    pub clusters: usize,
    /// The sum of the weights.
    pub weight: u64,
    /// The largest weight.
    pub heaviest: u32,
    /// How centroids follow from sums.
    pub update: Update,
}

/// What an assignment found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Assigned {
    /// Σ w·D² to the centroids that were assigned to.
    pub inertia: u64,
    /// How many points of positive weight changed their label.
    pub changed: u64,
}

impl Assigned {
    /// Adds what was found for other points. Exact in any order.
    pub fn merge(&mut self, other: &Self) {
        self.inertia += other.inertia;
        self.changed += other.changed;
    }
}

/// A point far from its centroid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Farthest {
    /// Its squared distance.
    pub distance: u32,
    /// Its index.
    pub index: usize,
}

impl Farthest {
    /// Whether this point comes before `other`: farther, or as far with a lower index.
    pub const fn before(&self, other: &Self) -> bool {
        self.distance > other.distance
            || (self.distance == other.distance && self.index < other.index)
    }
}
