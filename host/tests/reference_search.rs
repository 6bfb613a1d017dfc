//! Similarity search against NumPy and exact Python integers, and its recall on a real embedding matrix.

use crate::support;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tercet_core::engine::SearchBase;
use tercet_core::number::Random;
use tercet_core::search::{
    Cosine, Dot, Hit, Int8Rows, Metric, MetricKind, Score, SquaredL2, TernaryRows,
};
use tercet_host::parallel;
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, ReadOptions};
use tercet_host::search::{Find, SearchOptions, SearchReport, Storage, search};

/// Rows, queries, dimension and range of values: many ties, all of int8, long rows.
const SHAPES: [(usize, usize, usize, u64); 4] = [
    (400, 12, 4, 3),
    (700, 8, 37, 256),
    (300, 5, 1, 256),
    (60, 4, 3000, 256),
];
const K: usize = 25;

fn codes(seed: u64, len: usize, range: u64) -> Vec<i8> {
    let mut random = Random::new(seed);
    let draw = |_| (random.below(range) as i64 - (range / 2) as i64) as i8;
    (0..len).map(draw).collect()
}

/// Rows and values of the best k of each query, by the threads' engine.
fn found<M: Metric>(values: &[i8], queries: &[i8], dim: usize) -> (Vec<i64>, Vec<f32>) {
    let mut base = parallel::Base::new(Int8Rows::new(values, dim).unwrap()).with_tile(1000);
    let mut hits = vec![Hit::default(); queries.len() / dim * K];
    base.top_k_all::<M>(queries, K, &mut hits).unwrap();
    // Where the codes are ternary the packed rows must say the same.
    if values.iter().all(|code| (-1..=1).contains(code)) {
        let mut bytes = vec![0; values.len() / dim * TernaryRows::row_bytes(dim)];
        let out = bytes.chunks_mut(TernaryRows::row_bytes(dim));
        for (row, out) in values.chunks(dim).zip(out) {
            TernaryRows::pack(row, out).unwrap();
        }
        let mut base = parallel::Base::new(TernaryRows::new(&bytes, dim).unwrap());
        let mut packed = vec![Hit::default(); hits.len()];
        base.top_k_all::<M>(queries, K, &mut packed).unwrap();
        assert_eq!(packed, hits);
    }
    let values = hits.iter().map(|hit| hit.score.value()).collect();
    (hits.iter().map(|hit| hit.index as i64).collect(), values)
}

fn read<const N: usize, T>(path: &Path, number: fn([u8; N]) -> T) -> Vec<T> {
    let bytes = fs::read(path).unwrap();
    let (numbers, rest) = bytes.as_chunks();
    assert!(rest.is_empty());
    numbers.iter().map(|&bytes| number(bytes)).collect()
}

#[test]
fn hits_equal_exact_numpy() {
    let Some(python) = support::python_with(&["numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut compared = 0;
    for (seed, (rows, queries, dim, range)) in (1..).zip(SHAPES) {
        let (values, queries) = (
            codes(seed, rows * dim, range),
            codes(seed + 100, queries * dim, range),
        );
        for (name, codes) in [("base", &values), ("queries", &queries)] {
            let bytes: Vec<u8> = codes.iter().map(|&code| code as u8).collect();
            fs::write(path(name), bytes).unwrap();
        }
        for kind in MetricKind::ALL {
            let files = ["base", "queries", "indices", "scores"].map(|name| path(name).into());
            let (dim_text, k_text) = (dim.to_string(), K.to_string());
            let words = ["exact", kind.name(), &dim_text, &k_text].map(OsString::from);
            support::run(&python, "search.py", words.into_iter().chain(files));
            let (indices, scores) = match kind {
                MetricKind::Dot => found::<Dot>(&values, &queries, dim),
                MetricKind::Cosine => found::<Cosine>(&values, &queries, dim),
                MetricKind::SquaredL2 => found::<SquaredL2>(&values, &queries, dim),
            };
            assert_eq!(
                indices,
                read(&path("indices"), i64::from_le_bytes),
                "{kind:?}, dim {dim}"
            );
            assert_eq!(
                scores,
                read(&path("scores"), f32::from_le_bytes),
                "{kind:?}, dim {dim}"
            );
            compared += indices.len();
        }
    }
    println!("{compared} hits and scores equal NumPy's");
}

#[test]
fn recall_on_embeddings_is_that_of_the_floats() {
    let modules = ["numpy", "safetensors", "wordllama"];
    let Some(python) = support::python_with(&modules) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut args: Vec<OsString> = vec!["embeddings".into()];
    args.extend(["base.npy", "queries.npy"].map(|name| path(name).into()));
    for kind in MetricKind::ALL {
        args.extend([kind.name().into(), path(kind.name()).into()]);
    }
    support::run(&python, "search.py", args);

    let open = |name: &str| {
        let path = path(name);
        Points::open(path.to_str().unwrap(), &ReadOptions::default()).unwrap()
    };
    let (base, queries) = (open("base.npy"), open("queries.npy"));
    for metric in MetricKind::ALL {
        let truth = read(&path(metric.name()), i64::from_le_bytes);
        // The part of NumPy's ten in f64 that was found.
        let recall = |report: &SearchReport| {
            let hits = report.hits.iter().zip(truth.chunks(10));
            let shared = hits.flat_map(|(hits, truth)| {
                hits.iter()
                    .filter(|hit| truth.contains(&(hit.index as i64)))
            });
            shared.count() as f64 / truth.len() as f64
        };
        let run = |storage, rerank| {
            let options = SearchOptions {
                find: Find::Nearest(10),
                metric,
                storage,
                rerank,
                recall: false,
            };
            recall(&search(&mut Threads::default(), &base, &queries, &options, &()).unwrap())
        };
        let floats = run(Storage::F32, None);
        assert!(floats >= 0.999, "{metric:?}: {floats}");
        for (storage, few, many) in [(Storage::Int8, 20, 50), (Storage::Ternary, 50, 400)] {
            let (plain, some, reranked) = (
                run(storage, None),
                run(storage, Some(few)),
                run(storage, Some(many)),
            );
            println!(
                "{} {}: recall@10 {plain:.4}; of {few} candidates {some:.4}, of {many} {reranked:.4}",
                metric.name(),
                storage.name(),
            );
            assert!(reranked >= 0.98, "{metric:?} {storage:?}: {reranked}");
            assert!(plain <= some && some <= reranked);
        }
    }
}
