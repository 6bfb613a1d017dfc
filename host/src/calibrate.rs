//! Chooses the scales of activations from recorded data.

use std::path::PathBuf;

use serde::Serialize;
use tercet_core::engine::{QuantizeEngine, Refused};
use tercet_core::number::Element;
use tercet_core::quant::calibrate::{self, RangeRule};
use tercet_core::quant::{HOST_BITS, Histogram, QuantError};
use tercet_core::{bf16, f16};
use tracing::trace_span;

use crate::convert::Scheme;
use crate::dtype::DType;
use crate::engine::{DoneBy, EngineError, FlowEngine, WithFallback};
use crate::parallel::each::items_mut;
use crate::parallel::{Threads, moved};
use crate::simd::{Backend, Counts};
use crate::source::{CHUNK, Source, TILE, gather};
use crate::{Error, Progress, TensorFile};

/// The histogram of all values.
type Counted<'a> = Histogram<'a, HOST_BITS>;

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
    /// The engine chosen to count the values: an instruction set of the processor, or [`FlowEngine::name`].
    pub engine: String,
    /// Why the processor did some of that engine's work; `None` if it did none.
    pub engine_note: Option<String>,
}

/// Calibrates one int8 grid over all float tensors of all files. The order of tensors and files has no effect. The
/// engine counts the values; every engine returns the same figures.
///
/// If the engine is the pool itself ([`FlowEngine::is_pool`]), each thread has its own counts for all the data. Any
/// other engine gets chunks of 2^20 values. It reads f32, f16 and bf16 values where they lie; the processor's threads
/// convert all others to f32 first. The threads also count the chunks that the engine has no room for, and
/// [`Calibration::engine_note`] reports that.
///
/// Memory beyond the mappings: 512 KiB, plus 1,088 KiB per thread, or else what the engine needs for a chunk and 4 MiB
/// for converted values.
///
/// # Errors
/// Those of [`TensorFile::open`](crate::TensorFile::open); [`Error::Tensor`] for a value that is not finite;
/// [`Error::Engine`].
pub fn calibrate<E: FlowEngine>(
    engine: &mut E,
    paths: &[PathBuf],
    rule: RangeRule,
    grid: Scheme,
    progress: &dyn Progress,
) -> Result<Calibration, Error> {
    if engine.is_pool() {
        return of_data(paths, rule, grid, progress, by_threads);
    }
    of_data(
        paths,
        rule,
        grid,
        progress,
        |sources, histogram, progress| by_engine(engine, sources, histogram, progress),
    )
}

/// Returns the grid for all values. `count` counts them and returns the engine that did it.
fn of_data(
    paths: &[PathBuf],
    rule: RangeRule,
    grid: Scheme,
    progress: &dyn Progress,
    count: impl FnOnce(&[Source<'_>], &mut Counted<'_>, &dyn Progress) -> Result<DoneBy, Error>,
) -> Result<Calibration, Error> {
    let models: Vec<TensorFile> = paths
        .iter()
        .map(TensorFile::open)
        .collect::<Result<_, _>>()?;
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
    let mut buckets = vec![0; Counted::BUCKETS];
    let mut histogram = Counted::new(&mut buckets).map_err(Error::options)?;
    let by = count(&sources, &mut histogram, progress)?;
    let found = calibrate::calibrate(&histogram, rule, grid);
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
        engine: by.engine,
        engine_note: by.note,
    })
}

/// Counts all values on all threads. Each thread has its own counts for all the data.
fn by_threads(
    sources: &[Source<'_>],
    histogram: &mut Counted<'_>,
    progress: &dyn Progress,
) -> Result<DoneBy, Error> {
    // Each job has its own counts. The jobs process adjacent parts of the data in parallel.
    let values: usize = sources.iter().map(Source::values).sum();
    let jobs = (values.div_ceil(CHUNK)).clamp(1, rayon::current_num_threads());
    let mut counts: Vec<Counts> = (0..jobs).map(|_| Counts::new()).collect();
    for source in sources {
        progress.tensor(source.tensor.name);
        for first in (0..source.values()).step_by(jobs * CHUNK) {
            let end = source.values().min(first + jobs * CHUNK);
            // Shares are whole tiles, and so whole blocks.
            let share = (end - first).div_ceil(jobs).next_multiple_of(TILE);
            items_mut(&mut counts).try_each_with(Vec::new, |buffer, job, counts| {
                let from = end.min(first + job * share);
                let tensor = source.tensor.name;
                let _span = trace_span!("count", tensor, first = from).entered();
                count(source, from, end.min(from + share), counts, buffer)
            })?;
            for counts in &mut counts {
                // The counters may have no room for the next share.
                if counts.counted() > Counts::MOST - 2 * CHUNK as u64 {
                    counts.add_to(histogram);
                }
            }
            progress.advance(source.bytes_of(end) - source.bytes_of(first));
        }
    }
    for counts in &mut counts {
        counts.add_to(histogram);
    }
    Ok(DoneBy::name(Backend::default().to_string()))
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

/// Counts all values by an engine, chunk by chunk.
fn by_engine<E: FlowEngine>(
    engine: &mut E,
    sources: &[Source<'_>],
    histogram: &mut Counted<'_>,
    progress: &dyn Progress,
) -> Result<DoneBy, Error> {
    let mut shared = WithFallback::new(engine);
    let mut buffer = Vec::new();
    for source in sources {
        progress.tensor(source.tensor.name);
        for first in (0..source.values()).step_by(CHUNK) {
            let len = CHUNK.min(source.values() - first);
            let _span = trace_span!("chunk", tensor = source.tensor.name, first).entered();
            let before = histogram.count();
            let counted = chunk(&mut shared, source, first, len, histogram, &mut buffer)?;
            counted.map_err(|fault| {
                // Replaces the value's index in the stream by its index in the tensor.
                let fault = match fault {
                    EngineError::Refused(Refused::Quantize(QuantError::NotFinite { index })) => {
                        let index = first as u64 + (index - before);
                        QuantError::NotFinite { index }.into()
                    }
                    other => other,
                };
                shared.error(fault, |refusal| {
                    Error::tensor(source.path, source.tensor.name, refusal)
                })
            })?;
            progress.advance(source.bytes_of(first + len) - source.bytes_of(first));
        }
    }
    Ok(DoneBy {
        engine: shared.engine.name(),
        note: shared.note(),
    })
}

/// Counts the `len` values from `first` on: f16 and bf16 where they lie, others as f32.
fn chunk<E: FlowEngine>(
    shared: &mut WithFallback<'_, E>,
    source: &Source<'_>,
    first: usize,
    len: usize,
    histogram: &mut Counted<'_>,
    buffer: &mut Vec<f32>,
) -> Result<Result<(), EngineError>, Error> {
    if let Some(values) = source.lying_as::<f16>(DType::F16, first, len) {
        return Ok(count_or_threads(shared, values, histogram));
    }
    if let Some(values) = source.lying_as::<bf16>(DType::Bf16, first, len) {
        return Ok(count_or_threads(shared, values, histogram));
    }
    let values = gather(shared, source, first, len, buffer)?;
    Ok(count_or_threads(shared, values, histogram))
}

/// Counts values by an engine or, if it has no room, by the processor's threads.
fn count_or_threads<E: FlowEngine, T: Element>(
    shared: &mut WithFallback<'_, E>,
    values: &[T],
    histogram: &mut Counted<'_>,
) -> Result<(), EngineError> {
    let done = shared.engine.histogram(values, histogram);
    // An engine that failed has counted nothing.
    let again = |threads: &mut Threads| Ok(threads.histogram(values, histogram)?);
    shared.or_threads(done, again)
}
