//! Scales of activations from recorded data.

use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;
use tercet_core::quant::calibrate;
use tercet_core::quant::{HOST_BITS, Histogram};

use crate::convert::Grid;
use crate::parallel::moved;
use crate::simd::{Backend, Counts};
use crate::source::{CHUNK, Source, TILE};
use crate::{Error, Model, Progress};

/// How a range is chosen from the histogram of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// The largest magnitude.
    AbsMax,
    /// Smallest and largest value.
    MinMax,
    /// All but the outermost values, in percent kept, to a ten-thousandth: 99.9 keeps 99.9 %.
    Percentile(f64),
    /// The range of least squared error.
    Mse,
    /// The range of least Kullback–Leibler divergence.
    Entropy,
}

/// The int8 grid for the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Calibration {
    /// Number of values seen.
    pub count: u64,
    /// The smallest value.
    pub min: f32,
    /// The largest value.
    pub max: f32,
    /// Lower end of the range that the codes cover.
    pub low: f32,
    /// Upper end of it.
    pub high: f32,
    /// Distance between neighbouring codes.
    pub scale: f32,
    /// The code of 0.0; 0 for a symmetric grid.
    pub zero_point: i8,
}

/// Calibrates one int8 grid over all float tensors of all files; their order cannot show. Memory beyond the mappings:
/// 512 KiB, and 1,088 KiB a thread.
///
/// # Errors
/// Those of [`Model::open`](crate::Model::open), and [`Error::Tensor`] for a value that is not finite.
pub fn calibrate(
    paths: &[PathBuf],
    method: Method,
    grid: Grid,
    progress: &dyn Progress,
) -> Result<Calibration, Error> {
    let models: Vec<Model> = paths.iter().map(Model::open).collect::<Result<_, _>>()?;
    let mut sources = Vec::new();
    for model in &models {
        for tensor in model.tensors().filter(|tensor| tensor.dtype.is_float()) {
            sources.push(Source::new(model, tensor)?);
        }
    }
    progress.start(
        sources
            .iter()
            .map(|source| source.tensor.bytes.len() as u64)
            .sum(),
    );
    let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
    let mut histogram = Histogram::new(&mut buckets).map_err(Error::options)?;
    // Counts a job; jobs take the next chunks side by side.
    let values: usize = sources.iter().map(Source::values).sum();
    let jobs = (values.div_ceil(CHUNK)).clamp(1, rayon::current_num_threads());
    let mut counts: Vec<Counts> = (0..jobs).map(|_| Counts::new()).collect();
    for source in &sources {
        progress.tensor(source.tensor.name);
        for first in (0..source.values()).step_by(jobs * CHUNK) {
            let end = source.values().min(first + jobs * CHUNK);
            // Whole tiles, and so whole blocks.
            let share = (end - first).div_ceil(jobs).next_multiple_of(TILE);
            let results: Vec<_> = (counts.par_iter_mut().enumerate())
                .map_init(Vec::new, |buffer, (job, counts)| {
                    let from = end.min(first + job * share);
                    count(source, from, end.min(from + share), counts, buffer)
                })
                .collect();
            // In order, so that the lowest index is the one reported.
            results.into_iter().collect::<Result<(), Error>>()?;
            for counts in &mut counts {
                // No room for as many again.
                if counts.counted() > Counts::MOST - 2 * CHUNK as u64 {
                    counts.add_to(&mut histogram);
                }
            }
            progress.advance(source.bytes_of(end) - source.bytes_of(first));
        }
    }
    for counts in &mut counts {
        counts.add_to(&mut histogram);
    }
    let found = calibrate::calibrate(&histogram, method.core()?, grid);
    let found = found.map_err(|error| match paths {
        [path] => Error::unsupported(path, error),
        _ => Error::options(error),
    })?;
    let (min, max) = histogram.range().unwrap_or_default();
    Ok(Calibration {
        count: histogram.count(),
        min,
        max,
        low: found.low,
        high: found.high,
        scale: found.grid.scale,
        zero_point: found.grid.zero_point,
    })
}

/// Counts the values `from..to` of a tensor.
fn count(
    source: &Source<'_>,
    from: usize,
    to: usize,
    counts: &mut Counts,
    buffer: &mut Vec<f32>,
) -> Result<(), Error> {
    for at in (from..to).step_by(TILE) {
        let values = source.view(at, TILE.min(to - at), buffer)?;
        counts.push(Backend::default(), values).map_err(|error| {
            Error::tensor(source.path, source.tensor.name, moved(error, at as u64))
        })?;
    }
    Ok(())
}

impl Method {
    pub(crate) fn core(self) -> Result<calibrate::Method, Error> {
        Ok(match self {
            Self::AbsMax => calibrate::Method::AbsMax,
            Self::MinMax => calibrate::Method::MinMax,
            Self::Percentile(percent) if percent > 0.0 && percent <= 100.0 => {
                calibrate::Method::Percentile {
                    ppm: (percent * 10_000.0).round() as u32,
                }
            }
            Self::Percentile(percent) => {
                let reason =
                    format!("a percentile of {percent}; it must lie above 0 and at most at 100");
                return Err(Error::options(reason));
            }
            Self::Mse => calibrate::Method::Mse,
            Self::Entropy => calibrate::Method::Entropy,
        })
    }
}
