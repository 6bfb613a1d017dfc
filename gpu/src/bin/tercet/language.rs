//! Shared parts of the language model commands: how a model is run, and its job.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::{Deserialize, Serialize};
use tercet_core::model::{CacheType, DecoderLayer, Gate, Model, Pattern, Values, Weights};
use tercet_gpu::dispatch::Job;
use tercet_host::language::RunOptions;

use crate::engine::CommandEngine;
use crate::failure::Failure;

/// How a model is run; the result depends on all of it.
#[derive(Clone, Copy, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(try_from = "Names", into = "Names")]
pub(crate) struct Running {
    /// Attend only to the last W positions, in memory that does not grow; a text may then have any length
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
    /// With --window: attend to the first G positions always
    #[arg(long, value_name = "G", requires = "window")]
    sinks: Option<u32>,
    /// With --window: also attend to every S-th position before it; memory then grows with the text
    #[arg(long, value_name = "S", requires = "window", value_parser = clap::value_parser!(u32).range(1..))]
    stride: Option<u32>,
    /// How to store keys and values [default: as the file says, int8 for bitnet, int16-8 for others]
    #[arg(long, value_name = "TYPE", value_parser = kind())]
    kv: Option<CacheType>,
    /// The gated activation, for a file that names a wrong one [default: as the file or its architecture says]
    #[arg(long, value_name = "NAME", value_parser = gate())]
    activation: Option<Gate>,
}

fn kind() -> impl TypedValueParser<Value = CacheType> {
    PossibleValuesParser::new(CacheType::ALL.map(CacheType::name))
        .try_map(|name| CacheType::from_name(&name).ok_or("not one of the types"))
}

fn gate() -> impl TypedValueParser<Value = Gate> {
    PossibleValuesParser::new(["silu", "relu2"]).map(|name| match name.as_str() {
        "relu2" => Gate::SquaredRelu,
        _ => Gate::Silu,
    })
}

/// [`Running`] in the file of a session.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    window: Option<u32>,
    sinks: Option<u32>,
    stride: Option<u32>,
    kv: Option<String>,
    activation: Option<String>,
}

impl From<Running> for Names {
    fn from(running: Running) -> Self {
        Self {
            window: running.window,
            sinks: running.sinks,
            stride: running.stride,
            kv: running.kv.map(|kind| kind.name().to_owned()),
            activation: running.activation.map(|gate| match gate {
                Gate::SquaredRelu => "relu2".to_owned(),
                Gate::Silu => "silu".to_owned(),
            }),
        }
    }
}

impl TryFrom<Names> for Running {
    type Error = String;

    fn try_from(names: Names) -> Result<Self, String> {
        let kind = |name: String| {
            CacheType::from_name(&name).ok_or_else(|| format!("`{name}` is not a type of cache"))
        };
        let gate = |name: String| match name.as_str() {
            "relu2" => Ok(Gate::SquaredRelu),
            "silu" => Ok(Gate::Silu),
            _ => Err(format!("`{name}` is not an activation")),
        };
        if names.window == Some(0) || names.stride == Some(0) {
            return Err("window and stride must be at least 1".to_owned());
        }
        Ok(Self {
            window: names.window,
            sinks: names.sinks,
            stride: names.stride,
            kv: names.kv.map(kind).transpose()?,
            activation: names.activation.map(gate).transpose()?,
        })
    }
}

impl Running {
    /// Returns these options, with missing ones from `other`. A window includes its sinks and stride.
    pub(crate) fn or(self, other: Self) -> Self {
        let attended = if self.window.is_some() { self } else { other };
        Self {
            kv: self.kv.or(other.kv),
            activation: self.activation.or(other.activation),
            ..attended
        }
    }

    /// Returns the model with these options.
    pub(crate) fn model<'a, 'l>(&self, model: Model<'a, 'l>) -> Model<'a, 'l> {
        match self.activation {
            Some(gate) => model.with_gate(gate),
            None => model,
        }
    }

    /// Returns the positions that are attended to.
    pub(crate) fn pattern(&self, model: &Model<'_, '_>) -> Result<Pattern, Failure> {
        let config = model.config();
        let Some(window) = self.window else {
            return Ok(config.pattern);
        };
        let pattern = Pattern {
            window,
            sinks: self.sinks.unwrap_or(0),
            stride: self.stride.unwrap_or(0),
        };
        match window.checked_add(pattern.sinks) {
            Some(end) if end <= config.context => Ok(pattern),
            _ => Err(Failure::usage(format_args!(
                "--window {window} and --sinks {} together exceed the {} positions that the model was trained for",
                pattern.sinks, config.context
            ))),
        }
    }

    /// Returns the options for [`tercet_host::language::run`], for a context of so many positions. A microcontroller
    /// reads a prompt row by row, in the least memory: only memory and speed depend on it.
    pub(crate) fn options(
        &self,
        model: &Model<'_, '_>,
        context: u32,
        engine: &CommandEngine,
    ) -> Result<RunOptions, Failure> {
        let usual = RunOptions::default();
        let chunk = if engine.is_edge() { 1 } else { usual.chunk };
        Ok(RunOptions {
            pattern: Some(self.pattern(model)?),
            cache: self.kv,
            context: Some(context),
            chunk,
            ..usual
        })
    }
}

/// Returns tokens per second; `None` if no time passed, or there was no token.
pub(crate) fn rate(tokens: usize, seconds: f64) -> Option<f64> {
    (tokens > 0 && seconds > 0.0).then(|| tokens as f64 / seconds)
}

/// Returns the products of so many steps with so many rows, each of which has logits. A product of blocks with 16-bit
/// activations counts as two with 8-bit ones: some engines multiply two planes, others in lanes that are twice as wide.
pub(crate) fn job(model: &Model<'_, '_>, rows: usize, steps: usize, unit: &'static str) -> Job {
    products(model, [model.head()], rows).repeated(steps as u64, unit)
}

/// Returns the job of reading prompts of so many tokens in total, in chunks, and of as many steps with so many rows
/// after them.
pub(crate) fn after_prompt(
    model: &Model<'_, '_>,
    (prompt, chunk): (usize, u32),
    rows: usize,
    steps: usize,
) -> Job {
    let chunks = prompt.div_ceil(chunk as usize).max(1);
    // Only the last row has logits, which are counted with no step.
    let prompt = products(model, [], prompt.div_ceil(chunks)).repeated(chunks as u64, "chunks");
    match steps {
        0 => prompt,
        _ => job(model, rows, steps, "tokens").after(&prompt),
    }
}

/// Returns the products of one step with so many rows.
fn products<'a, 'm: 'a>(
    model: &'a Model<'m, '_>,
    head: impl IntoIterator<Item = &'a Weights<'m>>,
    rows: usize,
) -> Job {
    let none = Job::products(0, 0, 0, rows).with_items(0);
    let weights = model.layers().iter().flat_map(DecoderLayer::weights);
    weights.chain(head).fold(none, |all, weights| {
        let own = Job::products(weights.rows(), weights.cols(), weights.bytes(), rows);
        let wide = model.config().wide() && matches!(weights.values, Values::Blocks(_));
        let planes = 1 + u64::from(wide);
        Job {
            elements: all.elements.saturating_add(own.elements),
            bytes_in: all.bytes_in.saturating_add(own.bytes_in),
            bytes_out: all.bytes_out.saturating_add(own.bytes_out),
            work: all.work.saturating_add(own.work.saturating_mul(planes)),
            items: all.items.saturating_add(own.items),
            ..all
        }
    })
}

/// Describes for a report which products of a model a device does; empty if no device ran it.
pub(crate) fn shares(model: &Model<'_, '_>, engine: &str) -> Option<String> {
    if !engine.contains(crate::engine::CUDA) {
        return None;
    }
    let all = model
        .layers()
        .iter()
        .flat_map(DecoderLayer::weights)
        .chain([model.head()]);
    let (mut blocks, mut floats) = (0usize, 0usize);
    for weights in all {
        match weights.values {
            Values::Floats(_) => floats += 1,
            _ => blocks += 1,
        }
    }
    Some(format!(
        "the device multiplied {blocks} matrices and normalized; {floats} matrices of floats, attention, gates and sampling were the processor's"
    ))
}

/// Returns the path for a message.
pub(crate) fn name(path: &Path) -> String {
    crate::format::printable(&path.display().to_string())
}
