//! Similarity search: laws of its orders, against wide integers, rationals and a full sort.

mod cosine;
mod hits;
mod refusals;
mod storages;

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::scalar::Scalar;
use tercet_core::search::{Hit, Metric, Rows};

/// So many cases, and no file of failures: a failure prints its input.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// int8 values of one kind or another: any, few distinct ones (ties), the ends.
fn codes(len: usize) -> impl Strategy<Value = Vec<i8>> {
    prop_oneof![
        vec(any::<i8>(), len),
        vec(-1i8..=1, len),
        vec(prop_oneof![Just(-128i8), Just(127)], len),
    ]
}

/// A query and some rows of one length.
fn int8_matrix() -> impl Strategy<Value = (usize, Vec<i8>, Vec<i8>)> {
    (1usize..70, 0usize..40).prop_flat_map(|(dim, rows)| (Just(dim), codes(dim), codes(dim * rows)))
}

/// The reference engine's best `k`.
fn top_k<M: Metric, R: Rows>(rows: R, query: &[R::Query], k: usize) -> Vec<Hit<R::Score<M>>> {
    let mut hits = vec![Hit::default(); k];
    let mut engine = Scalar;
    let mut base = engine.base(rows).unwrap();
    let found = base.top_k::<M>(query, &mut hits).unwrap();
    assert_eq!(found, k.min(rows.len()));
    hits.truncate(found);
    hits
}

/// Every score, in index order.
fn scores<M: Metric, R: Rows>(rows: R, query: &[R::Query]) -> Vec<Hit<R::Score<M>>> {
    let mut all = Vec::new();
    rows.scan::<M>(query, 0..rows.len(), |index, score| {
        all.push(Hit { index, score });
    });
    assert_eq!(all.len(), rows.len());
    all
}
