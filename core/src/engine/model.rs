//! The engine trait for language models, in addition to products and norms.

use super::{LinearEngine, QuantizeEngine};
use crate::linear::{I8Sym, Layer};
use crate::model::attention::Attention;
use crate::model::{FloatMatrix, Gate, ModelError, ModelParts, Weights};
use crate::scalar::Scalar;

/// Number of outputs that are summed at a time in a product with 16-bit activations. With less space it is smaller,
/// but a multiple of [`GROUP`].
pub(crate) const PART: usize = 4096;
/// Smallest such number: the largest number of rows that a layout stores together.
pub(crate) const GROUP: usize = 8;

/// An engine that runs models; the driver is [`crate::model::decode`].
///
/// The default implementations define the result that every engine must return. Engines without a faster way use
/// them.
pub trait ModelEngine: LinearEngine + QuantizeEngine {
    /// The engine's error; errors of models and of products convert into it.
    type Failure: From<ModelError>
        + From<<Self as LinearEngine>::Error>
        + From<<Self as QuantizeEngine>::Error>
        + core::fmt::Display;

    /// What models may ask of the engine. Another model is [`ModelError::LeftOut`] before its first step.
    const PARTS: ModelParts = ModelParts::ALL;

    /// Writes a row of the embedding to `out`, which has one element per column. O(cols).
    ///
    /// # Errors
    /// [`ModelError::Block`]; [`ModelError::LeftOut`] for a layout that the engine was built without.
    fn embed(
        &mut self,
        embedding: &Weights<'_>,
        row: usize,
        out: &mut [f32],
    ) -> Result<(), ModelError> {
        embedding.embed_of::<{ u32::MAX }>(row, out)
    }

    /// Multiplies a matrix of floats by rows of activations: [`FloatMatrix::dot`] of each. `out` has one row per row
    /// of `x`. O(rows of x · rows · cols).
    ///
    /// # Errors
    /// Those of the engine.
    fn multiply_floats(
        &mut self,
        weights: &FloatMatrix<'_>,
        x: &[f32],
        out: &mut [f32],
    ) -> Result<(), Self::Failure> {
        let mut rows = out.chunks_exact_mut(weights.rows().max(1));
        for x in x.chunks_exact(weights.cols().max(1)) {
            let Some(out) = rows.next() else { break };
            for (row, out) in out.iter_mut().enumerate() {
                *out = weights.dot(row, x);
            }
        }
        Ok(())
    }

    /// Multiplies a layer by rows of 16-bit activations. `x` holds the high planes of all rows and then the low
    /// planes ([`planes`](crate::quant::activations::planes)).
    ///
    /// Each output is [`Layer::value`] of 255 · the high plane's sum + the low plane's sum. This is exact in a layer
    /// that [`Matrix::check_wide`](crate::linear::Matrix::check_wide) accepts. `out` has one row per element of
    /// `x_scales`. `sums`, for engines without their own memory, has at least 16 elements per row of `out`. `scratch`
    /// is the same as for [`LinearEngine::sums_many`]. O(rows of x · rows · cols).
    ///
    /// # Errors
    /// Those of the engine, including those of [`LinearEngine::sums_many`].
    // A separate stack frame, which products of 8-bit activations do not need.
    #[inline(never)]
    fn matmat_wide(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        (sums, scratch): (&mut [i64], &mut [u32]),
    ) -> Result<(), Self::Failure> {
        let (outputs, rows) = (layer.weights().rows(), x_scales.len());
        // As many as there is space for, in whole groups of rows.
        let room = sums.len().checked_div(rows.saturating_mul(2)).unwrap_or(0);
        let room = (room / GROUP).max(1).saturating_mul(GROUP);
        for first in (0..outputs).step_by(room) {
            let Some(part) = layer.part(first, room) else {
                break;
            };
            let count = part.weights().rows().max(1);
            let both = count.saturating_mul(rows);
            let sums = sums.get_mut(..both.saturating_mul(2)).unwrap_or_default();
            self.sums_many(&part, x, sums, scratch)?;
            let (high, low) = sums.split_at_checked(both).unwrap_or_default();
            let (mut high, mut low) = (high.chunks_exact(count), low.chunks_exact(count));
            let mut scales = x_scales.iter();
            for out in out.chunks_exact_mut(outputs.max(1)) {
                let (Some(high), Some(low), Some(&scale)) =
                    (high.next(), low.next(), scales.next())
                else {
                    break;
                };
                let out = out.get_mut(first..).unwrap_or_default();
                for (row, ((out, &high), &low)) in out.iter_mut().zip(high).zip(low).enumerate() {
                    // Below 2⁶²; this was checked when the matrix was accepted.
                    let sum = high.wrapping_mul(255).wrapping_add(low);
                    *out = part.value(row, sum, scale);
                }
            }
        }
        Ok(())
    }

    /// Does [`Attention::head`] for every head of every row: `out` has rows · heads · head values. `scores` and
    /// `sums` are the same as for [`Attention::head`], for engines without their own memory.
    ///
    /// # Errors
    /// Those of the engine.
    fn attend(
        &mut self,
        attention: &Attention<'_, '_>,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) -> Result<(), Self::Failure> {
        attention.heads_of::<{ u32::MAX }>(scores, sums, out);
        Ok(())
    }

    /// Applies [`Gate::apply`]. O(n).
    ///
    /// # Errors
    /// Those of the engine.
    fn gate(&mut self, gate: Gate, x: &mut [f32], up: &[f32]) -> Result<(), Self::Failure> {
        gate.apply(x, up);
        Ok(())
    }
}

impl ModelEngine for Scalar {
    type Failure = ModelError;
}
