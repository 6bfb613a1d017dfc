//! The engine trait for layers of weights.

use crate::linear::{I8Sym, Layer, LinearError, Matrix, Rescale, many};

/// An engine that multiplies layers; the contracts are those of [`crate::linear`]'s functions.
pub trait LinearEngine {
    /// The engine's error; linear-layer errors convert into it.
    type Error: From<LinearError> + core::fmt::Display;

    /// Returns the number of words of scratch for products with these weights: [`Matrix::scratch_len`], or 0 for an
    /// engine with its own memory. All methods take at least this much.
    fn product_scratch_len(&self, weights: &Matrix<'_>) -> usize {
        weights.scratch_len()
    }

    /// Same contract as [`crate::linear::sums`].
    fn sums(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error>;

    /// Same contract as [`crate::linear::matvec`].
    fn matvec(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error>;

    /// Same contract as [`crate::linear::dense`].
    fn dense(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error>;

    /// Does [`LinearEngine::sums`] for many rows of activations, consecutive in `x`. `out` gets one row per row of
    /// `x`, with one sum per row of the matrix. O(rows of `x` · rows · cols).
    ///
    /// The default implementation loops over the rows of `x`. Every engine must return the same result.
    ///
    /// # Errors
    /// Those of [`Layer::check_many`]; [`LinearError::Scratch`].
    fn sums_many(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        layer.check_many(x, out.len())?;
        many::check_scratch(self.product_scratch_len(layer.weights()), scratch.len())?;
        many::rows(layer, x, out, |x, _, out| self.sums(layer, x, out, scratch))
    }

    /// Does [`LinearEngine::dense`] for many rows of activations, consecutive in `x`. `out` gets one row of int8
    /// activations per row of `x`, ready for the next layer. O(rows of `x` · rows · cols).
    ///
    /// The default implementation loops over the rows of `x`. Every engine must return the same result.
    ///
    /// ```
    /// use tercet_core::engine::LinearEngine;
    /// use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix, Requantize, Rescale};
    /// use tercet_core::scalar::Scalar;
    ///
    /// let layer = Layer::new(Matrix::new(Layout::Int8, 2, 3, &[1, 2, 3, 0xFF, 0, 1])?);
    /// let halves = Rescale::one(Requantize::from_scale(0.5)?);
    /// let x = I8Sym::new(&[10, 20, 30, 1, 0, 0])?;
    /// let (mut out, mut scratch) = ([0; 4], [0; Layout::Int8.scratch_len(2, 3)]);
    /// Scalar.dense_many(&layer, &halves, x, &mut out, &mut scratch)?;
    /// // 140 / 2, 20 / 2, and halves round up.
    /// assert_eq!(out, [70, 10, 1, 0]);
    /// # Ok::<(), LinearError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Layer::check_many`]; [`LinearError::Scratch`]; those of [`Rescale::check`], also if `x` has no rows.
    fn dense_many(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        layer.check_many(x, out.len())?;
        many::check_scratch(self.product_scratch_len(layer.weights()), scratch.len())?;
        rescale.check(layer.weights().rows())?;
        many::rows(layer, x, out, |x, _, out| {
            self.dense(layer, rescale, x, out, scratch)
        })
    }

    /// Does [`LinearEngine::matvec`] for many rows of activations, which is a matrix product: like
    /// [`LinearEngine::sums_many`], with one scale per row of `x`.
    ///
    /// ```
    /// use tercet_core::engine::LinearEngine;
    /// use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix};
    /// use tercet_core::scalar::Scalar;
    ///
    /// let layer = Layer::new(Matrix::new(Layout::Int8, 2, 3, &[1, 2, 3, 0xFF, 0, 1])?);
    /// let x = I8Sym::new(&[10, 20, 30, 1, 0, 0])?;
    /// let (mut out, mut scratch) = ([0.0; 4], [0; Layout::Int8.scratch_len(2, 3)]);
    /// Scalar.matmat(&layer, x, &[0.5, 2.0], &mut out, &mut scratch)?;
    /// assert_eq!(out, [70.0, 10.0, 2.0, -2.0]);
    /// # Ok::<(), LinearError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Layer::check_many`]; [`LinearError::Scratch`]; [`LinearError::Length`] unless there is one scale
    /// per row of `x`.
    fn matmat(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        let count = layer.check_many(x, out.len())?;
        many::check_scratch(self.product_scratch_len(layer.weights()), scratch.len())?;
        many::check_scales(count, x_scales)?;
        many::rows(layer, x, out, |x, row, out| {
            let x_scale = x_scales.get(row).copied().unwrap_or(0.0);
            self.matvec(layer, x, x_scale, out, scratch)
        })
    }

    /// Does [`LinearEngine::matmat`] for several layers with the same rows of activations, each into its own outputs.
    /// Some engines need less work for all together. O(the products').
    ///
    /// The default implementation multiplies one layer after another. Every engine must return the same result.
    ///
    /// # Errors
    /// Those of [`LinearEngine::matmat`].
    fn matmat_each<const N: usize>(
        &mut self,
        products: [(&Layer<'_>, &mut [f32]); N],
        x: I8Sym<'_>,
        x_scales: &[f32],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        for (layer, out) in products {
            self.matmat(layer, x, x_scales, out, scratch)?;
        }
        Ok(())
    }
}
