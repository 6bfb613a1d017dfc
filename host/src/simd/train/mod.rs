//! Steps of training: core's loops, compiled for each set, and the gradient of a matrix with a set's own products.

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod attention;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod avx2;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod avx512;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod weights;

use tercet_core::model::Gate;
use tercet_core::quant::activations::Norm;
use tercet_core::train::{self, AttentionGradient, AttentionGradients, AttentionScratch, Inputs};

/// The step functions of one instruction set. They may use that set, so they are called through
/// [`Backend`](super::Backend).
#[derive(Debug)]
pub(super) struct Steps {
    /// With the lengths of its scratch; `None` for core's own.
    weights: Option<(Weights, Lengths)>,
    power_row: unsafe fn(&[f32], &mut [i8]) -> Option<f32>,
    power_row_wide: WideRow,
    norm: NormGradient,
    gate: unsafe fn(Gate, &mut [f32], &mut [f32], &[f32]),
    attention: Attention,
}

/// Does [`train::power_row_wide`].
type WideRow = unsafe fn(&[f32], &mut [i8], &mut [i8]) -> Option<f32>;

/// Does [`train::norm`].
type NormGradient =
    unsafe fn(&[f32], Norm<'_>, &[f32], (&mut [f32], bool), &mut [i64], &mut [f32]) -> bool;

/// Computes the gradient of a matrix, as
/// [`TrainEngine::weight_gradient`](tercet_core::engine::TrainEngine::weight_gradient), in memory that grows as needed.
type Weights = unsafe fn(&[f32], &Inputs<'_>, &mut GradientScratch, &mut [i64]) -> bool;

/// Does [`AttentionGradient::head_by`].
type Attention = unsafe fn(
    &AttentionGradient<'_, '_, '_>,
    (usize, usize),
    &mut AttentionScratch<'_>,
    &mut AttentionGradients<'_>,
) -> bool;

/// Scratch for gradients of matrices.
#[derive(Debug, Default)]
pub(crate) struct GradientScratch {
    /// Codes of inputs, some rows to a lane.
    inputs: Vec<i32>,
    /// Codes of gradients in such lanes, for some outputs.
    gradients: Vec<i32>,
    /// A row of zeros.
    zeros: Vec<i8>,
}

/// Lengths of a [`GradientScratch`].
#[derive(Clone, Copy, Debug)]
struct ScratchLengths {
    inputs: usize,
    gradients: usize,
    zeros: usize,
}

impl ScratchLengths {
    const fn bytes(self) -> usize {
        let lanes = self.inputs.saturating_add(self.gradients);
        lanes
            .saturating_mul(size_of::<i32>())
            .saturating_add(self.zeros)
    }
}

/// Returns the lengths of the scratch for sequences of the first number of rows, so many of them, and so many columns.
type Lengths = fn(usize, usize, usize) -> ScratchLengths;

/// Compiled for the target's baseline.
pub(super) const SCALAR: Steps = {
    use tercet_core::model::attention::PlainProducts;

    Steps {
        weights: None,
        power_row: |dy, codes| train::power_row(dy, train::FREE_FLOOR, codes),
        power_row_wide: |dy, high, low| train::power_row_wide(dy, high, low),
        norm: |x, norm, dy, dx, gains, scratch| train::norm(x, norm, dy, dx, gains, scratch),
        gate: |gate, x, up, dh| train::gate(gate, x, up, dh),
        attention: |job, head, scratch, out| job.head_by(PlainProducts, head, scratch, out),
    }
};

/// Defines the steps of a set, with its features, its products of codes and those of pairs.
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
macro_rules! steps {
    ($name:ident, $products:path, $pairs:path, $features:literal) => {
        pub(super) const $name: Steps = {
            #[target_feature(enable = $features)]
            fn weights(
                dy: &[f32],
                x: &Inputs<'_>,
                room: &mut GradientScratch,
                sums: &mut [i64],
            ) -> bool {
                weights::gradient(<$products>::here(), dy, x, room, sums)
            }

            #[target_feature(enable = $features)]
            fn power_row(dy: &[f32], codes: &mut [i8]) -> Option<f32> {
                train::power_row(dy, train::FREE_FLOOR, codes)
            }

            #[target_feature(enable = $features)]
            fn power_row_wide(dy: &[f32], high: &mut [i8], low: &mut [i8]) -> Option<f32> {
                train::power_row_wide(dy, high, low)
            }

            #[target_feature(enable = $features)]
            fn norm(
                x: &[f32],
                norm: Norm<'_>,
                dy: &[f32],
                dx: (&mut [f32], bool),
                gains: &mut [i64],
                scratch: &mut [f32],
            ) -> bool {
                train::norm(x, norm, dy, dx, gains, scratch)
            }

            #[target_feature(enable = $features)]
            fn attention(
                job: &AttentionGradient<'_, '_, '_>,
                head: (usize, usize),
                scratch: &mut AttentionScratch<'_>,
                out: &mut AttentionGradients<'_>,
            ) -> bool {
                let products = attention::GradientProducts {
                    heads: super::model::avx2::Products::here(),
                    pairs: <$pairs>::here(),
                };
                job.head_by(products, head, scratch, out)
            }

            Steps {
                weights: Some((weights, |length, sequences, cols| {
                    let lanes = weights::lanes::<$products>(length).saturating_mul(sequences);
                    weights::scratch::<$products>(lanes, cols)
                })),
                power_row,
                power_row_wide,
                norm,
                gate: super::model::gate::gradient,
                attention,
            }
        };
    };
}

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
steps!(
    AVX2,
    avx2::Products,
    avx2::Products,
    "avx2,bmi1,bmi2,fma,lzcnt,popcnt"
);
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
steps!(
    AVX512,
    avx512::Pairs,
    avx512::Pairs,
    "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,fma,lzcnt,popcnt"
);
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
steps!(
    AVX512_VNNI,
    avx512::Quads,
    avx512::Pairs,
    "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx2,bmi1,bmi2,fma,lzcnt,popcnt"
);

impl super::Backend {
    /// Computes the gradient of a matrix; `None` if this set has nothing faster than core.
    pub(crate) fn weight_gradient(
        self,
        dy: &[f32],
        x: &Inputs<'_>,
        room: &mut GradientScratch,
        sums: &mut [i64],
    ) -> Option<bool> {
        let (weights, _) = self.kernels().train().weights?;
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        Some(unsafe { weights(dy, x, room, sums) })
    }

    /// Returns the bytes that the scratch of [`Backend::weight_gradient`](Self::weight_gradient) takes for `sequences`
    /// sequences of `length` rows and `cols` columns.
    pub(crate) fn gradient_scratch(self, length: usize, sequences: usize, cols: usize) -> usize {
        let mut found = ScratchLengths {
            inputs: 0,
            gradients: 0,
            zeros: 0,
        };
        if let Some((_, lengths)) = self.kernels().train().weights {
            found = lengths(length, sequences, cols);
        }
        found.bytes()
    }

    /// Does [`train::power_row`].
    pub(crate) fn power_row(self, dy: &[f32], codes: &mut [i8]) -> Option<f32> {
        // SAFETY: as above.
        unsafe { (self.kernels().train().power_row)(dy, codes) }
    }

    /// Does [`train::power_row_wide`].
    pub(crate) fn power_row_wide(self, dy: &[f32], high: &mut [i8], low: &mut [i8]) -> Option<f32> {
        // SAFETY: as above.
        unsafe { (self.kernels().train().power_row_wide)(dy, high, low) }
    }

    /// Does [`train::norm`].
    pub(crate) fn norm_gradient(
        self,
        (x, norm): (&[f32], Norm<'_>),
        dy: &[f32],
        dx: (&mut [f32], bool),
        gains: &mut [i64],
        scratch: &mut [f32],
    ) -> bool {
        // SAFETY: as above.
        unsafe { (self.kernels().train().norm)(x, norm, dy, dx, gains, scratch) }
    }

    /// Does [`train::gate`].
    pub(crate) fn gate_gradient(self, gate: Gate, x: &mut [f32], up: &mut [f32], dh: &[f32]) {
        // SAFETY: as above.
        unsafe { (self.kernels().train().gate)(gate, x, up, dh) }
    }

    /// Does [`AttentionGradient::head_by`].
    pub(crate) fn attention_gradient(
        self,
        job: &AttentionGradient<'_, '_, '_>,
        head: (usize, usize),
        scratch: &mut AttentionScratch<'_>,
        out: &mut AttentionGradients<'_>,
    ) -> bool {
        // SAFETY: as above.
        unsafe { (self.kernels().train().attention)(job, head, scratch, out) }
    }
}
