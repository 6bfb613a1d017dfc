//! Converts values to packed indices.

use super::counts::{RUN, coded, place};
use super::encode::expect;
use super::pack::{pack, with_width};
use super::{PaletteError, Width};
use crate::number::Element;
use crate::quant::Grid;

/// A grid and a codebook as one table, from int8 code to index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coder {
    width: Width,
    /// Index of code c at c + 128.
    indices: [u8; 256],
}

impl Coder {
    /// Maps each code to its nearest entry, and to the lowest index on ties. The entries may be in any order. O(256 +
    /// entries).
    ///
    /// # Errors
    /// [`PaletteError::Length`] unless the codebook has 2^bits entries.
    pub fn new(width: Width, codebook: &[i8]) -> Result<Self, PaletteError> {
        expect(width.entries(), codebook.len())?;
        // 256 · distance + index, so that the least key is the nearest entry with the lowest index: for the code
        // itself, then for entries below, then for entries above. The largest, 256 · 255 + 255, is also the value of
        // a missing key.
        let mut keys = [u16::MAX; 256];
        for (index, &entry) in (0..=255).zip(codebook) {
            let key = &mut keys[place(entry)];
            *key = (*key).min(index);
        }
        let mut nearest = u16::MAX;
        for key in &mut keys {
            nearest = nearest.saturating_add(256).min(*key);
            *key = nearest;
        }
        let mut nearest = u16::MAX;
        let mut indices = [0; 256];
        for (slot, key) in indices.iter_mut().zip(&keys).rev() {
            nearest = nearest.saturating_add(256).min(*key);
            *slot = nearest as u8;
        }
        Ok(Self { width, indices })
    }

    /// Returns the number of bits of an index.
    pub const fn width(&self) -> Width {
        self.width
    }

    /// Returns the index of every code, that of code c at c + 128. For engines with their own look-up.
    pub const fn indices(&self) -> &[u8; 256] {
        &self.indices
    }

    /// Writes the indices of finite values of one row, the first in the lowest bits. The last byte is padded with
    /// zeros. A row may come in parts if all but the last are multiples of eight values.
    ///
    /// # Errors
    /// [`PaletteError::Length`] unless `out` holds [`Width::bytes`] of the values.
    pub fn encode<T: Element>(
        &self,
        values: &[T],
        grid: &Grid,
        out: &mut [u8],
    ) -> Result<(), PaletteError> {
        expect(self.width.bytes(values.len()), out.len())?;
        let mut buffer = [0; RUN];
        let runs = out.chunks_mut(self.width.bytes(RUN).max(1));
        for (values, out) in values.chunks(RUN).zip(runs) {
            let codes = buffer.get_mut(..values.len()).unwrap_or_default();
            coded(values, grid, codes)?;
            with_width!(self.width, pack_codes(codes, &self.indices, out));
        }
        Ok(())
    }

    /// Like [`Coder::encode`], for values that are already coded.
    ///
    /// # Errors
    /// [`PaletteError::Length`] unless `out` holds [`Width::bytes`] of the codes.
    pub fn pack(&self, codes: &[i8], out: &mut [u8]) -> Result<(), PaletteError> {
        expect(self.width.bytes(codes.len()), out.len())?;
        with_width!(self.width, pack_codes(codes, &self.indices, out));
        Ok(())
    }
}

fn pack_codes<const BITS: usize, const ENTRIES: usize>(
    codes: &[i8],
    indices: &[u8; 256],
    out: &mut [u8],
) {
    let (whole, rest) = codes
        .split_at_checked(codes.len() / 8 * 8)
        .unwrap_or_default();
    let (runs, last) = (out.split_at_mut_checked(whole.len() / 8 * BITS)).unwrap_or_default();
    let runs = runs
        .chunks_exact_mut(BITS)
        .filter_map(<[u8]>::first_chunk_mut);
    let eights = whole.chunks_exact(8).filter_map(<[i8]>::first_chunk::<8>);
    for (codes, run) in eights.zip(runs) {
        *run = pack::<BITS>(codes.map(|code| indices[place(code)]));
    }
    if rest.is_empty() {
        return;
    }
    let mut tail = [0; 8];
    for (index, code) in tail.iter_mut().zip(rest) {
        *index = indices[place(*code)];
    }
    for (byte, packed) in last.iter_mut().zip(pack::<BITS>(tail)) {
        *byte = packed;
    }
}
