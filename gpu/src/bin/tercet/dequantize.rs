//! `tercet dequantize`: a quantized model back in floats.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use tercet_host::convert::{DequantizeOptions, FloatType, Report};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::table::{Align, Table};
use crate::words::words;
use crate::{format, output, reading};

const EXAMPLES: &str = "\
Examples:
  tercet dequantize model.gguf -o model.safetensors
  tercet dequantize model.gguf -o model-f16.gguf --to f16
  tercet dequantize bitnet.safetensors -o floats.safetensors --weight-scale multiplier

JSON (--json): tensors[] (name, shape, from, to, engine, bits_per_weight, note), bytes_before, bytes_after, engine, seconds, \
megabytes_per_second.";

/// Restore the quantized tensors of a model to floats
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A GGUF or safetensors file, or the index of a sharded safetensors model
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write, .safetensors, .gguf or .npy (one tensor); whole or not at all
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The type of the restored tensors
    #[arg(long, value_name = "TYPE", value_parser = float(), default_value = "f32")]
    to: FloatType,
    #[command(flatten)]
    reading: reading::Arguments,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

fn float() -> impl TypedValueParser<Value = FloatType> {
    words(&[
        ("f32", FloatType::F32),
        ("f16", FloatType::F16),
        ("bf16", FloatType::Bf16),
    ])
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = DequantizeOptions {
        dtype: arguments.to,
        force: arguments.force,
    };
    let model = arguments.reading.open(&arguments.input)?;
    let report = tercet_host::dequantize(&model, &options, &arguments.output, &Bar::new())?;
    if arguments.json {
        output::json(&report)
    } else {
        output::text(&people(&report))
    }
}

fn people(report: &Report) -> String {
    use Align::Left;
    let mut table = Table::new(&[
        ("tensor", Left),
        ("shape", Left),
        ("from", Left),
        ("to", Left),
        ("note", Left),
    ]);
    for tensor in &report.tensors {
        table.row([
            tensor.name.clone(),
            format::shape(&tensor.shape),
            tensor.from.clone(),
            tensor.to.clone(),
            tensor.note.clone().unwrap_or_default(),
        ]);
    }
    format!(
        "{}\n{} -> {}, {:.2} s, {:.0} MB/s\n",
        table.render(),
        format::bytes(report.bytes_before),
        format::bytes(report.bytes_after),
        report.seconds,
        report.megabytes_per_second,
    )
}
