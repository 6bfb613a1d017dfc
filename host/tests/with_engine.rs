//! Flows that are given an engine: the same bits as those on the threads of the processor.

use std::fs;

use crate::files::{Folder, Given, le, safetensors, weights};
use half::bf16;
use safetensors::Dtype;
use tercet_core::block::Format;
use tercet_core::number::Random;
use tercet_core::palette::Width;
use tercet_core::quant::calibrate::RangeRule;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::scalar::Scalar;
use tercet_core::search::MetricKind;
use tercet_host::cluster::{self, KMeans, KmeansOptions, assign_points, kmeans};
use tercet_host::convert::{Per, Scheme, Target};
use tercet_host::engine::FlowEngine;
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, Values};
use tercet_host::search::{Find, SearchOptions, Storage, search};
use tercet_host::simd::Backend;
use tercet_host::{Error, QuantizeOptions, Report, TensorFile, calibrate, quantize};

/// A report without what differs from run to run.
fn lasting(mut report: Report) -> Report {
    (report.seconds, report.megabytes_per_second) = (0.0, 0.0);
    report
}

/// Quantizes by an engine and by the processor; the files and reports must be the same but for the engine's name, and
/// so must refusals.
fn same<E: FlowEngine>(engine: &mut E, folder: &Folder, input: &str, options: &QuantizeOptions) {
    let extension = match options.target {
        Target::Int8 | Target::Ternary | Target::Palette(_) => "safetensors",
        _ => "gguf",
    };
    let out = |name: &str| folder.file(&format!("{name}.{extension}"));
    let options = QuantizeOptions {
        force: true,
        ..options.clone()
    };
    let model = TensorFile::open(folder.file(input)).unwrap();
    let expected = quantize(
        &mut Threads::default(),
        &model,
        &options,
        &out("expected"),
        &(),
    );
    let found = quantize(engine, &model, &options, &out("found"), &());
    let (expected, found) = match (expected, found) {
        (Ok(expected), Ok(found)) => (lasting(expected), lasting(found)),
        (Err(expected), Err(found)) => {
            assert_eq!(found.to_string(), expected.to_string(), "{options:?}");
            return;
        }
        (expected, found) => panic!("{options:?}: {expected:?}, {found:?}"),
    };
    let bytes = |name| fs::read(out(name)).unwrap();
    assert!(bytes("found") == bytes("expected"), "{options:?}");
    assert_eq!(
        (found.engine.as_str(), &found.engine_note),
        (engine.name().as_str(), &None)
    );
    for (found, expected) in found.tensors.iter().zip(&expected.tensors) {
        assert_eq!(
            found.engine.is_some(),
            expected.engine.is_some(),
            "{found:?}"
        );
        let mut expected = expected.clone();
        expected.engine.clone_from(&found.engine);
        assert_eq!(*found, expected, "{options:?}");
    }
    assert_eq!(found.auto, expected.auto);
}

fn targets() -> Vec<QuantizeOptions> {
    let mut all: Vec<_> = [
        Target::Blocks(Format::Tq1_0),
        Target::Blocks(Format::Tq2_0),
        Target::Blocks(Format::Q2_0),
        Target::Blocks(Format::Q8_0),
        Target::Blocks(Format::Q4_0),
    ]
    .map(QuantizeOptions::new)
    .into();
    all.push(QuantizeOptions {
        rule: Some(Rule::Optimal),
        scale: ScaleRule::LeastSquares,
        ..QuantizeOptions::new(Target::Blocks(Format::Tq2_0))
    });
    all.push(QuantizeOptions {
        bits: Some(4.0),
        ..QuantizeOptions::new(Target::Auto)
    });
    for per in [Per::Tensor, Per::Row, Per::Block(64)] {
        for grid in [Scheme::Symmetric, Scheme::Affine] {
            all.push(QuantizeOptions {
                per: Some(per),
                grid,
                ..QuantizeOptions::new(Target::Int8)
            });
        }
        for (rule, scale) in [
            (Rule::AbsMean, ScaleRule::Rule),
            (Rule::Twn, ScaleRule::LeastSquares),
            (Rule::Optimal, ScaleRule::Rule),
        ] {
            all.push(QuantizeOptions {
                per: Some(per),
                rule: Some(rule),
                scale,
                ..QuantizeOptions::new(Target::Ternary)
            });
        }
    }
    for (bits, per) in [(4, Per::Tensor), (2, Per::Row), (3, Per::Rows(2))] {
        all.push(QuantizeOptions {
            per: Some(per),
            ..QuantizeOptions::new(Target::Palette(Width::new(bits).unwrap()))
        });
    }
    all
}

/// A tensor of several chunks of values, whose groups end within chunks; one where nothing lies as `f32`; rows that
/// blocks do not divide.
fn model(folder: &Folder, name: &str, change: impl Fn(&mut [f32])) {
    let mut wide = weights(1, 3 * 400_384);
    change(&mut wide);
    let halves = weights(2, 2 * 512);
    let halves = halves.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes());
    let given = [
        Given::new("half.weight", Dtype::BF16, &[2, 512], halves.collect()),
        Given::f32("narrow.weight", &[5, 64], &weights(3, 320)),
        Given::f32("norm.weight", &[256], &weights(4, 256)),
        Given::new("wide.weight", Dtype::F32, &[3, 400_384], le(&wide)),
    ];
    safetensors(&folder.file(name), &given, &[]);
}

#[test]
fn conversions_have_the_same_bytes() {
    let folder = Folder::new();
    model(&folder, "in.safetensors", |_| ());
    for options in targets() {
        same(&mut Threads::default(), &folder, "in.safetensors", &options);
    }
    // The reference engine has no tiles at all.
    for options in targets().iter().step_by(4) {
        same(&mut Scalar, &folder, "in.safetensors", options);
    }
}

#[test]
fn what_is_refused_is_named_in_the_same_words() {
    let folder = Folder::new();
    // In the second chunk, and in the second row.
    model(&folder, "bad.safetensors", |values| {
        values[1_100_000] = f32::NAN
    });
    // A scale that f16 does not hold.
    model(&folder, "huge.safetensors", |values| {
        values[1_100_000] = 1e30
    });
    for input in ["bad.safetensors", "huge.safetensors"] {
        for options in targets() {
            same(&mut Threads::default(), &folder, input, &options);
        }
    }
}

#[test]
fn importances_reach_the_engine() {
    let folder = Folder::new();
    let mut random = Random::new(5);
    let importance: Vec<f32> = (0..1024).map(|_| random.below(100) as f32).collect();
    let given = |values: &[f32]| [Given::f32("a.weight", &[4, 256], values)];
    safetensors(
        &folder.file("in.safetensors"),
        &given(&weights(1, 1024)),
        &[],
    );
    safetensors(&folder.file("imp.safetensors"), &given(&importance), &[]);
    for per in [Per::Tensor, Per::Rows(3)] {
        let options = QuantizeOptions {
            per: Some(per),
            importance: Some(folder.file("imp.safetensors")),
            ..QuantizeOptions::new(Target::Palette(Width::new(2).unwrap()))
        };
        same(&mut Threads::default(), &folder, "in.safetensors", &options);
    }
}

#[test]
fn bitnet_is_the_processors_alone() {
    let folder = Folder::new();
    let given = [Given::f32("a.weight", &[4, 256], &weights(1, 1024))];
    safetensors(&folder.file("in.safetensors"), &given, &[]);
    let model = TensorFile::open(folder.file("in.safetensors")).unwrap();
    let options = QuantizeOptions::new(Target::BitnetHf);
    let out = folder.file("out.safetensors");
    let error = quantize(&mut Scalar, &model, &options, &out, &()).unwrap_err();
    assert!(matches!(error, Error::Options { .. }));
    assert!(
        error
            .to_string()
            .starts_with("scalar cannot make bitnet-hf"),
        "{error}"
    );
    assert!(!out.exists());
}

fn cloud(seed: u64, n: usize, dims: usize) -> Vec<i8> {
    let mut random = Random::new(seed);
    (0..n * dims)
        .map(|_| random.below(256) as u8 as i8)
        .collect()
}

#[test]
fn clusters_are_the_same() {
    let (n, dims) = (700, 5);
    let codes = cloud(1, n, dims);
    let weights: Vec<u32> = (0..n as u32).map(|i| i % 4).collect();
    let given = KmeansOptions::new(3).with_centroids(codes[..3 * dims].to_vec());
    let mut batches = KmeansOptions::new(6);
    batches.batch = Some(50);
    (batches.run.restarts, batches.run.lloyd.max_iter) = (2, 4);
    for options in [KmeansOptions::new(40), given, batches] {
        for weights in [None, Some(&weights[..])] {
            let (mut expected, mut heard) = (Vec::new(), Vec::new());
            let reference = kmeans(
                &mut Threads::default(),
                &codes,
                dims,
                weights,
                &options,
                &mut |step| expected.push(step),
            )
            .unwrap();
            let mut observe = |step| heard.push(step);
            let found = kmeans(&mut Scalar, &codes, dims, weights, &options, &mut observe);
            assert_eq!(found.unwrap(), reference);
            assert_eq!(heard, expected);
        }
    }
    let refused = kmeans(
        &mut Scalar,
        &codes,
        dims,
        None,
        &KmeansOptions::new(701),
        &mut |_| (),
    );
    let expected = kmeans(
        &mut Threads::default(),
        &codes,
        dims,
        None,
        &KmeansOptions::new(701),
        &mut |_| (),
    );
    assert_eq!(refused, expected);
}

/// More centroids than points go to engines in parts; ties between parts, and within them, go to the lower index.
#[test]
fn the_nearest_of_more_centroids_than_points() {
    let dims = 3;
    for (n, k) in [(1, 9), (4, 4), (5, 23), (64, 7)] {
        let points = cloud(n as u64, n, dims);
        let mut centroids = cloud(99, k, dims);
        // Each point itself, twice.
        let twice = [&points[..3], &points[..3]].concat();
        let end = centroids.len() - twice.len().min(centroids.len());
        let len = centroids.len() - end;
        centroids[end..].copy_from_slice(&twice[..len]);
        let expected = cluster::assign(&mut Threads::default(), &points, dims, &centroids).unwrap();
        let found = cluster::assign(&mut Scalar, &points, dims, &centroids).unwrap();
        assert_eq!(found, expected, "{n} {k}");
        let found = cluster::assign(&mut Threads::default(), &points, dims, &centroids);
        assert_eq!(found.unwrap(), expected);
    }
}

fn floats(name: &str, seed: u64, rows: usize, dims: usize) -> Points {
    Points::new(name, rows, dims, Values::F32(weights(seed, rows * dims))).unwrap()
}

#[test]
fn clustering_in_the_datas_own_units_says_who_did_it() {
    let points = floats("points", 1, 300, 6);
    for spherical in [false, true] {
        let mut kmeans = KMeans::new(5).spherical(spherical);
        let expected = kmeans.fit(&points).unwrap();
        let found = kmeans.fit_on(&mut Scalar, &points).unwrap();
        assert_eq!(found.clustering, expected.clustering);
        assert_eq!(found.inertia.to_bits(), expected.inertia.to_bits());
        assert_eq!(
            (found.by.engine.as_str(), &found.by.note),
            ("scalar", &None)
        );
        assert_eq!(expected.by.engine, Backend::default().to_string());

        let centroids = floats("centroids", 7, 4, 6);
        let expected =
            assign_points(&mut Threads::default(), &points, &centroids, spherical).unwrap();
        let found = assign_points(&mut Scalar, &points, &centroids, spherical).unwrap();
        assert_eq!(found.assignment, expected.assignment);
        assert_eq!(found.by.engine, "scalar");
    }
    // What every engine refuses names the data.
    let mut kmeans = KMeans::new(301);
    let refused = kmeans.fit_on(&mut Scalar, &points).unwrap_err();
    let expected = kmeans.fit(&points).unwrap_err();
    assert_eq!(refused.to_string(), expected.to_string());
}

#[test]
fn searches_find_the_same() {
    let (base, queries) = (floats("base", 1, 400, 9), floats("queries", 2, 300, 9));
    for metric in [MetricKind::Cosine, MetricKind::Dot, MetricKind::SquaredL2] {
        for storage in Storage::ALL {
            for (find, rerank, recall) in [
                (Find::Nearest(3), None, true),
                (Find::Nearest(3), Some(20), true),
                (Find::Within(0.01), None, false),
            ] {
                let options = SearchOptions {
                    find,
                    metric,
                    storage,
                    rerank,
                    recall,
                };
                let expected =
                    search(&mut Threads::default(), &base, &queries, &options, &()).unwrap();
                let found = search(&mut Scalar, &base, &queries, &options, &()).unwrap();
                assert_eq!(found.engine, "scalar");
                assert_eq!((found.hits, found.recall), (expected.hits, expected.recall));
            }
        }
    }
}

#[test]
fn data_are_calibrated_to_the_same_figures() {
    let folder = Folder::new();
    let values = weights(11, 40_000);
    let halves = |narrow: fn(f32) -> [u8; 2]| -> Vec<u8> {
        values.iter().flat_map(|&x| narrow(3.0 * x)).collect()
    };
    let (f16s, bf16s) = (
        halves(|x| half::f16::from_f32(x).to_le_bytes()),
        halves(|x| bf16::from_f32(x).to_le_bytes()),
    );
    let doubles: Vec<u8> = (values.iter())
        .flat_map(|&x| f64::from(x - 0.5).to_le_bytes())
        .collect();
    let given = |name, dtype, bytes: &[u8]| Given {
        name,
        dtype,
        shape: vec![40_000],
        bytes: bytes.to_vec(),
    };
    let tensors = [
        given("a", Dtype::F32, &le(&values)),
        given("b", Dtype::F16, &f16s),
        given("c", Dtype::BF16, &bf16s),
        given("d", Dtype::F64, &doubles),
        given("e", Dtype::I8, &[1; 40_000]),
    ];
    let path = folder.file("data.safetensors");
    safetensors(&path, &tensors, &[]);
    for method in [
        RangeRule::AbsMax,
        RangeRule::MinMax,
        RangeRule::Percentile { ppm: 995_000 },
        RangeRule::Mse,
        RangeRule::Entropy,
    ] {
        for grid in [Scheme::Symmetric, Scheme::Affine] {
            let paths = std::slice::from_ref(&path);
            let expected = calibrate(&mut Threads::default(), paths, method, grid, &()).unwrap();
            assert_eq!((expected.count, &expected.engine_note), (160_000, &None));
            assert_eq!(expected.engine, Backend::default().to_string());
            let mut found = calibrate(&mut Scalar, paths, method, grid, &()).unwrap();
            assert_eq!(found.engine, "scalar");
            found.engine.clone_from(&expected.engine);
            assert_eq!(found, expected, "{method:?} {grid:?}");
            let engine = &mut Threads::alone();
            let found = calibrate(engine, paths, method, grid, &()).unwrap();
            assert_eq!(found, expected, "{method:?} {grid:?}");
        }
    }
    // The place in the tensor, not in the stream.
    let mut spoiled = values.clone();
    spoiled[39_000] = f32::NAN;
    let path = folder.file("bad.safetensors");
    let tensors = [
        given("a", Dtype::F32, &le(&values)),
        given("b", Dtype::F32, &le(&spoiled)),
    ];
    safetensors(&path, &tensors, &[]);
    let paths = [path];
    let refused =
        |found: Result<_, Error>| found.map(|_: tercet_host::Calibration| ()).unwrap_err();
    let expected = refused(calibrate(
        &mut Threads::default(),
        &paths,
        RangeRule::Mse,
        Scheme::Symmetric,
        &(),
    ));
    let engine = &mut Scalar;
    let found = refused(calibrate(
        engine,
        &paths,
        RangeRule::Mse,
        Scheme::Symmetric,
        &(),
    ));
    assert_eq!(found.to_string(), expected.to_string());
    assert!(
        found.to_string().contains("tensor `b`: value 39000 "),
        "{found}"
    );
}
