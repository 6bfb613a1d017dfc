//! The engine's trait: layers in the host's memory, with results there.

use tercet_core::engine::{LinearEngine, Refused};
use tercet_core::linear::{I8Sym, Layer, LinearError, Matrix, Rescale, Sums};
use tercet_core::scalar::Scalar;

use crate::engine::{Chunks, Cuda, CudaError, Cudas};

/// The rows of weights of a part are multiples of the largest group of rows in any layout.
pub(super) const GROUP: usize = 8;

/// The products of [`LinearEngine`] without the steps after them.
pub(super) trait BareSums {
    /// Computes the sums of rows of weights without their bias, a row for each row of activations.
    ///
    /// Returns `None` if a weight is wider than the kernels accept.
    fn bare_sums(
        &mut self,
        matrix: &Matrix<'_>,
        x: I8Sym<'_>,
    ) -> Result<Option<Vec<i64>>, CudaError>;
}

impl BareSums for Cuda {
    /// In as many parts as the memory requires.
    fn bare_sums(
        &mut self,
        matrix: &Matrix<'_>,
        x: I8Sym<'_>,
    ) -> Result<Option<Vec<i64>>, CudaError> {
        let rows = matrix.rows();
        let count = x.len() / matrix.cols();
        let mut all = vec![0; rows * count];
        let chunks = Chunks {
            most: rows.next_multiple_of(GROUP),
            least: GROUP,
        };
        let done = self.in_chunks(rows, chunks, |cuda, range| {
            let part = matrix.part(range.start, range.len());
            let part = Layer::new(part.ok_or(LinearError::TooLarge)?);
            let layer = cuda.layer(&part)?;
            let x = cuda.activations(&layer, x)?;
            let mut out = cuda.room(range.len() * count)?;
            cuda.row_sums(&layer, &x, &mut out)?;
            let mut sums = vec![0; out.len()];
            cuda.read(&out, &mut sums)?;
            let outs = all.chunks_mut(rows.max(1));
            for (sums, out) in sums.chunks_exact(range.len().max(1)).zip(outs) {
                out[range.clone()].copy_from_slice(sums);
            }
            Ok(())
        });
        match done {
            Ok(()) => Ok(Some(all)),
            Err(CudaError::Refused(Refused::Linear(LinearError::CodeRange { .. }))) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns scratch for the reference engine, which multiplies weights that are wider than kernels accept.
fn scratch(layer: &Layer<'_>) -> Vec<u32> {
    vec![0; layer.weights().scratch_len()]
}

/// Implements the engine over its bare sums: core does bias, scales and rounding.
macro_rules! linear_engine {
    ($(#[$about:meta])* $engine:ty) => {
        $(#[$about])*
        impl LinearEngine for $engine {
            type Error = CudaError;

            /// The device has its own scratch.
            fn product_scratch_len(&self, _: &Matrix<'_>) -> usize {
                0
            }

            fn sums(
                &mut self,
                layer: &Layer<'_>,
                x: I8Sym<'_>,
                out: &mut [i64],
                _: &mut [u32],
            ) -> Result<(), CudaError> {
                layer.check(x, out.len())?;
                match self.bare_sums(layer.weights(), x)? {
                    Some(sums) => layer.exact(out).wide(&sums),
                    None => Scalar.sums(layer, x, out, &mut scratch(layer))?,
                }
                Ok(())
            }

            fn matvec(
                &mut self,
                layer: &Layer<'_>,
                x: I8Sym<'_>,
                x_scale: f32,
                out: &mut [f32],
                _: &mut [u32],
            ) -> Result<(), CudaError> {
                layer.check(x, out.len())?;
                match self.bare_sums(layer.weights(), x)? {
                    Some(sums) => layer.scaled(x_scale, out).wide(&sums),
                    None => Scalar.matvec(layer, x, x_scale, out, &mut scratch(layer))?,
                }
                Ok(())
            }

            fn dense(
                &mut self,
                layer: &Layer<'_>,
                rescale: &Rescale<'_>,
                x: I8Sym<'_>,
                out: &mut [i8],
                _: &mut [u32],
            ) -> Result<(), CudaError> {
                layer.check(x, out.len())?;
                rescale.check(out.len())?;
                match self.bare_sums(layer.weights(), x)? {
                    Some(sums) => layer.rounded(rescale, out).wide(&sums),
                    None => Scalar.dense(layer, rescale, x, out, &mut scratch(layer))?,
                }
                Ok(())
            }

            fn dense_many(
                &mut self,
                layer: &Layer<'_>,
                rescale: &Rescale<'_>,
                x: I8Sym<'_>,
                out: &mut [i8],
                _: &mut [u32],
            ) -> Result<(), CudaError> {
                layer.check_many(x, out.len())?;
                rescale.check(layer.weights().rows())?;
                let Some(sums) = self.bare_sums(layer.weights(), x)? else {
                    return Ok(Scalar.dense_many(layer, rescale, x, out, &mut scratch(layer))?);
                };
                let rows = layer.weights().rows().max(1);
                for (sums, out) in sums.chunks_exact(rows).zip(out.chunks_exact_mut(rows)) {
                    layer.rounded(rescale, out).wide(sums);
                }
                Ok(())
            }

            fn sums_many(
                &mut self,
                layer: &Layer<'_>,
                x: I8Sym<'_>,
                out: &mut [i64],
                _: &mut [u32],
            ) -> Result<(), CudaError> {
                layer.check_many(x, out.len())?;
                let Some(sums) = self.bare_sums(layer.weights(), x)? else {
                    return Ok(Scalar.sums_many(layer, x, out, &mut scratch(layer))?);
                };
                let rows = layer.weights().rows().max(1);
                for (sums, out) in sums.chunks_exact(rows).zip(out.chunks_exact_mut(rows)) {
                    layer.exact(out).wide(sums);
                }
                Ok(())
            }

            fn matmat(
                &mut self,
                layer: &Layer<'_>,
                x: I8Sym<'_>,
                x_scales: &[f32],
                out: &mut [f32],
                _: &mut [u32],
            ) -> Result<(), CudaError> {
                let expected = layer.check_many(x, out.len())?;
                let found = x_scales.len();
                if expected != found {
                    return Err(LinearError::Length { expected, found }.into());
                }
                let Some(sums) = self.bare_sums(layer.weights(), x)? else {
                    return Ok(Scalar.matmat(layer, x, x_scales, out, &mut scratch(layer))?);
                };
                let rows = layer.weights().rows().max(1);
                let outs = out.chunks_exact_mut(rows).zip(x_scales);
                for (sums, (out, &x_scale)) in sums.chunks_exact(rows).zip(outs) {
                    layer.scaled(x_scale, out).wide(sums);
                }
                Ok(())
            }
        }
    };
}

linear_engine!(
    /// Each call copies the weights to the device; [`Cuda::layer`] keeps them there.
    Cuda
);
linear_engine!(
    /// Each device has a share of the rows of weights, which each call copies to it.
    Cudas
);
