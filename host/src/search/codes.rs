//! Conversion of floats to the codes of a storage.

use tercet_core::engine::{Output, QuantizeEngine};
use tercet_core::f16;
use tercet_core::number::Stats;
use tercet_core::quant::{Grid, Groups, Method, QuantError, Rule, ScaleRule};
use tercet_core::search::{MetricKind, SearchError, TernaryRows};

use crate::Error;
use crate::parallel::each::{chunks, chunks_mut};
use crate::parallel::{Threads, merged};
use crate::points::TILE;

/// int8 rows and queries, and the unit of their scores: the value of a score of 1.
pub(super) struct Int8 {
    pub(super) rows: Vec<i8>,
    pub(super) queries: Vec<i8>,
    /// One per query.
    pub(super) units: Vec<f64>,
    pub(super) exact: bool,
}

/// Packed ternary rows with their magnitudes, int8 queries, and the unit of their scores: the value of a score of 1.
pub(super) struct Ternary {
    pub(super) rows: Vec<u8>,
    pub(super) magnitudes: Vec<u8>,
    pub(super) queries: Vec<i8>,
    pub(super) units: Vec<f64>,
    pub(super) exact: bool,
}

/// Ternary rows before they are packed; `step` is the value of a magnitude of 1.
struct TernaryCodes {
    rows: Vec<i8>,
    scales: Vec<f32>,
    queries: Vec<i8>,
    units: Vec<f64>,
    step: f64,
}

/// Base and queries as they are given.
#[derive(Clone, Copy)]
pub(super) struct Floats<'a> {
    pub(super) base: &'a [f32],
    pub(super) queries: &'a [f32],
    pub(super) dims: usize,
    pub(super) metric: MetricKind,
}

/// Returns the scale, or 1 for a scale of 0, since a quotient by 0 would not be a number.
fn positive(scale: f32) -> f64 {
    if scale > 0.0 { f64::from(scale) } else { 1.0 }
}

/// Returns the codes of groups of values and the scale of each group.
fn quantize(
    values: &[f32],
    groups: Groups,
    method: Method,
) -> Result<(Vec<i8>, Vec<f32>), QuantError> {
    let mut codes = vec![0; values.len()];
    let (mut scales, mut zero_points) = (vec![0.0; groups.count], vec![0; groups.count]);
    let mut engine = Threads::default();
    let out = Output {
        codes: &mut codes,
        scales: &mut scales,
        zero_points: &mut zero_points,
    };
    engine.tensor(values, groups, out)?.quantize(method)?;
    Ok((codes, scales))
}

/// Puts all values on one grid.
fn on_grid(values: &[f32], grid: Grid) -> Result<Vec<i8>, QuantError> {
    let groups = Groups::tensor(values.len())?;
    Ok(quantize(values, groups, Method::Fixed(grid))?.0)
}

impl Floats<'_> {
    pub(super) fn int8(&self) -> Result<Int8, Error> {
        self.int8_codes().map_err(Error::options)
    }

    fn int8_codes(&self) -> Result<Int8, QuantError> {
        let count = self.queries.len() / self.dims;
        if let Some(grid) = self.whole() {
            return Ok(Int8 {
                rows: on_grid(self.base, grid)?,
                queries: on_grid(self.queries, grid)?,
                units: vec![1.0; count],
                exact: true,
            });
        }
        let symmetric = Method::Symmetric { limit: 127 };
        match self.metric {
            MetricKind::SquaredL2 => {
                let all = merged(stats(self.base), stats(self.queries));
                let grid = Grid::affine(all.min, all.max)?;
                let step = positive(grid.scale);
                Ok(Int8 {
                    rows: on_grid(self.base, grid)?,
                    queries: on_grid(self.queries, grid)?,
                    units: vec![step * step; count],
                    exact: false,
                })
            }
            kind => {
                let cosine = kind == MetricKind::Cosine;
                let groups = if cosine {
                    self.rows_of(self.base)?
                } else {
                    Groups::tensor(self.base.len())?
                };
                let (rows, scales) = quantize(self.base, groups, symmetric)?;
                let scale = scales.first().map_or(1.0, |&scale| positive(scale));
                let (queries, steps) =
                    quantize(self.queries, self.rows_of(self.queries)?, symmetric)?;
                let unit = |&step: &f32| if cosine { 1.0 } else { positive(step) * scale };
                Ok(Int8 {
                    rows,
                    queries,
                    units: steps.iter().map(unit).collect(),
                    exact: false,
                })
            }
        }
    }

    pub(super) fn ternary(&self) -> Result<Ternary, Error> {
        let codes = |part: &[f32]| part.iter().all(|x| [-1.0, 0.0, 1.0].contains(x));
        if chunks(self.base, TILE).all(codes)
            && let Some(grid) = self.whole()
            && grid.zero_point == 0
        {
            let codes = |values| on_grid(values, grid).map_err(Error::options);
            return Ok(Ternary {
                rows: self.pack(&codes(self.base)?).map_err(Error::options)?,
                magnitudes: vec![1; self.base.len() / self.dims],
                queries: codes(self.queries)?,
                units: vec![1.0; self.queries.len() / self.dims],
                exact: true,
            });
        }
        let coded = self.ternary_codes().map_err(Error::options)?;
        let magnitude = |&scale: &f32| match self.metric {
            MetricKind::Cosine => 1,
            // No scale exceeds the largest, but a step may have been rounded to the smallest float.
            _ => (f64::from(scale) / coded.step).round().min(127.0) as u8,
        };
        Ok(Ternary {
            rows: self.pack(&coded.rows).map_err(Error::options)?,
            magnitudes: coded.scales.iter().map(magnitude).collect(),
            queries: coded.queries,
            units: coded.units,
            exact: false,
        })
    }

    fn ternary_codes(&self) -> Result<TernaryCodes, QuantError> {
        let method = Method::Ternary {
            rule: Rule::Optimal,
            scale_rule: ScaleRule::LeastSquares,
        };
        let (rows, scales) = quantize(self.base, self.rows_of(self.base)?, method)?;
        let largest = scales.iter().copied().fold(0.0, f32::max);
        let (queries, units, step) = match self.metric {
            // Distances need one grid for queries and magnitudes.
            MetricKind::SquaredL2 => {
                let far = stats(self.queries).abs_max().max(largest);
                let grid = Grid::symmetric(far, 127)?;
                let step = positive(grid.scale);
                let queries = on_grid(self.queries, grid)?;
                let count = queries.len() / self.dims;
                (queries, vec![step * step; count], step)
            }
            kind => {
                let groups = self.rows_of(self.queries)?;
                let symmetric = Method::Symmetric { limit: 127 };
                let (queries, steps) = quantize(self.queries, groups, symmetric)?;
                let step = positive(largest) / 127.0;
                let unit = |&query: &f32| match kind {
                    MetricKind::Cosine => 1.0,
                    _ => positive(query) * step,
                };
                (queries, steps.iter().map(unit).collect(), step)
            }
        };
        Ok(TernaryCodes {
            rows,
            scales,
            queries,
            units,
            step,
        })
    }

    /// Returns the base in f16, or the index of the first value that overflows f16.
    pub(super) fn halves(&self) -> Result<Vec<f16>, usize> {
        let mut halves = vec![f16::ZERO; self.base.len()];
        let tiles = chunks(self.base, TILE).zip(chunks_mut(&mut halves, TILE));
        tiles.try_each(|tile, (values, halves)| {
            for (half, &x) in halves.iter_mut().zip(values) {
                *half = f16::from_f32(x);
            }
            match halves.iter().position(|half| !half.is_finite()) {
                Some(index) => Err(tile * TILE + index),
                None => Ok(()),
            }
        })?;
        Ok(halves)
    }

    /// Returns one group per row.
    fn rows_of(&self, values: &[f32]) -> Result<Groups, QuantError> {
        Groups::rows(values.len() / self.dims, self.dims)
    }

    /// Returns the grid on which every value of base and queries is its own code.
    fn whole(&self) -> Option<Grid> {
        let grid = |zero_point| Grid {
            scale: 1.0,
            zero_point,
            low: -128,
            high: 127,
        };
        let all = merged(stats(self.base), stats(self.queries));
        let distance = self.metric == MetricKind::SquaredL2;
        let grid = if all.min >= -128.0 && all.max <= 127.0 {
            grid(0)
        } else if distance && all.min >= 0.0 && all.max <= 255.0 {
            grid(-128)
        } else {
            return None;
        };
        let whole = |part: &[f32]| part.iter().all(|&x| f32::from(x as i16) == x);
        let both = chunks(self.base, TILE).all(whole) && chunks(self.queries, TILE).all(whole);
        both.then_some(grid)
    }

    fn pack(&self, codes: &[i8]) -> Result<Vec<u8>, SearchError> {
        let row_bytes = TernaryRows::row_bytes(self.dims);
        let mut bytes = vec![0; codes.len() / self.dims * row_bytes];
        chunks(codes, self.dims)
            .zip(chunks_mut(&mut bytes, row_bytes))
            .try_each(|_, (codes, out)| TernaryRows::pack(codes, out))?;
        Ok(bytes)
    }
}

fn stats(values: &[f32]) -> Stats {
    let all = chunks(values, TILE).reduce(|_, tile| Stats::of(tile), merged);
    all.unwrap_or(Stats::EMPTY)
}
