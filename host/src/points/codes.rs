//! Points on an int8 grid.

use tercet_core::engine::{Output, QuantizeEngine};
use tercet_core::number::Stats;
use tercet_core::quant::calibrate::{self, RangeRule, Scheme};
use tercet_core::quant::{self, Grid, Groups, HOST_BITS, Histogram};

use super::{Points, TILE, Values};
use crate::Error;
use crate::parallel::each::chunks;
use crate::parallel::{Threads, merged};

/// int8 codes of points, row after row, and their grid: value = `(code − zero point) · scale`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Codes {
    /// One code per value.
    pub codes: Vec<i8>,
    /// The grid that gives the codes their values.
    pub grid: Grid,
    /// True if every code stands for exactly its value.
    pub exact: bool,
    /// Number of values that the grid's ends clipped by at least half a step.
    pub clipped: u64,
}

impl Codes {
    /// Returns codes that stand for their values only approximately.
    pub(crate) fn inexact(codes: Vec<i8>, grid: Grid) -> Self {
        Self {
            codes,
            grid,
            exact: false,
            clipped: 0,
        }
    }

    /// Returns exactly the same values on a grid finer by the largest power of two that int8 has room for. Values that
    /// are rounded to the grid afterwards, such as centroids, are then rounded less. Codes that are not exact stay as
    /// they are. O(n·d).
    ///
    /// The zero point becomes 0 if that allows as fine a grid, otherwise the one that puts the smallest value at −128.
    pub(crate) fn refined(mut self) -> Self {
        let steps = |code: i8| i32::from(code) - i32::from(self.grid.zero_point);
        let low = self.codes.iter().copied().min().map_or(0, steps);
        let high = self.codes.iter().copied().max().map_or(0, steps);
        let zero_point = |factor: i32| -> Option<i8> {
            let (low, high) = (low * factor, high * factor);
            if (-128..=127).contains(&low) && (-128..=127).contains(&high) {
                return Some(0);
            }
            let shifted = -128 - low;
            (high + shifted <= 127).then(|| shifted.try_into().ok())?
        };
        let found = (1..8u32)
            .rev()
            .find_map(|shift| Some((1 << shift, zero_point(1 << shift)?)));
        let Some((factor, zero_point)) = found.filter(|_| self.exact) else {
            return self;
        };
        for code in &mut self.codes {
            let steps = i32::from(*code) - i32::from(self.grid.zero_point);
            *code = (steps * factor + i32::from(zero_point)) as i8;
        }
        self.grid = Grid {
            // The factor is a power of two, so every value stays the same, unless the scale is among the smallest
            // floats.
            scale: self.grid.scale / factor as f32,
            ..unit(zero_point)
        };
        self
    }

    /// Returns a squared distance of codes in the units of their values.
    pub fn squared(&self, distance: u64) -> f64 {
        distance as f64 * f64::from(self.grid.scale).powi(2)
    }

    /// Returns the values that the codes stand for.
    pub fn to_f32(&self) -> Vec<f32> {
        self.codes
            .iter()
            .map(|&code| self.grid.value(code))
            .collect()
    }
}

/// Returns the grid of scale 1 with this zero point: value = code − `zero_point`.
pub(super) fn unit(zero_point: i8) -> Grid {
    Grid {
        scale: 1.0,
        zero_point,
        low: -128,
        high: 127,
    }
}

/// Returns statistics of all values, computed on all threads.
pub(super) fn stats(values: &[f32]) -> Stats {
    let all = chunks(values, TILE).reduce(|_, tile| Stats::of(tile), merged);
    all.unwrap_or(Stats::EMPTY)
}

impl Points {
    /// Puts the points on one int8 grid.
    ///
    /// Values that int8 holds exactly stay exact, whatever the method: int8 data on its own grid, integers from −128 to
    /// 127 (floats too) with scale 1, and with [`Scheme::Affine`] integers from 0 to 255 with zero point −128, so that
    /// code = value − 128. For all other values `method` chooses the range and `scheme` the grid over it.
    ///
    /// Squared distances do not depend on the zero point, so k-means and L2 search may take [`Scheme::Affine`], the
    /// finer of the two. Dot products and cosines need codes proportional to the values: [`Scheme::Symmetric`], which
    /// also puts int8 data with a zero point on a new grid. O(n·d), two passes over floats. Methods that need a
    /// histogram use 512 KiB of scratch, and 1 MiB per thread.
    ///
    /// # Errors
    /// [`Error::Options`] for a percentile out of range.
    pub fn to_codes(&self, method: RangeRule, scheme: Scheme) -> Result<Codes, Error> {
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

    /// Returns the grid that [`Points::to_codes`] would choose for these points and others together.
    ///
    /// # Errors
    /// As [`Points::to_codes`].
    pub fn grid_with(
        &self,
        others: &Self,
        method: RangeRule,
        scheme: Scheme,
    ) -> Result<Grid, Error> {
        match (&self.values, &others.values) {
            (Values::I8 { grid: own, .. }, Values::I8 { grid, .. })
                if own == grid && (scheme == Scheme::Affine || grid.zero_point == 0) =>
            {
                Ok(*grid)
            }
            _ => {
                let mut values = self.to_f32().into_owned();
                values.extend_from_slice(&others.to_f32());
                let stats = stats(&values);
                whole_grid(&values, &stats, scheme)
                    .map_or_else(|| chosen(&values, &stats, method, scheme), Ok)
            }
        }
    }

    /// Puts the points on a given grid, such as queries on the grid of the points that they are compared with.
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

fn coded(values: &[f32], method: RangeRule, scheme: Scheme) -> Result<Codes, Error> {
    let stats = stats(values);
    let grid = match whole_grid(values, &stats, scheme) {
        Some(grid) => grid,
        None => chosen(values, &stats, method, scheme)?,
    };
    on_grid(values, grid)
}

/// Returns the grid of scale 1 that holds all values, if they are integers of few enough bits.
fn whole_grid(values: &[f32], stats: &Stats, scheme: Scheme) -> Option<Grid> {
    let grid = match (whole(stats.min)?, whole(stats.max)?) {
        (-128.., ..=127) => unit(0),
        (0.., ..=255) if scheme == Scheme::Affine => unit(-128),
        _ => return None,
    };
    let all = chunks(values, TILE).all(|tile| tile.iter().all(|&value| whole(value).is_some()));
    all.then_some(grid)
}

fn chosen(values: &[f32], stats: &Stats, method: RangeRule, scheme: Scheme) -> Result<Grid, Error> {
    match (method, scheme) {
        // The extremes are known; the histogram would find the same.
        (RangeRule::AbsMax | RangeRule::MinMax, Scheme::Symmetric) => {
            Grid::symmetric(stats.abs_max(), 127)
        }
        (RangeRule::AbsMax, Scheme::Affine) => Grid::affine(-stats.abs_max(), stats.abs_max()),
        (RangeRule::MinMax, Scheme::Affine) => Grid::affine(stats.min, stats.max),
        _ => {
            let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
            Histogram::<HOST_BITS>::new(&mut buckets).and_then(|mut histogram| {
                Threads::default().histogram(values, &mut histogram)?;
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
    let exact = (chunks(&codes, TILE).zip(chunks(values, TILE))).all(|(codes, values)| {
        let mut pairs = codes.iter().zip(values);
        pairs.all(|(&code, &value)| grid.value(code) == value)
    });
    Ok(Codes {
        codes,
        grid,
        exact,
        clipped: report.clipped,
    })
}

/// Returns `value` as an integer, if it is one of few enough bits.
fn whole(value: f32) -> Option<i16> {
    // The cast saturates, so a value that it changed differs.
    let integer = value as i16;
    (f32::from(integer) == value).then_some(integer)
}
