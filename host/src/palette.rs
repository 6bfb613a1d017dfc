//! Palettes as files store them: little-endian bytes at any address.

use tercet_core::palette::{IndexMatrix, Width, decode_row};

/// A matrix of indices with its codebooks and scales.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) layout: IndexMatrix,
    /// The packed indices, [`IndexMatrix::index_bytes`] bytes.
    pub(crate) indices: &'a [u8],
    /// The codebooks, [`IndexMatrix::codebook_len`] int8 values.
    pub(crate) codebooks: &'a [u8],
    /// The scales, one `f32` per group.
    pub(crate) scales: &'a [u8],
}

impl Stored<'_> {
    /// Reads the values from `first` on, row-major, within the matrix.
    ///
    /// # Errors
    /// The index of the group whose scale is not finite.
    pub(crate) fn read(&self, first: usize, out: &mut [f32]) -> Result<(), usize> {
        let (layout, width) = (self.layout, self.layout.width());
        let (cols, entries) = (layout.cols(), width.entries());
        let (mut at, mut rest) = (first, out);
        while !rest.is_empty() {
            let (row, col) = (at / cols, at % cols);
            let (part, after) = rest.split_at_mut((cols - col).min(rest.len()));
            let group = row / layout.group_rows();
            let mut codebook = [0; 256];
            let stored = &self.codebooks[group * entries..][..entries];
            for (entry, &byte) in codebook.iter_mut().zip(stored) {
                *entry = byte as i8;
            }
            let scale = self.scales.as_chunks().0[group];
            let scale = f32::from_le_bytes(scale);
            if !scale.is_finite() {
                return Err(group);
            }
            let indices = &self.indices[row * layout.row_bytes()..][..layout.row_bytes()];
            decode_row(width, indices, &codebook[..entries], scale, col, part)
                .expect("the part lies within the row");
            at += part.len();
            rest = after;
        }
        Ok(())
    }
}

/// The names of palettes, ordered by the bits of an index.
const PALETTES: [&str; 8] = [
    "palette:1",
    "palette:2",
    "palette:3",
    "palette:4",
    "palette:5",
    "palette:6",
    "palette:7",
    "palette:8",
];

/// Returns the name of palettes whose indices have this width.
pub(crate) const fn name(width: Width) -> &'static str {
    PALETTES[width.bits() as usize - 1]
}
