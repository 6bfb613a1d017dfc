//! GGUF blocks, on rayon's threads: runs of whole blocks side by side.

use rayon::prelude::*;
use tercet_core::block::{self, BlockError, Encoded, Format};
use tercet_core::number::Element;
use tercet_core::quant::{Rule, ScaleRule};

/// As [`block::encode`], runs of about `tile` values at a time.
pub(super) fn encode<T: Element>(
    tile: usize,
    format: Format,
    rule: Rule,
    scale: ScaleRule,
    values: &[T],
    out: &mut [u8],
) -> Result<Encoded, BlockError> {
    if values.is_empty() || format.encoded_len(values.len()) != Ok(out.len()) {
        // What is wrong with the whole is for core to say.
        return block::encode(format, rule, scale, values, out);
    }
    let blocks = blocks_a_run(tile, format, values.len());
    let results: Vec<_> = values
        .par_chunks(blocks * format.len())
        .zip(out.par_chunks_mut(blocks * format.bytes()))
        .map(|(values, out)| block::encode(format, rule, scale, values, out))
        .collect();
    let mut whole = Encoded::default();
    // In order, so the first error is that of the lowest block.
    for (run, result) in results.into_iter().enumerate() {
        let encoded = result.map_err(|error| moved(error, run * blocks, format))?;
        whole.blocks += encoded.blocks;
        whole.flushed += encoded.flushed;
    }
    Ok(whole)
}

/// As [`block::decode`], runs of about `tile` values at a time.
pub(super) fn decode(
    tile: usize,
    format: Format,
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), BlockError> {
    if out.is_empty() || format.encoded_len(out.len()) != Ok(bytes.len()) {
        return block::decode(format, bytes, out);
    }
    let blocks = blocks_a_run(tile, format, out.len());
    let results: Vec<_> = bytes
        .par_chunks(blocks * format.bytes())
        .zip(out.par_chunks_mut(blocks * format.len()))
        .map(|(bytes, out)| block::decode(format, bytes, out))
        .collect();
    for (run, result) in results.into_iter().enumerate() {
        result.map_err(|error| moved(error, run * blocks, format))?;
    }
    Ok(())
}

/// How many blocks of about `tile` values; no more than there are, so that no product overflows.
fn blocks_a_run(tile: usize, format: Format, values: usize) -> usize {
    (tile.min(values) / format.len()).max(1)
}

/// The error of a run that starts at block `start`, seen from the whole.
fn moved(error: BlockError, start: usize, format: Format) -> BlockError {
    match error {
        BlockError::NotFinite { index } => BlockError::NotFinite {
            index: index + start * format.len(),
        },
        BlockError::ScaleOverflow { block } => BlockError::ScaleOverflow {
            block: block + start,
        },
        BlockError::ScaleNotFinite { block } => BlockError::ScaleNotFinite {
            block: block + start,
        },
        other => other,
    }
}
