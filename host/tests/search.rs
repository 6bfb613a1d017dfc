//! Search over points: what is held exactly, units, awkward magnitudes, progress.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tercet_core::number::Random;
use tercet_core::search::MetricKind;
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, Values};
use tercet_host::search::{Find, SearchOptions, SearchReport, Storage, search};
use tercet_host::{Error, Progress};

fn points(name: &str, dims: usize, values: Values) -> Points {
    Points::new(name, values.len() / dims, dims, values).unwrap()
}

fn floats(dims: usize, values: Vec<f32>) -> Points {
    points("floats", dims, Values::F32(values))
}

fn run(base: &Points, queries: &Points, options: SearchOptions) -> SearchReport {
    search(&mut Threads::default(), base, queries, &options, &()).unwrap()
}

/// Draws below `range`, less `offset`.
fn drawn(seed: u64, len: usize, range: u64, offset: f32) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..len)
        .map(|_| random.below(range) as f32 - offset)
        .collect()
}

/// The best k of a query by integers in i64: index and score, ties by index.
fn brute(metric: MetricKind, base: &[f32], query: &[f32], k: usize) -> Vec<(usize, f32)> {
    let sum = |row: &[f32], term: fn(i64, i64) -> i64| -> i64 {
        let both = row.iter().zip(query);
        both.map(|(&r, &q)| term(r as i64, q as i64)).sum()
    };
    let mut all: Vec<(i64, usize)> = (base.chunks(query.len()).enumerate())
        .map(|(index, row)| match metric {
            MetricKind::SquaredL2 => (sum(row, |r, q| (r - q) * (r - q)), index),
            _ => (-sum(row, |r, q| r * q), index),
        })
        .collect();
    all.sort_unstable();
    let sign = if metric == MetricKind::Dot { -1 } else { 1 };
    let best = all.into_iter().take(k);
    best.map(|(score, index)| (index, (sign * score) as f32))
        .collect()
}

fn check(metric: MetricKind, storage: Storage, base: &[f32], queries: &[f32], dims: usize) {
    let options = SearchOptions {
        metric,
        storage,
        ..SearchOptions::default()
    };
    let (b, q) = (floats(dims, base.to_vec()), floats(dims, queries.to_vec()));
    let report = run(&b, &q, options);
    assert_eq!(
        (report.exact, report.recall),
        (true, Some(1.0)),
        "{metric:?} {storage:?}"
    );
    for (hits, query) in report.hits.iter().zip(queries.chunks(dims)) {
        let found: Vec<_> = hits.iter().map(|hit| (hit.index, hit.score)).collect();
        assert_eq!(
            found,
            brute(metric, base, query, 10),
            "{metric:?} {storage:?}"
        );
    }
}

#[test]
fn integers_are_searched_as_they_are() {
    let dims = 9;
    for metric in [MetricKind::Dot, MetricKind::SquaredL2] {
        for storage in [Storage::Int8, Storage::F16, Storage::F32] {
            let (base, queries) = (
                drawn(1, 90 * dims, 256, 128.0),
                drawn(2, 4 * dims, 256, 128.0),
            );
            check(metric, storage, &base, &queries, dims);
        }
        // Five values: many ties.
        let (base, queries) = (drawn(3, 90 * dims, 3, 1.0), drawn(4, 4 * dims, 5, 2.0));
        for storage in Storage::ALL {
            check(metric, storage, &base, &queries, dims);
        }
    }
    // The bytes of images, whose distances need no sign.
    let (base, queries) = (drawn(5, 90 * dims, 256, 0.0), drawn(6, 4 * dims, 256, 0.0));
    check(MetricKind::SquaredL2, Storage::Int8, &base, &queries, dims);
}

/// Scores of int8 data with a scale, as a file may hold them, are in the units of the data.
#[test]
fn scores_are_in_the_units_of_the_data() {
    let codes: Vec<i8> = (0..60).map(|i| (i * 37 % 101) as i8 - 50).collect();
    let quantized = Values::int8(codes.clone());
    let Values::I8 { mut grid, .. } = quantized else {
        unreachable!()
    };
    grid.scale = 0.25;
    let base = points("codes", 3, Values::I8 { codes, grid });
    let query = floats(3, vec![1.5, -2.25, 0.75]);
    for metric in MetricKind::ALL {
        let by = |storage| {
            let find = Find::Nearest(20);
            let options = SearchOptions {
                find,
                metric,
                storage,
                ..SearchOptions::default()
            };
            let mut hits = run(&base, &query, options).hits.remove(0);
            hits.sort_unstable_by_key(|hit| hit.index);
            hits
        };
        let far = |hits: &[tercet_host::search::Neighbour]| {
            hits.iter().map(|hit| hit.score.abs()).fold(0.0, f32::max)
        };
        let truth = by(Storage::F32);
        for (storage, tolerance) in [(Storage::Int8, 0.02), (Storage::Ternary, 0.6)] {
            for (found, truth) in by(storage).iter().zip(&truth) {
                let error = (found.score - truth.score).abs() / far(&by(Storage::F32));
                assert!(error < tolerance, "{metric:?} {storage:?}: {error}");
            }
        }
    }
}

/// Zeros, subnormals and the largest floats: re-ranking every row is the exact search, and cosines are at most 1.
#[test]
fn awkward_magnitudes_are_searched_too() {
    let rows = |scale: f32| {
        let values = drawn(7, 40 * 5, 255, 127.0);
        floats(5, values.iter().map(|x| x / 127.0 * scale).collect())
    };
    for scale in [0.0, 1e-45, 3e-43, 1e-38, 1.0, 60_000.0, 3e38] {
        let (base, queries) = (rows(scale), rows(scale));
        for metric in MetricKind::ALL {
            for storage in Storage::ALL {
                if storage == Storage::F16 && scale > 1e5 {
                    continue;
                }
                let options = SearchOptions {
                    find: Find::Nearest(3),
                    metric,
                    storage,
                    rerank: Some(40),
                    ..SearchOptions::default()
                };
                let report = run(&base, &queries, options);
                assert_eq!(report.recall, Some(1.0), "{metric:?} {storage:?} {scale:e}");
                let plain = SearchOptions {
                    rerank: None,
                    ..options
                };
                let report = run(&base, &queries, plain);
                let cosine = metric == MetricKind::Cosine;
                // An f32 sum of such products is infinite, or ∞ − ∞.
                let overflows = storage == Storage::F32 && scale > 1e19 && !cosine;
                for score in report.hits.iter().flatten().map(|hit| hit.score) {
                    assert!(
                        !score.is_nan() || overflows,
                        "{metric:?} {storage:?} {scale:e}"
                    );
                    assert!(!cosine || score.abs() <= 1.0, "{score:e}");
                }
            }
        }
    }
}

#[test]
fn a_row_of_zeros_has_cosine_zero() {
    let base = floats(2, vec![-1.0, -0.5, 0.0, 0.0, 0.3, 0.9]);
    let query = floats(2, vec![0.2, 0.7]);
    for storage in Storage::ALL {
        let options = SearchOptions {
            find: Find::Nearest(3),
            storage,
            ..SearchOptions::default()
        };
        let hits = run(&base, &query, options).hits.remove(0);
        assert_eq!(
            hits.iter().map(|hit| hit.index).collect::<Vec<_>>(),
            [2, 1, 0]
        );
        assert_eq!(hits[1].score, 0.0, "{storage:?}");
    }
}

#[derive(Default)]
struct Heard {
    started: Mutex<Vec<u64>>,
    advanced: AtomicU64,
}

impl Progress for Heard {
    fn start(&self, bytes: u64) {
        self.started.lock().unwrap().push(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.advanced.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[test]
fn progress_adds_up() {
    let (base, queries) = (
        floats(2, drawn(8, 60, 9, 4.0)),
        floats(2, drawn(9, 2 * 700, 9, 4.0)),
    );
    for find in [Find::Nearest(3), Find::Within(0.5)] {
        let heard = Heard::default();
        let recall = matches!(find, Find::Nearest(_));
        let options = SearchOptions {
            find,
            recall,
            ..SearchOptions::default()
        };
        let report = search(&mut Threads::default(), &base, &queries, &options, &heard).unwrap();
        assert_eq!(report.hits.len(), 700);
        // Recall takes a search of its own.
        let bytes = if recall { 2 * 700 * 8 } else { 700 * 8 };
        assert_eq!(*heard.started.lock().unwrap(), [bytes]);
        assert_eq!(heard.advanced.into_inner(), bytes);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (base, queries) = (floats(3, vec![1.0; 6]), floats(3, vec![1.0; 3]));
    let refused = |queries: &Points, options: SearchOptions| {
        search(&mut Threads::default(), &base, queries, &options, &()).unwrap_err()
    };
    let nearest = |k| SearchOptions {
        find: Find::Nearest(k),
        ..SearchOptions::default()
    };
    assert!(matches!(
        refused(&queries, nearest(0)),
        Error::Options { .. }
    ));
    assert!(matches!(
        refused(&queries, nearest(3)),
        Error::Tensor { .. }
    ));
    assert!(matches!(
        refused(&floats(2, vec![1.0; 2]), nearest(1)),
        Error::Differ { .. }
    ));
    let few = SearchOptions {
        rerank: Some(1),
        ..nearest(2)
    };
    assert!(matches!(refused(&queries, few), Error::Options { .. }));
    for threshold in [f32::NAN, 1.0] {
        let within = SearchOptions {
            find: Find::Within(threshold),
            ..SearchOptions::default()
        };
        assert!(matches!(refused(&queries, within), Error::Options { .. }));
    }
}
