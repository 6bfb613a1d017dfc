//! A block format for each tensor, within a budget of bits.

use tercet_core::block::Format;
use tercet_core::quant::adaptive::{Adaptive, AdaptiveError, Cost};

use super::codec::Codec;
use super::encode::encode;
use super::options::QuantizeOptions;
use super::plan::{Action, Step};
use super::report::AutoReport;
use super::stats;
use super::steps::ConversionSteps;
use crate::dtype::DType;
use crate::source::Source;
use crate::{Error, Model, Progress};

/// What a tensor may become, the smallest first. Each is one reading of the tensor more, so the formats between Q4_0 and Q8_0 are left out.
const CHOICES: [Choice; 6] = [
    Choice::Blocks(Format::Tq1_0),
    Choice::Blocks(Format::Tq2_0),
    Choice::Blocks(Format::Q2_0),
    Choice::Blocks(Format::Q4_0),
    Choice::Blocks(Format::Q8_0),
    Choice::F16,
];

/// How often `auto` reads a tensor before it is written: once for its extremes, once for each choice.
pub(crate) const PASSES: u64 = 1 + CHOICES.len() as u64;

#[derive(Clone, Copy, Debug)]
enum Choice {
    Blocks(Format),
    F16,
}

/// Replaces the block formats of a plan by those of least total squared error within `options.bits`.
///
/// Each tensor is encoded in every format that its rows divide into, so this takes [`PASSES`] times the reading
/// of a plain conversion. `None` where no tensor is to be quantized.
pub(super) fn choose(
    steps: &mut impl ConversionSteps,
    model: &Model,
    options: &QuantizeOptions,
    plan: &mut [Step<'_>],
    progress: &dyn Progress,
) -> Result<Option<AutoReport>, Error> {
    let bits = options.bits.unwrap_or(0.0);
    let mut costs = Vec::new();
    let mut values = 0u64;
    let open = |step: &&mut Step<'_>| step.is_quantizing();
    for step in plan.iter_mut().filter(open) {
        progress.tensor(step.source.tensor.name);
        // Values that are not finite end it here; what fails below is a scale or a value too large for a choice.
        stats::of_tensor(&step.source)?;
        let bytes = step.source.tensor.bytes.len() as u64;
        progress.advance(bytes);
        values += step.source.values() as u64;
        for choice in CHOICES {
            costs.push(cost(steps, &step.source, choice, options));
            progress.advance(bytes);
        }
    }
    if costs.is_empty() {
        return Ok(None);
    }
    let problem = Adaptive {
        formats: CHOICES.len(),
        costs: &costs,
        weights: None,
        // Exact for files below 2⁵³ bytes; the product is rounded down.
        budget: (values as f64 * bits / 8.0) as u64,
    };
    let mut chosen = vec![0; costs.len() / CHOICES.len()];
    let allocation = problem.choose(&mut chosen).map_err(|error| {
        let reason = match error {
            AdaptiveError::Infeasible { minimal, .. } => {
                // Rounded up, so that the number told is enough.
                let least = (minimal as f64 * 8.0 / values as f64 * 1e4).ceil() / 1e4;
                format!("{bits} bits a weight are too few; the smallest formats take {least}")
            }
            other => format!("{bits} bits a weight: {other}"),
        };
        Error::unsupported(model.path(), reason)
    })?;
    for (step, choice) in plan.iter_mut().filter(open).zip(chosen) {
        step.note = None;
        step.action = match CHOICES[choice] {
            Choice::Blocks(format) => Action::Stream(Codec::blocks(format, options)),
            Choice::F16 if step.source.tensor.dtype == DType::F16 => Action::Copy,
            Choice::F16 => Action::Stream(Codec::Floats(DType::F16)),
        };
    }
    Ok(Some(AutoReport {
        bits,
        squared_error: allocation.error,
        gap: allocation.gap(),
    }))
}

/// Bytes and squared error of a tensor in a format; `None` where it cannot take it.
fn cost(
    steps: &mut impl ConversionSteps,
    source: &Source<'_>,
    choice: Choice,
    options: &QuantizeOptions,
) -> Option<Cost> {
    let values = source.values() as u64;
    let (codec, bytes) = match choice {
        Choice::Blocks(format) => {
            let (len, size) = format.layout();
            if !source.tensor.row().is_multiple_of(len) {
                return None;
            }
            let codec = Codec::blocks(format, options);
            (codec, values / len as u64 * size as u64)
        }
        Choice::F16 => (Codec::Floats(DType::F16), values * 2),
    };
    let done = encode(steps, source, codec, &(), &mut |_, _| Ok(())).ok()?;
    let error = done.measures?.squared_error;
    Some(Cost { bytes, error })
}
