//! k-means over whole data sets: memory, threads and a curve around the drivers of [`tercet_core::cluster`].
//!
//! ```
//! use tercet_host::cluster::{KmeansOptions, kmeans};
//! use tercet_host::parallel::Threads;
//!
//! // Two groups on a line; nobody listens to the progress.
//! let codes = [0i8, 1, 2, 50, 51, 52];
//! let found = kmeans(&mut Threads::default(), &codes, 1, None, &KmeansOptions::new(2), &mut |_| ())?;
//! assert_eq!(found.outcome.inertia, 4);
//! assert_eq!(found.labels[0], found.labels[2]);
//! assert_eq!(found.counts, [3, 3]);
//! # Ok::<(), tercet_core::cluster::ClusterError>(())
//! ```

mod assigned;
mod fit;
mod score;
mod units;

pub use assigned::{Assigned, assign_points};
pub use fit::{KMeans, KMeansFit};
pub use score::{davies_bouldin, silhouette};

use tercet_core::cluster::float::Labelled;
use tercet_core::cluster::{
    self, BATCH_CAP, ClusterError, Init, Kmeans, Outcome, Points, Sphere, Steps, Update,
};
use tercet_core::engine::{ClusterEngine, ClusterProblem};
use tercet_core::number::{Element, Lanes, RUN};

use crate::engine::Memory;
use crate::parallel::each::{chunks, numbers};
use crate::points::TILE;

/// How to cluster int8 points.
#[derive(Clone, Debug)]
pub struct KmeansOptions {
    /// k.
    pub clusters: usize,
    /// First centroids, restarts, end of a run, and seed.
    pub run: Kmeans,
    /// The first centroids, k · d, for [`Init::Given`].
    pub given: Vec<i8>,
    /// Points per mini-batch. `None` runs Lloyd's loop over all points.
    pub batch: Option<usize>,
    /// Count at which mini-batches halve sums and counts.
    pub cap: u32,
    /// Length of the points if they were normalized ([`tercet_core::cluster::normalize`]), for spherical k-means.
    pub sphere: Option<Sphere>,
}

impl KmeansOptions {
    /// [`Kmeans::default`] for `clusters` clusters: one run of greedy k-means++ and Lloyd's loop, seed 0, at most 300
    /// steps.
    pub fn new(clusters: usize) -> Self {
        Self {
            clusters,
            run: Kmeans::default(),
            given: Vec::new(),
            batch: None,
            cap: BATCH_CAP,
            sphere: None,
        }
    }

    /// Starts from these first centroids, k · d.
    pub fn with_centroids(mut self, centroids: Vec<i8>) -> Self {
        self.run.init = Init::Given;
        self.given = centroids;
        self
    }
}

/// One step of a run, as reported to the progress callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LloydStep {
    /// The restart, from 0.
    pub restart: u32,
    /// The step in it, from 1.
    pub step: u32,
    /// The inertia of its assignment, in units of codes.
    pub inertia: u64,
}

/// Points with their clusters. All values are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustering {
    /// Coordinates per point.
    pub dims: usize,
    /// Each point's cluster.
    pub labels: Vec<u32>,
    /// Each point's squared distance to its centroid, in units of codes.
    pub distances: Vec<u32>,
    /// The centroids, k · d codes.
    pub centroids: Vec<i8>,
    /// Sums of the members' coordinates, k · d.
    pub sums: Vec<i64>,
    /// The members' weights, k.
    pub counts: Vec<u64>,
    /// Inertia, number of steps, and the reason why the run ended.
    pub outcome: Outcome,
    /// Every step of every restart.
    pub curve: Vec<LloydStep>,
}

impl Clustering {
    /// Returns the k · d means of the clusters in units of codes, each coordinate rounded once.
    pub fn means(&self) -> Vec<f32> {
        let mut means = vec![0.0; self.sums.len()];
        cluster::means(&self.sums, &self.counts, &mut means)
            .expect("sums and counts have the lengths that the engine was given");
        means
    }
}

fn points<'a>(
    codes: &'a [i8],
    dims: usize,
    weights: Option<&'a [u32]>,
) -> Result<Points<'a>, ClusterError> {
    match weights {
        Some(weights) => Points::weighted(codes, dims, weights),
        None => Points::new(codes, dims),
    }
}

/// Clusters int8 points on an engine. `codes` holds the points row by row, `dims` coordinates each. `observe` is called
/// after every step.
///
/// Every engine, with any number of threads, returns the same bits as [`tercet_core::scalar`]. Memory of
/// [`Threads`](crate::parallel::Threads): 8 bytes per point, and a table of k · d sums per thread.
///
/// # Errors
/// Those of [`Points::weighted`], [`cluster::kmeans`]; [`ClusterError::Length`] if given centroids are not k · d; the
/// engine's.
pub fn kmeans<E: ClusterEngine>(
    engine: &mut E,
    codes: &[i8],
    dims: usize,
    weights: Option<&[u32]>,
    options: &KmeansOptions,
    observe: &mut dyn FnMut(LloydStep),
) -> Result<Clustering, E::Error> {
    let points = points(codes, dims, weights)?;
    let keeps = options.run.restarts > 1 || options.batch.is_some() || options.sphere.is_some();
    let mut memory = Memory::of(engine, &points, options.clusters, keeps)?;
    let in_memory = engine.needs_buffers();
    let update = options.sphere.map_or(Update::Mean, Update::Sphere);
    let mut clusters = engine.clusters(points, options.clusters, update, memory.buffers())?;
    let (outcome, curve) = run(&mut clusters, options, observe)?;
    let brought = match in_memory {
        true => None,
        false => Some(Memory::read(&mut clusters)?),
    };
    drop(clusters);
    let memory = brought.unwrap_or(memory);
    Ok(memory.clustering(dims, outcome, curve))
}

/// Runs [`kmeans`] on points that an engine holds in its own memory, such as points that stay on a device. The problem
/// must have as many clusters as the options, and no centroids yet.
///
/// ```
/// use tercet_core::cluster::{Points, Update};
/// use tercet_core::engine::{Buffers, ClusterEngine};
/// use tercet_core::scalar::Scalar;
/// use tercet_host::cluster::{KmeansOptions, kmeans_of};
///
/// let codes = [0i8, 1, 2, 50, 51, 52];
/// let points = Points::new(&codes, 1)?;
/// let (mut labels, mut distances) = ([0; 6], [0; 6]);
/// let (mut centroids, mut norms, mut sums, mut counts) = ([0; 2], [0; 2], [0; 2], [0; 2]);
/// let buffers = Buffers {
///     labels: &mut labels,
///     distances: &mut distances,
///     centroids: &mut centroids,
///     kept: &mut [],
///     norms: &mut norms,
///     sums: &mut sums,
///     counts: &mut counts,
/// };
/// let mut engine = Scalar;
/// let mut clusters = engine.clusters(points, 2, Update::Mean, buffers)?;
/// let found = kmeans_of(&mut clusters, &KmeansOptions::new(2), &mut |_| ())?;
/// assert_eq!((found.outcome.inertia, &found.counts[..]), (4, &[3, 3][..]));
/// # Ok::<(), tercet_core::cluster::ClusterError>(())
/// ```
///
/// # Errors
/// Those of [`cluster::kmeans`]; [`ClusterError::Length`] if given centroids are not k · d; the engine's.
pub fn kmeans_of<P: ClusterProblem>(
    clusters: &mut P,
    options: &KmeansOptions,
    observe: &mut dyn FnMut(LloydStep),
) -> Result<Clustering, P::Error> {
    let (outcome, curve) = run(clusters, options, observe)?;
    let dims = clusters.shape().dims;
    Ok(Memory::read(clusters)?.clustering(dims, outcome, curve))
}

/// Runs the start, the steps and the restarts.
fn run<P: ClusterProblem>(
    clusters: &mut P,
    options: &KmeansOptions,
    observe: &mut dyn FnMut(LloydStep),
) -> Result<(Outcome, Vec<LloydStep>), P::Error> {
    if options.run.init == Init::Given {
        clusters.set_centroids(&options.given)?;
    }
    let mut batch = vec![0; options.batch.unwrap_or(0)];
    let mut steps = match options.batch {
        None => Steps::Full,
        Some(_) => Steps::Batches {
            batch: &mut batch,
            cap: options.cap,
        },
    };
    let mut curve = Vec::new();
    let outcome = cluster::kmeans(
        clusters,
        &options.run,
        &mut steps,
        &mut |restart, step, inertia| {
            let step = LloydStep {
                restart,
                step,
                inertia,
            };
            curve.push(step);
            observe(step);
        },
    )?;
    Ok((outcome, curve))
}

/// Points with their nearest centroids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Each point's nearest centroid, the lowest of equals.
    pub labels: Vec<u32>,
    /// Each point's squared distance to it, in units of codes.
    pub distances: Vec<u32>,
    /// Number of points of each centroid.
    pub counts: Vec<u64>,
    /// The sum of the distances.
    pub inertia: u64,
}

/// Finds the nearest of the given centroids (k · d codes) for every point, on an engine.
///
/// There may be more centroids than points.
///
/// # Errors
/// Those of [`Points::new`] for points and centroids; the engine's.
pub fn assign<E: ClusterEngine>(
    engine: &mut E,
    codes: &[i8],
    dims: usize,
    centroids: &[i8],
) -> Result<Assignment, E::Error> {
    let points = Points::new(codes, dims)?;
    let k = Points::new(centroids, dims)?.len();
    let (mut labels, mut distances) = unassigned(&points);
    engine.nearest(points, centroids, &mut labels, &mut distances)?;
    Ok(Assignment::of(labels, distances, k))
}

/// Returns labels that name no cluster, and distances of 0.
fn unassigned(points: &Points<'_>) -> (Vec<u32>, Vec<u32>) {
    (vec![u32::MAX; points.len()], vec![0; points.len()])
}

impl Assignment {
    /// Counts the labels, all below `k`, and sums the distances.
    fn of(labels: Vec<u32>, distances: Vec<u32>, k: usize) -> Self {
        let mut counts = vec![0; k];
        for &label in &labels {
            counts[label as usize] += 1;
        }
        // There are fewer than 2³² points, each with D² below 2³², so the sum fits.
        let sum = |_, part: &[u32]| {
            part.iter()
                .map(|&distance| u64::from(distance))
                .sum::<u64>()
        };
        let inertia = chunks(&distances, TILE).reduce(sum, |a, b| a + b);
        Self {
            inertia: inertia.unwrap_or(0),
            labels,
            distances,
            counts,
        }
    }
}

/// Computes [`tercet_core::cluster::float::inertia`] on all threads, with the same bits and errors.
pub fn inertia<T: Element>(labelled: &Labelled<'_, T>) -> Result<f64, ClusterError> {
    labelled.check()?;
    let runs = numbers(0..labelled.values.len().div_ceil(RUN)).gather(|_, run| labelled.run(run));
    let mut total = Lanes::<f64>::new();
    for run in &runs {
        total
            .append(run)
            .expect("every run but the last is a whole one");
    }
    Ok(total.total())
}

impl Memory {
    /// Converts labels, distances and clusters into the result of a clustering.
    fn clustering(self, dims: usize, outcome: Outcome, curve: Vec<LloydStep>) -> Clustering {
        Clustering {
            dims,
            outcome,
            curve,
            labels: self.labels,
            distances: self.distances,
            centroids: self.centroids,
            sums: self.sums,
            counts: self.counts,
        }
    }
}
