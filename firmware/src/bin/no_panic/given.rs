//! Code that callers provide: the compiler must assume that it does anything except panic.

use core::hint::black_box;

use tercet_core::linear::Sums;
use tercet_core::number::Element;
use tercet_core::search::{FloatRows, Hit, Int8Rows, Metric, TernaryRows, Visitor};

/// Takes sums of rows.
pub struct Seen;

impl Sums for Seen {
    fn narrow(&mut self, sums: &[i32]) {
        black_box(sums);
    }

    fn wide(&mut self, sums: &[i64]) {
        black_box(sums);
    }
}

/// Looks at rows.
pub struct Nothing;

impl Visitor for Nothing {
    type Output = ();

    fn int8<M: Metric>(
        &mut self,
        rows: Int8Rows<'_>,
        queries: &[i8],
        hits: &mut [Hit<M::Integer>],
    ) {
        black_box((rows, queries, hits));
    }

    fn ternary<M: Metric>(
        &mut self,
        rows: TernaryRows<'_>,
        queries: &[i8],
        hits: &mut [Hit<M::Integer>],
    ) {
        black_box((rows, queries, hits));
    }

    fn float<M: Metric, T: Element>(
        &mut self,
        rows: FloatRows<'_, T>,
        queries: &[f32],
        hits: &mut [Hit<M::Float>],
    ) {
        black_box((rows, queries, hits));
    }
}
