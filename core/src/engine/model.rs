//! What an engine does with a language model, beside its products and norms.

use super::{LinearEngine, QuantizeEngine};
use crate::linear::{I8Sym, Layer};
use crate::model::attention::Attention;
use crate::model::{FloatMatrix, Gate, ModelError};
use crate::scalar::Scalar;

/// Outputs of a product with activations of 16 bits that are summed at a time; fewer where there is less room, but a multiple of [`GROUP`].
pub(crate) const PART: usize = 4096;
/// The least of them: the most rows that lie together in a layout.
pub(crate) const GROUP: usize = 8;

/// An engine that models run on; [`crate::model::decode`] is the driver.
///
/// What is provided here says what any engine must give, and serves those that have nothing faster.
pub trait ModelEngine: LinearEngine + QuantizeEngine {
    /// What can fail; refusals of models and of products convert into it.
    type Failure: From<ModelError>
        + From<<Self as LinearEngine>::Error>
        + From<<Self as QuantizeEngine>::Error>
        + core::fmt::Display;

    /// Products of a matrix of floats with rows of activations: [`FloatMatrix::dot`] of each, `out` with a row for each of `x`. O(rows of x · rows · cols).
    ///
    /// # Errors
    /// The engine's own.
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

    /// Products of a layer with rows of activations of 16 bits, of which `x` has the high planes of all rows and then the low ones
    /// ([`planes`](crate::quant::activations::planes)): [`Layer::value`] of 255 · the high plane's sum + the low one's, which is exact in a layer that
    /// [`Matrix::check_wide`](crate::linear::Matrix::check_wide) accepts. `out` has a row for each of `x_scales`. `sums`, for engines without memory of
    /// their own, has 16 for each row of `out` at least; `scratch` is as [`LinearEngine::sums_many`] takes it. O(rows of x · rows · cols).
    ///
    /// # Errors
    /// The engine's own, those of [`LinearEngine::sums_many`] among them.
    // A frame of its own, which products of activations of 8 bits do not need.
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
        // As many as there is room for, in whole groups of rows.
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
                    // Below 2⁶², as was seen when the matrix was taken.
                    let sum = high.wrapping_mul(255).wrapping_add(low);
                    *out = part.value(row, sum, scale);
                }
            }
        }
        Ok(())
    }

    /// [`Attention::head`] of every head of every row: `out` has rows · heads · values of a head. `scores` and `sums` are as [`Attention::head`] takes
    /// them, for engines without memory of their own.
    ///
    /// # Errors
    /// The engine's own.
    fn attend(
        &mut self,
        attention: &Attention<'_, '_>,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) -> Result<(), Self::Failure> {
        let mut out = out.chunks_exact_mut(attention.head_len().max(1));
        for row in 0..attention.places.len() {
            for head in 0..attention.heads {
                let Some(out) = out.next() else { break };
                attention.head(row, head, scores, sums, out);
            }
        }
        Ok(())
    }

    /// [`Gate::apply`]. O(n).
    ///
    /// # Errors
    /// The engine's own.
    fn gate(&mut self, gate: Gate, x: &mut [f32], up: &[f32]) -> Result<(), Self::Failure> {
        gate.apply(x, up);
        Ok(())
    }
}

impl ModelEngine for Scalar {
    type Failure = ModelError;
}
