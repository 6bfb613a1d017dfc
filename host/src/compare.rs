//! How far two models are from each other, tensor by tensor.

use serde::Serialize;
use tercet_core::quant::{Comparison, Measures};

use crate::engine::{FlowEngine, Shared};
use crate::parallel::Threads;
use crate::source::{Room, Source, chunks, is_sidecar};
use crate::{Error, Model, Progress};

/// The measures of every tensor.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CompareReport {
    /// The tensors in the first model's order.
    pub tensors: Vec<TensorCompare>,
    /// All measured tensors together; `None` where there is none.
    pub total: Option<Measured>,
    /// The name of the engine that restored what is quantized, or of two that did a part each; the processor's where nothing is.
    pub engine: String,
    /// Why the processor did some of the work of the engine that was to do it; `None` where it did none.
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
    /// How far the second is from the first; `None` where equal bytes of a type that is not read, or no values.
    pub measures: Option<Measured>,
}

/// Error measures, the first model's values being the truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// How many values.
    pub count: u64,
    /// Mean squared error.
    pub mse: f64,
    /// Squared error over the energy of the first.
    pub relative_error: f64,
    /// The same in decibels; `None` without error.
    pub sqnr_db: Option<f64>,
    /// Cosine of the angle between the tensors.
    pub cosine: f64,
    /// Largest absolute difference.
    pub max_error: f64,
}

/// Compares two models. The engine restores blocks of GGUF, int8 and ternary codes and palettes on the fly; the figures are the
/// same on any, to the bit.
///
/// The processor's threads sum, widen floats, and restore what no engine has a step for: packed two-bit codes. So do they
/// chunks that the engine has no room for; [`CompareReport::engine`] says who restored, [`CompareReport::engine_note`] why the
/// engine did not restore it all. If the engine is the pool itself ([`FlowEngine::is_pool`]), its threads restore tile by tile.
///
/// Memory does not grow with the tensors: a chunk of 4 MiB of each model is held, if its values do not lie in the mapped file
/// as `f32` already, and two if an engine restores the next while one is summed.
///
/// # Errors
/// [`Error::Differ`] if a name is in one model only or shapes differ; [`Error::Tensor`] for values that are not finite or types
/// that cannot be restored; [`Error::Engine`].
pub fn compare<E: FlowEngine>(
    engine: &mut E,
    left: &Model,
    right: &Model,
    progress: &dyn Progress,
) -> Result<CompareReport, Error> {
    let pairs = pairs(left, right)?;
    let bytes = pairs
        .iter()
        .flat_map(|(a, b)| [a, b])
        .map(|source| source.tensor.bytes.len() as u64);
    progress.start(bytes.sum());
    let mut measure = Measure {
        shared: Shared::new(engine),
        total: Comparison::new(),
        room: Room::default(),
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

fn differ(left: &Model, right: &Model, reason: String) -> Error {
    Error::Differ {
        left: left.path().to_path_buf(),
        right: right.path().to_path_buf(),
        reason,
    }
}

/// Matches the tensors of two models by name, scales and zero points apart.
fn pairs<'a>(left: &'a Model, right: &'a Model) -> Result<Vec<(Source<'a>, Source<'a>)>, Error> {
    let owners = |model: &'a Model| model.tensors().filter(|t| !is_sidecar(model, t.name));
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
        // GGUF has no scalars; one value is one value.
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

/// What is measured with.
struct Measure<'e, E> {
    shared: Shared<'e, E>,
    /// Of all tensors.
    total: Comparison,
    room: Room<2>,
}

impl<E: FlowEngine> Measure<'_, E> {
    /// Measures two readable tensors of one shape; `None` when they are empty.
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
