//! Layers on rayon's threads: rows or points in parallel.

use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, LinearError, Matrix, Rescale};
use tracing::trace_span;

use super::Threads;
use super::each::{chunks, chunks_mut};

/// Parts of a large layer for each thread: between two of them a processor has read little ahead, and a thread that is
/// late at the end is late by a part.
const PARTS: usize = 32;

impl Threads {
    /// Calls `product` with the parts of a layer, the first row of each and its outputs.
    ///
    /// A part has about eight tiles of weights, because a weight takes so little time here; or more, as long as each
    /// thread has [`PARTS`]. A layer that fits eight tiles is multiplied on the calling thread.
    pub(super) fn rows<T: Send>(
        self,
        layer: &Layer<'_>,
        out: &mut [T],
        product: impl Fn(&Layer<'_>, usize, &mut [T]) + Sync,
    ) {
        let weights = layer.weights();
        let rows = (self.task().saturating_mul(8) / weights.cols()).max(1);
        // At most the existing rows, so that the next multiple does not overflow.
        let rows = rows.min(weights.rows().max(1));
        let rows = rows.next_multiple_of(weights.layout().group_rows());
        if out.len() <= rows {
            return product(layer, 0, out);
        }
        let rows = rows.max(weights.rows() / (PARTS * self.threads()));
        let rows = rows.next_multiple_of(weights.layout().group_rows());
        chunks_mut(out, rows).each(|index, out| {
            let first = index * rows;
            // In whole groups, so it always exists.
            if let Some(part) = layer.part(first, out.len()) {
                product(&part, first, out);
            }
        });
    }

    /// Calls `product` with each row of activations, its number and its outputs, and an engine to multiply it with: for
    /// work that tiles do not support.
    ///
    /// A layer that is worth sharing multiplies one row of activations after another, so that a thread's part of its
    /// weights stays in the thread's cache. For a smaller layer, rows of activations are processed in parallel.
    fn each<T: Send>(
        self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [T],
        product: impl Fn(Self, usize, I8Sym<'_>, &mut [T]) + Sync,
    ) {
        let weights = layer.weights();
        let (rows, cols) = (weights.rows(), weights.cols());
        if out.is_empty() {
            return;
        }
        let task = self.task().saturating_mul(8);
        let products = rows.saturating_mul(cols);
        if products > task || out.len().saturating_mul(cols) <= task {
            let all = x.rows(cols).zip(out.chunks_exact_mut(rows)).enumerate();
            return all.for_each(|(row, (x, out))| product(self, row, x, out));
        }
        let alone = Self {
            alone: true,
            ..self
        };
        let all: Vec<_> = x.rows(cols).collect();
        // Parts for all threads, even for few rows.
        let count = (task / products).min(all.len().div_ceil(4 * self.threads()));
        let parts = chunks(&all, count).zip(chunks_mut(out, count * rows));
        parts.each(|part, (x, out)| {
            let rows = x.iter().zip(out.chunks_exact_mut(rows));
            for (row, (&x, out)) in (part * count..).zip(rows) {
                product(alone, row, x, out);
            }
        });
    }

    /// Does [`LinearEngine::sums`] with checked lengths.
    fn exact(self, layer: &Layer<'_>, x: I8Sym<'_>, out: &mut [i64]) {
        let product = self.backend.product(layer.weights(), x);
        self.rows(layer, out, |part, _, out| {
            product.sums(part.weights(), &mut part.exact(out));
        });
    }

    /// Does [`LinearEngine::matvec`] with checked lengths.
    fn scaled(self, layer: &Layer<'_>, x: I8Sym<'_>, x_scale: f32, out: &mut [f32]) {
        let product = self.backend.product(layer.weights(), x);
        self.rows(layer, out, |part, _, out| {
            product.sums(part.weights(), &mut part.scaled(x_scale, out));
        });
    }

    /// Does [`LinearEngine::dense`] with checked lengths.
    fn rounded(self, layer: &Layer<'_>, rescale: &Rescale<'_>, x: I8Sym<'_>, out: &mut [i8]) {
        let product = self.backend.product(layer.weights(), x);
        self.rows(layer, out, |part, first, out| {
            let rescale = rescale.part(first, out.len());
            product.sums(part.weights(), &mut part.rounded(&rescale, out));
        });
    }
}

impl LinearEngine for Threads {
    type Error = LinearError;

    /// Tiles have their own scratch.
    fn product_scratch_len(&self, _: &Matrix<'_>) -> usize {
        0
    }

    fn sums(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        _: &mut [u32],
    ) -> Result<(), LinearError> {
        layer.check(x, out.len())?;
        self.exact(layer, x, out);
        Ok(())
    }

    fn matvec(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
        _: &mut [u32],
    ) -> Result<(), LinearError> {
        layer.check(x, out.len())?;
        self.scaled(layer, x, x_scale, out);
        Ok(())
    }

    fn dense(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        _: &mut [u32],
    ) -> Result<(), LinearError> {
        layer.check(x, out.len())?;
        rescale.check(out.len())?;
        self.rounded(layer, rescale, x, out);
        Ok(())
    }

    fn dense_many(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        _: &mut [u32],
    ) -> Result<(), LinearError> {
        layer.check_many(x, out.len())?;
        rescale.check(layer.weights().rows())?;
        match self.strips(layer, x) {
            Some(strips) => self.tiles(layer, &strips, out, |(), part, first, _, out, found| {
                let rescale = rescale.part(first, out.len());
                found.give(&mut part.rounded(&rescale, out));
            }),
            None => self.each(layer, x, out, |engine, _, x, out| {
                engine.rounded(layer, rescale, x, out);
            }),
        }
        Ok(())
    }

    fn sums_many(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        _: &mut [u32],
    ) -> Result<(), LinearError> {
        layer.check_many(x, out.len())?;
        match self.strips(layer, x) {
            Some(strips) => self.tiles(layer, &strips, out, |(), part, _, _, out, found| {
                found.give(&mut part.exact(out));
            }),
            None => self.each(layer, x, out, |engine, _, x, out| {
                engine.exact(layer, x, out);
            }),
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
    ) -> Result<(), LinearError> {
        let expected = layer.check_many(x, out.len())?;
        let found = x_scales.len();
        if found != expected {
            return Err(LinearError::Length { expected, found });
        }
        let (rows, cols) = (layer.weights().rows(), layer.weights().cols());
        let _span = trace_span!("product", rows, cols).entered();
        match self.strips(layer, x) {
            Some(strips) => self.tiles(layer, &strips, out, |(), part, _, row, out, found| {
                found.give(&mut part.scaled(x_scales[row], out));
            }),
            None => self.each(layer, x, out, |engine, row, x, out| {
                engine.scaled(layer, x, x_scales[row], out);
            }),
        }
        Ok(())
    }
}
