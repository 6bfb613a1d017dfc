//! Computes the digests.

mod activations;
mod block;
mod calibrate;
mod cluster;
mod gguf;
mod input;
mod linear;
mod matmat;
mod model;
mod network;
mod number;
mod online;
mod palette;
mod quant;
mod quantized;
mod score;
mod search;
mod train;
mod train_attention;
mod train_step;

use super::{Digest, Mismatch, expected};
use crate::engine::{Engine, ModelEngine, TrainEngine};
use crate::scalar::Scalar;

pub use online::{Memory, online};
pub use quantized::Quantized;

/// Largest number of bytes of RAM of a case, including its buffers and stack frames, except for those of models.
///
/// To ensure this, each case is a separate function that is not inlined, so that stack frames do not add up.
pub const CASE_BYTES: usize = 6 * 1024;

/// Lengths that are awkward for blocks, vectors and loops.
pub(crate) const SIZES: [usize; 6] = [0, 1, 31, 255, 256, 257];

/// A part of the suite, for a machine whose memory cannot hold a program with all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Section {
    /// Numbers, quantizers, calibration, blocks, files, palettes, layers and networks.
    Weights,
    /// Clustering and search.
    Points,
    /// Language models with little memory, and the steps of their training.
    Models,
    /// Language models in steps and at lengths that need more memory than the suite's boards have, and in training:
    /// 640 KiB of stack.
    LongModels,
}

impl Section {
    /// All parts, in the order of [`run`].
    pub const ALL: [Self; 4] = [Self::Weights, Self::Points, Self::Models, Self::LongModels];

    /// Returns the largest number of bytes of RAM of a case: [`CASE_BYTES`], 15.5 KiB with a language model's cache,
    /// or 640 KiB at many positions and in training.
    pub const fn case_bytes(self) -> usize {
        match self {
            Self::Weights | Self::Points => CASE_BYTES,
            Self::Models => 15_872,
            Self::LongModels => 640 * 1024,
        }
    }
}

/// Runs every operation of `core`, with [`Scalar`] for those that engines supply, and reports one digest per
/// operation.
///
/// Takes well under a second on a desktop, and some seconds on a microcontroller.
pub fn run(report: &mut dyn FnMut(&'static str, u64)) {
    for part in Section::ALL {
        run_part(part, report);
    }
}

/// Like [`run`], for one part. If `part` is a constant, the code of the others is not linked.
#[inline]
pub fn run_part(part: Section, report: &mut dyn FnMut(&'static str, u64)) {
    match part {
        Section::Weights => {
            number::run(report);
            calibrate::run(report);
            report("block/bitnet_hf", block::hugging_face());
            gguf::run(report);
            report("palette/optimal_1d", palette::optimal());
            report("linear/requantize", linear::requantize());
            weights(&mut Scalar, report);
        }
        Section::Points => {
            report("cluster/floats", cluster::floats());
            online::run(report);
            quantized::run(report);
            score::run(report);
            report("search/rerank", search::reranked());
            points(&mut Scalar, report);
        }
        Section::Models => {
            model::run(report);
            model::run_engine(&mut Scalar, report);
            train::run(report);
            train::run_engine(&mut Scalar, report);
            train_attention::run_engine(&mut Scalar, report);
        }
        Section::LongModels => {
            model::run_long(&mut Scalar, report);
            train_attention::run_long(&mut Scalar, report);
            train_step::run_long(&mut Scalar, report);
        }
    }
}

/// Runs the operations that an engine supplies. A new engine must report the digests of the table before any other
/// use.
pub fn run_engine<E: Engine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    weights(engine, report);
    points(engine, report);
}

/// Runs the language models of [`Section::Models`] and [`Section::LongModels`] on an engine, which must report the
/// digests of the table. Takes 512 KiB of stack.
pub fn run_models<E: ModelEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    model::run_engine(engine, report);
    model::run_long(engine, report);
}

/// Runs the training of [`Section::Models`] and [`Section::LongModels`] on an engine, which must report the digests
/// of the table. Takes 640 KiB of stack.
pub fn run_training<E: TrainEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    train::run_engine(engine, report);
    train_attention::run_engine(engine, report);
    train_attention::run_long(engine, report);
    train_step::run_long(engine, report);
}

fn weights<E: Engine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    calibrate::run_engine(engine, report);
    report("quant/dequantize", quant::dequantize(engine));
    activations::run(engine, report);
    quant::run(engine, report);
    block::two_bits(engine, report);
    block::run(engine, report);
    palette::run(engine, report);
    linear::run(engine, report);
    report("linear/matmat", matmat::run(engine));
    report("linear/network", network::run(engine));
}

fn points<E: Engine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    cluster::run(engine, report);
    search::run(engine, report);
}

/// Runs the suite and compares it with [`TABLE`](super::TABLE). Returns the number of operations that agree, or the
/// first that does not.
pub fn check() -> Result<usize, Mismatch> {
    compare(|report| run(report))
}

/// Like [`check`], for [`run_engine`].
pub fn check_engine<E: Engine>(engine: &mut E) -> Result<usize, Mismatch> {
    compare(|report| run_engine(engine, report))
}

fn compare(run: impl FnOnce(&mut dyn FnMut(&'static str, u64))) -> Result<usize, Mismatch> {
    let mut agreed = 0;
    let mut first = None;
    run(&mut |name, found| {
        let expected = expected(name);
        if expected == Some(found) {
            agreed += 1;
        } else if first.is_none() {
            first = Some(Mismatch {
                name,
                found,
                expected,
            });
        }
    });
    match first {
        Some(mismatch) => Err(mismatch),
        None => Ok(agreed),
    }
}
