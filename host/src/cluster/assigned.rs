//! Assignment of points in their own units to the nearest of given centroids.

use tercet_core::cluster::float;
use tercet_core::quant::Grid;
use tercet_core::quant::calibrate::{RangeRule, Scheme};
use tracing::trace_span;

use super::units::{on_grid, on_sphere, placed, units};
use super::{Assignment, inertia};
use crate::Error;
use crate::engine::{DoneBy, FlowEngine};
use crate::points::{Points, Values};

/// Points with their nearest centroids, in codes and in the data's own units.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Assigned {
    /// Labels, distances and counts, in units of codes.
    pub assignment: Assignment,
    /// The grid of points and centroids.
    pub grid: Grid,
    /// Σ‖x − c‖² of the values before they were put on the grid.
    pub inertia: f64,
    /// Number of values of points and centroids that lay beyond the grid's ends and were clipped.
    pub clipped: u64,
    /// The engine that compared points with centroids.
    pub by: DoneBy,
}

/// Finds the nearest of the given centroids for every point, on an engine, or on the processor's threads if the engine
/// has no room for the points.
///
/// If the centroids are codes with a scale, as [`crate::points::write_centroids`] writes them to `.safetensors`, the
/// grid is their own: the one they were found on. Otherwise it is the grid on which the points are exact, if there is
/// one and the centroids do not lie beyond its ends. Otherwise one grid is laid over points and centroids together. For
/// the points that the centroids were found from, all of these are the same grid, unless a percentile chose it.
///
/// With spherical clustering, centroids are scaled to length 1 unless all lengths are within a hundredth of 1.
///
/// # Errors
/// [`Error::Options`] if the centroids and the points differ in their number of values; [`Error::Unsupported`] for all
/// that [`super::assign`] refuses; [`Error::Engine`].
pub fn assign_points<E: FlowEngine>(
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
            "the centroids have {} values, but the points have {dims}",
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
            let codes = on_grid(points, RangeRule::MinMax)?;
            let of_centroids = centroids.on_grid(&codes.grid)?;
            if codes.exact && of_centroids.clipped == 0 {
                (codes, of_centroids)
            } else {
                let grid = points.grid_with(centroids, RangeRule::MinMax, Scheme::Affine)?;
                (points.on_grid(&grid)?, centroids.on_grid(&grid)?)
            }
        }
    };
    drop(span);
    let refuse = |reason: &dyn std::fmt::Display| points.refuse(reason);
    let done = super::assign(engine, &codes.codes, dims, &of_centroids.codes);
    let (assignment, by) = DoneBy::or_threads(engine.name(), done, |threads| {
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
