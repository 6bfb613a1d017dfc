//! What an engine does with a language model, beside its products and norms.

use super::{LinearEngine, QuantizeEngine};
use crate::model::attention::Attention;
use crate::model::{FloatMatrix, Gate, ModelError};
use crate::scalar::Scalar;

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
