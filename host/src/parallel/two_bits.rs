//! BitNet tensors of two-bit codes on rayon's threads.

use tercet_core::block::i2_s::{self, Interleave};
use tercet_core::block::{BlockError, bitnet_hf};
use tercet_core::number::Element;

use super::Threads;
use super::each::{chunks, chunks_mut, items_mut};
use crate::simd::{Ahead, Stores};

/// Does [`i2_s::decode`] in parallel, with the same floats and errors. O(n).
///
/// # Example
/// ```
/// use tercet_core::block::i2_s::Interleave;
/// use tercet_core::engine::BlockEngine;
/// use tercet_host::parallel::Threads;
///
/// let mut tensor = [0b01_01_01_10; 128 / 4 + 32]; // ones among the last 32 of 128 values, zeros before
/// tensor[32..36].copy_from_slice(&0.5f32.to_le_bytes());
/// let mut out = [7.0; 128];
/// Threads::default().decode_i2_s(Interleave::X86x128, &tensor, &mut out)?;
/// assert_eq!((out[0], out[96]), (0.0, 0.5));
/// # Ok::<(), tercet_core::block::BlockError>(())
/// ```
pub(super) fn decode_i2_s(
    threads: &Threads,
    layout: Interleave,
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), BlockError> {
    if i2_s::encoded_len(layout, out.len()) != Ok(bytes.len()) {
        return i2_s::decode(layout, bytes, out);
    }
    let (codes, tail) = bytes.split_at(out.len() / 4);
    // The bytes after the codes are a tensor without values: its scale.
    let scale = i2_s::codes(layout, tail, &mut [])?;
    // Whole groups of either layout.
    let tile = (threads.task().min(out.len()).max(1)).next_multiple_of(Interleave::X86x128.group());
    let stores = Stores::of(size_of_val(out));
    let legal = (chunks(codes, tile / 4).zip(chunks_mut(out, tile))).reduce(
        |_, (codes, out)| {
            let legal = threads
                .backend
                .decode_groups(layout, codes, scale, out, stores);
            stores.finish();
            legal
        },
        |a, b| a & b,
    );
    match legal {
        None | Some(true) => Ok(()),
        // Core finds the place of the bits 3.
        Some(false) => i2_s::decode(layout, bytes, out),
    }
}

/// Does [`bitnet_hf::decode`] in parallel, with the same floats and errors. O(n).
pub(super) fn decode_bitnet_hf(
    threads: &Threads,
    rows: usize,
    cols: usize,
    packed: &[u8],
    unit: f32,
    out: &mut [f32],
) -> Result<(), BlockError> {
    let quarter = bitnet_hf::packed_len(rows, cols)?;
    if packed.len() != quarter || rows * cols != out.len() || quarter == 0 {
        return bitnet_hf::decode(rows, cols, packed, unit, out);
    }
    let stores = Stores::of(size_of_val(out));
    let tiles = (out.chunks_mut(quarter).zip([0, 2, 4, 6])).flat_map(|(out, shift)| {
        let tiles = out
            .chunks_mut(threads.task())
            .zip(packed.chunks(threads.task()));
        tiles.map(move |(out, packed)| (shift, &packed[..out.len()], out))
    });
    // If there is only one thread, it takes all four quarters.
    let least = if threads.alone { 4 } else { 1 };
    let mut tiles: Vec<_> = tiles.collect();
    let legal = items_mut(&mut tiles).at_least(least).reduce(
        |_, (shift, packed, out)| {
            let legal = threads
                .backend
                .decode_row(packed, *shift, unit, out, stores);
            stores.finish();
            legal
        },
        |a, b| a & b,
    );
    match legal {
        None | Some(true) => Ok(()),
        Some(false) => bitnet_hf::decode(rows, cols, packed, unit, out),
    }
}

/// Does [`bitnet_hf::encode`] in parallel, with the same bytes and errors. O(n).
pub(super) fn encode_bitnet_hf<T: Element>(
    threads: &Threads,
    rows: usize,
    cols: usize,
    weights: &[T],
    s: f32,
    out: &mut [u8],
) -> Result<(), BlockError> {
    let quarter = bitnet_hf::packed_len(rows, cols)?;
    let fits = weights.len() == rows * cols && out.len() == quarter && quarter > 0;
    let in_range = s > 0.0 && s < f32::INFINITY;
    if !(fits && in_range && rows.is_multiple_of(4)) {
        return bitnet_hf::encode(rows, cols, weights, s, out);
    }
    let bad = chunks_mut(out, threads.task()).reduce(
        |tile, out| {
            let starts = [0, 1, 2, 3].map(|row| row * quarter + tile * threads.task());
            let strips = starts.map(|start| &weights[start..][..out.len()]);
            threads.backend.pack_rows(strips, s, out);
            let mut bad = usize::MAX;
            for (start, strip) in starts.into_iter().zip(strips) {
                let first = threads.backend.extremes(strip, Ahead::NONE).first_bad;
                bad = bad.min(first.map_or(usize::MAX, |first| start + first as usize));
            }
            bad
        },
        usize::min,
    );
    match bad {
        None | Some(usize::MAX) => Ok(()),
        Some(index) => Err(BlockError::NotFinite { index }),
    }
}
