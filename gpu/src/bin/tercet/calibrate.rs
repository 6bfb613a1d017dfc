//! `tercet calibrate`: chooses an int8 grid for activations from recorded data.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use tercet_core::quant::calibrate::RangeRule;
use tercet_gpu::dispatch::{Job, Operation};
use tercet_host::convert::Scheme;
use tercet_host::{Calibration, Error, TensorFile, calibrate};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::words::{grid, percentile, words};
use crate::{edge, engine, format, output};

const EXAMPLES: &str = "\
Examples:
  tercet calibrate activations.npy --method mse
  tercet calibrate run1.npy run2.npy run3.safetensors --method percentile --percent 99.99
  tercet calibrate activations.npy --method entropy --grid affine --json
  tercet calibrate activations.safetensors --method percentile --backend cuda

All float tensors of all files count as one set of values; the order of files does not matter.

With --backend cuda the device counts the values (f32, f16 and bf16 without conversion), and the processor chooses \
the range. The figures are the same. The processor takes over what does not fit in device memory, and the report \
says so.

With --profile edge, absmax and minmax need no memory. The other methods use a histogram of 65536 buckets (524288 \
bytes), which is more than the profile has unless --edge-memory says so. The number of buckets is fixed: a \
microcontroller with fewer buckets would find another range.

JSON (--json): count, min, max, low, high, scale, zero_point, engine, engine_note (null, or why the processor did \
some of its work).";

/// Choose the int8 scale of activations from recorded data
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// npy, safetensors or GGUF files
    #[arg(value_name = "DATA", required = true)]
    data: Vec<PathBuf>,
    /// How to choose the range that the codes cover
    #[arg(long, value_name = "METHOD", value_parser = method())]
    method: Name,
    /// Percentage of the values that the percentile method keeps within the range [default: 99.9]
    #[arg(long, value_name = "PERCENT")]
    percent: Option<f64>,
    /// Codes: symmetric, or affine with a zero point (ONNX)
    #[arg(long, value_name = "GRID", value_parser = grid(), default_value = "symmetric")]
    grid: Scheme,
    #[command(flatten)]
    pub(crate) engine: engine::Named,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// A method without its parameter.
#[derive(Clone, Copy, Debug)]
enum Name {
    AbsMax,
    MinMax,
    Percentile,
    Mse,
    Entropy,
}

fn method() -> impl TypedValueParser<Value = Name> {
    words(&[
        ("absmax", Name::AbsMax),
        ("minmax", Name::MinMax),
        ("percentile", Name::Percentile),
        ("mse", Name::Mse),
        ("entropy", Name::Entropy),
    ])
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let rule = match (arguments.method, arguments.percent) {
        (Name::Percentile, percent) => percentile(percent.unwrap_or(99.9))?,
        (_, Some(_)) => {
            return Err(Failure::usage("--percent needs --method percentile"));
        }
        (Name::AbsMax, None) => RangeRule::AbsMax,
        (Name::MinMax, None) => RangeRule::MinMax,
        (Name::Mse, None) => RangeRule::Mse,
        (Name::Entropy, None) => RangeRule::Entropy,
    };
    let mut engine = arguments.engine.open()?;
    let (data, grid) = (&arguments.data, arguments.grid);
    let job = job(data)?.with_scratch(edge::calibrate(rule));
    let found = engine.run(job, |engine| {
        calibrate(engine, data, rule, grid, &Bar::new())
    })?;
    if arguments.json {
        output::json(&found)
    } else {
        output::text(&people(&found))
    }
}

/// Returns the job of all floats of all files.
fn job(data: &[PathBuf]) -> Result<Job, Error> {
    let (mut values, mut bytes) = (0, 0);
    for path in data {
        let model = TensorFile::open(path)?;
        for tensor in model.tensors().filter(|tensor| tensor.dtype.is_float()) {
            values += tensor.values() as u64;
            bytes += tensor.bytes.len() as u64;
        }
    }
    Ok(Job::each(Operation::Histogram, values, bytes, 0))
}

fn people(found: &Calibration) -> String {
    let number = |value: f32| format::significant(f64::from(value));
    format!(
        "values      {}\nsmallest    {}\nlargest     {}\nrange       {} .. {}\nscale       {}\nzero point  {}\nengine      {}\n",
        found.count,
        number(found.min),
        number(found.max),
        number(found.low),
        number(found.high),
        // Shortest text that reads back as the same f32, because users copy the scale into programs.
        found.scale,
        found.zero_point,
        engine::words(&found.engine, found.engine_note.as_deref()),
    )
}
