//! k-means of points in their own units: they are put on the int8 grid, clustered by [`super::kmeans`], and the results
//! converted back.

use std::fmt;

use tercet_core::cluster::score::SilhouetteScore;
use tercet_core::cluster::{self, Init, Summary, float};
use tercet_core::quant::calibrate::RangeRule;
use tracing::trace_span;

use super::units::{coding_error, on_grid, on_sphere, placed, units, values};
use super::{Clustering, KmeansOptions, LloydStep, assign_points, inertia};
use crate::Error;
use crate::engine::{DoneBy, FlowEngine};
use crate::parallel::Threads;
use crate::points::{Codes, Points, Values};

/// k-means with its options: number of clusters, first centroids, seed, and number of steps.
///
/// ```
/// use tercet_host::KMeans;
/// use tercet_host::points::Points;
///
/// let metres = Points::from_rows(1, vec![0.5, 0.75, 9.5, 10.0])?;
/// let found = KMeans::new(2).restarts(4).fit(&metres)?;
/// assert_eq!(found.labels()[0], found.labels()[1]);
/// assert_eq!(found.predict(&Points::from_rows(1, vec![9.0])?)?, [found.labels()[3]]);
///
/// // The grid has 255 steps between 0 and 10, so centroids are within half a step, 0.02.
/// let mut centroids = found.centroids.clone();
/// centroids.sort_by(f32::total_cmp);
/// assert!((centroids[0] - 0.625).abs() < 0.02 && (centroids[1] - 9.75).abs() < 0.02);
/// # Ok::<(), tercet_host::Error>(())
/// ```
///
/// [`KMeans::fit`] puts values on one int8 grid, exactly if that is possible ([`Points::to_codes`] with
/// [`Scheme::Affine`](tercet_core::quant::calibrate::Scheme::Affine)). If whole numbers leave codes unused, the grid is
/// finer by a power of two, so that centroids are rounded less: images of 0 to 16 have centroids in steps of 1/8. int8
/// data has centroids in steps of 1.
pub struct KMeans<'a> {
    options: KmeansOptions,
    range: RangeRule,
    spherical: bool,
    centroids: Option<&'a Points>,
    weights: Option<&'a [u32]>,
    on_step: Option<OnStep<'a>>,
}

type OnStep<'a> = Box<dyn FnMut(LloydStep, f64) + 'a>;

impl<'a> KMeans<'a> {
    /// One run of greedy k-means++ and Lloyd's loop for `clusters` clusters: seed 0, at most 300 steps, no weights,
    /// over the full range of the values.
    pub fn new(clusters: usize) -> Self {
        Self {
            options: KmeansOptions::new(clusters),
            range: RangeRule::MinMax,
            spherical: false,
            centroids: None,
            weights: None,
            on_step: None,
        }
    }

    /// Runs this many times from different seeds and keeps the run of least inertia. Given first centroids run once.
    pub const fn restarts(mut self, restarts: u32) -> Self {
        self.options.run.restarts = restarts;
        self
    }

    /// Seeds every draw; the same seed gives the same result on every machine.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.options.run.seed = seed;
        self
    }

    /// Chooses the first centroids by this rule; [`KMeans::centroids`] gives them.
    pub const fn init(mut self, init: Init) -> Self {
        self.options.run.init = init;
        self
    }

    /// Starts from these centroids, k points in the data's own units.
    pub const fn centroids(mut self, centroids: &'a Points) -> Self {
        self.centroids = Some(centroids);
        self
    }

    /// Ends a run after this many steps (passes over all points, with [`KMeans::batches`]).
    pub const fn max_iter(mut self, steps: u32) -> Self {
        self.options.run.lloyd.max_iter = steps;
        self
    }

    /// Ends a run when a step lowers inertia by at most this many millionths. With 0, the default, a run ends when
    /// inertia does not fall.
    pub const fn tolerance_ppm(mut self, ppm: u32) -> Self {
        self.options.run.lloyd.tol_ppm = ppm;
        self
    }

    /// Takes mini-batches of this many points instead of all points in each step.
    pub const fn batches(mut self, points: usize) -> Self {
        self.options.batch = Some(points);
        self
    }

    /// Clusters by direction (cosine): scales every point to one length first. Units are then those of unit vectors.
    pub const fn spherical(mut self, spherical: bool) -> Self {
        self.spherical = spherical;
        self
    }

    /// Chooses the range of the int8 grid by this rule, for values that are not int8 already; see [`Points::to_codes`].
    pub const fn range(mut self, range: RangeRule) -> Self {
        self.range = range;
        self
    }

    /// Gives each point a weight.
    pub const fn weights(mut self, weights: &'a [u32]) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Calls `on_step` after every step, with its inertia on the grid in the data's own units.
    pub fn on_step(mut self, on_step: impl FnMut(LloydStep, f64) + 'a) -> Self {
        self.on_step = Some(Box::new(on_step));
        self
    }

    /// Returns the options of the run over int8 codes: number of clusters, seeds, steps.
    pub const fn options(&self) -> &KmeansOptions {
        &self.options
    }

    /// True if points are clustered by direction.
    pub const fn is_spherical(&self) -> bool {
        self.spherical
    }

    /// Clusters points on all threads of the processor.
    ///
    /// # Errors
    /// As [`KMeans::fit_on`].
    pub fn fit(&mut self, points: &Points) -> Result<KMeansFit, Error> {
        self.fit_on(&mut Threads::default(), points)
    }

    /// Clusters points on an engine. If it has no room for the points, the processor's threads cluster them, and the
    /// function of [`KMeans::on_step`] gets all steps again.
    ///
    /// Memory: the codes, and the memory of [`super::kmeans`].
    ///
    /// # Errors
    /// [`Error::Unsupported`], naming the data, for all that [`super::kmeans`] refuses; [`Error::Options`] for first
    /// centroids that are not k points of d values; [`Error::Engine`].
    pub fn fit_on<E: FlowEngine>(
        &mut self,
        engine: &mut E,
        points: &Points,
    ) -> Result<KMeansFit, Error> {
        let dims = points.dims();
        let refuse = |reason: &dyn fmt::Display| points.refuse(reason);
        let mut options = self.options.clone();
        let _span = trace_span!(
            "fit",
            points = points.rows(),
            dims,
            clusters = options.clusters
        )
        .entered();
        let codes = trace_span!("codes").in_scope(|| {
            Ok::<_, Error>(if self.spherical {
                let (codes, sphere) = on_sphere(points)?;
                options.sphere = Some(sphere);
                codes
            } else {
                on_grid(points, self.range)?
            })
        })?;
        if let Some(centroids) = self.centroids {
            let shape = (centroids.rows(), centroids.dims());
            if shape != (options.clusters, dims) {
                return Err(Error::options(format!(
                    "the first centroids are {} points of {} values, but {} of {dims} are needed",
                    shape.0, shape.1, options.clusters
                )));
            }
            options.run.init = Init::Given;
            options.given = placed(centroids, &codes.grid, self.spherical)?.codes;
        }
        let on_step = &mut self.on_step;
        let mut observe = |step: LloydStep| {
            if let Some(on_step) = on_step {
                on_step(step, codes.squared(step.inertia));
            }
        };
        let (rows, weights) = (&codes.codes, self.weights);
        let done = trace_span!("kmeans")
            .in_scope(|| super::kmeans(engine, rows, dims, weights, &options, &mut observe));
        let (clustering, by) = DoneBy::or_threads(engine.name(), done, |threads| {
            let done = super::kmeans(threads, rows, dims, weights, &options, &mut observe);
            Ok(done?)
        })
        .map_err(|fault| fault.of_flow(engine.name(), refuse))?;
        let _span = trace_span!("measure").entered();
        let mut clusters = vec![Summary::default(); options.clusters];
        super::points(&codes.codes, dims, weights)
            .and_then(|points| {
                let (labels, distances) = (&clustering.labels, &clustering.distances);
                cluster::summarize(&points, labels, distances, &mut clusters)
            })
            .map_err(|e| refuse(&e))?;
        let centroids = values(&clustering.centroids, &codes.grid);
        let values = units(points, self.spherical);
        let labelled = float::Labelled {
            values: values.as_ref(),
            dims,
            weights,
            labels: &clustering.labels,
            centroids: &centroids,
        };
        let inertia = inertia(&labelled).map_err(|e| refuse(&e))?;
        let coding_error = match codes.exact {
            true => 0.0,
            false => coding_error(values.as_ref(), &codes, dims),
        };
        Ok(KMeansFit {
            by,
            inertia,
            coding_error,
            centroids,
            clusters,
            codes,
            clustering,
            spherical: self.spherical,
        })
    }
}

impl fmt::Debug for KMeans<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KMeans")
            .field("options", &self.options)
            .field("range", &self.range)
            .field("spherical", &self.spherical)
            .finish_non_exhaustive()
    }
}

/// Clustered points, in codes and in the data's own units.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KMeansFit {
    /// Labels, int8 centroids and the other exact results, in units of codes.
    pub clustering: Clustering,
    /// The codes that were clustered, and their grid.
    pub codes: Codes,
    /// The centroids that the labels belong to, k · d, in the data's own units, on the int8 grid that clustering used.
    /// The means of the clusters are rounded to steps of that grid, [`Codes::grid`].
    pub centroids: Vec<f32>,
    /// Size, spread and nearest point of each cluster, in units of codes.
    pub clusters: Vec<Summary>,
    /// Σ w·‖x − c‖² of the values before they were put on the grid.
    pub inertia: f64,
    /// The squared error of the codes as a part of the values' squared distance from their mean; 0 if they are exact.
    pub coding_error: f64,
    /// The engine that clustered them.
    pub by: DoneBy,
    spherical: bool,
}

impl KMeansFit {
    /// Returns the cluster of each point.
    pub fn labels(&self) -> &[u32] {
        &self.clustering.labels
    }

    /// Returns the nearest centroid of each of other points, measured on the grid that the centroids were found on.
    ///
    /// # Errors
    /// As [`assign_points`].
    pub fn predict(&self, points: &Points) -> Result<Vec<u32>, Error> {
        let (rows, dims) = (self.clusters.len(), self.clustering.dims);
        let values = Values::I8 {
            codes: self.clustering.centroids.clone(),
            grid: self.codes.grid,
        };
        let centroids = Points::new("centroids", rows, dims, values)?;
        let assigned = assign_points(&mut Threads::default(), points, &centroids, self.spherical)?;
        Ok(assigned.assignment.labels)
    }

    /// Returns the inertia of each step of the restart that reached the lowest inertia, measured on the grid in the
    /// data's own units.
    pub fn curve(&self) -> Vec<f64> {
        let steps = &self.clustering.curve;
        let best = steps.iter().min_by_key(|step| (step.inertia, step.restart));
        let best = best.map(|step| step.restart);
        steps
            .iter()
            .filter(|step| Some(step.restart) == best)
            .map(|step| self.codes.squared(step.inertia))
            .collect()
    }

    /// Returns the largest distance of a member of each cluster from its centroid, measured on the grid in the data's
    /// own units.
    pub fn radii(&self) -> Vec<f64> {
        let squared = |cluster: &Summary| self.codes.squared(cluster.squared_radius.into());
        self.clusters
            .iter()
            .map(|cluster| squared(cluster).sqrt())
            .collect()
    }

    /// Returns the silhouette, −1 to 1: close to 1 if the points lie much nearer to their own cluster than to the next
    /// one. It is [`super::silhouette`] of the int8 codes, each point counted once, with seed 0, which draws the sample
    /// of more than 4,096 points. For weights or another seed, call that function with [`KMeansFit::points`].
    ///
    /// ```
    /// use tercet_host::KMeans;
    /// use tercet_host::points::Points;
    ///
    /// let points = Points::from_rows(1, vec![0.5, 0.75, 9.5, 10.0])?;
    /// let found = KMeans::new(2).fit(&points)?;
    /// assert!(found.silhouette()?.score > 0.9);
    /// # Ok::<(), tercet_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Options`] if fewer than two clusters have members.
    pub fn silhouette(&self) -> Result<SilhouetteScore, Error> {
        let points = self.points(None)?;
        super::silhouette(&points, self.labels(), self.clusters.len(), 0).map_err(Error::options)
    }

    /// Returns the codes as points with `weights`, for [`super::silhouette`] and [`super::davies_bouldin`].
    ///
    /// # Errors
    /// None for the weights that they were clustered with.
    pub fn points<'a>(&'a self, weights: Option<&'a [u32]>) -> Result<cluster::Points<'a>, Error> {
        super::points(&self.codes.codes, self.clustering.dims, weights).map_err(Error::options)
    }
}
