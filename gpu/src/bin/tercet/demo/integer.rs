//! The classifier as integer networks, which a microcontroller runs from flash with the same logits.

use serde::Serialize;
use tercet_core::linear::Layout;
use tercet_host::TensorFile;
use tercet_host::network::{BuildOptions, LayerOptions, NetworkFile};
use tercet_host::points::{Destination, Points, Values, write_labels, write_points};

use super::digits::{self, Digit, FEATURES};
use super::folder::Folder;
use crate::engine::CommandEngine;
use crate::failure::Failure;
use crate::network::{answers, built, digest};
use crate::table::{Align, Table};

/// The features of the training half, on which activations are calibrated.
const TRAIN: &str = "digits-train.npy";
/// The features of the held-out half, and its digits.
const TEST: &str = "digits-test.npy";
const LABELS: &str = "digits-test-labels.npy";

/// A network in one layout.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    /// The file, within the folder.
    file: String,
    /// The layout of the hidden layer's weights.
    hidden: &'static str,
    /// The layout of the head's weights.
    head: &'static str,
    /// Bits per weight, including scales.
    bits_per_weight: f64,
    /// Bytes of the file, all of which stay in flash.
    bytes: usize,
    /// Bytes of RAM that a run needs beside inputs and logits.
    ram: usize,
    /// Part of the held-out digits that are read correctly.
    accuracy: f64,
    /// A digest of all integer logits.
    digest: String,
}

/// Returns the names of all files that [`run`] writes.
pub(super) fn files() -> impl Iterator<Item = String> {
    let inputs = [TRAIN, TEST, LABELS].map(str::to_owned);
    inputs.into_iter().chain(layouts().map(file))
}

/// Returns the layouts that weights can be converted to.
fn layouts() -> impl Iterator<Item = Layout> {
    Layout::ALL.into_iter().filter(|layout| layout.can_encode())
}

fn file(hidden: Layout) -> String {
    format!("digits-network-{}.gguf", hidden.name())
}

/// Writes the features, and a network for every layout of the hidden layer; the head, with 4 % of the weights, is int8.
pub(super) fn run(
    engine: &mut CommandEngine,
    original: &TensorFile,
    folder: &Folder,
) -> Result<Vec<Outcome>, Failure> {
    let train = points("train", digits::training())?;
    let test = points("test", digits::held_out())?;
    let labels: Vec<u32> = digits::held_out().map(|digit| digit.label.into()).collect();
    let paths = [TRAIN, TEST, LABELS].map(|name| folder.path(name));
    let to = |index: usize| Destination {
        path: &paths[index],
        inputs: &[],
        overwrite: true, // the folder is ours
    };
    write_points(to(0), &train)?;
    write_points(to(1), &test)?;
    write_labels(to(2), &labels)?;
    let mut outcome = |hidden| {
        let layers = vec![
            LayerOptions {
                name: "hidden".into(),
                relu: true,
                to: None,
            },
            LayerOptions {
                name: "head".into(),
                relu: false,
                to: Some(Layout::Int8),
            },
        ];
        let options = BuildOptions::new(layers, hidden);
        let built = built(engine, original, &options, &train, &())?;
        let file = file(hidden);
        folder.write(&file, &built.bytes)?;
        let network = NetworkFile::open(&folder.path(&file))?;
        let answers = answers(engine, &network, &test)?;
        let pairs = answers.classes.iter().zip(&labels);
        let right = pairs
            .filter(|&(&class, &label)| class == label as usize)
            .count();
        Ok(Outcome {
            hidden: hidden.name(),
            head: Layout::Int8.name(),
            bits_per_weight: built.bits_per_weight,
            bytes: built.bytes.len(),
            ram: built.activations + built.scratch,
            accuracy: right as f64 / labels.len() as f64,
            digest: format!("{:016x}", digest(&answers.sums)),
            file,
        })
    };
    layouts().map(&mut outcome).collect()
}

fn points(name: &str, digits: impl Iterator<Item = Digit>) -> Result<Points, Failure> {
    let features: Vec<i8> = digits.flat_map(|digit| digit.features).collect();
    let rows = features.len() / FEATURES;
    Ok(Points::new(name, rows, FEATURES, Values::int8(features))?)
}

/// Returns the section for people.
pub(super) fn people(outcomes: &[Outcome]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("hidden 64x256", Left),
        ("head 10x64", Left),
        ("bits/weight", Right),
        ("file bytes", Right),
        ("RAM bytes", Right),
        ("accuracy", Right),
        ("logits", Left),
    ]);
    for outcome in outcomes {
        table.row([
            outcome.hidden.to_owned(),
            outcome.head.to_owned(),
            format!("{:.4}", outcome.bits_per_weight),
            outcome.bytes.to_string(),
            outcome.ram.to_string(),
            format!("{:.2} %", outcome.accuracy * 100.0),
            outcome.digest.clone(),
        ]);
    }
    format!(
        "the same classifier in integers alone, run from its file: `logits` is equal on every machine\n\n{}",
        table.render()
    )
}
