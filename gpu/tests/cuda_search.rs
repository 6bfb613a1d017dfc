//! Search on a device gives the hits of the scalar engine: indices, scores, ties, counts, refusals.

use std::fmt::Debug;

use crate::support::emulator::{Device, checked, device, emulated};
use crate::support::search::{codes, told};
use tercet_core::engine::{Refused, SearchBase, SearchEngine};
use tercet_core::number::{Element, Random};
use tercet_core::scalar;
use tercet_core::search::{
    Cosine, Dot, FloatRows, Hit, Int8Rows, Metric, Rows, Score, SearchError, SquaredL2, TernaryRows,
};
use tercet_core::{bf16, f16};
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions};

/// Lengths of rows: less than a word, parts of 16 bytes, whole ones, more than a team takes at once.
const DIMS: [usize; 9] = [1, 3, 15, 16, 17, 64, 100, 129, 520];
const ROWS: [usize; 5] = [1, 2, 33, 257, 700];

fn floats(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut draw = || match seed % 3 {
        0 => random.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0,
        1 => random.below(3) as f32 - 1.0,
        _ => {
            let exponent = 97 + random.below(60) as u32;
            f32::from_bits(random.next_u64() as u32 & 0x807F_FFFF | exponent << 23)
        }
    };
    (0..len).map(|_| draw()).collect()
}

/// Compares the nearest of every query, and those within a threshold, with the scalar engine's.
fn check<M: Metric, R: Rows + Debug>(cuda: &mut Cuda, rows: R, queries: &[R::Query]) {
    let mut expected_base = scalar::Base::new(rows);
    let mut base = cuda.base(rows).unwrap();
    assert_eq!((base.len(), base.dim()), (rows.len(), rows.dim()));
    let count = queries.len() / rows.dim();
    for k in [1, 3, 10, rows.len(), rows.len() + 2] {
        let mut expected = vec![Hit::default(); k * count];
        let mut found = expected.clone();
        let expected_len = expected_base
            .top_k_all::<M>(queries, k, &mut expected)
            .unwrap();
        assert_eq!(
            base.top_k_all::<M>(queries, k, &mut found).unwrap(),
            expected_len
        );
        for (found, expected) in found.chunks(k).zip(expected.chunks(k)) {
            let (found, expected) = (
                told(&found[..expected_len]),
                told(&expected[..expected_len]),
            );
            assert_eq!(
                found,
                expected,
                "{:?}, {k} of {} x {}",
                M::KIND,
                rows.len(),
                rows.dim()
            );
        }
    }
    let query = &queries[..rows.dim()];
    let mut hits = vec![Hit::default(); rows.len()];
    expected_base.top_k::<M>(query, &mut hits).unwrap();
    let middle = hits[rows.len() / 2].score.value();
    for threshold in [middle, f32::NEG_INFINITY, f32::INFINITY, 0.0, -0.25] {
        // Every room with one threshold.
        let skipped = if threshold == middle { 0 } else { 2 };
        for &room in &[0, 2, rows.len()][skipped..] {
            let mut expected = vec![Hit::default(); room];
            let mut found = expected.clone();
            let total = expected_base
                .range::<M>(query, threshold, &mut expected)
                .unwrap();
            assert_eq!(
                base.range::<M>(query, threshold, &mut found).unwrap(),
                total,
                "{threshold}"
            );
            let len = total.min(room);
            assert_eq!(
                told(&found[..len]),
                told(&expected[..len]),
                "{:?} {threshold}",
                M::KIND
            );
        }
    }
}

fn check_all<R: Rows + Debug>(cuda: &mut Cuda, rows: R, queries: &[R::Query]) {
    check::<Dot, R>(cuda, rows, queries);
    check::<Cosine, R>(cuda, rows, queries);
    check::<SquaredL2, R>(cuda, rows, queries);
}

/// Shapes in turn, each with another kind of values, queries and order of threads.
fn shapes(device: &Device, mut check: impl FnMut(usize, usize, usize, u64)) {
    for (number, &dim) in DIMS.iter().enumerate() {
        let rows = ROWS[number % ROWS.len()];
        // Every shape, each with one kind of values, where all accesses are checked.
        let kinds = if checked() {
            number % 3..number % 3 + 1
        } else {
            0..3
        };
        for kind in kinds {
            let seed = (3 * number + kind) as u64;
            device.set(&format!("seed={seed}"));
            check(rows, dim, 1 + (number + kind) % 9, seed);
        }
    }
}

#[test]
fn int8_rows() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    shapes(&device, |count, dim, queries, seed| {
        let (values, queries) = (codes(count * dim, seed), codes(queries * dim, seed + 1));
        let rows = Int8Rows::new(&values, dim).unwrap();
        check_all(&mut cuda, rows, &queries);
        let mut norms = vec![0; count];
        rows.write_norms(&mut norms).unwrap();
        check_all(&mut cuda, rows.with_norms(&norms).unwrap(), &queries);
    });
}

#[test]
fn ternary_rows() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    shapes(&device, |count, dim, queries, seed| {
        let queries = codes(queries * dim, seed);
        let mut bytes = vec![0; count * TernaryRows::row_bytes(dim)];
        let values = codes(count * dim, 1);
        for (codes, row) in values
            .chunks(dim)
            .zip(bytes.chunks_mut(TernaryRows::row_bytes(dim)))
        {
            TernaryRows::pack(codes, row).unwrap();
        }
        let rows = TernaryRows::new(&bytes, dim).unwrap();
        check_all(&mut cuda, rows, &queries);
        let magnitudes: Vec<u8> = (0..count).map(|row| (row * 37 % 128) as u8).collect();
        let rows = rows.with_magnitudes(&magnitudes).unwrap();
        check_all(&mut cuda, rows, &queries);
        let mut norms = vec![0; count];
        rows.write_norms(&mut norms).unwrap();
        check_all(&mut cuda, rows.with_norms(&norms).unwrap(), &queries);
    });
}

fn float_rows<T: Element + Debug>(narrow: fn(f32) -> T) {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    shapes(&device, |count, dim, _, seed| {
        // The wider reach of some f32 is no half's.
        let values: Vec<T> = floats(count * dim, seed)
            .iter()
            .map(|&x| narrow(x.clamp(-60_000.0, 60_000.0)))
            .collect();
        let queries = floats((1 + seed as usize % 5) * dim, seed + 3);
        let rows = FloatRows::new(&values, dim).unwrap();
        check_all(&mut cuda, rows, &queries);
        let mut norms = vec![0.0; count];
        rows.write_norms(&mut norms).unwrap();
        check::<Cosine, _>(&mut cuda, rows.with_norms(&norms).unwrap(), &queries);
    });
}

#[test]
fn rows_of_f32() {
    float_rows(|x| x);
}

#[test]
fn rows_of_f16() {
    float_rows(f16::from_f32);
}

#[test]
fn rows_of_bf16() {
    float_rows(bf16::from_f32);
}

#[test]
fn sums_of_long_rows_begin_anew_where_core_s_do() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let dim = 2 * 65_536 + 100;
    let (values, query) = (floats(3 * dim, 0), floats(dim, 3));
    check_all(&mut cuda, FloatRows::new(&values, dim).unwrap(), &query);
}

#[test]
fn sums_that_overflow_rank_as_core_ranks_them() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let (x, y) = (f32::MAX, -f32::MAX);
    let values = [x, x, x, y, y, x, y, y, 1.0, 1.0, 0.0, -0.0];
    check_all(&mut cuda, FloatRows::new(&values, 2).unwrap(), &[x, x]);
    check_all(&mut cuda, FloatRows::new(&values, 2).unwrap(), &[x, y]);
}

#[test]
fn wide_rows_are_asked_one_query_at_a_time() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for (dim, count) in [(6_500, 9), (43_690, 2)] {
        let (values, queries) = (codes(3 * dim, 0), codes(count * dim, 3));
        let rows = Int8Rows::new(&values, dim).unwrap();
        let (mut found, mut expected) = (
            vec![Hit::default(); 2 * count],
            vec![Hit::default(); 2 * count],
        );
        cuda.base(rows)
            .unwrap()
            .top_k_all::<SquaredL2>(&queries, 2, &mut found)
            .unwrap();
        scalar::Base::new(rows)
            .top_k_all::<SquaredL2>(&queries, 2, &mut expected)
            .unwrap();
        assert_eq!(told(&found), told(&expected));
    }
}

#[test]
fn a_base_that_does_not_fit_is_searched_in_parts() {
    let Some(_device) = device() else { return };
    let options = CudaOptions {
        memory: Some(8 << 20),
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).unwrap();
    let (values, queries) = (codes(20_000 * 520, 0), codes(2 * 520, 3));
    let rows = Int8Rows::new(&values, 520).unwrap();
    assert!(!cuda.base(rows).unwrap().is_resident());
    let (mut found, mut expected) = ([Hit::default(); 20], [Hit::default(); 20]);
    let mut base = cuda.base(rows).unwrap();
    base.top_k_all::<Dot>(&queries, 10, &mut found).unwrap();
    scalar::Base::new(rows)
        .top_k_all::<Dot>(&queries, 10, &mut expected)
        .unwrap();
    assert_eq!(told(&found), told(&expected));
}

#[test]
fn bad_requests_are_refused_as_by_core() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let values = [1.0f32, 2.0, 3.0, 4.0];
    let mut base = cuda.base(FloatRows::new(&values, 2).unwrap()).unwrap();
    let mut hits = [Hit::default(); 2];
    let refused = |error| Err(CudaError::Refused(Refused::Search(error)));
    let length = SearchError::QueryLength {
        expected: 2,
        found: 3,
    };
    assert_eq!(base.top_k::<Dot>(&[1.0; 3], &mut hits), refused(length));
    let not_finite = SearchError::QueryNotFinite {
        query: 0,
        column: 1,
    };
    assert_eq!(
        base.top_k::<Dot>(&[1.0, f32::NAN], &mut hits),
        refused(not_finite)
    );
    assert_eq!(
        base.range::<Dot>(&[1.0; 2], f32::NAN, &mut hits),
        refused(SearchError::Threshold)
    );
    let room = SearchError::Length {
        expected: 3,
        found: 2,
    };
    assert_eq!(
        base.top_k_all::<Dot>(&[1.0; 2], 3, &mut hits),
        refused(room)
    );
    assert_eq!(base.top_k::<Dot>(&[1.0; 2], &mut []), Ok(0));
}

#[test]
fn a_failure_at_any_call_is_an_error_and_the_engine_goes_on() {
    let Some(device) = emulated() else { return };
    let (values, query) = (codes(500 * 33, 0), codes(33, 3));
    let rows = Int8Rows::new(&values, 33).unwrap();
    let mut expected = [Hit::default(); 4];
    scalar::Base::new(rows)
        .top_k::<Cosine>(&query, &mut expected)
        .unwrap();
    let mut failed = 0;
    for what in ["alloc", "launch", "copy"] {
        for number in 1..24 {
            let mut cuda = Cuda::first().unwrap();
            device.set(&format!("fail={what}:{number}"));
            let mut found = [Hit::default(); 4];
            let mut search = || -> Result<usize, CudaError> {
                cuda.base(rows)?.top_k::<Cosine>(&query, &mut found)
            };
            match search() {
                Ok(count) => assert_eq!(count, 4),
                Err(error) => {
                    assert!(error.is_of_the_device(), "{error}");
                    failed += 1;
                    device.set("fail=none");
                    // What fails in the middle of a queue takes the device with it, for this process.
                    if matches!(error, CudaError::Lost { .. }) {
                        assert_eq!(search(), Err(error));
                        continue;
                    }
                    search().unwrap();
                }
            }
            device.set("fail=none");
            assert_eq!(told(&found), told(&expected), "{what} {number}");
        }
    }
    // Five launches (one for rows that change their pitch) and three copies.
    assert!(failed >= 8, "{failed}");
}

#[test]
fn a_base_without_room_for_a_search_takes_its_rows_up_again() {
    let Some(device) = emulated() else { return };
    let mut cuda = Cuda::first().unwrap();
    let (values, query) = (codes(2_000 * 16, 0), codes(16, 3));
    let rows = Int8Rows::new(&values, 16).unwrap();
    let mut expected = [Hit::default(); 4];
    scalar::Base::new(rows)
        .top_k::<Dot>(&query, &mut expected)
        .unwrap();
    let held = cuda.rows(&rows).unwrap();
    let mut hits = [Hit::default(); 4];
    let mut search = |base: &mut tercet_gpu::engine::Base<'_, Int8Rows<'_>>| {
        device.set("fail=alloc:1+");
        let error = base.top_k::<Dot>(&query, &mut hits).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert!(!base.is_resident());
        device.set("fail=none");
        assert_eq!(base.top_k::<Dot>(&query, &mut hits), Ok(4));
        assert!(base.is_resident());
        assert_eq!(told(&hits), told(&expected));
    };
    search(&mut cuda.base_of(rows, &held).unwrap());
    search(&mut cuda.base(rows).unwrap());
}
