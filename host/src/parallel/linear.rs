//! Layers on rayon's threads: rows side by side.

use rayon::prelude::*;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{self, I8Sym, Layer, LinearError, Rescale};

use super::Threads;

impl Threads {
    /// Calls `product` with the parts of a layer, the first row of each and its outputs, and scratch.
    fn rows<T: Send>(
        self,
        layer: &Layer<'_>,
        out: &mut [T],
        product: impl Fn(&Layer<'_>, usize, &mut [T], &mut [u32]) -> Result<(), LinearError> + Sync,
    ) -> Result<(), LinearError> {
        let weights = layer.weights();
        // Whole groups of rows, about a tile of weights.
        let rows = (self.tile / weights.cols()).max(1);
        let rows = rows.next_multiple_of(weights.layout().group_rows());
        out.par_chunks_mut(rows).enumerate().try_for_each_init(
            || vec![0; weights.layout().scratch_len(rows, weights.cols())],
            |scratch, (index, out)| {
                let first = index * rows;
                // In whole groups, so always there.
                let part = layer.part(first, out.len());
                let part = part.ok_or(LinearError::TooLarge)?;
                product(&part, first, out, scratch)
            },
        )
    }
}

/// The scratch is checked, and each thread has its own.
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
        self.rows(layer, out, |part, _, out, scratch| {
            linear::sums(part, x, out, scratch)
        })
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
        self.rows(layer, out, |part, _, out, scratch| {
            linear::matvec(part, x, x_scale, out, scratch)
        })
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
        self.rows(layer, out, |part, first, out, scratch| {
            let rescale = rescale.part(first, out.len());
            linear::dense(part, &rescale, x, out, scratch)
        })
    }
}
