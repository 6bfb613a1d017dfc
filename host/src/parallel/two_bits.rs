//! BitNet's tensors of two-bit codes, on rayon's threads.

use tercet_core::block::i2_s::{self, Layout};
use tercet_core::block::{BlockError, bitnet_hf};
use tercet_core::number::Element;

use super::Threads;
use super::each::{chunks, chunks_mut, items_mut};
use crate::simd::{Ahead, Stores};

impl Threads {
    /// [`i2_s::decode`] in parallel, with its floats and errors. O(n).
    ///
    /// # Example
    /// ```
    /// use tercet_core::block::i2_s::Layout;
    /// use tercet_host::parallel::Threads;
    ///
    /// let mut tensor = [0b01_01_01_10; 128 / 4 + 32]; // ones among the last 32 of 128 values, zeros before
    /// tensor[32..36].copy_from_slice(&0.5f32.to_le_bytes());
    /// let mut out = [7.0; 128];
    /// Threads::default().decode_i2_s(Layout::X86x128, &tensor, &mut out)?;
    /// assert_eq!((out[0], out[96]), (0.0, 0.5));
    /// # Ok::<(), tercet_core::block::BlockError>(())
    /// ```
    pub fn decode_i2_s(
        &self,
        layout: Layout,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), BlockError> {
        if i2_s::encoded_len(layout, out.len()) != Ok(bytes.len()) {
            return i2_s::decode(layout, bytes, out);
        }
        let (codes, tail) = bytes.split_at(out.len() / 4);
        // What follows the codes is a tensor of no values: its scale.
        let scale = i2_s::codes(layout, tail, &mut [])?;
        // Whole groups of either layout.
        let tile = (self.tile.min(out.len()).max(1)).next_multiple_of(Layout::X86x128.group());
        let stores = Stores::of(size_of_val(out));
        let legal = (chunks(codes, tile / 4).zip(chunks_mut(out, tile))).reduce(
            |_, (codes, out)| {
                let legal = self
                    .backend
                    .decode_groups(layout, codes, scale, out, stores);
                stores.finish();
                legal
            },
            |a, b| a & b,
        );
        match legal {
            None | Some(true) => Ok(()),
            // Where the bits 3 lie is for core to say.
            Some(false) => i2_s::decode(layout, bytes, out),
        }
    }

    /// [`bitnet_hf::decode`] in parallel, with its floats and errors. O(n).
    pub fn decode_bitnet_hf(
        &self,
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
            let tiles = out.chunks_mut(self.tile).zip(packed.chunks(self.tile));
            tiles.map(move |(out, packed)| (shift, &packed[..out.len()], out))
        });
        let legal = items_mut(&mut tiles.collect::<Vec<_>>()).reduce(
            |_, (shift, packed, out)| {
                let legal = self.backend.decode_row(packed, *shift, unit, out, stores);
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

    /// Quantizes a matrix of weights with the factor `s` and packs it: [`bitnet_hf::quantize`] and [`bitnet_hf::pack`] in
    /// parallel, without the codes between them where the rows divide by four. O(n).
    ///
    /// # Errors
    /// Those of both, quantizing first; what `out` holds then is left open.
    ///
    /// # Example
    /// ```
    /// use tercet_core::block::bitnet_hf;
    /// use tercet_host::parallel::Threads;
    ///
    /// let weights = [0.9f32, -0.1, -1.1, 0.4];
    /// let mut packed = [0; 1];
    /// let s = bitnet_hf::scale(&weights)?;
    /// Threads::default().encode_bitnet_hf(4, 1, &weights, s, &mut packed)?;
    /// assert_eq!(packed, [0b10_00_01_10]);
    /// # Ok::<(), tercet_core::block::BlockError>(())
    /// ```
    pub fn encode_bitnet_hf<T: Element>(
        &self,
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
            let mut codes = vec![0; rows * cols];
            bitnet_hf::quantize(weights, s, &mut codes)?;
            return bitnet_hf::pack(rows, cols, &codes, out);
        }
        let bad = chunks_mut(out, self.tile).reduce(
            |tile, out| {
                let starts = [0, 1, 2, 3].map(|row| row * quarter + tile * self.tile);
                let strips = starts.map(|start| &weights[start..][..out.len()]);
                self.backend.pack_rows(strips, s, out);
                let mut bad = usize::MAX;
                for (start, strip) in starts.into_iter().zip(strips) {
                    let first = self.backend.extremes(strip, Ahead::NONE).first_bad;
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
}
