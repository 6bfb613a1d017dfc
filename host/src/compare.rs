//! Compares two models tensor by tensor.

use serde::Serialize;
use tercet_core::quant::{Comparison, Measures};

use crate::engine::{FlowEngine, WithFallback};
use crate::parallel::Threads;
use crate::source::{ChunkBuffers, Source, chunks, is_sidecar};
use crate::{Error, Progress, TensorFile};

/// The differences of all tensors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CompareReport {
    /// The tensors in the first model's order.
    pub tensors: Vec<TensorCompare>,
    /// All measured tensors together; `None` if no tensor was measured.
    pub total: Option<Measured>,
    /// The name of the engine that restored the quantized values, or of both engines if two shared the work. If nothing
    /// is quantized, the processor's name.
    pub engine: String,
    /// Why the processor did some of the engine's work; `None` if it did none.
    pub engine_note: Option<String>,
}

/// A tensor in both models.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TensorCompare {
    /// Its name.
    pub name: String,
    /// Its shape, outermost dimension first.
    pub shape: Vec<usize>,
    /// Its type in the first model.
    pub left: String,
    /// Its type in the second model.
    pub right: String,
    /// Error of the second tensor against the first. `None` if the tensor has no values, or if its type cannot be read
    /// and the bytes are equal.
    pub measures: Option<Measured>,
}

/// Error measures. The first model's values are taken as the truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// Number of values.
    pub count: u64,
    /// Mean squared error.
    pub mse: f64,
    /// Squared error divided by the energy of the first tensor.
    pub relative_error: f64,
    /// The relative error as a ratio of signal to noise in decibels; `None` if there is no error.
    pub sqnr_db: Option<f64>,
    /// Cosine of the angle between the tensors.
    pub cosine: f64,
    /// Largest absolute difference.
    pub max_error: f64,
}

/// Compares two models. The engine restores GGUF blocks, int8 and ternary codes and palettes on the fly. Every engine
/// returns the same figures to the bit.
///
/// The processor's threads sum, widen floats and restore packed two-bit codes, for which no engine has a step. They
/// also process the chunks that the engine has no room for. [`CompareReport::engine`] reports which engine restored the
/// values, and [`CompareReport::engine_note`] why the engine did not restore all of them. If the engine is the pool
/// itself ([`FlowEngine::is_pool`]), its threads restore tile by tile.
///
/// Memory does not grow with the tensors. One chunk of 4 MiB of each model is held, unless its values lie in the mapped
/// file as `f32` already. Two chunks are held if an engine restores the next one during the sum of the current one.
///
/// # Errors
/// [`Error::Differ`] if a name is in one model only or shapes differ; [`Error::Tensor`] for values that are not finite
/// or types that cannot be restored; [`Error::Engine`].
pub fn compare<E: FlowEngine>(
    engine: &mut E,
    left: &TensorFile,
    right: &TensorFile,
    progress: &dyn Progress,
) -> Result<CompareReport, Error> {
    let pairs = pairs(left, right)?;
    let bytes = pairs
        .iter()
        .flat_map(|(a, b)| [a, b])
        .map(|source| source.tensor.bytes.len() as u64);
    progress.start(bytes.sum());
    let mut measure = Measure {
        shared: WithFallback::new(engine),
        total: Comparison::new(),
        room: ChunkBuffers::default(),
    };
    let mut tensors = Vec::with_capacity(pairs.len());
    for (a, b) in &pairs {
        progress.tensor(a.tensor.name);
        let measures = if a.is_readable() && b.is_readable() {
            measure.tensors(a, b, progress)?
        } else if a.tensor.dtype == b.tensor.dtype && a.tensor.bytes == b.tensor.bytes {
            progress.advance((a.tensor.bytes.len() + b.tensor.bytes.len()) as u64);
            None
        } else {
            let (from, to) = (a.type_name(), b.type_name());
            let reason = format!(
                "tensor `{}` differs and cannot be measured ({from}, {to})",
                a.tensor.name
            );
            return Err(differ(left, right, reason));
        };
        tensors.push(TensorCompare {
            name: a.tensor.name.to_owned(),
            shape: a.shape(),
            left: a.type_name(),
            right: b.type_name(),
            measures,
        });
    }
    Ok(CompareReport {
        tensors,
        total: measure.total.finish().map(Measured::from),
        engine: measure.shared.restored(),
        engine_note: measure.shared.note(),
    })
}

fn differ(left: &TensorFile, right: &TensorFile, reason: String) -> Error {
    Error::Differ {
        left: left.path().to_path_buf(),
        right: right.path().to_path_buf(),
        reason,
    }
}

/// Matches the tensors of two models by name, without the tensors of scales and zero points.
fn pairs<'a>(
    left: &'a TensorFile,
    right: &'a TensorFile,
) -> Result<Vec<(Source<'a>, Source<'a>)>, Error> {
    let owners = |model: &'a TensorFile| model.tensors().filter(|t| !is_sidecar(model, t.name));
    let mut pairs = Vec::new();
    for a in owners(left) {
        let b = right.get(a.name).ok_or_else(|| {
            differ(
                left,
                right,
                format!("tensor `{}` is in the first only", a.name),
            )
        })?;
        let (a, b) = (Source::new(left, a)?, Source::new(right, b)?);
        let (of_a, of_b) = (a.shape(), b.shape());
        // GGUF has no scalars, so a scalar matches any tensor of one value.
        if of_a != of_b && (a.values(), b.values()) != (1, 1) {
            let name = a.tensor.name;
            let reason =
                format!("tensor `{name}` is {of_a:?} in the first and {of_b:?} in the second");
            return Err(differ(left, right, reason));
        }
        pairs.push((a, b));
    }
    match owners(right).find(|b| left.get(b.name).is_none()) {
        Some(b) => Err(differ(
            left,
            right,
            format!("tensor `{}` is in the second only", b.name),
        )),
        None => Ok(pairs),
    }
}

/// The state of a comparison.
struct Measure<'e, E> {
    shared: WithFallback<'e, E>,
    /// The sums of all tensors.
    total: Comparison,
    room: ChunkBuffers<2>,
}

impl<E: FlowEngine> Measure<'_, E> {
    /// Measures two readable tensors of one shape; `None` if they are empty.
    fn tensors(
        &mut self,
        a: &Source<'_>,
        b: &Source<'_>,
        progress: &dyn Progress,
    ) -> Result<Option<Measured>, Error> {
        let mut comparison = Comparison::new();
        let total = &mut self.total;
        let work = |first: usize, [of_a, of_b]: [&[f32]; 2]| {
            let compared = Threads::default().compare_both(&mut comparison, total, of_a, of_b);
            compared.map_err(|error| {
                let bad = |values: &[f32]| values.iter().position(|x| !x.is_finite());
                match (bad(of_a), bad(of_b)) {
                    (Some(index), _) => Error::not_finite(a.path, a.tensor.name, first + index),
                    (_, Some(index)) => Error::not_finite(b.path, b.tensor.name, first + index),
                    _ => Error::tensor(a.path, a.tensor.name, error),
                }
            })?;
            let end = first + of_a.len();
            let read = |source: &Source<'_>| source.bytes_of(end) - source.bytes_of(first);
            progress.advance(read(a) + read(b));
            Ok(())
        };
        chunks(&mut self.shared, [a, b], &mut self.room, work)?;
        Ok(comparison.finish().map(Measured::from))
    }
}

impl From<Measures> for Measured {
    fn from(measures: Measures) -> Self {
        Self {
            count: measures.count,
            mse: measures.mse,
            relative_error: measures.relative_error,
            sqnr_db: Some(measures.sqnr_db).filter(|db| db.is_finite()),
            cosine: measures.cosine,
            max_error: measures.max_error,
        }
    }
}
