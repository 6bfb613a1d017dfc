//! Quantizers: a set's kernels on values, behind checks.

use std::any::Any;
use std::convert::Infallible;

use tercet_core::block::i2_s::Interleave;
use tercet_core::engine::{MagnitudeBin, MagnitudeSpan};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::activations::Norm;
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{Applied, Plan, QuantError};

use super::counts::Tables;
use super::past::past;
use super::stores::Line;
use super::{Ahead, Backend, Stores, cast};

pub(super) mod affine;
pub(super) mod count;
pub(super) mod dequantize;
pub(super) mod fp8;
pub(super) mod kernels;
pub(super) mod lanes;
pub(super) mod stats;
pub(super) mod stream;
mod table;
pub(super) mod ternary;
pub(super) mod two_bits;

pub(in crate::simd) use table::{Floats, Quantize, SCALAR};

impl Backend {
    /// As [`Stats::of`].
    pub(crate) fn stats<T: Element>(self, values: &[T], ahead: Ahead) -> Stats {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.floats::<T>().stats)(values, ahead) }
    }

    /// As [`Stats::extremes_of`].
    pub(crate) fn extremes<T: Element>(self, values: &[T], ahead: Ahead) -> Stats {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.floats::<T>().extremes)(values, ahead) }
    }

    /// Quantizes values with a plan. Call [`Stores::finish`] before another thread reads the codes.
    pub(crate) fn apply<T: Element>(
        self,
        plan: &Plan,
        values: &[T],
        codes: &mut [i8],
        stores: Stores,
        ahead: Ahead,
    ) -> Result<Applied, QuantError> {
        if values.len() != codes.len() {
            return Err(QuantError::Length {
                expected: values.len(),
                found: codes.len(),
            });
        }
        let floats = self.floats::<T>();
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe {
            match plan {
                Plan::Affine(grid) => (floats.affine)(values, grid, codes, stores, ahead),
                &Plan::Ternary { threshold, sum } => {
                    (floats.ternary)(values, threshold, sum, codes, stores, ahead)
                }
            }
        }
    }

    /// Does [`Backend::apply`] into the caches for a group, and [`Backend::extremes`] for the next. `None`, with
    /// nothing written, if that is not possible in one pass.
    pub(crate) fn apply_and_next<T: Element>(
        self,
        plan: &Plan,
        values: &[T],
        codes: &mut [i8],
        next: &[T],
        ahead: Ahead,
    ) -> Option<(Applied, Stats)> {
        let Plan::Affine(grid) = plan else {
            return None;
        };
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.floats::<T>().affine_and_next)(values, grid, codes, next, ahead) }
    }

    /// As [`tercet_core::scalar::magnitudes`].
    pub(crate) fn magnitudes<T: Element>(
        self,
        values: &[T],
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), QuantError> {
        span.check(bins)?;
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.floats::<T>().magnitudes)(values, span, bins) }
        Ok(())
    }

    /// As [`tercet_core::scalar::read_magnitudes`].
    pub(crate) fn read_magnitudes<T: Element>(
        self,
        values: &[T],
        out: &mut [u32],
    ) -> Result<(), QuantError> {
        if values.len() != out.len() {
            return Err(QuantError::Length {
                expected: values.len(),
                found: out.len(),
            });
        }
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.floats::<T>().read_magnitudes)(values, out) }
        Ok(())
    }

    /// Adds one to the count of each value's bucket, in one of the tables. All values are finite.
    pub(super) fn count<T: Element>(self, values: &[T], tables: &mut Tables) {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.floats::<T>().count)(values, tables) }
    }

    /// Copies as many lines, bypassing the caches. Call [`Stores::finish`] before another thread reads them.
    pub(crate) fn stream_lines(self, from: &[Line], to: &mut [Line]) {
        assert_eq!(from.len(), to.len());
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.kernels().quantize().stream)(from, to) }
    }

    /// Writes `fl((code − zero_point) · scale)` for each code, into a slice of equal length. Call [`Stores::finish`]
    /// before another thread reads it.
    pub(crate) fn dequantize(
        self,
        codes: &[i8],
        zero_point: i8,
        scale: f32,
        out: &mut [f32],
        stores: Stores,
    ) {
        assert_eq!(codes.len(), out.len());
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.kernels().quantize().dequantize)(codes, zero_point, scale, out, stores) }
    }

    /// Widens values to a slice of equal length.
    pub(crate) fn widen<T: Element>(self, values: &[T], out: &mut [f32]) {
        assert_eq!(values.len(), out.len());
        let quantize = self.kernels().quantize();
        if let Some(values) = cast(values) {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (quantize.widen_f16)(values, out) }
        } else if let Some(values) = cast(values) {
            // SAFETY: as above.
            unsafe { (quantize.widen_bf16)(values, out) }
        } else {
            table::widen(values, out);
        }
    }

    /// As [`Fp8::quantize`] for a scale that is positive and finite, with as many codes; false, with unspecified codes,
    /// if a value is not finite. Call [`Stores::finish`] before another thread reads them.
    pub(crate) fn quantize_fp8<T: Element>(
        self,
        format: Fp8,
        scale: f32,
        values: &[T],
        codes: &mut [u8],
        stores: Stores,
    ) -> bool {
        assert_eq!(values.len(), codes.len());
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.floats::<T>().fp8)(format, scale, values, codes, stores, Ahead::STREAM) }
    }

    /// As [`Fp8::dequantize`] for as many values. Call [`Stores::finish`] before another thread reads them.
    pub(crate) fn dequantize_fp8(
        self,
        format: Fp8,
        scale: f32,
        codes: &[u8],
        out: &mut [f32],
        stores: Stores,
    ) {
        assert_eq!(codes.len(), out.len());
        let quantize = self.kernels().quantize();
        self.store(out, stores, |first, out| {
            let codes = &codes[first..][..out.len()];
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (quantize.dequantize_fp8)(format, scale, codes, out) }
        });
    }

    /// Writes `(code − 1) · unit` for the codes at bits `shift` and `shift + 1` of each byte. Returns false, with the
    /// code 3 read as 2, if one is 3.
    ///
    /// Call [`Stores::finish`] before another thread reads the floats.
    pub(crate) fn decode_row(
        self,
        bytes: &[u8],
        shift: u32,
        unit: f32,
        out: &mut [f32],
        stores: Stores,
    ) -> bool {
        assert!(bytes.len() == out.len() && shift <= 6);
        let quantize = self.kernels().quantize();
        self.store(out, stores, |first, out| {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (quantize.decode_row)(&bytes[first..][..out.len()], shift, unit, out) }
        });
        // SAFETY: as above.
        !unsafe { (quantize.has_three)(bytes, 1 << shift) }
    }

    /// Does the same for whole groups of I2_S.
    pub(crate) fn decode_groups(
        self,
        layout: Interleave,
        bytes: &[u8],
        unit: f32,
        out: &mut [f32],
        stores: Stores,
    ) -> bool {
        assert!(out.len().is_multiple_of(layout.group()) && bytes.len() == out.len() / 4);
        let quantize = self.kernels().quantize();
        self.store(out, stores, |first, out| {
            let (bytes, lane) = (&bytes[first / 4..][..out.len() / 4], layout.group() / 4);
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (quantize.decode_groups)(lane, bytes, unit, out) }
        });
        // SAFETY: as above.
        !unsafe { (quantize.has_three)(bytes, 0b01_01_01_01) }
    }

    /// Lets `make` write floats, passed with the index of the first: all at once, or in parts that bypass the caches.
    fn store(self, out: &mut [f32], stores: Stores, mut make: impl FnMut(usize, &mut [f32])) {
        match self.copy_past().filter(|_| stores == Stores::Streaming) {
            Some(copy) => {
                let made = past(copy, out, |first, out| {
                    make(first, out);
                    Ok::<_, Infallible>(())
                });
                match made {
                    Ok(()) => {}
                }
            }
            None => make(0, out),
        }
    }

    /// Does [`activations::row`](tercet_core::quant::activations::row) with 8 bits.
    pub(crate) fn norm_a8(self, x: &[f32], norm: Option<Norm<'_>>, codes: &mut [i8]) -> f32 {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.kernels().quantize().norm_a8)(x, norm, codes) }
    }

    /// Does [`activations::row`](tercet_core::quant::activations::row) with 16 bits.
    pub(crate) fn norm_a16(self, x: &[f32], norm: Option<Norm<'_>>, codes: &mut [i16]) -> f32 {
        // SAFETY: as above.
        unsafe { (self.kernels().quantize().norm_a16)(x, norm, codes) }
    }

    /// Packs Hugging Face BitNet codes of four rows, all finite, for a scale that is positive and finite; rows and
    /// `out` have equal length.
    pub(crate) fn pack_rows<T: Element>(self, rows: [&[T]; 4], s: f32, out: &mut [u8]) {
        assert!(rows.iter().all(|row| row.len() == out.len()));
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.floats::<T>().pack_rows)(rows, two_bits::threshold(s), out) }
    }

    /// Returns the kernels that read values of a type.
    fn floats<T: Element>(self) -> &'static Floats<T> {
        let quantize = self.kernels().quantize();
        let tables: [&'static dyn Any; 3] = [&quantize.f32, &quantize.f16, &quantize.bf16];
        let mut found = tables.into_iter().filter_map(|table| table.downcast_ref());
        found.next().expect("an element is one of the three")
    }
}
