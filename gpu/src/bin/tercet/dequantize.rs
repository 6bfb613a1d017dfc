//! `tercet dequantize`: converts a quantized model back to floats.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use tercet_host::convert::{DequantizeOptions, FloatType, Report};
use tercet_host::{Amount, Amounts, dequantize};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::table::{Align, Table};
use crate::words::words;
use crate::{edge, engine, format, output, reading, restoring};

const EXAMPLES: &str = "\
Examples:
  tercet dequantize model.gguf -o model.safetensors
  tercet dequantize model.gguf -o model-f16.gguf --to f16
  tercet dequantize bitnet.safetensors -o floats.safetensors --weight-scale multiplier
  tercet dequantize model.gguf -o model.safetensors --backend cuda

With --backend cuda the device dequantizes blocks, int8 and ternary codes and palettes, and the processor reads, \
narrows and writes. The file is the same, byte for byte. The processor takes over what does not fit in device \
memory, and the report says so. Only the processor dequantizes packed two-bit codes (Hugging Face BitNet, I2_S), so \
a model that holds nothing else is refused.

JSON (--json): tensors[] (name, shape, from, to, engine (null where copied), bits_per_weight, note), bytes_before, \
bytes_after, engine, engine_note (null, or why the processor did some of its work), seconds, megabytes_per_second.";

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
    #[command(flatten)]
    pub(crate) engine: engine::Named,
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
    let mut engine = arguments.engine.open()?;
    let model = arguments.reading.open(&arguments.input)?;
    let amounts = [(model.path(), Amounts::of(&model))];
    let [amounts] = restoring::amounts(&engine, amounts)?.unwrap_or_default();
    // Tensors that are already floats are copied.
    let mut restored = amounts;
    restored.plain = Amount::default();
    let job = restoring::job(restored).with_scratch(edge::dequantize(&amounts));
    let report = engine.run(job, |engine| {
        dequantize(engine, &model, &options, &arguments.output, &Bar::new())
    })?;
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
        "{}\n{}{} -> {}, {:.2} s, {:.0} MB/s\n",
        table.render(),
        restoring::note(report.engine_note.as_deref()),
        format::bytes(report.bytes_before),
        format::bytes(report.bytes_after),
        report.seconds,
        report.megabytes_per_second,
    )
}
