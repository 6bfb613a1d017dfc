//! Layers on rayon's threads: rows side by side.

use rayon::prelude::*;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, LinearError, Rescale};

use super::Threads;

impl Threads {
    /// Calls `product` with the parts of a layer, the first row of each and its outputs.
    ///
    /// A part has about eight tiles of weights, since a weight takes so little time here, and what fits into one is multiplied on
    /// the calling thread.
    fn rows<T: Send>(
        self,
        layer: &Layer<'_>,
        out: &mut [T],
        product: impl Fn(&Layer<'_>, usize, &mut [T]) + Sync,
    ) {
        let weights = layer.weights();
        let rows = (self.task().saturating_mul(8) / weights.cols()).max(1);
        // No more than there are, so that the next multiple is a number.
        let rows = rows.min(weights.rows().max(1));
        let rows = rows.next_multiple_of(weights.layout().group_rows());
        if out.len() <= rows {
            return product(layer, 0, out);
        }
        let parts = out.par_chunks_mut(rows).enumerate();
        parts.for_each(|(index, out)| {
            let first = index * rows;
            // In whole groups, so always there.
            if let Some(part) = layer.part(first, out.len()) {
                product(&part, first, out);
            }
        });
    }
}

/// The scratch is checked, and not used.
impl LinearEngine for Threads {
    type Error = LinearError;

    fn sums(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        layer.check(x, out.len(), scratch.len())?;
        let product = self.backend.product(layer.weights(), x);
        self.rows(layer, out, |part, _, out| {
            product.sums(part.weights(), &mut part.exact(out));
        });
        Ok(())
    }

    fn matvec(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        layer.check(x, out.len(), scratch.len())?;
        let product = self.backend.product(layer.weights(), x);
        self.rows(layer, out, |part, _, out| {
            product.sums(part.weights(), &mut part.scaled(x_scale, out));
        });
        Ok(())
    }

    fn dense(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        layer.check(x, out.len(), scratch.len())?;
        rescale.check(out.len())?;
        let product = self.backend.product(layer.weights(), x);
        self.rows(layer, out, |part, first, out| {
            let rescale = rescale.part(first, out.len());
            product.sums(part.weights(), &mut part.rounded(&rescale, out));
        });
        Ok(())
    }

    fn sums_many(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        layer.check_many(x, out.len(), scratch.len())?;
        if let Some(strips) = self.strips(layer, x) {
            self.tiles(layer, &strips, out, |part, _, out, found| {
                found.give(&mut part.exact(out));
            });
            return Ok(());
        }
        let out = out.chunks_exact_mut(layer.weights().rows().max(1));
        let mut rows = x.rows(layer.weights().cols()).zip(out);
        rows.try_for_each(|(x, out)| self.sums(layer, x, out, scratch))
    }

    fn matmat(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        let expected = layer.check_many(x, out.len(), scratch.len())?;
        let found = x_scales.len();
        if found != expected {
            return Err(LinearError::Length { expected, found });
        }
        if let Some(strips) = self.strips(layer, x) {
            self.tiles(layer, &strips, out, |part, row, out, found| {
                found.give(&mut part.scaled(x_scales[row], out));
            });
            return Ok(());
        }
        let out = out.chunks_exact_mut(layer.weights().rows().max(1));
        let rows = x.rows(layer.weights().cols()).zip(x_scales);
        let mut rows = rows.zip(out);
        rows.try_for_each(|((x, &x_scale), out)| self.matvec(layer, x, x_scale, out, scratch))
    }
}
