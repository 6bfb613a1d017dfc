//! The table of the quantizers' kernels.

use std::any::Any;

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::{Applied, Grid, Plan, QuantError};
use tercet_core::{bf16, f16, scalar};

use super::stores::Line;
use super::{Ahead, Backend, Isa, Stores, cast};

pub(super) mod affine;
pub(super) mod dequantize;
pub(super) mod kernels;
pub(super) mod lanes;
pub(super) mod stats;
pub(super) mod stream;
pub(super) mod ternary;

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
}

type Ternary<T> =
    unsafe fn(&[T], u32, bool, &mut [i8], Stores, Ahead) -> Result<Applied, QuantError>;
type AffineAndNext<T> = unsafe fn(&[T], &Grid, &mut [i8], &[T], Ahead) -> Option<(Applied, Stats)>;
type Affine<T> = unsafe fn(&[T], &Grid, &mut [i8], Stores, Ahead) -> Result<Applied, QuantError>;

const SCALAR: Quantize = Quantize {
    f32: scalar_floats(),
    f16: scalar_floats(),
    bf16: scalar_floats(),
    stream: |from, to| to.copy_from_slice(from),
    dequantize: |codes, zero_point, scale, out, _| {
        for (code, value) in codes.iter().zip(out) {
            *value = (i32::from(*code) - i32::from(zero_point)) as f32 * scale;
        }
    },
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
        affine: |values, grid, codes, _, _| scalar::affine(values, grid, codes),
        affine_and_next: |_, _, _, _, _| None,
        magnitudes: |values, span, bins| super::magnitudes::count(values, span, bins),
        read_magnitudes: |values, out| super::magnitudes::read(values, out),
    }
}

#[cfg(target_arch = "x86_64")]
const AVX2: Quantize = Quantize {
    f32: super::avx2::quantize::floats(),
    f16: super::avx2::quantize::floats(),
    bf16: super::avx2::quantize::floats(),
    stream: super::avx2::quantize::stream,
    dequantize: super::avx2::quantize::dequantize,
    widen_f16: super::avx2::widen::f16,
    widen_bf16: super::avx2::widen::bf16,
};

#[cfg(target_arch = "x86_64")]
const AVX512: Quantize = Quantize {
    f32: super::avx512::quantize::floats(),
    f16: super::avx512::quantize::floats(),
    bf16: super::avx512::quantize::floats(),
    stream: super::avx512::quantize::stream,
    dequantize: super::avx512::quantize::dequantize,
    widen_f16: super::avx512::widen::f16,
    widen_bf16: super::avx512::widen::bf16,
};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
const NEON: Quantize = Quantize {
    f32: super::neon::quantize::floats(),
    f16: super::neon::quantize::floats(),
    bf16: super::neon::quantize::floats(),
    stream: super::neon::quantize::stream,
    dequantize: super::neon::quantize::dequantize,
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

    /// The kernels that read values of a type.
    fn floats<T: Element>(self) -> &'static Floats<T> {
        let quantize = self.quantize();
        let tables: [&'static dyn Any; 3] = [&quantize.f32, &quantize.f16, &quantize.bf16];
        let mut found = tables.into_iter().filter_map(|table| table.downcast_ref());
        found.next().expect("an element is one of the three")
    }

    /// The kernels of quantizers.
    const fn quantize(self) -> &'static Quantize {
        match self.isa() {
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
