//! Search for the nearest rows to one query, or to each of many.

use std::sync::Arc;

use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::search::{
    Cosine, Dot, FloatRows, Hit, Int8Rows, Metric, MetricKind, Rows, Score, SquaredL2, TernaryRows,
};

use super::{Bits, Operation, legal};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::task::{Searched, Task};
use crate::measure::work::{Arithmetic, LeastWork};
use crate::measure::{Traffic, input};

/// Rows to find.
pub const TOP: usize = 10;

/// How rows are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::measure) enum Storage {
    /// One byte per value.
    Int8,
    /// Two bits per value.
    Ternary,
    /// f32.
    Float,
}

enum Base {
    Int8(Vec<i8>, Vec<u32>),
    Ternary(Vec<u8>, Vec<u32>),
    Float(Arc<[f32]>),
}

/// Search for the best rows by a metric; for the cosine their squared lengths are computed beforehand.
pub(in crate::measure) struct Search {
    base: Base,
    dim: usize,
    metric: MetricKind,
    /// At least 1.
    queries: usize,
}

impl Search {
    /// Rows of random codes, or of normal values for floats.
    pub(in crate::measure) fn new(
        storage: Storage,
        rows: usize,
        dim: usize,
        metric: MetricKind,
        queries: usize,
    ) -> (LeastWork, Self) {
        let values = rows * dim;
        let (base, bytes, arithmetic) = match storage {
            Storage::Int8 => {
                let codes = input::codes(values);
                let mut norms = vec![0; rows];
                legal(legal(Int8Rows::new(&codes, dim)).write_norms(&mut norms));
                (Base::Int8(codes, norms), values, Arithmetic::Int8)
            }
            Storage::Ternary => {
                let codes = input::codes_between(-1, 1, values);
                let row = TernaryRows::row_bytes(dim);
                let mut bytes = vec![0; rows * row];
                for (codes, out) in codes.chunks(dim).zip(bytes.chunks_mut(row)) {
                    legal(TernaryRows::pack(codes, out));
                }
                let mut norms = vec![0; rows];
                legal(legal(TernaryRows::new(&bytes, dim)).write_norms(&mut norms));
                (Base::Ternary(bytes, norms), rows * row, Arithmetic::Ternary)
            }
            Storage::Float => (
                Base::Float(input::normals(values)),
                values * 4,
                Arithmetic::F32,
            ),
        };
        let norms = match metric {
            MetricKind::Dot => 0,
            _ => rows * 4,
        };
        let work = LeastWork::pass(values, Traffic::Read, bytes + norms + queries * dim)
            .with_products((values * queries) as u64, arithmetic);
        let body = Self {
            base,
            dim,
            metric,
            queries,
        };
        (work, body)
    }

    fn searched(&self) -> Searched<'_> {
        let len = self.queries * self.dim;
        match &self.base {
            Base::Int8(codes, norms) => {
                let rows = legal(legal(Int8Rows::new(codes, self.dim)).with_norms(norms));
                Searched::Int8(rows, input::codes(len))
            }
            Base::Ternary(bytes, norms) => {
                let rows = legal(legal(TernaryRows::new(bytes, self.dim)).with_norms(norms));
                Searched::Ternary(rows, input::codes(len))
            }
            Base::Float(values) => {
                let rows = legal(FloatRows::new(values, self.dim));
                // Not the first row, whose score would be its squared length.
                let queries = values[..len].iter().rev().copied().collect();
                Searched::Float(rows, queries)
            }
        }
    }
}

impl Operation for Search {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        match self.searched() {
            Searched::Int8(rows, queries) => by_metric(by, rows, &queries, self.metric, clock),
            Searched::Ternary(rows, queries) => by_metric(by, rows, &queries, self.metric, clock),
            Searched::Float(rows, queries) => by_metric(by, rows, &queries, self.metric, clock),
        }
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Search {
            rows: self.searched(),
            metric: self.metric,
            top: TOP,
        })
    }
}

fn by_metric<R: Rows>(
    by: Contender,
    rows: R,
    queries: &[R::Query],
    metric: MetricKind,
    clock: &mut dyn Clock,
) -> u64 {
    match metric {
        MetricKind::Dot => top::<Dot, R>(by, rows, queries, clock),
        MetricKind::Cosine => top::<Cosine, R>(by, rows, queries, clock),
        MetricKind::SquaredL2 => top::<SquaredL2, R>(by, rows, queries, clock),
    }
}

fn top<M: Metric, R: Rows>(
    by: Contender,
    rows: R,
    queries: &[R::Query],
    clock: &mut dyn Clock,
) -> u64 {
    let mut hits = vec![Hit::default(); queries.len() / rows.dim() * TOP];
    with_engine!(by, engine => {
        let mut base = legal(engine.base(rows));
        clock.time(&mut || {
            legal(base.top_k_all::<M>(queries, TOP, &mut hits));
        });
    });
    let indices: Vec<usize> = hits.iter().map(|hit| hit.index).collect();
    let scores: Vec<f32> = hits.iter().map(|hit| hit.score.value()).collect();
    Bits::default().with(&indices).with_floats(&scores).finish()
}
