//! Steps of language models between products: core's loops, compiled for each set, and a set's own products.

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
pub(super) mod avx2;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod avx512_vnni;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
pub(super) mod gate;

use tercet_core::model::Gate;
use tercet_core::model::attention::Attention;

/// The step functions of one instruction set.
///
/// The functions may use that set, so they are called through [`Backend::attend`](super::Backend::attend) and
/// [`Backend::gate`](super::Backend::gate).
#[derive(Debug)]
pub(super) struct Steps {
    attend: Attend,
    gate: unsafe fn(Gate, &mut [f32], &[f32]),
}

/// Does [`Attention::head`].
type Attend = unsafe fn(&Attention<'_, '_>, usize, usize, &mut [f32], &mut [i64], &mut [f32]);

/// Compiled for the target's baseline.
pub(super) const SCALAR: Steps = Steps {
    attend: |attention, row, head, scores, sums, out| {
        attention.head(row, head, scores, sums, out);
    },
    gate: |gate, x, up| gate.apply(x, up),
};

/// Defines the steps of a set, with its products and features.
macro_rules! steps {
    ($name:ident, $products:ident, $features:literal) => {
        #[cfg(all(feature = "simd", target_arch = "x86_64"))]
        pub(super) const $name: Steps = {
            #[target_feature(enable = $features)]
            fn attend(
                attention: &Attention<'_, '_>,
                row: usize,
                head: usize,
                scores: &mut [f32],
                sums: &mut [i64],
                out: &mut [f32],
            ) {
                let products = $products::Products::here();
                attention.head_by(products, row, head, scores, sums, out);
            }

            Steps {
                attend,
                gate: gate::apply,
            }
        };
    };
}

steps!(AVX2, avx2, "avx2,bmi1,bmi2,fma,lzcnt,popcnt");
steps!(
    AVX512,
    avx2,
    "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,fma,lzcnt,popcnt"
);
steps!(
    AVX512_VNNI,
    avx512_vnni,
    "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx2,bmi1,bmi2,fma,lzcnt,popcnt"
);

impl super::Backend {
    /// Does [`Attention::head`].
    pub(crate) fn attend(
        self,
        attention: &Attention<'_, '_>,
        (row, head): (usize, usize),
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.kernels().model().attend)(attention, row, head, scores, sums, out) }
    }

    /// Does [`Gate::apply`].
    pub(crate) fn gate(self, gate: Gate, x: &mut [f32], up: &[f32]) {
        // SAFETY: as above.
        unsafe { (self.kernels().model().gate)(gate, x, up) }
    }
}
