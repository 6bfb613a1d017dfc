//! Every instruction set's search gives the hits of the reference engine: each storage, each metric, each way to ask.

use proptest::prelude::*;
use tercet_core::engine::{BaseScore, SearchBase, SearchEngine};
use tercet_core::number::{Element, Random};
use tercet_core::search::{
    Cosine, Dot, FloatRows, Hit, Int8Rows, Metric, Rows, Score, SquaredL2, TernaryRows,
};
use tercet_core::{bf16, f16, scalar};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// Rows of each length: a block of 64, and a part of another.
const ROWS: usize = 64 + 7;
/// More than are compared with a packed block at once, and no multiple of any kernel's group.
const QUERIES: usize = 29;

/// Lengths around every kernel's step.
const DIMS: [usize; 14] = [1, 2, 3, 4, 7, 16, 17, 32, 33, 63, 64, 65, 130, 259];

/// The kinds of int8 values that rows and queries have.
const KINDS: [fn(&mut Random) -> i8; 5] = [
    |random| random.next_u64() as i8,
    // Ties.
    |random| random.below(3) as i8 - 1,
    |_| -128,
    |random| if random.below(2) == 0 { -128 } else { 127 },
    |random| if random.below(40) == 0 { 127 } else { 0 },
];

fn values(seed: u64, kind: usize, len: usize) -> Vec<i8> {
    let mut random = Random::new(seed);
    (0..len).map(|_| KINDS[kind](&mut random)).collect()
}

/// A hit that equals another one to the bit, but that a NaN is one whatever its bits.
#[derive(Clone, Copy, Debug)]
struct Exact<S>(Hit<S>);

impl<S: Score> PartialEq for Exact<S> {
    fn eq(&self, other: &Self) -> bool {
        let [ours, theirs] = [self.0, other.0];
        let [x, y] = [ours, theirs].map(|hit| hit.score.value());
        let equal = ours.score == theirs.score && x.to_bits() == y.to_bits();
        ours.index == theirs.index && (equal || x.is_nan() && y.is_nan())
    }
}

fn exact<S: Score>(hits: &[Hit<S>]) -> Vec<Exact<S>> {
    hits.iter().map(|&hit| Exact(hit)).collect()
}

/// The answers of a base by a metric: how many there are, and the hits.
type Answers<B, M> = Vec<(usize, Vec<Exact<BaseScore<B, M>>>)>;

/// Everything that a base answers.
fn answers<M: Metric, B: SearchBase>(
    mut base: B,
    queries: &[<B::Rows as Rows>::Query],
) -> Answers<B, M>
where
    B::Error: std::fmt::Debug,
{
    let dim = base.dim();
    let mut answers = Vec::new();
    for k in [1, 10, ROWS + 3] {
        // One query, few, and many.
        for count in [1, 3, queries.len() / dim] {
            let mut hits = vec![Hit::default(); count * k];
            let queries = &queries[..count * dim];
            let found = base.top_k_all::<M>(queries, k, &mut hits).unwrap();
            for hits in hits.chunks(k) {
                answers.push((found, exact(&hits[..found])));
            }
        }
    }
    let query = &queries[..dim];
    let mut hits = vec![Hit::default(); 40];
    let found = base.top_k::<M>(query, &mut hits).unwrap();
    let best = hits[0].score.value();
    let middle = hits[found / 2].score.value();
    // The score of a row, between two, beyond every row, and thresholds that overflow.
    let thresholds = [
        best,
        middle,
        middle * 0.999,
        0.0,
        -0.5,
        3.0e9,
        -3.0e9,
        1e30,
        -1e30,
    ];
    for threshold in thresholds
        .into_iter()
        .filter(|t| !t.is_nan())
        .chain([f32::INFINITY, -f32::INFINITY])
    {
        hits.fill(Hit::default());
        let total = base.range::<M>(query, threshold, &mut hits).unwrap();
        answers.push((total, exact(&hits[..total.min(40)])));
    }
    answers
}

/// All backends against the reference.
fn check<M: Metric, R: Rows>(rows: R, queries: &[R::Query]) {
    let expected = answers::<M, _>(scalar::Base::new(rows), queries);
    for backend in Backend::all() {
        let mut engine = Threads::default().with_backend(backend);
        let found = answers::<M, _>(engine.base(rows).unwrap(), queries);
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let dim = rows.dim();
            assert_eq!(
                found,
                expected,
                "{backend}, {:?}, dim {dim}, answer {at}",
                M::KIND
            );
        }
    }
}

fn check_all<R: Rows>(rows: R, queries: &[R::Query]) {
    check::<Dot, _>(rows, queries);
    check::<Cosine, _>(rows, queries);
    check::<SquaredL2, _>(rows, queries);
}

#[test]
fn int8_hits_are_those_of_the_reference() {
    for dim in DIMS {
        for kind in 0..KINDS.len() {
            let mut rows = values(1, kind, ROWS * dim);
            let queries = values(2, (kind + 1) % KINDS.len(), QUERIES * dim);
            // A query of zeros too, and one that is a row.
            let mut queries = [queries, vec![0; dim], rows[5 * dim..6 * dim].to_vec()].concat();
            rows[3 * dim..4 * dim].fill(0);
            check_all(Int8Rows::new(&rows, dim).unwrap(), &queries);
            queries.rotate_left(dim * (QUERIES + 1));
            let mut norms = vec![0; ROWS];
            let rows = Int8Rows::new(&rows, dim).unwrap();
            rows.write_norms(&mut norms).unwrap();
            check_all(rows.with_norms(&norms).unwrap(), &queries);
        }
    }
}

#[test]
fn norms_that_are_not_the_rows_are_believed() {
    let dim = 33;
    let rows = values(3, 1, ROWS * dim);
    let norms: Vec<u32> = (0..ROWS as u32)
        .map(|row| row % 3 * 0x7FFF_FFFF + row % 2)
        .collect();
    let rows = Int8Rows::new(&rows, dim)
        .unwrap()
        .with_norms(&norms)
        .unwrap();
    check_all(rows, &values(4, 1, QUERIES * dim));
}

#[test]
fn ternary_hits_are_those_of_the_reference() {
    for dim in DIMS.into_iter().chain([1000]) {
        let mut random = Random::new(dim as u64);
        let row_bytes = TernaryRows::row_bytes(dim);
        let mut bytes = vec![0; ROWS * row_bytes];
        for row in bytes.chunks_mut(row_bytes) {
            let codes: Vec<i8> = (0..dim).map(|_| random.below(3) as i8 - 1).collect();
            TernaryRows::pack(&codes, row).unwrap();
            // What lies beyond the row's end does not matter.
            if dim % 4 != 0 {
                row[row_bytes - 1] |= 0b1100_0000;
            }
        }
        let magnitudes: Vec<u8> = (0..ROWS).map(|row| [1, 127, 0, 3][row % 4]).collect();
        for kind in 0..KINDS.len() {
            let queries = values(5, kind, QUERIES * dim);
            let rows = TernaryRows::new(&bytes, dim).unwrap();
            check_all(rows, &queries);
            let rows = rows.with_magnitudes(&magnitudes).unwrap();
            check_all(rows, &queries);
            let mut norms = vec![0; ROWS];
            rows.write_norms(&mut norms).unwrap();
            check_all(rows.with_norms(&norms).unwrap(), &queries);
        }
    }
}

/// Floats of many sizes, with zeros of both signs, subnormals and the largest.
fn floats(seed: u64, len: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut float = || match random.below(12) {
        0 => 0.0,
        1 => -0.0,
        2 => f32::from_bits(random.below(1 << 20) as u32),
        3 => -1.0,
        _ => (random.next_u64() as i32 as f32) * 2.0f32.powi(random.below(40) as i32 - 50),
    };
    (0..len).map(|_| float()).collect()
}

fn check_floats<T: Element>(dim: usize, narrow: fn(f32) -> T) {
    let rows: Vec<T> = floats(6, ROWS * dim).into_iter().map(narrow).collect();
    let queries = floats(7, 5 * dim);
    let rows = FloatRows::new(&rows, dim).unwrap();
    check_all(rows, &queries);
    let mut norms = vec![0.0; ROWS];
    rows.write_norms(&mut norms).unwrap();
    check::<Cosine, _>(rows.with_norms(&norms).unwrap(), &queries);
}

#[test]
fn float_hits_are_those_of_the_reference() {
    for dim in DIMS {
        check_floats(dim, |x| x);
        check_floats(dim, |x| f16::from_f32(x.clamp(-60_000.0, 60_000.0)));
        check_floats(dim, bf16::from_f32);
    }
}

#[test]
fn float_scores_that_overflow_are_those_of_the_reference() {
    for dim in [1, 17, 64, 130] {
        let sign = |at: usize| {
            if at.is_multiple_of(3) {
                -f32::MAX
            } else {
                f32::MAX
            }
        };
        let rows: Vec<f32> = (0..ROWS * dim).map(sign).collect();
        let queries: Vec<f32> = (0..5 * dim).map(|at| sign(at / 2)).collect();
        check_all(FloatRows::new(&rows, dim).unwrap(), &queries);
    }
}

#[test]
fn rows_longer_than_a_run_are_those_of_the_reference() {
    let dim = tercet_core::number::RUN + 65;
    let (rows, queries) = (floats(8, 3 * dim), floats(9, dim));
    let rows = FloatRows::new(&rows, dim).unwrap();
    let expected = |hits: &mut [Hit<_>]| scalar::Base::new(rows).top_k::<SquaredL2>(&queries, hits);
    let mut right = [Hit::default(); 3];
    expected(&mut right).unwrap();
    for backend in Backend::all() {
        let mut hits = [Hit::default(); 3];
        let mut engine = Threads::default().with_backend(backend);
        engine
            .base(rows)
            .unwrap()
            .top_k::<SquaredL2>(&queries, &mut hits)
            .unwrap();
        assert_eq!(hits, right, "{backend}");
    }
}

#[test]
fn the_longest_rows_of_extremes_do_not_overflow() {
    let dim = tercet_core::search::MAX_DIM;
    let mut rows = vec![-128; 9 * dim];
    rows[dim..3 * dim].fill(127);
    let queries = [vec![-128; dim], vec![127; dim]].concat().repeat(4);
    for query in queries.chunks(4 * dim) {
        for backend in Backend::all() {
            let rows = Int8Rows::new(&rows, dim).unwrap();
            let mut engine = Threads::default().with_backend(backend);
            let mut hits = [Hit::default(); 8 * 9];
            let mut right = hits;
            engine
                .base(rows)
                .unwrap()
                .top_k_all::<SquaredL2>(query, 9, &mut hits[..4 * 9])
                .unwrap();
            scalar::Base::new(rows)
                .top_k_all::<SquaredL2>(query, 9, &mut right[..4 * 9])
                .unwrap();
            assert_eq!(hits, right, "{backend}");
            engine
                .base(rows)
                .unwrap()
                .top_k_all::<Cosine>(&queries, 9, &mut [Hit::default(); 8 * 9])
                .unwrap();
        }
    }
}

proptest! {
    #[test]
    fn any_int8_rows_have_the_hits_of_the_reference(
        (dim, rows, queries) in (1usize..200).prop_flat_map(|dim| (
            Just(dim),
            prop::collection::vec(any::<i8>(), 0..40 * dim),
            prop::collection::vec(any::<i8>(), dim..20 * dim),
        ))
    ) {
        let rows = &rows[..rows.len() / dim * dim];
        let queries = &queries[..queries.len() / dim * dim];
        let rows = Int8Rows::new(rows, dim).unwrap();
        for backend in Backend::all() {
            let mut engine = Threads::default().with_backend(backend);
            let mut hits = vec![Hit::default(); queries.len() / dim * 4];
            let mut right = hits.clone();
            let found = engine.base(rows).unwrap().top_k_all::<Cosine>(queries, 4, &mut hits).unwrap();
            scalar::Base::new(rows).top_k_all::<Cosine>(queries, 4, &mut right).unwrap();
            for (hits, right) in hits.chunks(4).zip(right.chunks(4)) {
                prop_assert_eq!(&hits[..found], &right[..found], "{}", backend);
            }
        }
    }
}
