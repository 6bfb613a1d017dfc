//! `tercet demo`: a real classifier in every format, with the cost of each in bits and in misread digits.

mod clusters;
mod digits;
mod folder;
mod integer;
mod load;
mod network;
mod trial;

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use tercet_host::TensorFile;
use tercet_host::report::{Dot, Scatter};

use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::{engine, format, output};
use folder::Folder;
use trial::{Outcome, Trial};

const EXAMPLES: &str = "\
Examples:
  tercet demo
  tercet demo --out digits --json

The data is UCI's optical digits (E. Alpaydin and C. Kaynak, 1998, CC BY 4.0): 1,797 images of 8 x 8 pixels. An \
ordinary f32 classifier is trained on the first 898 and then quantized into every format, without retraining. \
Accuracy is measured on the other 899 images, once with float activations and once with int8 activations and integer \
dot products. int8 and ternary files hold one byte per code; each matrix has one palette.

The classifier also becomes integer networks, which microcontrollers run (see `tercet network --help`). Finally all \
images are clustered without their labels, and the clusters are compared with the labels. The figures of \
scikit-learn in that table were measured with the version that it names.

JSON (--json): float_accuracy, images, weights, results[] (name, file, format, rule, hidden, head, note, \
bits_per_weight, bytes, relative_error, accuracy, accuracy_int8), networks[] (file, hidden, head, bits_per_weight, \
bytes, ram, accuracy, digest), clustering (k, points, restarts, iterations, inertia, adjusted_rand, purity), \
files[], seconds. Accuracies are fractions of 1.";

/// Quantize a bundled classifier into every format, and measure the loss on real data
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder to write to; files that an earlier run wrote there are replaced
    #[arg(long, value_name = "DIR", default_value = "tercet-demo")]
    out: PathBuf,
    /// Replace files in DIR that no earlier run wrote
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(crate) engine: engine::Named,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// The findings of the demo.
#[derive(Debug, Serialize)]
struct Findings {
    float_accuracy: f64,
    images: usize,
    weights: usize,
    results: Vec<Outcome>,
    networks: Vec<integer::Outcome>,
    clustering: clusters::Outcome,
    files: Vec<PathBuf>,
    seconds: f64,
}

/// The unquantized classifier, copied into the folder.
const ORIGINAL: &str = "digits-f32.safetensors";
const PLOT: &str = "digits.svg";
const CLUSTERS: &str = "digits-clusters.svg";

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let mut engine = arguments.engine.open()?;
    let trials = Trial::all();
    let names: Vec<String> = [ORIGINAL, PLOT, CLUSTERS]
        .map(str::to_owned)
        .into_iter()
        .chain(trials.iter().map(Trial::file))
        .chain(integer::files())
        .collect();
    let folder = Folder::prepare(&arguments.out, &names, arguments.force)?;
    folder.write(ORIGINAL, digits::CLASSIFIER)?;

    let original = TensorFile::open(folder.path(ORIGINAL))?;
    let images: Vec<digits::Digit> = digits::held_out().collect();
    let truth = load::floats(&load::network(&original)?)?;
    let float_accuracy = trial::accuracy(&images, |digit| Ok(truth.read(&digit.features)))?;
    let results = trials
        .iter()
        .map(|trial| {
            let path = folder.path(&trial.file());
            trial.run(&mut engine, &original, &truth, &path, &images)
        })
        .collect::<Result<Vec<Outcome>, Failure>>()?;

    let networks = integer::run(&mut engine, &original, &folder)?;
    folder.write(PLOT, draw(&results, float_accuracy).as_bytes())?;
    let (clustering, picture) = clusters::run(&mut engine)?;
    folder.write(CLUSTERS, picture.as_bytes())?;
    let findings = Findings {
        float_accuracy,
        images: images.len(),
        weights: trial::weights(&truth),
        files: names.iter().map(|name| folder.path(name)).collect(),
        results,
        networks,
        clustering,
        seconds: start.elapsed().as_secs_f64(),
    };
    if arguments.json {
        output::json(&findings)
    } else {
        output::text(&people(&findings, &arguments.out))
    }
}

fn draw(results: &[Outcome], float_accuracy: f64) -> String {
    let dots: Vec<Dot> = results
        .iter()
        .map(|result| Dot {
            label: result.name.clone(),
            series: match result.rule {
                Some("absmax") => 1,
                Some("absmean") => 2,
                Some("optimal") => 3,
                _ => 0,
            },
            x: result.bits_per_weight,
            y: result.accuracy * 100.0,
            hollow: result.accuracy_int8 * 100.0,
        })
        .collect();
    let reference = float_accuracy * 100.0;
    let scatter = Scatter {
        title: "UCI digits: accuracy against bits per weight".to_owned(),
        line: format!("{} formats, on the held-out half", dots.len()),
        facts: Vec::new(),
        names: ["bits per weight", "accuracy in %", "int8 activations"],
        series: &["no choice of rule", "absmax", "absmean", "optimal"],
        dots: &dots,
        reference: (
            reference,
            &format!("f32 weights, float activations: {reference:.2} %"),
        ),
    };
    scatter.page().svg().to_owned()
}

fn people(findings: &Findings, out: &std::path::Path) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("format", Left),
        ("rule", Left),
        ("hidden 64x256", Left),
        ("head 10x64", Left),
        ("bits/weight", Right),
        ("file bytes", Right),
        ("rel. error", Right),
        ("accuracy", Right),
        ("int8 act.", Right),
    ]);
    let percent = |part: f64| format!("{:.2} %", part * 100.0);
    table.row([
        "f32".to_owned(),
        String::new(),
        "f32".to_owned(),
        "f32".to_owned(),
        "32.0000".to_owned(),
        digits::CLASSIFIER.len().to_string(),
        "0".to_owned(),
        percent(findings.float_accuracy),
    ]);
    for result in &findings.results {
        table.row([
            result.format.to_owned(),
            result.rule.unwrap_or_default().to_owned(),
            result.hidden.clone(),
            result.head.clone(),
            format!("{:.4}", result.bits_per_weight),
            result.bytes.to_string(),
            format::significant(result.relative_error),
            percent(result.accuracy),
            percent(result.accuracy_int8),
        ]);
    }
    let mut notes = Vec::new();
    for result in &findings.results {
        let Some(note) = &result.note else { continue };
        let line = format!("{}, {note}\n", result.format);
        if !notes.contains(&line) {
            notes.push(line);
        }
    }
    if !notes.is_empty() {
        notes.push("\n".to_owned());
    }
    format!(
        concat!(
            "UCI digits (E. Alpaydin and C. Kaynak, 1998, CC BY 4.0): a classifier of {} weights, trained in f32,\n",
            "on {} held-out images (one is {:.2} %)\n\n",
            "{}\n",
            "{}{}\n",
            "{}\n",
            "{} files in {} s, the pictures in {} and {}\n"
        ),
        findings.weights,
        findings.images,
        100.0 / findings.images as f64,
        table.render(),
        notes.concat(),
        integer::people(&findings.networks),
        clusters::people(&findings.clustering),
        findings.files.len(),
        format::significant(findings.seconds),
        out.join(PLOT).display(),
        CLUSTERS
    )
}
