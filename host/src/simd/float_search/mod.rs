//! Float search: a set's kernels on rows, and the plain loops.
//!
//! Sums follow the one order of [`tercet_core::number::lanes`]: 64 lanes are vectors side by side, and each product is
//! rounded, then each addition. The f64 products of f32 are exact, so there a fused addition rounds once as well.

pub(in crate::simd) mod kernels;
pub(in crate::simd) mod lanes;
pub(in crate::simd) mod sums;
pub(in crate::simd) mod wide;

use std::any::Any;

use tercet_core::number::{self, Element, Lanes, RUN};
use tercet_core::search::MetricKind;
use tercet_core::{bf16, f16};

use super::Backend;
use super::search::BLOCK;

/// A sum, or a squared length, for each row of a block.
pub(crate) type Sums = [f64; BLOCK];

/// The search functions for rows of floats, for one instruction set.
#[derive(Debug)]
pub(in crate::simd) struct FloatSearch {
    pub(in crate::simd) f32: Kernels<f32>,
    pub(in crate::simd) f16: Kernels<f16>,
    pub(in crate::simd) bf16: Kernels<bf16>,
}

/// The kernels for rows of one type: a query of at most [`RUN`] values and up to [`BLOCK`] rows of its length.
#[derive(Debug)]
pub(crate) struct Kernels<T> {
    /// [`number::dot`] for each row.
    pub(in crate::simd) dots: unsafe fn(&[f32], &[T], &mut Sums),
    /// [`number::squared_distance`] for each row.
    pub(in crate::simd) distances: unsafe fn(&[f32], &[T], &mut Sums),
    /// [`Lanes::products`] for each row.
    pub(in crate::simd) products: unsafe fn(&[f32], &[T], &mut Sums),
    /// The same, and [`number::sum_of_squares`] of each row.
    pub(in crate::simd) products_and_norms: unsafe fn(&[f32], &[T], &mut Sums, &mut Sums),
}

const fn scalar<T: Element>() -> Kernels<T> {
    Kernels {
        dots,
        distances,
        products,
        products_and_norms,
    }
}

pub(in crate::simd) const SCALAR: FloatSearch = FloatSearch {
    f32: scalar(),
    f16: scalar(),
    bf16: scalar(),
};

fn dots<T: Element>(query: &[f32], rows: &[T], sums: &mut Sums) {
    for (row, sum) in rows.chunks_exact(query.len()).zip(sums) {
        *sum = f64::from(number::dot(query, row).unwrap_or(0.0));
    }
}

fn distances<T: Element>(query: &[f32], rows: &[T], sums: &mut Sums) {
    for (row, sum) in rows.chunks_exact(query.len()).zip(sums) {
        *sum = f64::from(number::squared_distance(query, row).unwrap_or(0.0));
    }
}

fn products<T: Element>(query: &[f32], rows: &[T], sums: &mut Sums) {
    for (row, sum) in rows.chunks_exact(query.len()).zip(sums) {
        let mut lanes = Lanes::<f64>::new();
        // Their lengths are equal.
        let _ = lanes.products(query, row);
        *sum = lanes.total();
    }
}

fn products_and_norms<T: Element>(query: &[f32], rows: &[T], sums: &mut Sums, norms: &mut Sums) {
    products(query, rows, sums);
    for (row, norm) in rows.chunks_exact(query.len()).zip(norms) {
        *norm = number::sum_of_squares(row);
    }
}

impl Backend {
    /// Returns the kernels of float search over rows of a type.
    pub(crate) fn float_search<T: Element>(self) -> &'static Kernels<T> {
        let table = self.kernels().float_search();
        let types: [&dyn Any; 3] = [&table.f32, &table.f16, &table.bf16];
        let mut kernels = types.into_iter().filter_map(<dyn Any>::downcast_ref);
        // There is no fourth type.
        kernels.next().unwrap_or(const { &scalar::<T>() })
    }
}

impl<T: Element> Kernels<T> {
    /// Computes the sums of a metric over a query and up to [`BLOCK`] rows of its length, for
    /// [`tercet_core::search::Metric::float_by_sum`].
    #[inline]
    pub(crate) fn sums(&self, kind: MetricKind, query: &[f32], rows: &[T], sums: &mut Sums) {
        check(query.len(), rows.len());
        let kernel = match kind {
            MetricKind::Dot => self.dots,
            MetricKind::SquaredL2 => self.distances,
            MetricKind::Cosine => self.products,
        };
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { kernel(query, rows, sums) }
    }

    /// Computes the sums of [`MetricKind::Cosine`], and the squared lengths of the rows, in one pass.
    #[inline]
    pub(crate) fn sums_and_norms(
        &self,
        query: &[f32],
        rows: &[T],
        sums: &mut Sums,
        norms: &mut Sums,
    ) {
        check(query.len(), rows.len());
        // SAFETY: as in `sums`.
        unsafe { (self.products_and_norms)(query, rows, sums, norms) }
    }
}

/// Checks for whole rows within one run of the order of sums, and at most a block of them.
#[inline]
fn check(row: usize, rows: usize) {
    assert!((1..=RUN).contains(&row) && rows.is_multiple_of(row) && rows / row <= BLOCK);
}
