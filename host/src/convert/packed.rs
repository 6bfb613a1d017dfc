//! Hugging Face BitNet tensors, packed strip by strip.
//!
//! Reads the values three times: for their mean, for their codes at four places at once, and in order for the loss.

use tercet_core::block::BlockError;
use tercet_core::block::bitnet_hf;
use tercet_core::quant::Measures;

use super::measure::Loss;
use super::span::Span;
use super::stats;
use super::stream::{Encoder, Parts, Sink, stream};
use crate::parallel::each::chunks_mut;
use crate::simd::{Backend, Stores};
use crate::source::{CHUNK, Source, TILE};
use crate::{Error, Progress};

/// The result of packing a tensor.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The quantizer's factor s.
    pub(crate) s: f32,
    pub(crate) measures: Option<Measures>,
}

/// Packs a matrix with a number of rows divisible by 4: byte i holds values i, i + n/4, i + n/2 and i + 3n/4 of its n.
pub(crate) fn pack(
    source: &Source<'_>,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Packed, Error> {
    let refuse = |error: BlockError| Error::tensor(source.path, source.tensor.name, error);
    let stats = stats::of_tensor(source)?;
    let s = bitnet_hf::scale_of_mean(stats.abs_mean().ok_or_else(|| refuse(BlockError::Empty))?);
    stream(source, &mut Strips { source, s }, progress, sink)?;
    let measures = measure(source, s)?;
    Ok(Packed { s, measures })
}

/// A matrix in conversion; chunks are counted in bytes of the output.
struct Strips<'a, 's> {
    source: &'a Source<'s>,
    s: f32,
}

impl Encoder for Strips<'_, '_> {
    fn end(&self) -> usize {
        self.source.values() / 4
    }

    fn chunk(&mut self, first: usize, out: &mut Parts) -> Result<usize, Error> {
        let Self { source, s } = *self;
        let quarter = self.end();
        let end = quarter.min(first + CHUNK / 4);
        chunks_mut(out.room(0, end - first), TILE).try_each_with(
            || [const { Vec::new() }; 4],
            |buffers, tile, out| {
                let at = first + tile * TILE;
                let mut rows: [&[f32]; 4] = [&[]; 4];
                for (row, (values, buffer)) in rows.iter_mut().zip(buffers).enumerate() {
                    *values = source.view(row * quarter + at, out.len(), buffer)?;
                }
                // The pass for the mean found that all are finite.
                Backend::default().pack_rows(rows, s, out);
                Ok::<_, Error>(())
            },
        )?;
        Ok(end)
    }
}

/// Measures against `code · fl(1 / s)`, which is how the file is read back.
fn measure(source: &Source<'_>, s: f32) -> Result<Option<Measures>, Error> {
    let refuse = |error: BlockError| Error::tensor(source.path, source.tensor.name, error);
    let unit = bitnet_hf::WeightScale::Divisor.unit(s).map_err(refuse)?;
    let mut loss = Loss::default();
    for first in (0..source.values()).step_by(CHUNK) {
        let chunk = Span {
            source,
            first,
            len: CHUNK.min(source.values() - first),
        };
        loss.chunk(chunk, |_, values, out| {
            // Packed as a separate matrix of four rows, in which no code is 3.
            let mut packed = [0; TILE / 4];
            let row = values.len() / 4;
            let packed = &mut packed[..row];
            let rows = [0, 1, 2, 3].map(|number| &values[number * row..][..row]);
            Backend::default().pack_rows(rows, s, packed);
            for (out, shift) in out.chunks_mut(row).zip([0, 2, 4, 6]) {
                Backend::default().decode_row(packed, shift, unit, out, Stores::Cached);
            }
            Ok(())
        })?;
    }
    Ok(loss.finish())
}
