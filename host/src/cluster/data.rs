//! Clustering of points in their own units: onto the int8 grid, through [`super::kmeans`], and back.
//!
//! ```
//! use tercet_host::cluster::data::{Fit, fit};
//! use tercet_host::cluster::KmeansOptions;
//! use tercet_host::parallel::Threads;
//! use tercet_host::points::{Points, Values};
//!
//! let metres = Values::F32(vec![0.5, 0.75, 9.5, 10.0]);
//! let points = Points::new("lengths", 4, 1, metres)?;
//! let found = fit(&mut Threads::default(), &points, &Fit::new(KmeansOptions::new(2)), &mut |_, _| ())?;
//! assert_eq!(found.clustering.labels[0], found.clustering.labels[1]);
//! let mut centroids = found.centroids.clone();
//! centroids.sort_by(f32::total_cmp);
//! // Half a code is 0.02: the grid's 255 steps span 0 to 10.
//! assert!((centroids[0] - 0.625).abs() < 0.02 && (centroids[1] - 9.75).abs() < 0.02);
//! # Ok::<(), tercet_host::Error>(())
//! ```

use tercet_core::cluster::{self, Sphere, Summary, float, normalize, normalize_floats};
use tercet_core::number::Lanes;
use tercet_core::quant::Grid;
use tercet_core::quant::calibrate::{Method, Scheme};
use tracing::trace_span;

use super::{Assignment, Clustering, KmeansOptions, Start, Step, inertia};
use crate::Error;
use crate::engine::{By, FlowEngine};
use crate::parallel::each::chunks_mut;
use crate::points::{Codes, Points, Values};

/// How to cluster points.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fit<'a> {
    /// Everything but the first centroids where [`Fit::centroids`] gives them, and the sphere.
    pub options: KmeansOptions,
    /// The range of the grid, where the values are not int8 already; see [`Points::to_codes`].
    pub range: Method,
    /// Cluster by direction: every point is scaled to one length first. Units are then those of vectors of length 1.
    pub spherical: bool,
    /// The first centroids, k points in the data's own units.
    pub centroids: Option<&'a Points>,
    /// One weight a point.
    pub weights: Option<&'a [u32]>,
}

impl Fit<'_> {
    /// Plain k-means over the full range of the values, without weights.
    pub fn new(options: KmeansOptions) -> Self {
        Self {
            options,
            range: Method::MinMax,
            spherical: false,
            centroids: None,
            weights: None,
        }
    }
}

/// A clustering, in codes and in the data's own units.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// Labels, int8 centroids and all that is exact, in units of codes.
    pub clustering: Clustering,
    /// What was clustered, and the grid that its codes lie on.
    pub codes: Codes,
    /// The centroids that the labels belong to, k · d, in the data's own units.
    pub centroids: Vec<f32>,
    /// Size, spread and nearest point of each cluster, in units of codes.
    pub clusters: Vec<Summary>,
    /// Σ w·‖x − c‖² of the values before they were put on the grid.
    pub inertia: f64,
    /// The squared error of the codes as a part of the values' squared distance from their mean; 0 where they are exact.
    pub coding_error: f64,
    /// Who clustered them.
    pub by: By,
}

impl Found {
    /// The inertia of each step of the restart that came lowest, on the grid in the data's own units.
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

    /// The largest distance of a member of each cluster from its centroid, on the grid in the data's own units.
    pub fn radii(&self) -> Vec<f64> {
        let squared = |cluster: &Summary| self.codes.squared(cluster.squared_radius.into());
        self.clusters
            .iter()
            .map(|cluster| squared(cluster).sqrt())
            .collect()
    }

    /// The codes as points of `weights`, for [`super::silhouette`] and [`super::davies_bouldin`].
    ///
    /// # Errors
    /// None for the weights that they were clustered with.
    pub fn points<'a>(&'a self, weights: Option<&'a [u32]>) -> Result<cluster::Points<'a>, Error> {
        super::points(&self.codes.codes, self.clustering.dims, weights).map_err(Error::options)
    }
}

/// Clusters points; `observe` hears every step, with its inertia on the grid in the data's own units.
///
/// Values are put on one int8 grid, exactly where that can be ([`Points::to_codes`] with [`Scheme::Affine`]), or, where
/// spherical, scaled to one length ([`normalize_floats`]). Where whole numbers leave codes free, the grid is finer by a power of
/// two, so that centroids are rounded less: images of 0 to 16 have centroids in steps of 1/8. int8 data has centroids in steps
/// of 1. Memory: the codes, and what [`super::kmeans`] takes. If the engine has no room for the points, the processor's threads
/// cluster them, and `observe` hears it all anew.
///
/// # Errors
/// [`Error::Unsupported`], naming the data, for all that [`super::kmeans`] refuses; [`Error::Options`] for first centroids
/// that are not k points of d values; [`Error::Engine`].
pub fn fit<E: FlowEngine>(
    engine: &mut E,
    points: &Points,
    fit: &Fit<'_>,
    observe: &mut dyn FnMut(Step, f64),
) -> Result<Found, Error> {
    let dims = points.dims();
    let refuse = |reason: &dyn std::fmt::Display| points.refuse(reason);
    let mut options = fit.options.clone();
    let _span = trace_span!(
        "fit",
        points = points.rows(),
        dims,
        clusters = options.clusters
    )
    .entered();
    let codes = trace_span!("codes").in_scope(|| {
        Ok::<_, Error>(if fit.spherical {
            let (codes, sphere) = on_sphere(points)?;
            options.sphere = Some(sphere);
            codes
        } else {
            on_grid(points, fit.range)?
        })
    })?;
    if let Some(centroids) = fit.centroids {
        let shape = (centroids.rows(), centroids.dims());
        if shape != (options.clusters, dims) {
            return Err(Error::options(format!(
                "the first centroids are {} points of {} values where {} of {dims} are needed",
                shape.0, shape.1, options.clusters
            )));
        }
        options.start = Start::Given(placed(centroids, &codes.grid, fit.spherical)?.codes);
    }
    let mut observe = |step: Step| observe(step, codes.squared(step.inertia));
    let (rows, weights) = (&codes.codes, fit.weights);
    let done = trace_span!("kmeans")
        .in_scope(|| super::kmeans(engine, rows, dims, weights, &options, &mut observe));
    let (clustering, by) = By::or_threads(engine.name(), done, |threads| {
        let done = super::kmeans(threads, rows, dims, weights, &options, &mut observe);
        Ok(done?)
    })
    .map_err(|fault| fault.of_flow(engine.name(), refuse))?;
    let _span = trace_span!("measure").entered();
    let mut clusters = vec![Summary::default(); options.clusters];
    super::points(&codes.codes, dims, fit.weights)
        .and_then(|points| {
            let (labels, distances) = (&clustering.labels, &clustering.distances);
            cluster::summarize(&points, labels, distances, &mut clusters)
        })
        .map_err(|e| refuse(&e))?;
    let centroids = values(&clustering.centroids, &codes.grid);
    let values = units(points, fit.spherical);
    let labelled = float::Labelled {
        values: values.as_ref(),
        dims,
        weights: fit.weights,
        labels: &clustering.labels,
        centroids: &centroids,
    };
    let inertia = inertia(&labelled).map_err(|e| refuse(&e))?;
    let coding_error = match codes.exact {
        true => 0.0,
        false => coding_error(values.as_ref(), &codes, dims),
    };
    Ok(Found {
        by,
        inertia,
        coding_error,
        centroids,
        clusters,
        codes,
        clustering,
    })
}

/// Points with their nearest centroids, in codes and in the data's own units.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Assigned {
    /// Labels, distances and counts, in units of codes.
    pub assignment: Assignment,
    /// The grid that points and centroids were put on.
    pub grid: Grid,
    /// Σ‖x − c‖² of the values before they were put on the grid.
    pub inertia: f64,
    /// Values of points and centroids that lie beyond the grid's ends and were moved there.
    pub clipped: u64,
    /// Who compared points with centroids.
    pub by: By,
}

/// Finds the nearest of the given centroids for every point, by an engine, or by the processor's threads if it has no room for
/// the points.
///
/// The grid is the centroids' own where they are codes with a scale, as [`crate::points::write_centroids`] leaves
/// them in `.safetensors`: the grid they were found on. Else it is that on which the points are exact, if there is one and the
/// centroids do not lie beyond its ends; else it is laid over points and centroids together. For the points that the
/// centroids were found from all of these are the same grid again, unless a percentile chose it.
///
/// Where spherical, centroids are scaled to length 1 unless all are within a hundredth of it.
///
/// # Errors
/// [`Error::Options`] if the centroids have not the points' number of values; [`Error::Unsupported`] for all that
/// [`super::assign`] refuses; [`Error::Engine`].
pub fn assign<E: FlowEngine>(
    engine: &mut E,
    points: &Points,
    centroids: &Points,
    spherical: bool,
) -> Result<Assigned, Error> {
    let dims = points.dims();
    let _span = trace_span!(
        "assign to",
        points = points.rows(),
        dims,
        clusters = centroids.rows()
    )
    .entered();
    if centroids.dims() != dims {
        return Err(Error::options(format!(
            "the centroids have {} values, the points {dims}",
            centroids.dims()
        )));
    }
    let span = trace_span!("codes").entered();
    let (codes, of_centroids) = match centroids.values() {
        _ if spherical => {
            let (codes, _) = on_sphere(points)?;
            let centroids = placed(centroids, &codes.grid, true)?;
            (codes, centroids)
        }
        Values::I8 { grid, .. } if (grid.scale, grid.zero_point) != (1.0, 0) => {
            (points.on_grid(grid)?, centroids.on_grid(grid)?)
        }
        _ => {
            let codes = on_grid(points, Method::MinMax)?;
            let of_centroids = centroids.on_grid(&codes.grid)?;
            if codes.exact && of_centroids.clipped == 0 {
                (codes, of_centroids)
            } else {
                let grid = points.grid_with(centroids, Method::MinMax, Scheme::Affine)?;
                (points.on_grid(&grid)?, centroids.on_grid(&grid)?)
            }
        }
    };
    drop(span);
    let refuse = |reason: &dyn std::fmt::Display| points.refuse(reason);
    let done = super::assign(engine, &codes.codes, dims, &of_centroids.codes);
    let (assignment, by) = By::or_threads(engine.name(), done, |threads| {
        Ok(super::assign(
            threads,
            &codes.codes,
            dims,
            &of_centroids.codes,
        )?)
    })
    .map_err(|fault| fault.of_flow(engine.name(), refuse))?;
    let _span = trace_span!("measure").entered();
    let values = units(points, spherical);
    let labelled = float::Labelled {
        values: values.as_ref(),
        dims,
        weights: None,
        labels: &assignment.labels,
        centroids: &centroids.to_f32(),
    };
    Ok(Assigned {
        inertia: inertia(&labelled).map_err(|e| refuse(&e))?,
        by,
        clipped: codes.clipped + of_centroids.clipped,
        grid: codes.grid,
        assignment,
    })
}

/// The points on the grid for k-means.
fn on_grid(points: &Points, range: Method) -> Result<Codes, Error> {
    let codes = points.to_codes(range, Scheme::Affine)?;
    Ok(match points.values() {
        // int8 data has int8 centroids.
        Values::I8 { .. } => codes,
        _ => codes.refined(),
    })
}

/// The points scaled to one length; their grid stands for vectors of length 1.
fn on_sphere(points: &Points) -> Result<(Codes, Sphere), Error> {
    let dims = points.dims();
    let (codes, sphere) = match points.values() {
        // A scale without a zero point does not turn a vector.
        Values::I8 { codes, grid } if grid.zero_point == 0 => {
            let mut codes = codes.clone();
            let sphere = normalize(&mut codes, dims);
            (codes, sphere)
        }
        _ => {
            let values = points.to_f32();
            let mut codes = vec![0; values.len()];
            let sphere = normalize_floats(&values, dims, &mut codes);
            (codes, sphere)
        }
    };
    let sphere = sphere.map_err(|e| points.refuse(&e))?;
    let grid = Grid {
        scale: (1.0 / sphere.squared_radius().sqrt()) as f32,
        zero_point: 0,
        low: -127,
        high: 127,
    };
    Ok((Codes::inexact(codes, grid), sphere))
}

/// Centroids put on the grid of the points, as vectors of length 1 where that is what it stands for.
fn placed(centroids: &Points, grid: &Grid, spherical: bool) -> Result<Codes, Error> {
    if !spherical {
        return centroids.on_grid(grid);
    }
    // What a spherical run wrote is rounded, and so not quite of length 1: scaled again it would be rounded anew.
    let values = centroids.to_f32();
    let near = |row: &[f32]| (length(row) - 1.0).abs() < 0.01;
    if values.chunks(centroids.dims()).all(near) {
        return centroids.on_grid(grid);
    }
    let values = Values::F32(unit(&values, centroids.dims()));
    Points::new(centroids.name(), centroids.rows(), centroids.dims(), values)?.on_grid(grid)
}

/// The values that the inertia is about.
fn units(points: &Points, spherical: bool) -> std::borrow::Cow<'_, [f32]> {
    let values = points.to_f32();
    match spherical {
        true => unit(&values, points.dims()).into(),
        false => values,
    }
}

fn length(row: &[f32]) -> f64 {
    let mut lanes = Lanes::<f64>::new();
    lanes.squares(row);
    lanes.total().sqrt()
}

/// Rows scaled to length 1; zeros stay.
fn unit(values: &[f32], dims: usize) -> Vec<f32> {
    let mut out = values.to_vec();
    chunks_mut(&mut out, dims).each(|_, row| {
        let length = length(row);
        if length > 0.0 {
            for x in row {
                *x = (f64::from(*x) / length) as f32;
            }
        }
    });
    out
}

fn values(codes: &[i8], grid: &Grid) -> Vec<f32> {
    codes.iter().map(|&code| grid.value(code)).collect()
}

/// Σ(x − x̂)² over Σ(x − mean)², means by column; summed in the order of the values, so that threads do not show.
fn coding_error(values: &[f32], codes: &Codes, dims: usize) -> f64 {
    let rows = (values.len() / dims).max(1) as f64;
    let mut means = vec![0.0; dims];
    for row in values.chunks(dims) {
        for (mean, &x) in means.iter_mut().zip(row) {
            *mean += f64::from(x) / rows;
        }
    }
    let (mut error, mut spread) = (0.0, 0.0);
    for (row, codes_row) in values.chunks(dims).zip(codes.codes.chunks(dims)) {
        for ((&x, &code), mean) in row.iter().zip(codes_row).zip(&means) {
            error += (f64::from(x) - f64::from(codes.grid.value(code))).powi(2);
            spread += (f64::from(x) - mean).powi(2);
        }
    }
    if spread > 0.0 { error / spread } else { 0.0 }
}
