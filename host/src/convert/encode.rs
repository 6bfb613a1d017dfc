//! Tensors of blocks or plain floats, in one read of the values.

use super::codec::Codec;
use super::measure::Loss;
use super::runs::Coder;
use super::span::{Done, Span};
use super::steps::ConversionSteps;
use super::stream::{Encoder, Parts, Sink, stream};
use crate::source::{CHUNK, Source};
use crate::{Error, Progress};

/// A tensor in conversion by a codec.
struct Coded<'a, 's> {
    steps: &'a mut dyn ConversionSteps,
    source: &'a Source<'s>,
    codec: Codec,
    flushed: u64,
    /// `None` for a source that is itself quantized: its restored values are not the original, so there is no error to
    /// measure.
    loss: Option<Loss>,
}

impl Encoder for Coded<'_, '_> {
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
        self.flushed += (self.steps).stream(chunk, &self.codec, out, self.loss.as_mut())?;
        Ok(first + len)
    }
}

/// Encodes a tensor of at least one value.
pub(super) fn encode(
    steps: &mut dyn ConversionSteps,
    source: &Source<'_>,
    codec: Codec,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Done, Error> {
    let mut coded = Coded {
        steps,
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
