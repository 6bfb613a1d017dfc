//! A look at every tensor of a model.

use serde::Serialize;
use tercet_core::number::Stats;
use tracing::trace_span;

use crate::engine::{FlowEngine, Shared};
use crate::names::closest;
use crate::parallel::each;
use crate::source::{Room, Source, TILE, chunks, on_engine, tiles};
use crate::{Error, Model, Progress, Tensor};

/// Bars of [`ValueSummary::histogram`].
pub const BARS: usize = 32;

/// A model's file and its tensors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The format: `safetensors`, `npy` or `gguf`.
    pub format: &'static str,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Number of values of all tensors.
    pub values: u64,
    /// Key and value pairs beside the tensors.
    pub metadata: Vec<(String, String)>,
    /// The tensors in file order.
    pub tensors: Vec<TensorSummary>,
    /// The name of the engine that restored what is quantized, or of two that did a part each; the processor's where nothing is.
    pub engine: String,
    /// Why the processor did some of the work of the engine that was to do it; `None` where it did none.
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
    /// Bytes it takes in the file, scales and zero points in tensors of their own excluded.
    pub bytes: u64,
    /// Bits that a value takes.
    pub bits_per_weight: f64,
    /// False for types that are carried without being decoded.
    pub decoded: bool,
    /// What its values are; `None` where they are not decoded, and for tensors without a finite value.
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
    /// Mean of the finite |x|, exact sum rounded once.
    pub abs_mean: f32,
    /// Number of zeros.
    pub zeros: u64,
    /// Number of NaNs and infinities.
    pub not_finite: u64,
    /// Counts in [`BARS`] equal ranges from `min` to `max`.
    pub histogram: Vec<u64>,
}

/// Looks at the tensors of a model: all, or the one named. The engine restores blocks of GGUF, int8 and ternary codes and
/// palettes; the figures are the same on any, to the bit.
///
/// The processor's threads look at the values, each tensor's twice, widen floats, and restore what no engine has a step for:
/// packed two-bit codes. So do they chunks that the engine has no room for; [`Summary::engine`] says who restored,
/// [`Summary::engine_note`] why the engine did not restore it all. If the engine is the pool itself
/// ([`FlowEngine::is_pool`]), its threads restore tile by tile.
///
/// Memory does not grow with the tensors: a tile of 64 KiB for each thread, or two chunks of 4 MiB, since an engine restores
/// the next while one is looked at.
///
/// # Errors
/// [`Error::NoSuchTensor`]; [`Error::Tensor`] for a tensor whose blocks or scales are damaged; [`Error::Engine`].
pub fn inspect<E: FlowEngine>(
    engine: &mut E,
    model: &Model,
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
        shared: Shared::new(engine),
        room: Room::default(),
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

/// The finite values of a part of a tensor, and how many are not.
struct Part {
    stats: Stats,
    zeros: u64,
    not_finite: u64,
}

impl Part {
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

/// What is looked with.
struct Look<'e, E> {
    shared: Shared<'e, E>,
    /// For values that the engine restored.
    room: Room<1>,
}

impl<E: FlowEngine> Look<'_, E> {
    /// Two passes: extremes and sums, then counts between the extremes.
    fn values(&mut self, source: &Source<'_>) -> Result<Option<ValueSummary>, Error> {
        if !source.is_readable() {
            return Ok(None);
        }
        let Some(part) = self.pass(source, Part::of, Part::merge)? else {
            return Ok(None);
        };
        let Some(abs_mean) = part.stats.abs_mean() else {
            // Not one finite value.
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

    /// Runs `work` over a tensor's values on all threads, and merges what it gives in order; `None` without values.
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
    // In f64 the range of any two f32 is finite. A range of 0 puts all into the first bar.
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
