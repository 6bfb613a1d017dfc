//! Chooses a block format for each tensor, within a budget of bits.

use tercet_core::block::Format;
use tercet_core::quant::adaptive::{Adaptive, AdaptiveError, Cost};

use super::codec::Codec;
use super::encode::encode;
use super::importance;
use super::options::QuantizeOptions;
use super::plan::{Action, Conversion};
use super::report::AutoReport;
use super::runs::Coder;
use super::stats;
use super::steps::ConversionSteps;
use crate::dtype::DType;
use crate::source::{Source, TILE};
use crate::{Error, Progress, TensorFile};

/// The formats to choose from, the smallest first. Each needs one more reading of the tensor, so the formats between
/// Q4_0 and Q8_0 are left out.
pub(super) const CHOICES: [Choice; 6] = [
    Choice::Blocks(Format::Tq1_0),
    Choice::Blocks(Format::Tq2_0),
    Choice::Blocks(Format::Q2_0),
    Choice::Blocks(Format::Q4_0),
    Choice::Blocks(Format::Q8_0),
    Choice::F16,
];

/// How often `auto` reads a tensor before it is written: once for its extremes, and once for each choice.
pub(crate) const PASSES: u64 = 1 + CHOICES.len() as u64;

#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    Blocks(Format),
    F16,
}

/// Replaces the block formats of a plan by those with the least total squared error within `options.bits`.
///
/// Each tensor is encoded in every format that its rows divide into, so this takes [`PASSES`] times the reading of a
/// plain conversion. With `importance` the error is [`WeightedSquares::relative`]. `None` if no tensor is to be
/// quantized.
pub(super) fn choose(
    steps: &mut dyn ConversionSteps,
    model: &TensorFile,
    options: &QuantizeOptions,
    importance: Option<&TensorFile>,
    plan: &mut [Conversion<'_>],
    progress: &dyn Progress,
) -> Result<Option<AutoReport>, Error> {
    let bits = options.bits.unwrap_or(0.0);
    let mut costs = Vec::new();
    let mut values = 0u64;
    let open = |step: &&mut Conversion<'_>| step.is_quantizing();
    for step in plan.iter_mut().filter(open) {
        progress.tensor(step.source.tensor.name);
        // Values that are not finite end it here; later failures mean that a scale or a value is too large for a
        // choice.
        stats::of_tensor(&step.source)?;
        let weights = importance.map(|of| importance::of_inputs(of, &step.source));
        let weights = weights.transpose()?;
        let bytes = step.source.tensor.bytes.len() as u64;
        progress.advance(bytes);
        values += step.source.values() as u64;
        for choice in CHOICES {
            costs.push(cost(
                steps,
                &step.source,
                choice,
                options,
                weights.as_deref(),
            ));
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
                // Rounded up, so that the reported number is enough.
                let least = (minimal as f64 * 8.0 / values as f64 * 1e4).ceil() / 1e4;
                format!("{bits} bits per weight are too few; the smallest formats need {least}")
            }
            other => format!("{bits} bits per weight: {other}"),
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
        weighed: importance.is_some(),
        gap: allocation.gap(),
    }))
}

/// Returns bytes and squared error of a tensor in a format; `None` if the format does not fit.
fn cost(
    steps: &mut dyn ConversionSteps,
    source: &Source<'_>,
    choice: Choice,
    options: &QuantizeOptions,
    weights: Option<&[f64]>,
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
    let Some(weights) = weights else {
        let done = encode(steps, source, codec, &(), &mut |_, _| Ok(())).ok()?;
        let error = done.measures?.squared_error;
        return Some(Cost { bytes, error });
    };
    let mut weighed = WeightedSquares {
        source,
        codec,
        weights,
        first: 0,
        error: 0.0,
        energy: 0.0,
    };
    encode(steps, source, codec, &(), &mut |_, bytes| {
        weighed.add(bytes)
    })
    .ok()?;
    let error = weighed.relative()?;
    Some(Cost { bytes, error })
}

/// The error of a matrix' products, assuming independent inputs: their squared error and their squares.
struct WeightedSquares<'a, 's> {
    source: &'a Source<'s>,
    codec: Codec,
    /// The weight of a square, for each input.
    weights: &'a [f64],
    /// The first value that was not added yet.
    first: usize,
    error: f64,
    energy: f64,
}

impl WeightedSquares<'_, '_> {
    /// Adds the errors of the values in these bytes, which continue after the last ones; both are in their own order.
    fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (len, size) = self.codec.dtype().block();
        let (mut original, mut restored) = (Vec::new(), vec![0.0; TILE]);
        for bytes in bytes.chunks(TILE / len * size) {
            let restored = &mut restored[..bytes.len() / size * len];
            let refuse = |reason| Error::tensor(self.source.path, self.source.tensor.name, reason);
            (self.codec.restore(self.first, bytes, restored)).map_err(refuse)?;
            let original = (self.source).view(self.first, restored.len(), &mut original)?;
            let weights = self.weights.iter().cycle();
            let weights = weights.skip(self.first % self.weights.len());
            for ((x, y), weight) in original.iter().zip(&*restored).zip(weights) {
                let error = f64::from(*x) - f64::from(*y);
                self.error += error * error * weight;
                self.energy += f64::from(*x) * f64::from(*x) * weight;
            }
            self.first += restored.len();
        }
        Ok(())
    }

    /// Returns the quotient of the two; `None` if they are not numbers.
    fn relative(&self) -> Option<f64> {
        let relative = match self.error {
            0.0 => 0.0,
            error => error / self.energy,
        };
        relative.is_finite().then_some(relative)
    }
}
