//! `tercet compare`: how far two models are from each other.

use std::path::PathBuf;

use tercet_host::{CompareReport, Measured};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::table::{Align, Table};
use crate::{format, output, reading};

const EXAMPLES: &str = "\
Examples:
  tercet compare model.safetensors model-tq2_0.gguf
  tercet compare before.gguf after.gguf --json

A is the truth. Both must hold the same tensors in the same shapes; a difference in names or shapes is an error \
(exit status 1), a difference in values is what the table shows (exit status 0).

Tensors whose type is not read must be equal byte for byte; they have no measures.

JSON (--json): tensors[] (name, shape, left, right, measures) and total; measures and total are null or hold count, \
mse, relative_error, sqnr_db, cosine, max_error.";

/// Measure how far the tensors of B are from those of A
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The model that is the truth
    #[arg(value_name = "A")]
    left: PathBuf,
    /// The model that is measured
    #[arg(value_name = "B")]
    right: PathBuf,
    #[command(flatten)]
    reading: reading::Arguments,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let left = arguments.reading.open(&arguments.left)?;
    let right = arguments.reading.open(&arguments.right)?;
    let report = tercet_host::compare(&left, &right, &Bar::new())?;
    if arguments.json {
        output::json(&report)
    } else {
        output::text(&people(&report))
    }
}

fn people(report: &CompareReport) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("tensor", Left),
        ("shape", Left),
        ("A", Left),
        ("B", Left),
        ("MSE", Right),
        ("rel. error", Right),
        ("SQNR dB", Right),
        ("cosine", Right),
        ("max error", Right),
    ]);
    for tensor in &report.tensors {
        let words = [
            tensor.name.clone(),
            format::shape(&tensor.shape),
            tensor.left.clone(),
            tensor.right.clone(),
        ];
        table.row(words.into_iter().chain(measures(tensor.measures.as_ref())));
    }
    if let Some(total) = &report.total {
        let words = [
            "all".to_owned(),
            format!("{} values", total.count),
            String::new(),
            String::new(),
        ];
        table.row(words.into_iter().chain(measures(Some(total))));
    }
    table.render()
}

fn measures(of: Option<&Measured>) -> [String; 5] {
    let Some(of) = of else {
        return std::array::from_fn(|_| "-".to_owned());
    };
    [
        format::significant(of.mse),
        format::significant(of.relative_error),
        of.sqnr_db
            .map_or_else(|| "-".to_owned(), |db| format!("{db:.2}")),
        format!("{:.6}", of.cosine),
        format::significant(of.max_error),
    ]
}
