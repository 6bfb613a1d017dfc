//! The table of the quantizers' kernels.

use tercet_core::number::Element;
use tercet_core::quant::{Applied, Grid, Plan, QuantError};
use tercet_core::scalar;

use super::{Backend, Isa, as_f32};

/// What a quantizer does to values, for one instruction set.
///
/// The functions may use that set, so they are called through the safe methods, which a [`Backend`] leads to.
#[derive(Debug)]
pub(crate) struct Quantize {
    affine: Affine,
}

type Affine = unsafe fn(&[f32], &Grid, &mut [i8]) -> Result<Applied, QuantError>;

const SCALAR: Quantize = Quantize {
    affine: scalar::affine,
};

#[cfg(target_arch = "x86_64")]
const AVX512: Quantize = Quantize {
    affine: super::avx512::affine::affine,
};

impl Backend {
    /// Codes values as a plan says.
    pub(crate) fn apply<T: Element>(
        self,
        plan: &Plan,
        values: &[T],
        codes: &mut [i8],
    ) -> Result<Applied, QuantError> {
        match (plan, as_f32(values)) {
            (Plan::Affine(grid), Some(values)) => self.quantize().affine(values, grid, codes),
            (Plan::Affine(grid), None) => scalar::affine(values, grid, codes),
            (Plan::Ternary { threshold }, _) => scalar::ternary(values, *threshold, codes),
        }
    }

    /// The kernels of quantizers.
    const fn quantize(self) -> &'static Quantize {
        match self.isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Vnni => &AVX512,
            _ => &SCALAR,
        }
    }
}

impl Quantize {
    /// As [`scalar::affine`].
    fn affine(&self, values: &[f32], grid: &Grid, codes: &mut [i8]) -> Result<Applied, QuantError> {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.affine)(values, grid, codes) }
    }
}
