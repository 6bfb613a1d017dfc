//! Palettes: packed indices and codebooks, with the kernels of a set and core's loops.
//!
//! Kernels receive a codebook's 2^bits entries repeated to 256 bytes, so that bits above an index do not matter if a
//! look-up uses more bits.

mod count;
pub(in crate::simd) mod lanes;
pub(in crate::simd) mod steps;

use tercet_core::palette::{self, Coder, PaletteError, Width};

pub(crate) use count::count;
pub(crate) use steps::Activations;

use super::Backend;

/// The functions of one instruction set for packed indices.
///
/// The functions may use that set, so they are called through the safe methods, which a [`Backend`] gives access to.
#[derive(Debug)]
pub(in crate::simd) struct Palettes {
    pub(in crate::simd) decode: unsafe fn(Width, &[u8], &[u8; 256], f32, &mut [f32]),
    pub(in crate::simd) pack: unsafe fn(Width, &[i8], &[u8; 256], &mut [u8]),
    pub(in crate::simd) products: unsafe fn(Width, &[u8], &[u8; 256], &Activations<'_>, &mut [i32]),
}

/// A group's codebook and scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codebook<'a> {
    width: Width,
    entries: &'a [i8],
    scale: f32,
    /// The entries, repeated.
    book: [u8; 256],
}

impl<'a> Codebook<'a> {
    /// Returns [`PaletteError::Length`] unless there are 2^bits entries.
    pub(crate) fn new(width: Width, entries: &'a [i8], scale: f32) -> Result<Self, PaletteError> {
        let (expected, found) = (width.entries(), entries.len());
        if found != expected {
            return Err(PaletteError::Length { expected, found });
        }
        let mut book = [0; 256];
        for part in book.chunks_exact_mut(expected) {
            for (byte, &entry) in part.iter_mut().zip(entries) {
                *byte = entry as u8;
            }
        }
        Ok(Self {
            width,
            entries,
            scale,
            book,
        })
    }
}

/// Rows whose sums are kept before they are scaled.
const SUMS: usize = 64;

impl Backend {
    /// As [`palette::decode_row`] from the first value on, with an index per value.
    pub(crate) fn decode_palette(
        self,
        codebook: &Codebook<'_>,
        indices: &[u8],
        out: &mut [f32],
    ) -> Result<(), PaletteError> {
        let &Codebook {
            width,
            entries,
            scale,
            ref book,
        } = codebook;
        match self.kernels().palettes() {
            Some(palettes) if indices.len() == width.bytes(out.len()) => {
                // SAFETY: a table is only reached through a `Backend` that was found to run its set.
                unsafe { (palettes.decode)(width, indices, book, scale, out) };
                Ok(())
            }
            _ => palette::decode_row(width, indices, entries, scale, 0, out),
        }
    }

    /// As [`palette::matvec`], for rows of one group: `fl(fl(f32(Σ entry · x) · scale) · x_scale)`.
    pub(crate) fn palette_products(
        self,
        codebook: &Codebook<'_>,
        rows: &[u8],
        x: &Activations<'_>,
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), PaletteError> {
        let &Codebook {
            width,
            entries,
            scale,
            ref book,
        } = codebook;
        let stride = width.bytes(x.all().len());
        let (expected, found) = (stride * out.len(), rows.len());
        if expected != found {
            return Err(PaletteError::Length { expected, found });
        }
        let scaled = |sum: i32| sum as f32 * scale * x_scale;
        let Some(palettes) = self.kernels().palettes() else {
            for (row, y) in rows.chunks(stride).zip(out) {
                *y = scaled(palette::dot(width, row, entries, x.all())?);
            }
            return Ok(());
        };
        let mut sums = [0; SUMS];
        for (rows, out) in rows.chunks(SUMS * stride).zip(out.chunks_mut(SUMS)) {
            let sums = &mut sums[..out.len()];
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (palettes.products)(width, rows, book, x, sums) };
            for (y, &sum) in out.iter_mut().zip(&*sums) {
                *y = scaled(sum);
            }
        }
        Ok(())
    }

    /// As [`Coder::pack`].
    pub(crate) fn pack_palette(
        self,
        coder: &Coder,
        codes: &[i8],
        out: &mut [u8],
    ) -> Result<(), PaletteError> {
        match self.kernels().palettes() {
            Some(palettes) if out.len() == coder.width().bytes(codes.len()) => {
                // Ordered by a code's bits as an unsigned number: nonnegative codes come first.
                let mut indices = *coder.indices();
                indices.rotate_left(128);
                // SAFETY: as above.
                unsafe { (palettes.pack)(coder.width(), codes, &indices, out) };
                Ok(())
            }
            _ => coder.pack(codes, out),
        }
    }
}
