//! Many queries at once, and many rows that fit equally well, give the hits of the scalar engine.

use std::fmt::Debug;

use crate::support::emulator::device;
use crate::support::search::{codes, told};
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::scalar;
use tercet_core::search::{Cosine, Dot, Hit, Int8Rows, Metric, Rows, SquaredL2, TernaryRows};
use tercet_gpu::engine::{Cuda, CudaOptions};

/// More queries than one launch takes, on each kind of device; rows that are wide enough that shared memory holds
/// fewer.
#[test]
fn many_queries_are_asked_together() {
    fn best<M: Metric, R: Rows<Query = i8> + Debug>(cuda: &mut Cuda, rows: R, queries: &[i8]) {
        let count = queries.len() / rows.dim();
        let mut found = vec![Hit::default(); 3 * count];
        let mut expected = found.clone();
        let mut base = cuda.base(rows).unwrap();
        base.top_k_all::<M>(queries, 3, &mut found).unwrap();
        scalar::Base::new(rows)
            .top_k_all::<M>(queries, 3, &mut expected)
            .unwrap();
        let shape = (rows.len(), rows.dim(), count);
        assert_eq!(told(&found), told(&expected), "{:?} {shape:?}", M::KIND);
    }
    fn all<R: Rows<Query = i8> + Debug>(cuda: &mut Cuda, rows: R, queries: &[i8]) {
        best::<Dot, R>(cuda, rows, queries);
        best::<Cosine, R>(cuda, rows, queries);
        best::<SquaredL2, R>(cuda, rows, queries);
    }
    let Some(device) = device() else { return };
    for capability in ["7.5", "8.0", "9.0"] {
        device.set(&format!("capability={capability}"));
        let mut cuda = Cuda::first().unwrap();
        for (count, dim, queries) in [(300, 100, 70), (129, 33, 17), (40, 1500, 33)] {
            let (values, queries) = (codes(count * dim, 0), codes(queries * dim, 3));
            all(&mut cuda, Int8Rows::new(&values, dim).unwrap(), &queries);
            let mut bytes = vec![0; count * TernaryRows::row_bytes(dim)];
            let codes = codes(count * dim, 1);
            for (codes, row) in codes
                .chunks(dim)
                .zip(bytes.chunks_mut(TernaryRows::row_bytes(dim)))
            {
                TernaryRows::pack(codes, row).unwrap();
            }
            let rows = TernaryRows::new(&bytes, dim).unwrap();
            let magnitudes: Vec<u8> = (0..count).map(|row| (row * 37 % 128) as u8).collect();
            let rows = rows.with_magnitudes(&magnitudes).unwrap();
            all(&mut cuda, rows, &queries);
        }
    }
}

/// The room of many queries is more than there is: they are asked few at a time.
#[test]
fn many_queries_do_with_little_memory() {
    let Some(_device) = device() else { return };
    let options = CudaOptions {
        memory: Some(8 << 20),
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).unwrap();
    let (values, queries) = (codes(2_000 * 20, 0), codes(40 * 20, 3));
    let rows = Int8Rows::new(&values, 20).unwrap();
    let mut found = vec![Hit::default(); 40 * 3];
    let mut expected = found.clone();
    let mut base = cuda.base(rows).unwrap();
    base.top_k_all::<Cosine>(&queries, 3, &mut found).unwrap();
    scalar::Base::new(rows)
        .top_k_all::<Cosine>(&queries, 3, &mut expected)
        .unwrap();
    assert_eq!(told(&found), told(&expected));
}

#[test]
fn more_equal_rows_than_the_device_keeps_are_all_ranked() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    // All but a few are the query itself, so that the best are the first of them.
    let mut values = vec![1; 70_000];
    values[3] = -1;
    values[65_000] = 2;
    let rows = Int8Rows::new(&values, 1).unwrap();
    let (mut found, mut expected) = ([Hit::default(); 5], [Hit::default(); 5]);
    let mut base = cuda.base(rows).unwrap();
    for query in [1, 2] {
        base.top_k::<SquaredL2>(&[query], &mut found).unwrap();
        scalar::Base::new(rows)
            .top_k::<SquaredL2>(&[query], &mut expected)
            .unwrap();
        assert_eq!(told(&found), told(&expected));
    }
    // Among many queries too.
    let queries = [1, 2, -1, 1, 3, -128];
    let mut found = [Hit::default(); 30];
    let mut expected = found;
    base.top_k_all::<SquaredL2>(&queries, 5, &mut found)
        .unwrap();
    scalar::Base::new(rows)
        .top_k_all::<SquaredL2>(&queries, 5, &mut expected)
        .unwrap();
    assert_eq!(told(&found), told(&expected));
}

/// What more rows fit than the device keeps, or gives back at once, is no reason to look at all rows in small parts.
#[test]
fn rows_without_room_cost_few_launches() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let launches = |work: &mut dyn FnMut()| {
        let before = device.count("launches");
        work();
        device.count("launches") - before
    };
    // Of every fifth row, which are all that a sample has, none is good.
    let (count, dim) = (327_680, 3);
    let mut values = codes(count * dim, 0);
    for row in values.chunks_mut(5 * dim) {
        row[..dim].copy_from_slice(&[-128, -128, -128]);
    }
    let rows = Int8Rows::new(&values, dim).unwrap();
    let query = [101, 53, 127];
    let mut base = cuda.base(rows).unwrap();
    let mut expected_base = scalar::Base::new(rows);
    let (mut found, mut expected) = ([Hit::default(); 10], [Hit::default(); 10]);
    // A bar of a sample, a scan and a selection; a higher bar, a scan and a selection.
    let best = launches(&mut || {
        base.top_k::<Dot>(&query, &mut found).unwrap();
    });
    expected_base.top_k::<Dot>(&query, &mut expected).unwrap();
    assert_eq!(told(&found), told(&expected));
    assert!(best <= 7, "{best}");
    // Some 16,000 rows, which the device keeps all; some 80,000, which it counts.
    for (threshold, most) in [(19_700.0, 2), (6_600.0, 5)] {
        let mut found = vec![Hit::default(); 100_000];
        let mut expected = found.clone();
        let total = expected_base
            .range::<Dot>(&query, threshold, &mut expected)
            .unwrap();
        let within = launches(&mut || {
            let count = base.range::<Dot>(&query, threshold, &mut found);
            assert_eq!(count, Ok(total));
        });
        assert!(total > 4_096 && (total > 65_536) == (most > 2), "{total}");
        assert!(within <= most, "{within}");
        assert_eq!(told(&found[..total]), told(&expected[..total]));
    }
}
