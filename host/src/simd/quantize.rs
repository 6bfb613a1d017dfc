//! The table of the quantizers' kernels.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::{Applied, Grid, Plan, QuantError};
use tercet_core::{bf16, f16, scalar};

use super::{Ahead, Backend, Isa, Stores, as_f32, cast};

/// What a quantizer does to values, for one instruction set.
///
/// The functions may use that set, so they are called through the safe methods, which a [`Backend`] leads to.
#[derive(Debug)]
pub(crate) struct Quantize {
    stats: unsafe fn(&[f32], Ahead) -> Stats,
    extremes: unsafe fn(&[f32], Ahead) -> Stats,
    ternary: Ternary,
    affine: Affine,
    magnitudes: unsafe fn(&[f32], MagnitudeSpan, &mut [MagnitudeBin]),
    read_magnitudes: unsafe fn(&[f32], &mut [u32]),
    f16: unsafe fn(&[f16], &mut [f32]),
    bf16: unsafe fn(&[bf16], &mut [f32]),
}

type Ternary =
    unsafe fn(&[f32], u32, bool, &mut [i8], Stores, Ahead) -> Result<Applied, QuantError>;
type Affine = unsafe fn(&[f32], &Grid, &mut [i8], Stores, Ahead) -> Result<Applied, QuantError>;

const SCALAR: Quantize = Quantize {
    stats: |values, _| Stats::of(values),
    extremes: |values, _| Stats::extremes_of(values),
    ternary: |values, threshold, sum, codes, _, _| scalar::ternary(values, threshold, sum, codes),
    affine: |values, grid, codes, _, _| scalar::affine(values, grid, codes),
    magnitudes: |values, span, bins| super::magnitudes::count(values, span, bins),
    read_magnitudes: |values, out| {
        // Lengths are checked, so it refuses nothing.
        let _ = scalar::read_magnitudes(values, out);
    },
    f16: widen,
    bf16: widen,
};

#[cfg(target_arch = "x86_64")]
const AVX2: Quantize = Quantize {
    stats: super::avx2::stats::stats,
    extremes: super::avx2::stats::extremes,
    ternary: super::avx2::ternary::ternary,
    affine: super::avx2::affine::affine,
    magnitudes: super::avx2::magnitudes::magnitudes,
    read_magnitudes: super::avx2::magnitudes::read_magnitudes,
    f16: super::avx2::widen::f16,
    bf16: super::avx2::widen::bf16,
};

#[cfg(target_arch = "x86_64")]
const AVX512: Quantize = Quantize {
    stats: super::avx512::stats::stats,
    extremes: super::avx512::stats::extremes,
    ternary: super::avx512::ternary::ternary,
    affine: super::avx512::affine::affine,
    magnitudes: super::avx512::magnitudes::magnitudes,
    read_magnitudes: super::avx512::magnitudes::read_magnitudes,
    f16: super::avx512::widen::f16,
    bf16: super::avx512::widen::bf16,
};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
const NEON: Quantize = Quantize {
    stats: super::neon::stats::stats,
    extremes: super::neon::stats::extremes,
    ternary: super::neon::ternary::ternary,
    affine: super::neon::affine::affine,
    // Every target for AArch64 has NEON, so the compiler vectorizes these for it.
    ..SCALAR
};

/// Halves are widened so many at a time: 8 KiB of stack, which stay in the first cache.
const HALVES: usize = 2048;

impl Backend {
    /// As [`Stats::of`].
    pub(crate) fn stats<T: Element>(self, values: &[T], ahead: Ahead) -> Stats {
        if self == Self::SCALAR {
            // Halves as they are: widening them first took twice the instructions.
            return Stats::of(values);
        }
        self.merged(values, |values| {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (self.quantize().stats)(values, ahead) }
        })
    }

    /// As [`Stats::extremes_of`].
    pub(crate) fn extremes<T: Element>(self, values: &[T], ahead: Ahead) -> Stats {
        if self == Self::SCALAR {
            return Stats::extremes_of(values);
        }
        self.merged(values, |values| {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (self.quantize().extremes)(values, ahead) }
        })
    }

    fn merged<T: Element>(self, values: &[T], of: impl Fn(&[f32]) -> Stats) -> Stats {
        if let Some(values) = as_f32(values) {
            return of(values);
        }
        let mut stats = Stats::EMPTY;
        self.widened(values, |_, values| stats.merge(&of(values)));
        stats
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
        let quantize = self.quantize();
        if let Some(values) = as_f32(values) {
            return quantize.apply(plan, values, codes, stores, ahead);
        }
        let mut applied = Ok(Applied::default());
        self.widened(values, |first, values| {
            let codes = &mut codes[first..][..values.len()];
            if let Ok(all) = &mut applied {
                match quantize.apply(plan, values, codes, stores, ahead) {
                    Ok(part) => all.merge(&part),
                    Err(error) => applied = Err(error),
                }
            }
        });
        applied
    }

    /// As [`scalar::magnitudes`].
    pub(crate) fn magnitudes<T: Element>(
        self,
        values: &[T],
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), QuantError> {
        span.check(bins)?;
        let mut count = |values: &[f32]| {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (self.quantize().magnitudes)(values, span, bins) }
        };
        match as_f32(values) {
            Some(values) => count(values),
            None => return scalar::magnitudes(values, span, bins),
        }
        Ok(())
    }

    /// As [`scalar::read_magnitudes`].
    pub(crate) fn read_magnitudes<T: Element>(
        self,
        values: &[T],
        out: &mut [u32],
    ) -> Result<(), QuantError> {
        match as_f32(values) {
            Some(values) if values.len() == out.len() => {
                // SAFETY: a table is only reached through a `Backend` that was found to run its set.
                unsafe { (self.quantize().read_magnitudes)(values, out) }
                Ok(())
            }
            _ => scalar::read_magnitudes(values, out),
        }
    }

    /// Hands over the values as f32, part by part, each with the place where it begins.
    fn widened<T: Element>(self, values: &[T], mut each: impl FnMut(usize, &[f32])) {
        let mut wide = [0.0; HALVES];
        for (number, part) in values.chunks(HALVES).enumerate() {
            let wide = &mut wide[..part.len()];
            self.widen(part, wide);
            each(number * HALVES, wide);
        }
    }

    /// Widens values to a slice of the same length.
    pub(crate) fn widen<T: Element>(self, values: &[T], out: &mut [f32]) {
        assert_eq!(values.len(), out.len());
        let quantize = self.quantize();
        if let Some(values) = cast(values) {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (quantize.f16)(values, out) }
        } else if let Some(values) = cast(values) {
            // SAFETY: as above.
            unsafe { (quantize.bf16)(values, out) }
        } else {
            widen(values, out);
        }
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

impl Quantize {
    /// Codes as many values as there are codes.
    fn apply(
        &self,
        plan: &Plan,
        values: &[f32],
        codes: &mut [i8],
        stores: Stores,
        ahead: Ahead,
    ) -> Result<Applied, QuantError> {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe {
            match plan {
                Plan::Affine(grid) => (self.affine)(values, grid, codes, stores, ahead),
                &Plan::Ternary { threshold, sum } => {
                    (self.ternary)(values, threshold, sum, codes, stores, ahead)
                }
            }
        }
    }
}

fn widen<T: Element>(values: &[T], out: &mut [f32]) {
    for (value, out) in values.iter().zip(out) {
        *out = value.to_f32();
    }
}
