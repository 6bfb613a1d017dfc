//! Tries one format on the classifier.

use std::path::Path;

use serde::Serialize;
use tercet_core::block::Format;
use tercet_core::palette::Width;
use tercet_core::quant::{Comparison, Rule};
use tercet_host::TensorFile;
use tercet_host::convert::{Per, QuantizeOptions, Target, TensorReport};
use tercet_host::parallel::Threads;

use super::digits::Digit;
use super::load;
use super::network::Network;
use crate::engine::CommandEngine;
use crate::failure::Failure;

/// A format and the rule that chooses its codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    target: Target,
    /// The word for the rule, in names and tables; `None` if a format has only one.
    rule: Option<(&'static str, Rule)>,
    per: Option<Per>,
    bits: Option<f64>,
}

/// The effect of a format on the classifier.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    /// Format and rule.
    pub(crate) name: String,
    /// The file, within the folder.
    pub(crate) file: String,
    /// The requested format.
    pub(crate) format: &'static str,
    /// The requested rule.
    pub(crate) rule: Option<&'static str>,
    /// The stored type of the hidden layer's weights.
    pub(crate) hidden: String,
    /// The stored type of the head's weights: a fallback if its rows of 64 do not fit the format's blocks.
    pub(crate) head: String,
    /// The matrix that was stored in another format than requested, and why.
    pub(crate) note: Option<String>,
    /// Bits per weight, including scales, over both matrices, including unquantized ones.
    pub(crate) bits_per_weight: f64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// Squared error of all weights divided by their energy.
    pub(crate) relative_error: f64,
    /// Part of the held-out digits that are read correctly, with float activations.
    pub(crate) accuracy: f64,
    /// The same with int8 activations and integer dot products.
    pub(crate) accuracy_int8: f64,
}

impl Trial {
    /// Returns every format; the ternary ones of GGUF with ggml's rule and with the optimal one.
    pub(crate) fn all() -> Vec<Self> {
        const ABSMAX: Option<(&str, Rule)> = Some(("absmax", Rule::AbsMax));
        const ABSMEAN: Option<(&str, Rule)> = Some(("absmean", Rule::AbsMean));
        const OPTIMAL: Option<(&str, Rule)> = Some(("optimal", Rule::Optimal));
        let plain = |target, rule| Self {
            target,
            rule,
            per: None,
            bits: None,
        };
        vec![
            plain(Target::Blocks(Format::Q8_0), None),
            Self {
                per: Some(Per::Row),
                ..plain(Target::Int8, None)
            },
            plain(Target::Blocks(Format::Q4_0), None),
            plain(Target::Palette(Width::ALL[3]), None),
            Self {
                bits: Some(3.0),
                ..plain(Target::Auto, OPTIMAL)
            },
            plain(Target::Blocks(Format::Q2_0), ABSMAX),
            plain(Target::Blocks(Format::Q2_0), OPTIMAL),
            plain(Target::Palette(Width::ALL[1]), None),
            plain(Target::Blocks(Format::Tq2_0), ABSMAX),
            plain(Target::Blocks(Format::Tq2_0), OPTIMAL),
            plain(Target::Blocks(Format::Tq1_0), ABSMAX),
            plain(Target::Blocks(Format::Tq1_0), OPTIMAL),
            Self {
                per: Some(Per::Tensor),
                ..plain(Target::Ternary, ABSMEAN)
            },
            Self {
                per: Some(Per::Row),
                ..plain(Target::Ternary, OPTIMAL)
            },
            // Its rule is part of the format.
            plain(Target::BitnetHf, None),
        ]
    }

    /// Returns format and rule.
    fn name(&self) -> String {
        match self.rule {
            Some((rule, _)) => format!("{} {rule}", self.target.name()),
            None => self.target.name().to_owned(),
        }
    }

    /// Returns the name of the file that the trial writes.
    pub(crate) fn file(&self) -> String {
        let extension = match self.target {
            Target::Int8 | Target::Ternary | Target::BitnetHf | Target::Palette(_) => "safetensors",
            _ => "gguf",
        };
        format!(
            "digits-{}.{extension}",
            self.name().replace([' ', ':'], "-")
        )
    }

    /// Quantizes into `path`, reads that file back and lets it read the held-out digits.
    pub(crate) fn run(
        &self,
        engine: &mut CommandEngine,
        original: &TensorFile,
        truth: &Network<Vec<f32>>,
        path: &Path,
        images: &[Digit],
    ) -> Result<Outcome, Failure> {
        let options = QuantizeOptions {
            rule: self.rule.map(|(_, rule)| rule),
            per: self.per,
            bits: self.bits,
            force: true, // the folder is ours
            ..QuantizeOptions::new(self.target)
        };
        let report = match engine.makes(self.target) {
            true => engine.quantize(original, &options, path, &())?,
            false => {
                let threads = &mut Threads::default();
                tercet_host::quantize(threads, original, &options, path, &())?
            }
        };
        let matrix = |name: &str| {
            let found = report.tensors.iter().find(|tensor| tensor.name == name);
            found.ok_or_else(|| Failure::new(format_args!("tensor `{name}` is not in the report")))
        };
        let (hidden, head) = (matrix("hidden.weight")?, matrix("head.weight")?);
        let network = load::network(&TensorFile::open(path)?)?;
        let floats = load::floats(&network)?;
        Ok(Outcome {
            name: self.name(),
            file: self.file(),
            format: self.target.name(),
            rule: self.rule.map(|(word, _)| word),
            hidden: hidden.to.clone(),
            head: head.to.clone(),
            note: [hidden, head].into_iter().find_map(|tensor| {
                let note = tensor.note.as_ref()?;
                Some(format!("{}: {note}", tensor.name))
            }),
            bits_per_weight: bits_per_weight(&[hidden, head]),
            bytes: report.bytes_after,
            relative_error: relative_error(truth, &floats)?,
            accuracy: accuracy(images, |digit| Ok(floats.read(&digit.features)))?,
            accuracy_int8: accuracy(images, |digit| network.read(&digit.features))?,
        })
    }
}

/// Returns the bits per weight over tensors, including those that a format could not represent.
fn bits_per_weight(tensors: &[&TensorReport]) -> f64 {
    let values = |tensor: &TensorReport| tensor.shape.iter().product::<usize>() as f64;
    let bits: f64 = tensors.iter().map(|t| t.bits_per_weight * values(t)).sum();
    bits / tensors.iter().map(|t| values(t)).sum::<f64>()
}

/// Returns the part of the digits that `read` reads correctly.
pub(crate) fn accuracy(
    images: &[Digit],
    read: impl Fn(&Digit) -> Result<u8, Failure>,
) -> Result<f64, Failure> {
    let mut right = 0;
    for digit in images {
        right += usize::from(read(digit)? == digit.label);
    }
    Ok(right as f64 / images.len() as f64)
}

/// Returns the number of weights in both matrices.
pub(crate) fn weights(network: &Network<Vec<f32>>) -> usize {
    network.hidden.weights.len() + network.head.weights.len()
}

/// Returns Σ(x − x̂)² / Σx² over both matrices.
fn relative_error(truth: &Network<Vec<f32>>, restored: &Network<Vec<f32>>) -> Result<f64, Failure> {
    let mut comparison = Comparison::new();
    for (truth, restored) in [
        (&truth.hidden, &restored.hidden),
        (&truth.head, &restored.head),
    ] {
        comparison
            .push(&truth.weights, &restored.weights)
            .map_err(Failure::new)?;
    }
    let measures = comparison
        .finish()
        .ok_or_else(|| Failure::new("the classifier has no weights"))?;
    Ok(measures.relative_error)
}
