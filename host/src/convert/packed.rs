//! Hugging Face BitNet tensors, packed strip by strip.

use rayon::prelude::*;
use tercet_core::block::BlockError;
use tercet_core::block::bitnet_hf;
use tercet_core::quant::Measures;

use super::codes;
use crate::simd::{Backend, Stores};
use crate::source::{Source, TILE};
use crate::{Error, Progress};

/// What packing a tensor gave.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The quantizer's factor s.
    pub(crate) s: f32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) measures: Option<Measures>,
}

/// Packs a matrix whose rows divide by 4: byte i holds values i, i + n/4, i + n/2 and i + 3n/4 of its n.
pub(crate) fn pack(source: &Source<'_>, progress: &dyn Progress) -> Result<Packed, Error> {
    let refuse = |error: BlockError| Error::tensor(source.path, source.tensor.name, error);
    let stats = codes::stats(source)?;
    let s = bitnet_hf::scale_of_mean(stats.abs_mean().ok_or_else(|| refuse(BlockError::Empty))?);
    let quarter = source.values() / 4;
    let mut bytes = vec![0u8; quarter];
    bytes.par_chunks_mut(TILE).enumerate().try_for_each_init(
        || [const { Vec::new() }; 4],
        |buffers, (tile, out)| {
            let mut rows: [&[f32]; 4] = [&[]; 4];
            for (row, (values, buffer)) in rows.iter_mut().zip(buffers).enumerate() {
                *values = source.view(row * quarter + tile * TILE, out.len(), buffer)?;
            }
            // They were all found finite with the mean.
            Backend::default().pack_rows(rows, s, out);
            Ok(())
        },
    )?;
    progress.advance(source.bytes_of(source.values()));
    let measures = measure(source, s, &bytes)?;
    Ok(Packed { s, bytes, measures })
}

/// Measures against `code · fl(1 / s)`, which is how the file is read back.
fn measure(source: &Source<'_>, s: f32, bytes: &[u8]) -> Result<Option<Measures>, Error> {
    let refuse =
        |error: &dyn ToString| Error::tensor(source.path, source.tensor.name, error.to_string());
    let unit = bitnet_hf::WeightScale::Divisor
        .unit(s)
        .map_err(|e| refuse(&e))?;
    let quarter = bytes.len();
    super::measure::measure(source, |first, out| {
        let (mut at, mut rest) = (first, out);
        while !rest.is_empty() {
            let (lane, from) = (at / quarter, at % quarter);
            let (part, after) = rest.split_at_mut((quarter - from).min(rest.len()));
            let (bytes, shift) = (&bytes[from..][..part.len()], 2 * lane as u32);
            // No code here is 3.
            Backend::default().decode_row(bytes, shift, unit, part, Stores::Cached);
            at += part.len();
            rest = after;
        }
    })
}
