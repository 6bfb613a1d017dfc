//! Conversion between points in their own units and the int8 codes that are clustered.

use tercet_core::cluster::{Sphere, normalize, normalize_floats};
use tercet_core::number::Lanes;
use tercet_core::quant::Grid;
use tercet_core::quant::calibrate::{RangeRule, Scheme};

use crate::Error;
use crate::parallel::each::chunks_mut;
use crate::points::{Codes, Points, Values};

/// Puts the points on the grid for k-means.
pub(super) fn on_grid(points: &Points, range: RangeRule) -> Result<Codes, Error> {
    let codes = points.to_codes(range, Scheme::Affine)?;
    Ok(match points.values() {
        // int8 data has int8 centroids.
        Values::I8 { .. } => codes,
        _ => codes.refined(),
    })
}

/// Scales the points to one length. Their grid stands for vectors of length 1.
pub(super) fn on_sphere(points: &Points) -> Result<(Codes, Sphere), Error> {
    let dims = points.dims();
    let (codes, sphere) = match points.values() {
        // A scale without a zero point does not change a vector's direction.
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

/// Puts centroids on the grid of the points, as vectors of length 1 if `spherical`.
pub(super) fn placed(centroids: &Points, grid: &Grid, spherical: bool) -> Result<Codes, Error> {
    if !spherical {
        return centroids.on_grid(grid);
    }
    // Centroids that a spherical run wrote are rounded, so their length is not exactly 1. Scaling would round them
    // again.
    let values = centroids.to_f32();
    let near = |row: &[f32]| (length(row) - 1.0).abs() < 0.01;
    if values.chunks(centroids.dims()).all(near) {
        return centroids.on_grid(grid);
    }
    let values = Values::F32(unit(&values, centroids.dims()));
    Points::new(centroids.name(), centroids.rows(), centroids.dims(), values)?.on_grid(grid)
}

/// Returns the values that the inertia is measured on.
pub(super) fn units(points: &Points, spherical: bool) -> std::borrow::Cow<'_, [f32]> {
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

/// Scales rows to length 1. Rows of zeros stay as they are.
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

pub(super) fn values(codes: &[i8], grid: &Grid) -> Vec<f32> {
    codes.iter().map(|&code| grid.value(code)).collect()
}

/// Returns Σ(x − x̂)² / Σ(x − mean)², with means by column, summed in the order of the values, so that the result does
/// not depend on threads.
pub(super) fn coding_error(values: &[f32], codes: &Codes, dims: usize) -> f64 {
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
