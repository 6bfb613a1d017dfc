//! `tercet network run`: runs an integer network over a data set.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use tercet_core::conformance::Digest;
use tercet_core::linear::network::LayerSize;
use tercet_host::Error;
use tercet_host::network::{Answers, NetworkFile};
use tercet_host::points::{Points, ReadOptions};

use crate::engine::CommandEngine;
use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::{engine, format, output};

const EXAMPLES: &str = "\
Examples:
  tercet network run net.gguf tercet-demo/digits-test.npy --labels tercet-demo/digits-test-labels.npy
  tercet network run net.gguf inputs.csv --json | jq '.classes'
  tercet network run net.gguf inputs.npy --digest    # what firmware prints for the same inputs
  tercet network run net.gguf inputs.npy --backend cuda

The logits are exact integers (sums) and the f32 values that they stand for; both are equal on every machine. The \
class of a point is the row with the largest logit; of equal logits, the lowest row.

Points pass through the layers 1024 at a time. With --backend cuda the device multiplies, and the processor reads \
and rounds. The processor takes over what does not fit in device memory, and the report says so. With --profile edge \
a run may use only what firmware has in memory: the codes of one point, activations, scratch and sums.

JSON (--json): points, outputs, accuracy (null without labels), engine (that multiplied, or two that did a part \
each), engine_note (null, or why it is not the one asked for), digest, counts[], classes[], sums[][], logits[][], \
seconds.

--digest prints one line per point, `number digest class`, and a last line, `logits digest`. A digest is the 64-bit \
FNV-1a hash of the sums, each as eight little-endian bytes.";

/// Run an integer network: classes, logits, accuracy
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A network written by `tercet network build`
    #[arg(value_name = "NETWORK")]
    network: PathBuf,
    /// Inputs, one point each: FILE.npy, FILE.csv, FILE.safetensors:TENSOR
    #[arg(value_name = "DATA")]
    data: String,
    /// The correct class of every point: whole numbers from 0, in the form of DATA
    #[arg(long, value_name = "LABELS")]
    labels: Option<String>,
    /// Print digests of the logits
    #[arg(long, conflicts_with = "json")]
    digest: bool,
    #[command(flatten)]
    pub(super) engine: engine::Named,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Summary<'a> {
    points: usize,
    outputs: usize,
    accuracy: Option<f64>,
    engine: &'a str,
    engine_note: Option<&'a str>,
    digest: String,
    counts: Vec<usize>,
    classes: &'a [usize],
    sums: Vec<&'a [i64]>,
    logits: Vec<&'a [f32]>,
    seconds: f64,
}

/// Runs [`NetworkFile::run`] on the chosen engine.
pub(crate) fn answers(
    engine: &mut CommandEngine,
    network: &NetworkFile,
    points: &Points,
) -> Result<Answers, Error> {
    let read = network.network()?;
    let matrices = read.layers().map(|layer| layer.weights());
    let sizes: Vec<LayerSize> = matrices
        .map(|matrix| LayerSize::new(matrix.layout(), matrix.rows(), matrix.cols()))
        .collect();
    let job = super::job(&sizes, points.rows()).with_scratch(LayerSize::bytes(&sizes));
    engine.run(job, |engine| network.run(engine, points))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let mut engine = arguments.engine.open()?;
    let network = NetworkFile::open(&arguments.network)?;
    let points = Points::open(&arguments.data, &ReadOptions::default())?;
    let labels = match &arguments.labels {
        Some(spec) => Some(labels(spec, points.rows())?),
        None => None,
    };
    let answers = answers(&mut engine, &network, &points)?;
    if arguments.digest {
        return output::text(&lines(&answers));
    }
    let accuracy = labels.map(|labels| {
        let pairs = answers.classes.iter().zip(&labels);
        let right = pairs.filter(|(class, label)| class == label).count();
        right as f64 / labels.len() as f64
    });
    let mut counts = vec![0; answers.outputs];
    for &class in &answers.classes {
        counts[class] += 1;
    }
    let summary = Summary {
        points: points.rows(),
        outputs: answers.outputs,
        accuracy,
        engine: &answers.by.engine,
        engine_note: answers.by.note.as_deref(),
        digest: format!("{:016x}", digest(&answers.sums)),
        counts,
        classes: &answers.classes,
        sums: answers.sums.chunks(answers.outputs).collect(),
        logits: answers.logits.chunks(answers.outputs).collect(),
        seconds: start.elapsed().as_secs_f64(),
    };
    if arguments.json {
        return output::json(&summary);
    }
    output::text(&people(&summary))
}

/// Returns the digest of sums, as firmware computes it.
pub(crate) fn digest(sums: &[i64]) -> u64 {
    let mut digest = Digest::new();
    sums.iter().for_each(|&sum| digest.u64(sum as u64));
    digest.value()
}

/// Returns the lines that firmware prints for the same inputs.
fn lines(answers: &Answers) -> String {
    let mut lines = String::new();
    let sums = answers.sums.chunks(answers.outputs);
    for (number, (sums, class)) in sums.zip(&answers.classes).enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{number} {:016x} {class}", digest(sums));
    }
    lines + &format!("logits {:016x}\n", digest(&answers.sums))
}

/// Returns one class per point.
fn labels(spec: &str, points: usize) -> Result<Vec<usize>, Failure> {
    let file = Points::open(spec, &ReadOptions::default())?;
    let refuse = |reason: &dyn std::fmt::Display| {
        Failure::new(format_args!("{}: {reason}", format::printable(spec)))
    };
    let values = file.to_f32();
    if values.len() != points {
        return Err(refuse(&format_args!(
            "there are {} labels for {points} points; one label per point is needed",
            values.len()
        )));
    }
    let class = |(row, &value): (usize, &f32)| {
        let whole = value >= 0.0 && value.fract() == 0.0;
        match whole {
            true => Ok(value as usize),
            false => Err(refuse(&format_args!(
                "label {row} (from 0) is {value}, which is not a class"
            ))),
        }
    };
    values.iter().enumerate().map(class).collect()
}

fn people(summary: &Summary<'_>) -> String {
    let mut table = Table::new(&[("class", Align::Right), ("points", Align::Right)]);
    for (class, count) in summary.counts.iter().enumerate() {
        table.row([class.to_string(), count.to_string()]);
    }
    let accuracy = summary.accuracy.map_or_else(String::new, |accuracy| {
        format!("{:.2} % right\n", accuracy * 100.0)
    });
    format!(
        "{}\n{accuracy}{} in {} s by {}, logits {}\n",
        table.render(),
        format::counted(summary.points as u64, "point"),
        format::significant(summary.seconds),
        engine::words(summary.engine, summary.engine_note),
        summary.digest,
    )
}
