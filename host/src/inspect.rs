//! Reports the shape, type and values of every tensor of a model.

use serde::Serialize;
use tercet_core::number::Stats;
use tracing::trace_span;

use crate::engine::{FlowEngine, WithFallback};
use crate::names::closest;
use crate::parallel::each;
use crate::source::{ChunkBuffers, Source, TILE, chunks, on_engine, tiles};
use crate::{Error, Progress, Tensor, TensorFile};

/// Number of bars of [`ValueSummary::histogram`].
pub const BARS: usize = 32;

/// A model's file and its tensors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The format: `safetensors`, `npy` or `gguf`.
    pub format: &'static str,
    /// Bytes of all the model's files.
    pub bytes: u64,
    /// Number of values of all tensors.
    pub values: u64,
    /// Pairs of key and value beside the tensors.
    pub metadata: Vec<(String, String)>,
    /// The tensors in file order.
    pub tensors: Vec<TensorSummary>,
    /// The name of the engine that restored the quantized values, or of both engines if two shared the work. If nothing
    /// is quantized, the processor's name.
    pub engine: String,
    /// Why the processor did some of the engine's work; `None` if it did none.
    pub engine_note: Option<String>,
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TensorSummary {
    /// Its name.
    pub name: String,
    /// Its shape, outermost dimension first.
    pub shape: Vec<usize>,
    /// Its type.
    pub dtype: String,
    /// Bytes in the file, without scales and zero points that are separate tensors.
    pub bytes: u64,
    /// Bits per value.
    pub bits_per_weight: f64,
    /// False for types that are copied without being decoded.
    pub decoded: bool,
    /// Summary of the values; `None` if they are not decoded or none is finite.
    pub values: Option<ValueSummary>,
}

/// The values of a tensor, restored to `f32`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ValueSummary {
    /// The smallest finite value.
    pub min: f32,
    /// The largest finite value.
    pub max: f32,
    /// Mean of the finite |x|: an exact sum, rounded once.
    pub abs_mean: f32,
    /// Number of zeros.
    pub zeros: u64,
    /// Number of NaNs and infinities.
    pub not_finite: u64,
    /// Counts in [`BARS`] equal ranges from `min` to `max`.
    pub histogram: Vec<u64>,
}

/// Summarizes the tensors of a model: all, or the named one. The engine restores GGUF blocks, int8 and ternary codes
/// and palettes. Every engine returns the same figures to the bit.
///
/// The processor's threads read each tensor's values twice, widen floats and restore packed two-bit codes, for which no
/// engine has a step. They also process the chunks that the engine has no room for. [`Summary::engine`] reports which
/// engine restored the values, and [`Summary::engine_note`] why the engine did not restore all of them. If the engine
/// is the pool itself ([`FlowEngine::is_pool`]), its threads restore tile by tile.
///
/// Memory does not grow with the tensors. It is a tile of 64 KiB per thread, or two chunks of 4 MiB: an engine restores
/// the next chunk while the threads read the current one.
///
/// # Errors
/// [`Error::NoSuchTensor`]; [`Error::Tensor`] for a tensor whose blocks or scales are damaged; [`Error::Engine`].
pub fn inspect<E: FlowEngine>(
    engine: &mut E,
    model: &TensorFile,
    only: Option<&str>,
    progress: &dyn Progress,
) -> Result<Summary, Error> {
    let mut chosen: Vec<Tensor<'_>> = model.tensors().collect();
    if let Some(name) = only {
        chosen.retain(|tensor| tensor.name == name);
        if chosen.is_empty() {
            return Err(Error::NoSuchTensor {
                path: model.path().to_path_buf(),
                tensor: name.to_owned(),
                close: closest(name, model.tensors().map(|tensor| tensor.name)),
            });
        }
    }
    progress.start(chosen.iter().map(|tensor| tensor.bytes.len() as u64).sum());
    let mut look = Look {
        shared: WithFallback::new(engine),
        room: ChunkBuffers::default(),
    };
    let mut tensors = Vec::with_capacity(chosen.len());
    let mut count = 0;
    for tensor in chosen {
        progress.tensor(tensor.name);
        let source = Source::new(model, tensor)?;
        count += source.values() as u64;
        tensors.push(TensorSummary {
            name: tensor.name.to_owned(),
            shape: source.shape(),
            dtype: source.type_name(),
            bytes: tensor.bytes.len() as u64,
            bits_per_weight: match source.values() {
                0 => 0.0,
                values => tensor.bytes.len() as f64 * 8.0 / values as f64,
            },
            decoded: source.is_readable(),
            values: look.values(&source)?,
        });
        progress.advance(tensor.bytes.len() as u64);
    }
    Ok(Summary {
        format: model.container().name(),
        bytes: model.file_bytes(),
        values: count,
        metadata: model.metadata().clone(),
        tensors,
        engine: look.shared.restored(),
        engine_note: look.shared.note(),
    })
}

/// Statistics of a part of a tensor: of its finite values, and the number of others.
struct PartialStats {
    stats: Stats,
    zeros: u64,
    not_finite: u64,
}

impl PartialStats {
    fn of(values: &[f32]) -> Self {
        let mut stats = Stats::of(values);
        let mut not_finite = 0;
        if stats.first_bad.is_some() {
            let finite: Vec<f32> = values.iter().copied().filter(|x| x.is_finite()).collect();
            not_finite = (values.len() - finite.len()) as u64;
            stats = Stats::of(&finite);
        }
        Self {
            stats,
            zeros: values.iter().filter(|&&x| x == 0.0).count() as u64,
            not_finite,
        }
    }

    fn merge(mut self, next: Self) -> Self {
        self.stats.merge(&next.stats);
        self.zeros += next.zeros;
        self.not_finite += next.not_finite;
        self
    }
}

/// The state of an inspection.
struct Look<'e, E> {
    shared: WithFallback<'e, E>,
    /// Space for values that the engine restored.
    room: ChunkBuffers<1>,
}

impl<E: FlowEngine> Look<'_, E> {
    /// Summarizes a tensor in two passes: first extremes and sums, then the histogram between the extremes.
    fn values(&mut self, source: &Source<'_>) -> Result<Option<ValueSummary>, Error> {
        if !source.is_readable() {
            return Ok(None);
        }
        let Some(part) = self.pass(source, PartialStats::of, PartialStats::merge)? else {
            return Ok(None);
        };
        let Some(abs_mean) = part.stats.abs_mean() else {
            // No value is finite.
            return Ok(None);
        };
        let (min, max) = (part.stats.min, part.stats.max);
        let histogram = self.pass(source, |values| bars(values, min, max), added)?;
        Ok(Some(ValueSummary {
            min,
            max,
            abs_mean,
            zeros: part.zeros,
            not_finite: part.not_finite,
            histogram: histogram.unwrap_or([0; BARS]).to_vec(),
        }))
    }

    /// Runs `work` over a tensor's values on all threads, and merges the results in order; `None` if there are no
    /// values.
    fn pass<T: Send + 'static>(
        &mut self,
        source: &Source<'_>,
        work: impl Fn(&[f32]) -> T + Sync,
        merge: impl Fn(T, T) -> T + Sync,
    ) -> Result<Option<T>, Error> {
        let all = source.values();
        let work = |values: &[f32]| {
            let _span = trace_span!("look", len = values.len()).entered();
            work(values)
        };
        if !on_engine(self.shared.engine, source) {
            if source.is_quantized() && all > 0 {
                self.shared.by_processor();
            }
            return tiles(source, 0, all, work, merge);
        }
        let mut found = None;
        chunks(&mut self.shared, [source], &mut self.room, |_, [values]| {
            let chunk = each::chunks(values, TILE).reduce(|_, tile| work(tile), &merge);
            found = match (found.take(), chunk) {
                (Some(found), Some(chunk)) => Some(merge(found, chunk)),
                (found, chunk) => chunk.or(found),
            };
            Ok(())
        })?;
        Ok(found)
    }
}

fn added(mut a: [u64; BARS], b: [u64; BARS]) -> [u64; BARS] {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
    a
}

fn bars(values: &[f32], min: f32, max: f32) -> [u64; BARS] {
    let mut counts = [0; BARS];
    let low = f64::from(min);
    // In f64, the range of any two f32 is finite. If the range is 0, all values go into the first bar.
    let range = f64::from(max) - low;
    let per_unit = if range > 0.0 {
        BARS as f64 / range
    } else {
        0.0
    };
    for x in values.iter().filter(|x| x.is_finite()) {
        let bar = (f64::from(*x) - low) * per_unit;
        counts[(bar as usize).min(BARS - 1)] += 1;
    }
    counts
}
