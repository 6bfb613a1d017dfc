//! What computes the digests.

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

/// Bytes of RAM that no case exceeds but those of models, its buffers and call frames included.
///
/// To hold to it each case is a function of its own that is not inlined, so that frames do not add up.
pub const CASE_BYTES: usize = 6 * 1024;

/// Lengths that blocks, vectors and loops trip over.
pub(crate) const SIZES: [usize; 6] = [0, 1, 31, 255, 256, 257];

/// A part of the suite, for a machine whose memory holds no program with all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Part {
    /// Numbers, quantizers, calibration, blocks, files, palettes, layers and networks.
    Weights,
    /// Clustering and search.
    Points,
    /// Language models in little memory, and the steps that train them.
    Models,
    /// Language models in steps and at lengths that take more memory than the boards of the suite have, and in training: 640 KiB of stack.
    LongModels,
}

impl Part {
    /// All, in the order in which [`run`] has them.
    pub const ALL: [Self; 4] = [Self::Weights, Self::Points, Self::Models, Self::LongModels];

    /// Bytes of RAM that no case exceeds: [`CASE_BYTES`], 15.5 KiB with a language model's cache, or 640 KiB at many positions and in training.
    pub const fn case_bytes(self) -> usize {
        match self {
            Self::Weights | Self::Points => CASE_BYTES,
            Self::Models => 15_872,
            Self::LongModels => 640 * 1024,
        }
    }
}

/// Runs every operation of `core`, those that engines supply on [`Scalar`], and reports one digest an operation.
///
/// Takes well under a second on a desktop, some seconds on a microcontroller.
pub fn run(report: &mut dyn FnMut(&'static str, u64)) {
    for part in Part::ALL {
        run_part(part, report);
    }
}

/// As [`run`], one part. Where `part` is a constant, the code of the other is not linked.
#[inline]
pub fn run_part(part: Part, report: &mut dyn FnMut(&'static str, u64)) {
    match part {
        Part::Weights => {
            number::run(report);
            calibrate::run(report);
            report("block/bitnet_hf", block::hugging_face());
            gguf::run(report);
            report("palette/optimal_1d", palette::optimal());
            report("linear/requantize", linear::requantize());
            weights(&mut Scalar, report);
        }
        Part::Points => {
            report("cluster/floats", cluster::floats());
            online::run(report);
            quantized::run(report);
            score::run(report);
            report("search/rerank", search::reranked());
            points(&mut Scalar, report);
        }
        Part::Models => {
            model::run(report);
            model::run_engine(&mut Scalar, report);
            train::run(report);
            train::run_engine(&mut Scalar, report);
            train_attention::run_engine(&mut Scalar, report);
        }
        Part::LongModels => {
            model::run_long(&mut Scalar, report);
            train_attention::run_long(&mut Scalar, report);
            train_step::run_long(&mut Scalar, report);
        }
    }
}

/// Runs the operations that an engine supplies; a new engine must report what the table says before any other use.
pub fn run_engine<E: Engine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    weights(engine, report);
    points(engine, report);
}

/// Runs the language models of [`Part::Models`] and [`Part::LongModels`] on an engine, which has then to report what the table says. Takes 512 KiB of stack.
pub fn run_models<E: ModelEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    model::run_engine(engine, report);
    model::run_long(engine, report);
}

/// Runs the training of [`Part::Models`] and [`Part::LongModels`] on an engine, which has then to report what the table says. Takes 640 KiB of stack.
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

/// Runs the suite and compares with [`TABLE`](super::TABLE); the number of operations that agree, or the first that does not.
pub fn check() -> Result<usize, Mismatch> {
    compare(|report| run(report))
}

/// As [`check`], for [`run_engine`].
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
