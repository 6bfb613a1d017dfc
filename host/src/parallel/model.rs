//! Language models on rayon's threads: heads of rows in parallel, and the rows of float matrices.

use std::convert::Infallible;

use tercet_core::engine::ModelEngine;
use tercet_core::linear::{I8Sym, Layer, LinearError};
use tercet_core::model::attention::Attention;
use tercet_core::model::{FloatMatrix, Gate, ModelError};
use tracing::trace_span;

use super::Threads;
use super::each::{chunks, chunks_mut, numbers};
use super::matmat::Columns;
use crate::simd::linear::half_tiles::Panel;

/// Rows of a float matrix that are multiplied at a time.
const ROWS: usize = 64;

impl ModelEngine for Threads {
    type Failure = ModelError;

    fn multiply_floats(
        &mut self,
        weights: &FloatMatrix<'_>,
        x: &[f32],
        out: &mut [f32],
    ) -> Result<(), ModelError> {
        let (rows, cols) = (weights.rows(), weights.cols());
        let _span = trace_span!("product", rows, cols).entered();
        let backend = self.backend;
        let least = (self.task() / (ROWS * cols)).max(1);
        if x.len() == cols {
            let tasks = chunks_mut(out, ROWS).at_least(least);
            tasks.each(|block, out| dots::all(backend, &weights.part(block * ROWS, ROWS), x, out));
            return Ok(());
        }
        // A block of weights is multiplied with one row of activations after another while it is in the cache.
        let blocks = numbers(0..rows.div_ceil(ROWS)).at_least(1);
        let products = blocks.gather(|_, block| {
            let part = weights.part(block * ROWS, ROWS);
            let mut products = vec![0.0; x.len() / cols * part.rows()];
            for (x, out) in x
                .chunks_exact(cols)
                .zip(products.chunks_exact_mut(part.rows()))
            {
                dots::all(backend, &part, x, out);
            }
            products
        });
        for (block, products) in products.iter().enumerate() {
            let count = ROWS.min(rows - block * ROWS);
            for (out, products) in out.chunks_exact_mut(rows).zip(products.chunks_exact(count)) {
                out[block * ROWS..][..count].copy_from_slice(products);
            }
        }
        Ok(())
    }

    /// A few rows of weights, or those of a tile, are multiplied with both planes before the next ones; sums need no
    /// memory of the caller.
    fn matmat_wide(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        _: (&mut [i64], &mut [u32]),
    ) -> Result<(), ModelError> {
        let (outputs, cols) = (layer.weights().rows(), layer.weights().cols());
        let _span = trace_span!("product", rows = outputs, cols).entered();
        let expected = layer.check_many(x, out.len().saturating_mul(2))?;
        let found = x_scales.len().saturating_mul(2);
        if found != expected {
            return Err(LinearError::Length { expected, found }.into());
        }
        if out.is_empty() {
            return Ok(());
        }
        let least = (self.task() / cols).max(1);
        let product = self.backend.half_product(layer, x, |pairs, sums, fill| {
            let tasks = chunks_mut(pairs.0, pairs.1).zip(chunks_mut(sums.0, sums.1));
            tasks
                .at_least(least)
                .each(|strip, (pairs, sums)| fill(strip, pairs, sums));
        });
        if let Some(product) = product {
            if product.has_tiles() {
                let give =
                    |room: &mut Panel, part: &Layer<'_>, _, columns: &mut Columns<'_, '_, f32>| {
                        product.tiles(part, room, |row, first, sums| {
                            let out = &mut columns.row(row)[first..][..sums.len()];
                            for ((number, out), &sum) in (first..).zip(out).zip(sums) {
                                *out = part.value_of_rounded(number, sum as f32, x_scales[row]);
                            }
                        });
                    };
                self.columns(layer, product.rows(), out, || Some(Panel::default()), give);
                return Ok(());
            }
            if let [scale] = *x_scales {
                self.rows(layer, out, |part, _, out| product.row(part, 0, scale, out));
                return Ok(());
            }
            // Some weights are multiplied with one row of activations after another while they are in the cache.
            let give = |(): &mut (), part: &Layer<'_>, _, columns: &mut Columns<'_, '_, f32>| {
                for (row, &scale) in x_scales.iter().enumerate() {
                    product.row(part, row, scale, columns.row(row));
                }
            };
            self.columns(layer, product.rows(), out, || Some(()), give);
            return Ok(());
        }
        if let Some(strips) = self.strips(layer, x) {
            let rows = x_scales.len();
            self.tiles(
                layer,
                &strips,
                out,
                |sums: &mut Vec<i64>, part, _, row, out, found| {
                    // The sums of the high planes come first, and are kept until those of the low planes have come,
                    // which are stored after them.
                    let (count, kept) = (out.len(), row.min(rows));
                    sums.resize((rows + 1) * count, 0);
                    found.give(&mut part.exact(&mut sums[kept * count..][..count]));
                    if let Some(row) = row.checked_sub(rows) {
                        let (high, low) = sums.split_at(rows * count);
                        both(part, &high[row * count..][..count], low, x_scales[row], out);
                    }
                },
            );
            return Ok(());
        }
        let rows: Vec<_> = x.rows(cols).collect();
        let (high, low) = rows.split_at(x_scales.len());
        let planes = high.iter().zip(low).zip(x_scales);
        for (((&high, &low), &scale), out) in planes.zip(out.chunks_exact_mut(outputs)) {
            let planes = [high, low].map(|x| self.backend.product(layer.weights(), x));
            self.rows(layer, out, |part, _, out| {
                for (block, out) in out.chunks_mut(ROWS).enumerate() {
                    let Some(part) = part.part(block * ROWS, out.len()) else {
                        return;
                    };
                    let mut sums = [[0; ROWS]; 2];
                    for (plane, sums) in planes.iter().zip(&mut sums) {
                        plane.sums(part.weights(), &mut part.exact(&mut sums[..out.len()]));
                    }
                    let [high, low] = &sums;
                    both(&part, high, low, scale, out);
                }
            });
        }
        Ok(())
    }

    fn attend(
        &mut self,
        attention: &Attention<'_, '_>,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) -> Result<(), ModelError> {
        let (heads, head) = (attention.heads, attention.head_len());
        let _span = trace_span!("attend", rows = attention.places.len(), heads).entered();
        let attended: usize = attention
            .places
            .iter()
            .map(|place| place.position as usize + 1)
            .sum();
        // A position takes a product with its key and one with its value.
        let work = attended.min(attention.places.len() * scores.len()) * heads * head * 2;
        if work <= self.task() {
            for (index, out) in out.chunks_exact_mut(head).enumerate() {
                let head = (index / heads, index % heads);
                self.backend.attend(attention, head, scores, sums, out);
            }
            return Ok(());
        }
        let (scores, sums) = (scores.len(), sums.len());
        let tasks = chunks_mut(out, head)
            .at_least((self.task() * heads * attention.places.len() / work).max(1));
        let done = tasks.try_each_with(
            || (vec![0.0; scores], vec![0; sums]),
            |(scores, sums), index, out| {
                let head = (index / heads, index % heads);
                self.backend.attend(attention, head, scores, sums, out);
                Ok::<_, Infallible>(())
            },
        );
        match done {
            Ok(()) => Ok(()),
            Err(never) => match never {},
        }
    }

    fn gate(&mut self, gate: Gate, x: &mut [f32], up: &[f32]) -> Result<(), ModelError> {
        let size = self.task().max(1) / 4;
        let tasks = chunks_mut(x, size).zip(chunks(up, size));
        tasks.each(|_, (x, up)| self.backend.gate(gate, x, up));
        Ok(())
    }
}

/// Computes the outputs of a layer's rows from the sums of both planes of one row of activations.
fn both(layer: &Layer<'_>, high: &[i64], low: &[i64], scale: f32, out: &mut [f32]) {
    for (row, (out, (&high, &low))) in out.iter_mut().zip(high.iter().zip(low)).enumerate() {
        // Below 2⁶², as checked when the matrix was accepted.
        *out = layer.value(row, 255 * high + low, scale);
    }
}

/// Products of rows of floats with one row of activations.
mod dots {
    use tercet_core::model::FloatMatrix;

    use crate::simd::Backend;

    /// Computes one for each row.
    pub(super) fn all(backend: Backend, weights: &FloatMatrix<'_>, x: &[f32], out: &mut [f32]) {
        #[cfg(feature = "search")]
        if fast(backend, weights, x, out) {
            return;
        }
        let _ = backend;
        for (row, out) in out.iter_mut().enumerate() {
            *out = weights.dot(row, x);
        }
    }

    /// Uses the kernels of float search, whose order of sums is the same; returns false if the values are not stored as
    /// this machine has them.
    #[cfg(feature = "search")]
    fn fast(backend: Backend, weights: &FloatMatrix<'_>, x: &[f32], out: &mut [f32]) -> bool {
        use tercet_core::model::FloatType;
        use tercet_core::{bf16, f16};

        match weights.kind() {
            FloatType::F32 => of::<f32>(backend, weights, x, out),
            FloatType::F16 => of::<f16>(backend, weights, x, out),
            FloatType::Bf16 => of::<bf16>(backend, weights, x, out),
        }
    }

    #[cfg(feature = "search")]
    fn of<T: tercet_core::number::Element>(
        backend: Backend,
        weights: &FloatMatrix<'_>,
        x: &[f32],
        out: &mut [f32],
    ) -> bool {
        use tercet_core::number::RUN;
        use tercet_core::search::MetricKind;

        use crate::simd::float_search::Sums;
        use crate::simd::search::BLOCK;

        // SAFETY: elements are floats, and every pattern of their bytes is one.
        let (before, values, after) = unsafe { weights.bytes().align_to::<T>() };
        let lies = before.is_empty() && after.is_empty() && cfg!(target_endian = "little");
        if !lies || x.len() > RUN {
            return false;
        }
        let kernels = backend.float_search::<T>();
        let mut sums: Sums = [0.0; BLOCK];
        let blocks = values.chunks(BLOCK * x.len()).zip(out.chunks_mut(BLOCK));
        for (rows, out) in blocks {
            kernels.sums(MetricKind::Dot, x, rows, &mut sums);
            for (out, &sum) in out.iter_mut().zip(&sums) {
                *out = sum as f32;
            }
        }
        true
    }
}
