//! `tercet calibrate`: an int8 grid for activations, from recorded data.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use tercet_host::convert::Grid;
use tercet_host::{Calibration, Method};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::words::{grid, words};
use crate::{format, output};

const EXAMPLES: &str = "\
Examples:
  tercet calibrate activations.npy --method mse
  tercet calibrate run1.npy run2.npy run3.safetensors --method percentile --percent 99.99
  tercet calibrate activations.npy --method entropy --grid affine --json

All float tensors of all files count as one set of values; the order of files does not matter.

JSON (--json): count, min, max, low, high, scale, zero_point.";

/// Choose the int8 scale of activations from recorded data
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// npy, safetensors or GGUF files
    #[arg(value_name = "DATA", required = true)]
    data: Vec<PathBuf>,
    /// How the range that the codes cover is chosen
    #[arg(long, value_name = "METHOD", value_parser = method())]
    method: Name,
    /// Per cent of the values that the percentile method keeps within the range [default: 99.9]
    #[arg(long, value_name = "PERCENT")]
    percent: Option<f64>,
    /// Codes: symmetric, or affine with a zero point (ONNX)
    #[arg(long, value_name = "GRID", value_parser = grid(), default_value = "symmetric")]
    grid: Grid,
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
    let method = match (arguments.method, arguments.percent) {
        (Name::Percentile, percent) => Method::Percentile(percent.unwrap_or(99.9)),
        (_, Some(_)) => {
            return Err(Failure::usage(
                "--percent goes with --method percentile only",
            ));
        }
        (Name::AbsMax, None) => Method::AbsMax,
        (Name::MinMax, None) => Method::MinMax,
        (Name::Mse, None) => Method::Mse,
        (Name::Entropy, None) => Method::Entropy,
    };
    let found = tercet_host::calibrate(&arguments.data, method, arguments.grid, &Bar::new())?;
    if arguments.json {
        output::json(&found)
    } else {
        output::text(&people(&found))
    }
}

fn people(found: &Calibration) -> String {
    let number = |value: f32| format::significant(f64::from(value));
    format!(
        "values      {}\nsmallest    {}\nlargest     {}\nrange       {} .. {}\nscale       {}\nzero point  {}\n",
        found.count,
        number(found.min),
        number(found.max),
        number(found.low),
        number(found.high),
        // Shortest text that reads back as the same f32: a scale is copied into programs.
        found.scale,
        found.zero_point,
    )
}
