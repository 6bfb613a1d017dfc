//! The threads' search gives the hits of the reference engine, whatever the tiles and the threads.

use rayon::{ThreadPool, ThreadPoolBuilder};
use tercet_core::engine::SearchBase;
use tercet_core::number::Random;
use tercet_core::search::{
    Cosine, Dot, FloatRows, Hit, Int8Rows, Metric, Rows, SearchError, SquaredL2, TernaryRows,
};
use tercet_core::{f16, scalar};
use tercet_host::parallel;

const DIM: usize = 33;
const ROWS: usize = 501;
/// More than a block of queries.
const QUERIES: usize = 19;

fn pools() -> Vec<ThreadPool> {
    let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
    [1, 2, 5].map(|threads| pool(threads).unwrap()).into()
}

/// Everything a base answers.
#[derive(Debug, PartialEq)]
struct Answers<S> {
    one: (usize, Vec<Hit<S>>),
    all: Vec<(usize, Vec<Hit<S>>)>,
    range: (usize, Vec<Hit<S>>),
}

fn answers<M, R, B>(mut base: B, queries: &[R::Query], threshold: f32) -> Answers<R::Score<M>>
where
    M: Metric,
    R: Rows,
    B: SearchBase<Rows = R, Error = SearchError>,
{
    let query = &queries[DIM..2 * DIM];
    let mut hits = vec![Hit::default(); 17];
    let found = base.top_k::<M>(query, &mut hits).unwrap();
    let one = (found, hits.clone());
    // No place, one, some, and more than there are rows.
    let all = [0, 1, 10, ROWS + 2].map(|k| {
        let mut hits = vec![Hit::default(); k * QUERIES];
        let found = base.top_k_all::<M>(queries, k, &mut hits).unwrap();
        for hits in hits.chunks_mut(k.max(1)) {
            // What lies beyond the found ones is nobody's.
            hits[found..].fill(Hit::default());
        }
        (found, hits)
    });
    hits.fill(Hit::default());
    let total = base.range::<M>(query, threshold, &mut hits).unwrap();
    Answers {
        one,
        all: all.into(),
        range: (total, hits),
    }
}

fn check<M: Metric, R: Rows>(rows: R, queries: &[R::Query], threshold: f32) {
    let expected = answers::<M, R, _>(scalar::Base::new(rows), queries, threshold);
    let total = expected.range.0;
    assert!(
        total > 17 && total < ROWS,
        "a threshold that tells: {total}"
    );
    for pool in pools() {
        for tile in [1, DIM, 700, 1 << 16] {
            let base = parallel::Base::new(rows).with_tile(tile);
            let found = pool.install(|| answers::<M, R, _>(base, queries, threshold));
            let threads = pool.current_num_threads();
            assert!(
                found == expected,
                "{:?}, tile {tile}, {threads} threads",
                M::KIND
            );
        }
    }
}

/// Codes that tie often.
fn codes(seed: u64, len: usize) -> Vec<i8> {
    let mut random = Random::new(seed);
    (0..len).map(|_| random.below(7) as i8 - 3).collect()
}

#[test]
fn int8_hits_do_not_depend_on_tiles_and_threads() {
    let (values, queries) = (codes(1, ROWS * DIM), codes(2, QUERIES * DIM));
    let rows = Int8Rows::new(&values, DIM).unwrap();
    check::<Dot, _>(rows, &queries, 20.0);
    check::<SquaredL2, _>(rows, &queries, 240.0);
    let mut norms = vec![0; ROWS];
    rows.write_norms(&mut norms).unwrap();
    check::<Cosine, _>(rows.with_norms(&norms).unwrap(), &queries, 0.1);
}

#[test]
fn ternary_hits_do_not_depend_on_tiles_and_threads() {
    let row_bytes = TernaryRows::row_bytes(DIM);
    let mut bytes = vec![0; ROWS * row_bytes];
    let codes_of_rows: Vec<i8> = codes(3, ROWS * DIM).iter().map(|x| x.signum()).collect();
    for (row, out) in codes_of_rows.chunks(DIM).zip(bytes.chunks_mut(row_bytes)) {
        TernaryRows::pack(row, out).unwrap();
    }
    let magnitudes: Vec<u8> = (0..ROWS).map(|row| (row % 5) as u8).collect();
    let rows = TernaryRows::new(&bytes, DIM).unwrap();
    let rows = rows.with_magnitudes(&magnitudes).unwrap();
    let queries = codes(4, QUERIES * DIM);
    check::<Dot, _>(rows, &queries, 20.0);
    check::<SquaredL2, _>(rows, &queries, 240.0);
    check::<Cosine, _>(rows, &queries, 0.1);
}

#[test]
fn float_hits_do_not_depend_on_tiles_and_threads() {
    let scaled = |codes: Vec<i8>| {
        codes
            .iter()
            .map(|&x| f32::from(x) * 0.3)
            .collect::<Vec<_>>()
    };
    let (values, queries) = (
        scaled(codes(5, ROWS * DIM)),
        scaled(codes(6, QUERIES * DIM)),
    );
    let rows = FloatRows::new(&values, DIM).unwrap();
    check::<Dot, _>(rows, &queries, 2.0);
    check::<SquaredL2, _>(rows, &queries, 22.0);
    let halves: Vec<f16> = values.iter().map(|&x| f16::from_f32(x)).collect();
    check::<Cosine, _>(FloatRows::new(&halves, DIM).unwrap(), &queries, 0.1);
}

#[test]
fn refusals_are_those_of_the_reference() {
    let values = [0.0f32; 6];
    let rows = FloatRows::new(&values, 2).unwrap();
    let mut base = parallel::Base::new(rows);
    let mut reference = scalar::Base::new(rows);
    let mut hits = [Hit::default(); 2];
    for queries in [&[0.0, 0.0, 0.0][..], &[0.0, 0.0, 1.0, f32::NAN], &[0.0; 6]] {
        let refused = base.top_k_all::<Dot>(queries, 1, &mut hits);
        assert!(refused.is_err());
        assert_eq!(refused, reference.top_k_all::<Dot>(queries, 1, &mut hits));
    }
    let refused = base.range::<Dot>(&[0.0; 2], f32::NAN, &mut hits);
    assert_eq!(refused, Err(SearchError::Threshold));
    assert_eq!(
        base.top_k::<Dot>(&[0.0; 3], &mut hits),
        reference.top_k::<Dot>(&[0.0; 3], &mut hits)
    );
}

#[test]
fn an_empty_base_has_no_hits() {
    let rows = Int8Rows::new(&[], 3).unwrap();
    let mut base = parallel::Base::new(rows);
    let mut hits = [Hit::default(); 2];
    assert_eq!(base.top_k::<Cosine>(&[1, 2, 3], &mut hits), Ok(0));
    assert_eq!(base.range::<Cosine>(&[1, 2, 3], -1.0, &mut hits), Ok(0));
}
