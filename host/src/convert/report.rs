//! Reports of conversions, tensor by tensor.

use std::time::Duration;

use serde::Serialize;
use tercet_core::quant::Measures;

use super::plan::Conversion;
use crate::TensorFile;

/// The conversion of one tensor.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TensorReport {
    /// Its name.
    pub name: String,
    /// Its shape, outermost dimension first.
    pub shape: Vec<usize>,
    /// Its type in the input.
    pub from: String,
    /// Its type in the output, the same if it was copied.
    pub to: String,
    /// The name of the engine that quantized or restored it, or of two that did a part each; `None` if it was copied.
    pub engine: Option<String>,
    /// Bits per value in the output, including scales and zero points.
    pub bits_per_weight: f64,
    /// Σ(x − x̂)² / Σx²; `None` if the tensor was copied.
    pub relative_error: Option<f64>,
    /// −10 · log₁₀ of the relative error, in decibels; `None` if copied or if the error is 0.
    pub sqnr_db: Option<f64>,
    /// Blocks that became zeros because their scale was too small for its type.
    pub flushed: u64,
    /// The loss of the tensor in `q4_0` and `q8_0`, for those that its rows divide into; empty unless it became a
    /// palette.
    pub beside: Vec<Beside>,
    /// Why the tensor was not quantized, or not to the target.
    pub note: Option<String>,
}

/// The loss of a tensor in another format.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Beside {
    /// The format.
    pub format: &'static str,
    /// Bits per value.
    pub bits_per_weight: f64,
    /// Σ(x − x̂)² / Σx².
    pub relative_error: f64,
}

/// The quality of a choice by [`Target::Auto`](super::Target::Auto).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AutoReport {
    /// Allowed bits per weight.
    pub bits: f64,
    /// Σ(x − x̂)² over all tensors that it chose for. With importances i, the mean squares of inputs, it is the sum
    /// over tensors of Σ i·(x − x̂)² / Σ i·x².
    pub squared_error: f64,
    /// True if there were importances.
    pub weighed: bool,
    /// Another choice of the same formats within `bits` could save at most this much of `squared_error`.
    pub gap: f64,
}

/// The report of a conversion.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Every tensor of the input, in its order.
    pub tensors: Vec<TensorReport>,
    /// Bytes of the input files.
    pub bytes_before: u64,
    /// Bytes of the output file.
    pub bytes_after: u64,
    /// Bits per weight over the tensors that were quantized, including fallbacks; 0 if there are none.
    pub bits_per_weight: f64,
    /// The requested engine: an instruction set of the processor, or [`crate::engine::FlowEngine::name`].
    pub engine: String,
    /// Why the processor did some of that engine's work; `None` if it did none.
    pub engine_note: Option<String>,
    /// The guarantee of `auto`; `None` for other targets, and if there was no tensor to choose for.
    pub auto: Option<AutoReport>,
    /// Wall-clock seconds, including the flush to disk.
    pub seconds: f64,
    /// Input bytes of tensors in millions, per second.
    pub megabytes_per_second: f64,
}

/// The result of one step.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The engine that did it, if any.
    pub(super) engine: Option<String>,
    pub(super) flushed: u64,
    pub(super) measures: Option<Measures>,
    pub(super) beside: Vec<Beside>,
}

/// Reports a step that wrote `bytes`.
pub(super) fn tensor(step: &Conversion<'_>, bytes: u64, outcome: Outcome) -> TensorReport {
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
    model: &TensorFile,
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
