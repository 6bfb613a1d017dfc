//! What a conversion did, tensor by tensor.

use std::time::Duration;

use serde::Serialize;
use tercet_core::quant::Measures;

use super::plan::Step;
use crate::Model;

/// What became of one tensor.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TensorReport {
    /// Its name.
    pub name: String,
    /// Its shape, outermost dimension first.
    pub shape: Vec<usize>,
    /// Its type in the input.
    pub from: String,
    /// Its type in the output, the same where it was copied.
    pub to: String,
    /// The name of the engine that coded or restored it, or of two that did a part each; `None` where it was copied.
    pub engine: Option<String>,
    /// Bits that a value takes in the output, scales and zero points included.
    pub bits_per_weight: f64,
    /// Σ(x − x̂)² / Σx²; `None` where the tensor was copied.
    pub relative_error: Option<f64>,
    /// −10 · log₁₀ of the relative error, in decibels; `None` where copied or where the error is 0.
    pub sqnr_db: Option<f64>,
    /// Blocks that became zeros because their scale was too small for its type.
    pub flushed: u64,
    /// What the tensor would lose in `q4_0` and `q8_0`, of those that its rows divide into; empty unless it became a
    /// palette.
    pub beside: Vec<Beside>,
    /// Why the tensor was not quantized, or not to the target.
    pub note: Option<String>,
}

/// What a tensor would lose in another format.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Beside {
    /// The format.
    pub format: &'static str,
    /// Bits that a value would take.
    pub bits_per_weight: f64,
    /// Σ(x − x̂)² / Σx².
    pub relative_error: f64,
}

/// How good a choice [`Target::Auto`](super::Target::Auto) made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AutoReport {
    /// Bits a weight that it might spend.
    pub bits: f64,
    /// Σ(x − x̂)² over all tensors that it chose for; with importances i, the mean squares of inputs, the sum over tensors of Σ i·(x − x̂)² / Σ i·x².
    pub squared_error: f64,
    /// Whether there were importances.
    pub weighed: bool,
    /// At most this much of `squared_error` could be saved by another choice of the same formats within `bits`.
    pub gap: f64,
}

/// What a conversion did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Every tensor of the input, in its order.
    pub tensors: Vec<TensorReport>,
    /// Bytes of the input files.
    pub bytes_before: u64,
    /// Bytes of the output file.
    pub bytes_after: u64,
    /// Bits a weight over the tensors that were quantized, fallbacks included; 0 where there is none.
    pub bits_per_weight: f64,
    /// The engine that was to do it: an instruction set of the processor, or [`crate::engine::FlowEngine::name`].
    pub engine: String,
    /// Why the processor did some of that engine's work; `None` where it did none.
    pub engine_note: Option<String>,
    /// What `auto` guarantees; `None` for other targets, and where there was no tensor to choose for.
    pub auto: Option<AutoReport>,
    /// Wall-clock seconds, the flush to disk included.
    pub seconds: f64,
    /// Input bytes of tensors in millions, per second.
    pub megabytes_per_second: f64,
}

/// What came out of one step.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Who coded it, if anybody did.
    pub(super) engine: Option<String>,
    pub(super) flushed: u64,
    pub(super) measures: Option<Measures>,
    pub(super) beside: Vec<Beside>,
}

/// Reports a step that wrote `bytes`.
pub(super) fn tensor(step: &Step<'_>, bytes: u64, outcome: Outcome) -> TensorReport {
    let values = step.source.values();
    let measures = outcome.measures;
    TensorReport {
        name: step.source.tensor.name.to_owned(),
        shape: step.source.shape(),
        from: step.source.type_name(),
        to: step.type_name(),
        engine: outcome.engine,
        bits_per_weight: match values {
            0 => 0.0,
            _ => bytes as f64 * 8.0 / values as f64,
        },
        relative_error: measures.map(|measures| measures.relative_error),
        sqnr_db: measures
            .map(|measures| measures.sqnr_db)
            .filter(|db| db.is_finite()),
        flushed: outcome.flushed,
        beside: outcome.beside,
        note: step.note.clone(),
    }
}

/// Sums up a run.
pub(super) fn whole(
    model: &Model,
    tensors: Vec<TensorReport>,
    bytes_after: u64,
    elapsed: Duration,
) -> Report {
    let (mut values, mut bits) = (0.0, 0.0);
    for tensor in tensors
        .iter()
        .filter(|tensor| tensor.relative_error.is_some())
    {
        let count = tensor.shape.iter().product::<usize>() as f64;
        values += count;
        bits += tensor.bits_per_weight * count;
    }
    let seconds = elapsed.as_secs_f64();
    Report {
        tensors,
        bytes_before: model.file_bytes(),
        bytes_after,
        bits_per_weight: if values > 0.0 { bits / values } else { 0.0 },
        engine: String::new(),
        engine_note: None,
        auto: None,
        seconds,
        megabytes_per_second: model.tensor_bytes() as f64 / 1e6 / seconds.max(1e-9),
    }
}
