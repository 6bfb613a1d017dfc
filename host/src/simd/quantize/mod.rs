//! The table of the quantizers' kernels.

use std::any::Any;
use std::convert::Infallible;

use tercet_core::block::i2_s::Layout;
use tercet_core::engine::{MagnitudeBin, MagnitudeSpan};
use tercet_core::number::{Element, Stats, bits};
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{Applied, Grid, Plan, QuantError};
use tercet_core::{bf16, f16, scalar};

use super::counts::{TABLES, Tables};
use super::past::past;
use super::stores::Line;
use super::taken::take;
use super::{Ahead, Backend, Isa, Stores, cast};

pub(super) mod affine;
pub(super) mod count;
pub(super) mod dequantize;
pub(super) mod fp8;
pub(super) mod kernels;
pub(super) mod lanes;
pub(super) mod stats;
pub(super) mod stream;
pub(super) mod ternary;
pub(super) mod two_bits;

/// What a quantizer does to values, for one instruction set.
///
/// The functions may use that set, so they are called through the safe methods, which a [`Backend`] leads to.
#[derive(Debug)]
pub(crate) struct Quantize {
    f32: Floats<f32>,
    f16: Floats<f16>,
    bf16: Floats<bf16>,
    stream: unsafe fn(&[Line], &mut [Line]),
    dequantize: unsafe fn(&[i8], i8, f32, &mut [f32], Stores),
    dequantize_fp8: unsafe fn(Fp8, f32, &[u8], &mut [f32]),
    decode_row: unsafe fn(&[u8], u32, f32, &mut [f32]),
    decode_groups: unsafe fn(usize, &[u8], f32, &mut [f32]),
    has_three: unsafe fn(&[u8], u8) -> bool,
    widen_f16: unsafe fn(&[f16], &mut [f32]),
    widen_bf16: unsafe fn(&[bf16], &mut [f32]),
}

/// The kernels that read values of a type.
#[derive(Debug)]
pub(super) struct Floats<T> {
    pub(super) stats: unsafe fn(&[T], Ahead) -> Stats,
    pub(super) extremes: unsafe fn(&[T], Ahead) -> Stats,
    pub(super) ternary: Ternary<T>,
    pub(super) affine: Affine<T>,
    pub(super) affine_and_next: AffineAndNext<T>,
    pub(super) magnitudes: unsafe fn(&[T], MagnitudeSpan, &mut [MagnitudeBin]),
    pub(super) read_magnitudes: unsafe fn(&[T], &mut [u32]),
    pub(super) count: unsafe fn(&[T], &mut Tables),
    pub(super) pack_rows: unsafe fn([&[T]; 4], u32, &mut [u8]),
    pub(super) fp8: Float8<T>,
}

type Float8<T> = unsafe fn(Fp8, f32, &[T], &mut [u8], Stores, Ahead) -> bool;
type Ternary<T> =
    unsafe fn(&[T], u32, bool, &mut [i8], Stores, Ahead) -> Result<Applied, QuantError>;
type AffineAndNext<T> = unsafe fn(&[T], &Grid, &mut [i8], &[T], Ahead) -> Option<(Applied, Stats)>;
type Affine<T> = unsafe fn(&[T], &Grid, &mut [i8], Stores, Ahead) -> Result<Applied, QuantError>;

static SCALAR: Quantize = Quantize {
    f32: scalar_floats(),
    f16: scalar_floats(),
    bf16: scalar_floats(),
    stream: |from, to| to.copy_from_slice(from),
    dequantize: |codes, zero_point, scale, out, _| {
        for (code, value) in codes.iter().zip(out) {
            *value = (i32::from(*code) - i32::from(zero_point)) as f32 * scale;
        }
    },
    dequantize_fp8: |format, scale, codes, out| {
        for (&code, value) in codes.iter().zip(out) {
            *value = format.decode(code) * scale;
        }
    },
    decode_row: two_bits::one_by_one,
    decode_groups: |lane, bytes, unit, out| {
        let groups = bytes.chunks_exact(lane).zip(out.chunks_exact_mut(4 * lane));
        for (bytes, out) in groups {
            for (out, shift) in out.chunks_exact_mut(lane).zip(two_bits::GROUP_SHIFTS) {
                two_bits::one_by_one(bytes, shift, unit, out);
            }
        }
    },
    has_three: two_bits::has_three,
    widen_f16: widen,
    widen_bf16: widen,
};

const fn scalar_floats<T: Element>() -> Floats<T> {
    Floats {
        stats: |values, _| Stats::of(values),
        extremes: |values, _| Stats::extremes_of(values),
        ternary: |values, threshold, sum, codes, _, _| {
            scalar::ternary(values, threshold, sum, codes)
        },
        affine: |values, grid, codes, _, _| grid.apply(values, codes),
        affine_and_next: |_, _, _, _, _| None,
        magnitudes: |values, span, bins| super::magnitudes::count(values, span, bins),
        read_magnitudes: |values, out| super::magnitudes::read(values, out),
        count: |values, tables| {
            for values in values.chunks(TABLES) {
                for (value, table) in values.iter().zip(&mut *tables) {
                    table[(bits::ordered(value.to_f32()) >> 16) as usize] += 1;
                }
            }
        },
        pack_rows: |rows, threshold, out| {
            for (at, byte) in out.iter_mut().enumerate() {
                *byte = two_bits::pack_one(rows.map(|row| row[at]), threshold);
            }
        },
        fp8: |format, scale, values, codes, _, _| format.quantize(scale, values, codes).is_ok(),
    }
}

#[cfg(target_arch = "x86_64")]
static AVX2: Quantize = Quantize {
    f32: super::avx2::quantize::floats(),
    f16: super::avx2::quantize::floats(),
    bf16: super::avx2::quantize::floats(),
    stream: super::avx2::quantize::stream,
    dequantize: super::avx2::quantize::dequantize,
    dequantize_fp8: super::avx2::quantize::dequantize_fp8,
    decode_row: super::avx2::quantize::decode_row,
    decode_groups: super::avx2::quantize::decode_groups,
    has_three: super::avx2::quantize::has_three,
    widen_f16: super::avx2::widen::f16,
    widen_bf16: super::avx2::widen::bf16,
};

#[cfg(target_arch = "x86_64")]
static AVX512: Quantize = Quantize {
    f32: super::avx512::quantize::floats(),
    f16: super::avx512::quantize::floats(),
    bf16: super::avx512::quantize::floats(),
    stream: super::avx512::quantize::stream,
    dequantize: super::avx512::quantize::dequantize,
    dequantize_fp8: super::avx512::quantize::dequantize_fp8,
    decode_row: super::avx512::quantize::decode_row,
    decode_groups: super::avx512::quantize::decode_groups,
    has_three: super::avx512::quantize::has_three,
    widen_f16: super::avx512::widen::f16,
    widen_bf16: super::avx512::widen::bf16,
};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
static NEON: Quantize = Quantize {
    f32: super::neon::quantize::floats(),
    f16: super::neon::quantize::floats(),
    bf16: super::neon::quantize::floats(),
    stream: super::neon::quantize::stream,
    dequantize: super::neon::quantize::dequantize,
    dequantize_fp8: super::neon::quantize::dequantize_fp8,
    decode_row: super::neon::quantize::decode_row,
    decode_groups: super::neon::quantize::decode_groups,
    has_three: super::neon::quantize::has_three,
    // Every target for AArch64 has NEON, so the compiler vectorizes these for it.
    ..SCALAR
};

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

    /// Codes values as a plan says. Before another thread may read the codes, [`Stores::finish`] is called.
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

    /// [`Backend::apply`] into the caches for a group, and [`Backend::extremes`] of the next. `None`, and nothing written, where
    /// that is not one pass.
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

    /// As [`scalar::magnitudes`].
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

    /// As [`scalar::read_magnitudes`].
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

    /// Copies as many lines past the caches. Before another thread may read them, [`Stores::finish`] is called.
    pub(crate) fn stream_lines(self, from: &[Line], to: &mut [Line]) {
        assert_eq!(from.len(), to.len());
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.quantize().stream)(from, to) }
    }

    /// Writes `fl((code − zero_point) · scale)` for each code, into a slice of the same length. Before another thread may read
    /// it, [`Stores::finish`] is called.
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
        unsafe { (self.quantize().dequantize)(codes, zero_point, scale, out, stores) }
    }

    /// Widens values to a slice of the same length.
    pub(crate) fn widen<T: Element>(self, values: &[T], out: &mut [f32]) {
        assert_eq!(values.len(), out.len());
        let quantize = self.quantize();
        if let Some(values) = cast(values) {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (quantize.widen_f16)(values, out) }
        } else if let Some(values) = cast(values) {
            // SAFETY: as above.
            unsafe { (quantize.widen_bf16)(values, out) }
        } else {
            widen(values, out);
        }
    }

    /// As [`Fp8::quantize`] for a scale that is positive and finite, with as many codes; false, and codes left open, where a value
    /// is not finite. Before another thread may read them, [`Stores::finish`] is called.
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

    /// As [`Fp8::dequantize`] for as many values. Before another thread may read them, [`Stores::finish`] is called.
    pub(crate) fn dequantize_fp8(
        self,
        format: Fp8,
        scale: f32,
        codes: &[u8],
        out: &mut [f32],
        stores: Stores,
    ) {
        assert_eq!(codes.len(), out.len());
        let quantize = self.quantize();
        self.store(out, stores, |first, out| {
            let codes = &codes[first..][..out.len()];
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (quantize.dequantize_fp8)(format, scale, codes, out) }
        });
    }

    /// Writes `(code − 1) · unit` for the codes at bits `shift` and `shift + 1` of each byte; false, and the code 3 taken for 2,
    /// where one is 3.
    ///
    /// Before another thread may read the floats, [`Stores::finish`] is called.
    pub(crate) fn decode_row(
        self,
        bytes: &[u8],
        shift: u32,
        unit: f32,
        out: &mut [f32],
        stores: Stores,
    ) -> bool {
        assert!(bytes.len() == out.len() && shift <= 6);
        let quantize = self.quantize();
        self.store(out, stores, |first, out| {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (quantize.decode_row)(&bytes[first..][..out.len()], shift, unit, out) }
        });
        // SAFETY: as above.
        !unsafe { (quantize.has_three)(bytes, 1 << shift) }
    }

    /// The same for whole groups of I2_S.
    pub(crate) fn decode_groups(
        self,
        layout: Layout,
        bytes: &[u8],
        unit: f32,
        out: &mut [f32],
        stores: Stores,
    ) -> bool {
        assert!(out.len().is_multiple_of(layout.group()) && bytes.len() == out.len() / 4);
        let quantize = self.quantize();
        self.store(out, stores, |first, out| {
            let (bytes, lane) = (&bytes[first / 4..][..out.len() / 4], layout.group() / 4);
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (quantize.decode_groups)(lane, bytes, unit, out) }
        });
        // SAFETY: as above.
        !unsafe { (quantize.has_three)(bytes, 0b01_01_01_01) }
    }

    /// Has `make` write floats, given the index of the first: all at once, or parts of them that go past the caches.
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

    /// Packs Hugging Face's BitNet codes of four rows, all finite, for a scale that is positive and finite; rows and `out` have
    /// one length.
    pub(crate) fn pack_rows<T: Element>(self, rows: [&[T]; 4], s: f32, out: &mut [u8]) {
        assert!(rows.iter().all(|row| row.len() == out.len()));
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.floats::<T>().pack_rows)(rows, two_bits::threshold(s), out) }
    }

    /// The kernels that read values of a type.
    fn floats<T: Element>(self) -> &'static Floats<T> {
        let quantize = self.quantize();
        let tables: [&'static dyn Any; 3] = [&quantize.f32, &quantize.f16, &quantize.bf16];
        let mut found = tables.into_iter().filter_map(|table| table.downcast_ref());
        found.next().expect("an element is one of the three")
    }

    /// The kernels of quantizers.
    fn quantize(self) -> &'static Quantize {
        match take(self.isa()) {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => &AVX512,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni => &AVX2,
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon | Isa::DotProd => &NEON,
            _ => &SCALAR,
        }
    }
}

fn widen<T: Element>(values: &[T], out: &mut [f32]) {
    for (value, out) in values.iter().zip(out) {
        *out = value.to_f32();
    }
}
