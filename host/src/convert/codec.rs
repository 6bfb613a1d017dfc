//! GGUF blocks and plain floats: how a run of values is encoded.

use tercet_core::block::{BlockError, Format};
use tercet_core::quant::{Rule, ScaleRule};

use super::options::{QuantizeOptions, Target};
use super::runs::Coder;
use crate::dtype::DType;
use crate::floats;
use crate::simd::{Backend, Stores};
use crate::source::place_block;

/// Converts values to bytes and back. A tile is a multiple of every codec's block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Codec {
    Floats(DType),
    Blocks {
        format: Format,
        rule: Rule,
        scale: ScaleRule,
    },
}

impl Codec {
    /// Returns blocks of a format; formats with their own rule accept no other.
    pub(crate) fn blocks(format: Format, options: &QuantizeOptions) -> Self {
        let ternary = format.is_ternary();
        let own = match options.target {
            Target::Auto if ternary => Rule::Optimal,
            _ => Rule::default(),
        };
        Self::Blocks {
            format,
            rule: options.rule.filter(|_| ternary).unwrap_or(own),
            scale: if ternary {
                options.scale
            } else {
                ScaleRule::Rule
            },
        }
    }

    /// Returns the type of the encoded tensor.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Self::Floats(dtype) => dtype,
            Self::Blocks { format, .. } => DType::Block(format),
        }
    }
}

impl Coder for Codec {
    fn bytes(&self, values: usize) -> usize {
        match *self {
            Self::Floats(dtype) => values * dtype.block().1,
            Self::Blocks { format, .. } => values / format.len() * format.bytes(),
        }
    }

    fn encode(&self, first: usize, values: &[f32], out: &mut [u8]) -> Result<u64, String> {
        match *self {
            Self::Floats(dtype) => {
                floats::narrow(dtype, values, out)
                    .map(|()| 0)
                    .map_err(|index| {
                        let (value, place) = (values[index], first + index);
                        match value.is_finite() {
                            true => {
                                format!("value {place} is {value}, too large for {}", dtype.name())
                            }
                            false => format!("value {place} is not finite"),
                        }
                    })
            }
            Self::Blocks {
                format,
                rule,
                scale,
            } => match Backend::default().encode_blocks(format, rule, scale, values, out) {
                Ok(done) => Ok(done.flushed as u64),
                Err(error) => Err(refusal(format, first, error)),
            },
        }
    }

    fn restore(&self, _: usize, bytes: &[u8], out: &mut [f32]) -> Result<(), String> {
        match *self {
            Self::Floats(dtype) => floats::widen(dtype, bytes, out),
            Self::Blocks { format, .. } => {
                Backend::default()
                    .decode_blocks(format, bytes, out, Stores::Cached)
                    .map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }
}

/// Describes why a format refuses values that begin at `first`.
pub(super) fn refusal(format: Format, first: usize, error: BlockError) -> String {
    match error {
        BlockError::NotFinite { index } => format!("value {} is not finite", first + index),
        error => place_block(error, first / format.len()),
    }
}
