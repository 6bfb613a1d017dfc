//! Options for facts that model files do not state.

use std::path::Path;

use clap::builder::TypedValueParser;
use tercet_core::block::bitnet_hf::WeightScale;
use tercet_core::block::i2_s::Interleave;
use tercet_host::{Reading, TensorFile};

use crate::failure::Failure;
use crate::words::words;

/// How to read tensors whose file does not define their meaning.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(skip)] // its name would clash with that of the subcommand it is part of
pub(crate) struct Arguments {
    /// Meaning of the weight_scale beside packed Hugging Face BitNet weights: it divides or multiplies; files differ
    #[arg(long, value_name = "MEANING", value_parser = weight_scale(), default_value = "divisor")]
    weight_scale: WeightScale,
    /// The layout of I2_S tensors, named by the machine that their file was made for; without it they are not read
    #[arg(long, value_name = "LAYOUT", value_parser = i2_s())]
    i2_s: Option<Interleave>,
}

impl Arguments {
    /// Opens a model to be read in this way.
    pub(crate) fn open(self, path: &Path) -> Result<TensorFile, Failure> {
        let reading = Reading {
            weight_scale: self.weight_scale,
            i2_s: self.i2_s,
        };
        Ok(TensorFile::open(path)?.with_reading(reading))
    }
}

/// Parses the two meanings of a `weight_scale`.
pub(crate) fn weight_scale() -> impl TypedValueParser<Value = WeightScale> {
    words(&[
        ("divisor", WeightScale::Divisor),
        ("multiplier", WeightScale::Multiplier),
    ])
}

fn i2_s() -> impl TypedValueParser<Value = Interleave> {
    const X86: Interleave = Interleave::X86x128;
    const ARM: Interleave = Interleave::Arm64;
    const LAYOUTS: &[(&str, Interleave)] = &[(X86.name(), X86), (ARM.name(), ARM)];
    words(LAYOUTS)
}
