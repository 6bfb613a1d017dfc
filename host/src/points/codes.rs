//! Points on an int8 grid.

use rayon::prelude::*;
use tercet_core::engine::{Output, QuantizeEngine};
use tercet_core::number::Stats;
use tercet_core::quant::calibrate::{self, Method, Scheme};
use tercet_core::quant::{self, Grid, Groups, HOST_BITS, Histogram};

use super::{Points, Values};
use crate::Error;
use crate::parallel::{Threads, merged};
use crate::source::TILE;

/// int8 codes of points, row after row, and the grid they lie on: value = `(code − zero point) · scale`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Codes {
    /// One code a value.
    pub codes: Vec<i8>,
    /// What they stand for.
    pub grid: Grid,
    /// True where every code stands for exactly its value.
    pub exact: bool,
    /// Values that the grid's ends clipped by at least half a step.
    pub clipped: u64,
}

impl Codes {
    /// The values that the codes stand for.
    pub fn to_f32(&self) -> Vec<f32> {
        self.codes
            .iter()
            .map(|&code| self.grid.value(code))
            .collect()
    }
}

/// The grid of integers that stand for themselves, less `zero_point`.
pub(super) fn unit(zero_point: i8) -> Grid {
    Grid {
        scale: 1.0,
        zero_point,
        low: -128,
        high: 127,
    }
}

/// Statistics of all values, on all threads.
pub(super) fn stats(values: &[f32]) -> Stats {
    values
        .par_chunks(TILE)
        .map(Stats::of)
        .reduce_with(merged)
        .unwrap_or_else(|| Stats::of::<f32>(&[]))
}

impl Points {
    /// Puts the points on one int8 grid.
    ///
    /// Values that int8 holds exactly stay exact, whatever the method: int8 data on its own grid, integers from −128
    /// to 127 (floats too) with scale 1, and with [`Scheme::Affine`] integers from 0 to 255 with zero point −128, so
    /// that code = value − 128. For all others `method` chooses the range and `scheme` the grid over it.
    ///
    /// Squared distances do not depend on the zero point, so k-means and L2 search may take [`Scheme::Affine`], the
    /// finer of the two. Dot products and cosines need codes proportional to the values: [`Scheme::Symmetric`], which
    /// puts also int8 data with a zero point on a new grid. O(n·d), two passes over floats; scratch 512 KiB for the
    /// methods that need a histogram.
    ///
    /// # Errors
    /// [`Error::Options`] for a percentile out of range.
    pub fn to_codes(&self, method: Method, scheme: Scheme) -> Result<Codes, Error> {
        match &self.values {
            Values::I8 { codes, grid } if scheme == Scheme::Affine || grid.zero_point == 0 => {
                Ok(exact(codes.clone(), *grid))
            }
            Values::U8(values) => {
                let largest = values.iter().max().copied().unwrap_or(0);
                match (largest <= 127, scheme) {
                    (true, _) => Ok(exact(values.iter().map(|&x| x as i8).collect(), unit(0))),
                    // x − 128 in two's complement is x with its top bit flipped.
                    (false, Scheme::Affine) => {
                        let codes = values.iter().map(|&x| (x ^ 128) as i8).collect();
                        Ok(exact(codes, unit(-128)))
                    }
                    (false, Scheme::Symmetric) => coded(&self.to_f32(), method, scheme),
                }
            }
            _ => coded(&self.to_f32(), method, scheme),
        }
    }

    /// Puts the points on a given grid, as queries go on the grid of what they are compared with.
    ///
    /// # Errors
    /// [`Error::Options`] for a grid that [`Grid::checked`] refuses.
    pub fn on_grid(&self, grid: &Grid) -> Result<Codes, Error> {
        match &self.values {
            Values::I8 { codes, grid: own } if own == grid => Ok(exact(codes.clone(), *grid)),
            _ => on_grid(&self.to_f32(), *grid),
        }
    }
}

fn exact(codes: Vec<i8>, grid: Grid) -> Codes {
    Codes {
        codes,
        grid,
        exact: true,
        clipped: 0,
    }
}

fn coded(values: &[f32], method: Method, scheme: Scheme) -> Result<Codes, Error> {
    let stats = stats(values);
    let grid = match whole_grid(values, &stats, scheme) {
        Some(grid) => grid,
        None => chosen(values, &stats, method, scheme)?,
    };
    on_grid(values, grid)
}

/// The grid of scale 1 that holds all values, where they are integers of few enough bits.
fn whole_grid(values: &[f32], stats: &Stats, scheme: Scheme) -> Option<Grid> {
    let grid = match (whole(stats.min)?, whole(stats.max)?) {
        (-128.., ..=127) => unit(0),
        (0.., ..=255) if scheme == Scheme::Affine => unit(-128),
        _ => return None,
    };
    let all = values.par_iter().all(|&value| whole(value).is_some());
    all.then_some(grid)
}

fn chosen(values: &[f32], stats: &Stats, method: Method, scheme: Scheme) -> Result<Grid, Error> {
    match (method, scheme) {
        // The extremes are known; the histogram would find the same.
        (Method::AbsMax | Method::MinMax, Scheme::Symmetric) => {
            Grid::symmetric(stats.abs_max(), 127)
        }
        (Method::AbsMax, Scheme::Affine) => Grid::affine(-stats.abs_max(), stats.abs_max()),
        (Method::MinMax, Scheme::Affine) => Grid::affine(stats.min, stats.max),
        _ => {
            let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
            Histogram::<HOST_BITS>::new(&mut buckets).and_then(|mut histogram| {
                histogram.push(values)?;
                Ok(calibrate::calibrate(&histogram, method, scheme)?.grid)
            })
        }
    }
    .map_err(Error::options)
}

fn on_grid(values: &[f32], grid: Grid) -> Result<Codes, Error> {
    let mut codes = vec![0; values.len()];
    let (mut scale, mut zero_point) = ([0.0], [0]);
    let groups = Groups::tensor(values.len()).map_err(Error::options)?;
    let out = Output {
        codes: &mut codes,
        scales: &mut scale,
        zero_points: &mut zero_point,
    };
    let report = Threads::default()
        .tensor(values, groups, out)
        .and_then(|tensor| tensor.quantize(quant::Method::Fixed(grid)))
        .map_err(Error::options)?;
    let exact = codes
        .par_iter()
        .zip(values)
        .all(|(&code, &value)| grid.value(code) == value);
    Ok(Codes {
        codes,
        grid,
        exact,
        clipped: report.clipped,
    })
}

/// `value` as an integer, where it is one of few enough bits.
fn whole(value: f32) -> Option<i16> {
    // The cast saturates, and what it changed differs.
    let integer = value as i16;
    (f32::from(integer) == value).then_some(integer)
}
