//! `tercet compare`: measures the difference between two models.

use std::path::PathBuf;

use tercet_host::{Amounts, CompareReport, Measured, compare};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::table::{Align, Table};
use crate::{edge, engine, format, output, reading, restoring};

const EXAMPLES: &str = "\
Examples:
  tercet compare model.safetensors model-tq2_0.gguf
  tercet compare before.gguf after.gguf --json
  tercet compare model.safetensors model-tq2_0.gguf --backend cuda

A is the reference. Both must hold tensors of the same names and shapes. A difference in names or shapes is an error \
(exit status 1). Differences in values are shown in the table (exit status 0).

Tensors of a type that tercet does not decode must be equal byte for byte; they have no measures.

With --backend cuda the device dequantizes blocks, int8 and ternary codes and palettes, and the processor reads and \
sums. The figures are the same, bit for bit. The processor takes over what does not fit in device memory, and the \
report says so. Only the processor dequantizes packed two-bit codes (Hugging Face BitNet, I2_S). Models without \
anything for the device are refused.

JSON (--json): tensors[] (name, shape, left, right, measures), total, engine (that restored what is quantized), \
engine_note (null, or why the processor did some of the work of the one asked for); measures and total are null or \
hold count, mse, relative_error, sqnr_db, cosine, max_error.";

/// Measure how far the tensors of B are from those of A
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The reference model
    #[arg(value_name = "A")]
    left: PathBuf,
    /// The model to measure
    #[arg(value_name = "B")]
    right: PathBuf,
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
    let left = arguments.reading.open(&arguments.left)?;
    let right = arguments.reading.open(&arguments.right)?;
    let amounts = [&left, &right].map(|model| (model.path(), Amounts::of(model)));
    let amounts = restoring::amounts(&engine, amounts)?.unwrap_or_default();
    let mut both = amounts[0];
    both += amounts[1];
    let job = restoring::job(both).with_scratch(edge::compare(&amounts));
    let report = engine.run(job, |engine| compare(engine, &left, &right, &Bar::new()))?;
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
    table.render() + &restoring::note(report.engine_note.as_deref())
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
