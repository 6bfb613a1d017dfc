//! int8 and ternary codes with scales beside them.
//!
//! Groups that fit a thread's cache are quantized there, many tiles at once. A longer group, such as a
//! whole tensor, is a problem of its own whose passes run over tiles on all threads; statistics, bins and counts
//! are exact integers, so the split does not show.

use rayon::prelude::*;
use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, Output, QuantizeProblem};
use tercet_core::number::Stats;
use tercet_core::quant::{self, Applied, Groups, Measures, Method, Plan, QuantError};

use crate::parallel::{Rows, merged};
use crate::simd::{Ahead, Backend, Stores};
use crate::source::{Source, TILE, tiles};
use crate::{Error, Progress};

/// Groups of up to this many values (256 KiB as `f32`) are done by one thread.
const ONE_THREAD: usize = 1 << 16;

/// Bins for the optimal ternary rule over a large group: 64 KiB, three passes on data of usual shape.
const BINS: usize = 4096;

/// Tiles that are counted into one table of bins, at the least: 262,144 values.
const TILES_A_TABLE: usize = 16;

/// A quantized tensor.
#[derive(Debug)]
pub(crate) struct Codes {
    pub(crate) codes: Vec<i8>,
    pub(crate) scales: Vec<f32>,
    /// Empty where the method has none.
    pub(crate) zero_points: Vec<i8>,
    pub(crate) flushed: u64,
}

impl Codes {
    /// Restores the codes that begin at value `first`.
    fn restore(&self, groups: Groups, first: usize, mut codes: &[i8], mut out: &mut [f32]) {
        let (backend, mut at) = (Backend::default(), first);
        while !codes.is_empty() {
            let group = at / groups.len;
            let len = (groups.len - at % groups.len).min(codes.len());
            let scale = self.scales[group];
            let zero = self.zero_points.get(group).copied().unwrap_or(0);
            let (run, codes_after) = codes.split_at(len);
            let (restored, out_after) = out.split_at_mut(len);
            backend.dequantize(run, zero, scale, restored, Stores::Cached);
            (codes, out) = (codes_after, out_after);
            at += len;
        }
    }
}

/// Quantizes a tensor of plain floats.
pub(crate) fn quantize(
    source: &Source<'_>,
    method: Method,
    groups: Groups,
    progress: &dyn Progress,
) -> Result<Codes, Error> {
    let points = if method == Method::Affine {
        groups.count
    } else {
        0
    };
    let mut done = Codes {
        codes: vec![0; source.values()],
        scales: vec![0.0; groups.count],
        zero_points: vec![0; points],
        flushed: 0,
    };
    if groups.len <= ONE_THREAD {
        small_groups(source, method, groups, &mut done)?;
    } else {
        large_groups(source, method, groups, &mut done)?;
    }
    progress.advance(source.bytes_of(source.values()));
    Ok(done)
}

/// A quantizer's refusal about the part of a tensor that begins at value `first`.
fn refuse(source: &Source<'_>, first: usize, error: QuantError) -> Error {
    let placed = match error {
        QuantError::NotFinite { index } => QuantError::NotFinite {
            index: index + first as u64,
        },
        other => other,
    };
    Error::tensor(source.path, source.tensor.name, placed)
}

fn small_groups(
    source: &Source<'_>,
    method: Method,
    groups: Groups,
    done: &mut Codes,
) -> Result<(), Error> {
    let count = (TILE / groups.len).max(1);
    let (backend, stores) = (Backend::default(), Stores::of(done.codes.len()));
    let codes = done.codes.par_chunks_mut(count * groups.len);
    let scales = done.scales.par_chunks_mut(count);
    // A tile without zero points gets an empty slice.
    let mut none: Vec<&mut [i8]> = Vec::new();
    let zero_points: Vec<&mut [i8]> = if done.zero_points.is_empty() {
        none.resize_with(groups.count.div_ceil(count), Default::default);
        none
    } else {
        done.zero_points.chunks_mut(count).collect()
    };
    let tiles = codes.zip(scales).zip(zero_points).enumerate();
    let results: Vec<Result<u64, Error>> = tiles
        .map_init(
            || {
                (
                    Vec::new(),
                    vec![MagnitudeBin::EMPTY; method.scratch_len(groups.len)],
                )
            },
            |(values, bins), (tile, ((codes, scales), zero_points))| {
                let first = tile * count * groups.len;
                let part = Groups {
                    count: scales.len(),
                    len: groups.len,
                };
                let values = source.view(first, codes.len(), values)?;
                let out = Output {
                    codes,
                    scales,
                    zero_points,
                };
                let rows = Rows::new(values, part, out, backend, stores);
                rows.quantize(method, bins)
                    .map(|report| report.flushed)
                    .map_err(|error| refuse(source, first, error))
            },
        )
        .collect();
    for result in results {
        done.flushed += result?;
    }
    Ok(())
}

fn large_groups(
    source: &Source<'_>,
    method: Method,
    groups: Groups,
    done: &mut Codes,
) -> Result<(), Error> {
    // More bins than it must have: fewer passes over the values.
    let bins = if method.scratch_len(groups.len) > 0 {
        BINS
    } else {
        0
    };
    let mut bins = vec![MagnitudeBin::EMPTY; bins];
    for (group, codes) in done.codes.chunks_mut(groups.len).enumerate() {
        let first = group * groups.len;
        let mut problem = Large {
            source,
            first,
            codes,
            scale: 0.0,
            zero_point: 0,
        };
        let report = quant::quantize(&mut problem, method, &mut bins);
        let report = report.map_err(|error| match error {
            LargeError::Quant(error) => refuse(source, first, error),
            LargeError::Host(error) => error,
        })?;
        done.scales[group] = problem.scale;
        if let Some(zero_point) = done.zero_points.get_mut(group) {
            *zero_point = problem.zero_point;
        }
        done.flushed += report.flushed;
    }
    Ok(())
}

/// One group that all threads work on.
struct Large<'a, 's> {
    source: &'a Source<'s>,
    first: usize,
    codes: &'a mut [i8],
    scale: f32,
    zero_point: i8,
}

/// What stops work on a group.
enum LargeError {
    Quant(QuantError),
    Host(Error),
}

impl From<QuantError> for LargeError {
    fn from(error: QuantError) -> Self {
        Self::Quant(error)
    }
}

impl Large<'_, '_> {
    fn reduce(
        &self,
        of: impl Fn(Backend, &[f32], Ahead) -> Stats + Sync,
    ) -> Result<Stats, LargeError> {
        let (backend, len) = (Backend::default(), self.codes.len());
        let of = |values: &[f32]| of(backend, values, Ahead::STREAM);
        let stats = tiles(self.source, self.first, len, of, merged);
        Ok(stats.map_err(LargeError::Host)?.unwrap_or(Stats::EMPTY))
    }
}

impl QuantizeProblem for Large<'_, '_> {
    type Error = LargeError;

    fn groups(&self) -> Groups {
        Groups {
            count: 1,
            len: self.codes.len(),
        }
    }

    fn stats(&mut self, _: usize) -> Result<Stats, LargeError> {
        self.reduce(Backend::stats)
    }

    fn extremes(&mut self, _: usize) -> Result<Stats, LargeError> {
        self.reduce(Backend::extremes)
    }

    fn read_magnitudes(&mut self, _: usize, out: &mut [u32]) -> Result<(), LargeError> {
        // Groups this small never come here, yet the contract holds.
        let mut values = vec![0.0; out.len()];
        self.source
            .read(self.first, &mut values)
            .map_err(LargeError::Host)?;
        Ok(tercet_core::scalar::read_magnitudes(&values, out)?)
    }

    fn magnitudes(
        &mut self,
        _: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), LargeError> {
        span.check(bins)?;
        let (source, first, len) = (self.source, self.first, self.codes.len());
        let empty = || vec![MagnitudeBin::EMPTY; span.bins()];
        let table = (0..len.div_ceil(TILE))
            .into_par_iter()
            // A table a job, which takes as long to merge as a tile to count.
            .with_min_len(TILES_A_TABLE)
            .try_fold(
                || (Vec::new(), empty()),
                |(mut values, mut table), tile| {
                    let from = tile * TILE;
                    let tile = source
                        .view(first + from, TILE.min(len - from), &mut values)
                        .map_err(LargeError::Host)?;
                    Backend::default().magnitudes(tile, span, &mut table)?;
                    Ok::<_, LargeError>((values, table))
                },
            )
            .map(|job| job.map(|(_, table)| table))
            .try_reduce(empty, |mut a, b| {
                for (a, b) in a.iter_mut().zip(&b) {
                    a.merge(b);
                }
                Ok(a)
            })?;
        for (bin, more) in bins.iter_mut().zip(&table) {
            bin.merge(more);
        }
        Ok(())
    }

    fn apply(&mut self, _: usize, plan: &Plan) -> Result<Applied, LargeError> {
        let (source, first, len) = (self.source, self.first, self.codes.len());
        let (backend, stores) = (Backend::default(), Stores::of(len));
        let tiles = self.codes.par_chunks_mut(TILE).enumerate();
        let applied = tiles
            .map_init(Vec::new, |values, (tile, codes)| {
                let values = source
                    .view(first + tile * TILE, codes.len(), values)
                    .map_err(LargeError::Host)?;
                let applied = backend.apply(plan, values, codes, stores, Ahead::STREAM);
                stores.finish();
                Ok::<_, LargeError>(applied?)
            })
            .try_reduce(Applied::default, |mut a, b| {
                a.merge(&b);
                Ok(a)
            })?;
        Ok(applied)
    }

    fn set_scale(&mut self, _: usize, scale: f32, zero_point: i8) -> Result<(), LargeError> {
        self.scale = scale;
        self.zero_point = zero_point;
        Ok(())
    }
}

/// Measures codes against the values they came from.
pub(crate) fn measure(
    source: &Source<'_>,
    groups: Groups,
    done: &Codes,
) -> Result<Option<Measures>, Error> {
    super::measure::measure(source, |first, out| {
        done.restore(groups, first, &done.codes[first..][..out.len()], out);
    })
}

/// The statistics of a whole tensor of at least one value, all finite.
pub(crate) fn stats(source: &Source<'_>) -> Result<Stats, Error> {
    let of = |values: &[f32]| Backend::default().stats(values, Ahead::STREAM);
    let stats = tiles(source, 0, source.values(), of, merged)?;
    let stats = stats.unwrap_or(Stats::EMPTY);
    match stats.first_bad {
        Some(index) => Err(refuse(source, 0, QuantError::NotFinite { index })),
        None => Ok(stats),
    }
}
