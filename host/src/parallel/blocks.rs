//! GGUF blocks on rayon's threads: runs of whole blocks in parallel.

use tercet_core::block::{self, BlockError, Encoded, Format};
use tercet_core::number::Element;
use tercet_core::quant::{Rule, ScaleRule};
use tracing::trace_span;

use super::each::{chunks, chunks_mut};
use crate::simd::blocks::moved;
use crate::simd::{Backend, Stores, as_f32};

/// Values that are widened at a time, on the stack: whole blocks of every format.
const WIDENED: usize = 1024;

/// As [`block::encode`], with runs of about `tile` values at a time.
pub(super) fn encode<T: Element>(
    backend: Backend,
    tile: usize,
    format: Format,
    rule: Rule,
    scale: ScaleRule,
    values: &[T],
    out: &mut [u8],
) -> Result<Encoded, BlockError> {
    if values.is_empty() || format.encoded_len(values.len()) != Ok(out.len()) {
        // Core reports errors of the whole.
        return block::encode(format, rule, scale, values, out);
    }
    let blocks = blocks_a_run(tile, format, values.len());
    let results = chunks(values, blocks * format.len())
        .zip(chunks_mut(out, blocks * format.bytes()))
        .gather(|_, (values, out)| encode_run(backend, format, rule, scale, values, out));
    let mut whole = Encoded::default();
    // In order, so the first error is that of the lowest block.
    for (run, result) in results.into_iter().enumerate() {
        let encoded = result.map_err(|error| moved(error, run * blocks, format))?;
        whole.blocks += encoded.blocks;
        whole.flushed += encoded.flushed;
    }
    Ok(whole)
}

/// As [`block::decode`], with runs of about `tile` values at a time.
pub(super) fn decode(
    backend: Backend,
    tile: usize,
    format: Format,
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), BlockError> {
    if out.is_empty() || format.encoded_len(out.len()) != Ok(bytes.len()) {
        return block::decode(format, bytes, out);
    }
    let blocks = blocks_a_run(tile, format, out.len());
    // A decoder reads less than it writes.
    let stores = Stores::of(out.len());
    chunks(bytes, blocks * format.bytes())
        .zip(chunks_mut(out, blocks * format.len()))
        .try_each(|run, (bytes, out)| {
            let _span = trace_span!("decode", format = format.name(), len = out.len()).entered();
            let result = backend.decode_blocks(format, bytes, out, stores);
            stores.finish();
            result.map_err(|error| moved(error, run * blocks, format))
        })
}

/// Returns the number of blocks in about `tile` values; at most the existing ones, so that no product overflows.
fn blocks_a_run(tile: usize, format: Format, values: usize) -> usize {
    (tile.min(values) / format.len()).max(1)
}

/// As [`block::encode`], on this thread; the lengths must match.
fn encode_run<T: Element>(
    backend: Backend,
    format: Format,
    rule: Rule,
    scale: ScaleRule,
    values: &[T],
    out: &mut [u8],
) -> Result<Encoded, BlockError> {
    let _span = trace_span!("encode", format = format.name(), len = values.len()).entered();
    if let Some(values) = as_f32(values) {
        return backend.encode_blocks(format, rule, scale, values, out);
    }
    let mut whole = Encoded::default();
    let mut wide = [0.0; WIDENED];
    let bytes = WIDENED / format.len() * format.bytes();
    for (values, out) in values.chunks(WIDENED).zip(out.chunks_mut(bytes)) {
        let wide = &mut wide[..values.len()];
        backend.widen(values, wide);
        let done = backend
            .encode_blocks(format, rule, scale, wide, out)
            .map_err(|error| moved(error, whole.blocks, format))?;
        whole.blocks += done.blocks;
        whole.flushed += done.flushed;
    }
    Ok(whole)
}
