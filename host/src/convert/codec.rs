//! Blocks of GGUF and plain floats: one read of the values.

use tercet_core::block::{BlockError, Format};
use tercet_core::quant::{Measures, Rule, ScaleRule};

use super::hands::{Hands, Span};
use super::measure::Loss;
use super::options::{QuantizeOptions, Target};
use super::runs::Coder;
use super::stream::{Encoder, Parts, Sink, stream};
use crate::dtype::DType;
use crate::simd::{Backend, Stores};
use crate::source::{CHUNK, Source, place_block};
use crate::{Error, Progress, floats};

/// Turns values into bytes and back. A tile is a multiple of every codec's block.
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
    /// Blocks of a format; formats with one rule of their own take no other.
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

    /// The type of the encoded tensor.
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

/// What a format refuses of the values that begin at `first`.
pub(super) fn refusal(format: Format, first: usize, error: BlockError) -> String {
    match error {
        BlockError::NotFinite { index } => format!("value {} is not finite", first + index),
        error => place_block(error, first / format.len()),
    }
}

/// A tensor on its way through a codec.
struct Coded<'a, 's, H> {
    hands: &'a mut H,
    source: &'a Source<'s>,
    codec: Codec,
    flushed: u64,
    /// `None` for a source that is quantized itself: what was restored from codes is not the original that an error could be
    /// told from.
    loss: Option<Loss>,
}

impl<H: Hands> Encoder for Coded<'_, '_, H> {
    fn end(&self) -> usize {
        self.source.values()
    }

    fn chunk(&mut self, first: usize, out: &mut Parts) -> Result<usize, Error> {
        let len = CHUNK.min(self.end() - first);
        let out = out.room(0, self.codec.bytes(len));
        let chunk = Span {
            source: self.source,
            first,
            len,
        };
        self.flushed += (self.hands).stream(chunk, &self.codec, out, self.loss.as_mut())?;
        Ok(first + len)
    }
}

/// What a tensor lost in a codec.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Blocks that became zeros.
    pub(crate) flushed: u64,
    /// `None` for a source that is quantized itself.
    pub(crate) measures: Option<Measures>,
}

/// Encodes a tensor of at least one value.
pub(super) fn encode(
    hands: &mut impl Hands,
    source: &Source<'_>,
    codec: Codec,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Done, Error> {
    let mut coded = Coded {
        hands,
        source,
        codec,
        flushed: 0,
        loss: (!source.is_quantized()).then(Loss::default),
    };
    stream(source, &mut coded, progress, sink)?;
    Ok(Done {
        flushed: coded.flushed,
        measures: coded.loss.and_then(|loss| loss.finish()),
    })
}
