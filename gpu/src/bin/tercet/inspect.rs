//! `tercet inspect`: shows the contents of a model file.

use std::fmt::Write as _;
use std::path::PathBuf;

use tercet_host::{Amounts, Summary, TensorSummary, ValueSummary, inspect};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::table::{Align, Table};
use crate::{edge, engine, format, output, reading, restoring};

const EXAMPLES: &str = "\
Examples:
  tercet inspect model.gguf
  tercet inspect model.safetensors --tensor model.layers.0.mlp.down_proj.weight
  tercet inspect model.gguf --json | jq '.tensors[] | select(.bits_per_weight < 3) | .name'
  tercet inspect model.gguf --backend cuda

The spark line is a histogram: it counts the values in equal ranges from min to max.

With --backend cuda the device dequantizes blocks, int8 and ternary codes and palettes, and the processor reads and \
counts. The figures are the same, bit for bit. The processor takes over what does not fit in device memory, and the \
report says so. Only the processor dequantizes packed two-bit codes (Hugging Face BitNet, I2_S). A model without \
anything for the device is refused.

JSON (--json): format, bytes, values, metadata[] ([key, value]), tensors[] (name, shape, dtype, bytes, \
bits_per_weight, decoded, values: null or min, max, abs_mean, zeros, not_finite, histogram[]), engine (that restored \
what is quantized), engine_note (null, or why the processor did some of the work of the one asked for).";

/// List the tensors of a file with their types, ranges and histograms
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A safetensors, npy or GGUF file, or the index of a sharded safetensors model
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show only this tensor, in detail
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    #[command(flatten)]
    reading: reading::Arguments,
    #[command(flatten)]
    pub(crate) engine: engine::Named,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut engine = arguments.engine.open()?;
    let model = arguments.reading.open(&arguments.file)?;
    let only = arguments.tensor.as_deref();
    let amounts = [(model.path(), Amounts::listed(&model, only))];
    let [amounts] = restoring::amounts(&engine, amounts)?.unwrap_or_default();
    // Each tensor is read twice.
    let mut twice = amounts;
    twice += amounts;
    let job = restoring::job(twice).with_scratch(edge::inspect(&amounts));
    let summary = engine.run(job, |engine| inspect(engine, &model, only, &Bar::new()))?;
    if arguments.json {
        return output::json(&summary);
    }
    let note = restoring::note(summary.engine_note.as_deref());
    match (&arguments.tensor, summary.tensors.as_slice()) {
        (Some(_), [tensor]) => output::text(&(closely(tensor) + &note)),
        _ => output::text(&(people(&summary) + &note)),
    }
}

fn people(summary: &Summary) -> String {
    use Align::{Left, Right};
    let mut text = format!(
        "{}, {}, {}, {}\n",
        summary.format,
        format::bytes(summary.bytes),
        format::counted(summary.tensors.len() as u64, "tensor"),
        format::counted(summary.values, "value"),
    );
    if !summary.metadata.is_empty() {
        let mut table = Table::new(&[("metadata", Left), ("", Left)]);
        for (key, value) in &summary.metadata {
            table.row([key.clone(), shortened(value)]);
        }
        let _ = write!(text, "\n{}", table.render());
    }
    let mut table = Table::new(&[
        ("tensor", Left),
        ("shape", Left),
        ("type", Left),
        ("bits/weight", Right),
        ("min", Right),
        ("max", Right),
        ("histogram", Left),
    ]);
    for tensor in &summary.tensors {
        let values = tensor.values.as_ref();
        let number = |pick: fn(&ValueSummary) -> f32| {
            values.map_or_else(String::new, |values| {
                format::significant(f64::from(pick(values)))
            })
        };
        table.row([
            tensor.name.clone(),
            format::shape(&tensor.shape),
            tensor.dtype.clone(),
            format!("{:.4}", tensor.bits_per_weight),
            number(|values| values.min),
            number(|values| values.max),
            values.map_or_else(
                || missing(tensor).to_owned(),
                |values| {
                    let line = format::spark(&values.histogram);
                    match values.not_finite {
                        0 => line,
                        count => format!("{line} {count} not finite"),
                    }
                },
            ),
        ]);
    }
    let _ = write!(text, "\n{}", table.render());
    text
}

/// Returns why a tensor has no figures.
fn missing(tensor: &TensorSummary) -> &'static str {
    if !tensor.decoded {
        "not decoded"
    } else if tensor.shape.contains(&0) {
        "no values"
    } else {
        "no finite value"
    }
}

/// Shows one tensor: its figures, then its histogram, one line per range.
fn closely(tensor: &TensorSummary) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[("tensor", Left), (&tensor.name, Left)]);
    table.row(["shape".to_owned(), format::shape(&tensor.shape)]);
    table.row(["type".to_owned(), tensor.dtype.clone()]);
    table.row(["bytes".to_owned(), tensor.bytes.to_string()]);
    table.row([
        "bits/weight".to_owned(),
        format!("{:.4}", tensor.bits_per_weight),
    ]);
    let Some(values) = &tensor.values else {
        table.row(["values", missing(tensor)]);
        return table.render();
    };
    for (name, value) in [
        ("min", values.min),
        ("max", values.max),
        ("mean |x|", values.abs_mean),
    ] {
        table.row([name.to_owned(), value.to_string()]);
    }
    table.row(["zeros".to_owned(), values.zeros.to_string()]);
    table.row(["not finite".to_owned(), values.not_finite.to_string()]);
    let mut text = table.render();
    let mut table = Table::new(&[
        ("from", Right),
        ("to", Right),
        ("values", Right),
        ("", Left),
    ]);
    let (low, high) = (f64::from(values.min), f64::from(values.max));
    if low == high {
        // All values are in one range without extent.
        return text;
    }
    let top = values.histogram.iter().copied().max().unwrap_or(0).max(1);
    let edge = |bar: usize| low + (high - low) * bar as f64 / values.histogram.len() as f64;
    for (bar, &count) in values.histogram.iter().enumerate() {
        let length = (u128::from(count) * 40).div_ceil(u128::from(top)) as usize;
        table.row([
            format::significant(edge(bar)),
            format::significant(edge(bar + 1)),
            count.to_string(),
            "█".repeat(length),
        ]);
    }
    let _ = write!(text, "\n{}", table.render());
    text
}

/// Shortens a metadata value to one line: chat templates can have pages.
fn shortened(value: &str) -> String {
    const LONGEST: usize = 80;
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}… ({} characters)", &value[..end], value.chars().count()),
        None => value.to_owned(),
    }
}
