//! Rows of floats, a block of 64 at a time with kernels.

use std::ops::Range;

use tercet_core::number::{Element, RUN, sum_of_squares};
use tercet_core::search::{FloatRows, Hit, Metric, Rows, Score, TopK};

use super::integers::pieces;
use crate::simd::Backend;
use crate::simd::float_search::{Kernels, Sums};
use crate::simd::search::BLOCK;

/// A query, and the state of the current block.
struct Scan<'a, T: Element> {
    kernels: &'static Kernels<T>,
    rows: FloatRows<'a, T>,
    sums: Sums,
    norms: Sums,
}

impl<'a, T: Element> Scan<'a, T> {
    fn new(backend: Backend, rows: FloatRows<'a, T>) -> Self {
        Self {
            kernels: backend.float_search(),
            rows,
            sums: [0.0; BLOCK],
            norms: [0.0; BLOCK],
        }
    }

    /// Scores a range of rows, in order; `query_norm` as from [`norm`].
    #[inline]
    fn each<M: Metric>(
        &mut self,
        query: &[f32],
        query_norm: f64,
        rows: Range<usize>,
        mut each: impl FnMut(usize, M::Float),
    ) {
        if self.rows.dim() > RUN {
            // Sums of several runs.
            return self.rows.scan::<M>(query, rows, each);
        }
        for block in pieces(rows, BLOCK) {
            self.fill::<M>(query, block.clone());
            for (index, (&sum, &norm)) in block.zip(self.sums.iter().zip(&self.norms)) {
                each(index, M::float_by_sum(sum, query_norm, norm));
            }
        }
    }

    /// Computes the values that the metric needs.
    #[inline]
    fn fill<M: Metric>(&mut self, query: &[f32], block: Range<usize>) {
        let dim = self.rows.dim();
        let values = &self.rows.values()[block.start * dim..block.end * dim];
        let (sums, norms) = (&mut self.sums, &mut self.norms);
        match self.rows.norms() {
            None if M::FLOAT_NORMS => self.kernels.sums_and_norms(query, values, sums, norms),
            Some(known) if M::FLOAT_NORMS => {
                norms[..block.len()].copy_from_slice(&known[block]);
                self.kernels.sums(M::KIND, query, values, sums);
            }
            _ => self.kernels.sums(M::KIND, query, values, sums),
        }
    }
}

/// Returns the squared length of a query, if the metric needs it.
fn norm<M: Metric>(query: &[f32]) -> f64 {
    if M::FLOAT_NORMS {
        sum_of_squares(query)
    } else {
        0.0
    }
}

/// Writes the best `k` of some rows for each query, best first.
pub(super) fn best<M: Metric, T: Element>(
    backend: Backend,
    base: FloatRows<'_, T>,
    rows: Range<usize>,
    tile: usize,
    queries: &[f32],
    k: usize,
    hits: &mut [Hit<M::Float>],
) {
    let seekers = queries.chunks(base.dim()).zip(hits.chunks_mut(k));
    let mut seekers: Vec<_> = seekers
        .map(|(query, hits)| (query, norm::<M>(query), TopK::new(hits)))
        .collect();
    let mut scan = Scan::new(backend, base);
    for tile in pieces(rows, tile) {
        for (query, norm, best) in &mut seekers {
            scan.each::<M>(query, *norm, tile.clone(), |index, score| {
                best.push(index, score);
            });
        }
    }
    for (_, _, best) in seekers {
        best.into_sorted();
    }
}

/// Writes those of some rows that reach a threshold, at most as many as there are hits, and returns their number.
pub(super) fn near<M: Metric, T: Element>(
    backend: Backend,
    base: FloatRows<'_, T>,
    rows: Range<usize>,
    query: &[f32],
    threshold: f32,
    hits: &mut [Hit<M::Float>],
) -> usize {
    let mut found = 0;
    let mut scan = Scan::new(backend, base);
    scan.each::<M>(query, norm::<M>(query), rows, |index, score| {
        if score.reaches(threshold) {
            hits[found] = Hit { index, score };
            found += 1;
        }
    });
    found
}
