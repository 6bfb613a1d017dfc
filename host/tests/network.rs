//! Integer networks on engines: the bits of core, point by point.

use proptest::prelude::*;
use tercet_core::linear::Layout;
use tercet_core::linear::network::{Buffers, Network};
use tercet_core::number::Random;
use tercet_core::scalar::Scalar;
use tercet_host::TensorFile;
use tercet_host::engine::FlowEngine;
use tercet_host::network::{BATCH, BuildOptions, Built, LayerOptions, NetworkFile, build};
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, Values};
use tercet_host::simd::Backend;

/// A model of matrices `0.weight` and so on, between these widths, and biases for every other one.
fn model(widths: &[usize], seed: u64) -> (tempfile::TempDir, TensorFile) {
    let mut random = Random::new(seed);
    let (mut header, mut data) = (String::new(), Vec::new());
    let mut put = |name: String, shape: &[usize]| {
        let start = data.len();
        for _ in 0..shape.iter().product() {
            let value = (random.below(2001) as f32 - 1000.0) / 1e3;
            data.extend(value.to_le_bytes());
        }
        let end = data.len();
        let comma = if header.is_empty() { "" } else { "," };
        header += &format!(
            r#"{comma}"{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{start},{end}]}}"#
        );
    };
    for (layer, pair) in widths.windows(2).enumerate() {
        put(format!("{layer}.weight"), &[pair[1], pair[0]]);
        if layer % 2 == 0 {
            put(format!("{layer}.bias"), &[pair[1]]);
        }
    }
    let header = format!("{{{header}}}");
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, bytes).unwrap();
    let model = TensorFile::open(&path).unwrap();
    (folder, model)
}

fn options(layouts: &[Layout]) -> BuildOptions {
    let last = layouts.len() - 1;
    let layers = layouts
        .iter()
        .enumerate()
        .map(|(layer, &layout)| LayerOptions {
            name: layer.to_string(),
            relu: layer % 2 == 0 && layer < last,
            to: Some(layout),
        });
    BuildOptions::new(layers.collect(), layouts[0])
}

/// Points of integers, or of floats beyond them.
fn points(rows: usize, dims: usize, floats: bool, seed: u64) -> Points {
    let mut random = Random::new(seed);
    let codes: Vec<i8> = (0..rows * dims)
        .map(|_| random.below(256) as u8 as i8)
        .collect();
    let values = match floats {
        true => Values::F32(codes.iter().map(|&code| f32::from(code) * 0.013).collect()),
        false => Values::int8(codes),
    };
    Points::new("points", rows, dims, values).unwrap()
}

/// What core says to every point, one after another.
fn one_by_one(network: &Network<'_, 64>, points: &Points) -> Vec<i64> {
    let (mut values, mut codes) = (vec![0.0; points.dims()], vec![0; points.dims()]);
    let mut buffers = Buffers {
        activations: &mut vec![0; network.activations_len()],
        scratch: &mut vec![0; network.scratch_len()],
    };
    let mut all = Vec::new();
    for row in 0..points.rows() {
        points.read_row(row, &mut values).unwrap();
        let x = network.quantize(&values, &mut codes).unwrap();
        let mut sums = vec![0; network.outputs()];
        network
            .run(&mut Scalar, x, &mut buffers, &mut sums)
            .unwrap();
        all.extend(sums);
    }
    all
}

/// The answers of an engine, held against core's.
fn ran<E: FlowEngine>(engine: &mut E, file: &NetworkFile, points: &Points, sums: &[i64]) {
    let network = file.network().unwrap();
    let answers = file.run(engine, points).unwrap();
    assert!(answers.sums == sums, "{}", engine.name());
    assert_eq!(
        (&answers.by.engine, &answers.by.note),
        (&engine.name(), &None)
    );
    for (row, sums) in sums.chunks(network.outputs()).enumerate() {
        assert_eq!(answers.classes[row], network.class(sums));
        let logits = &answers.logits[row * sums.len()..][..sums.len()];
        for ((at, &sum), logit) in sums.iter().enumerate().zip(logits) {
            assert_eq!(logit.to_bits(), network.logit(at, sum).to_bits());
        }
    }
}

/// A network without the names of who made it.
fn lasting(built: &Built) -> (&[u8], f32, usize) {
    (&built.bytes, built.input_scale, built.layers.len())
}

/// Builds and runs by every engine.
fn check(layouts: &[Layout], widths: &[usize], rows: usize, floats: bool, seed: u64) {
    let (_folder, model) = model(widths, seed);
    let options = options(layouts);
    let recorded = points(20, widths[0], floats, seed ^ 1);
    let expected = build(&mut Scalar, &model, &options, &recorded, &()).unwrap();
    assert_eq!(
        (expected.engine.as_str(), &expected.engine_note),
        ("scalar", &None)
    );
    let file = NetworkFile::from_bytes("net.gguf", expected.bytes.clone()).unwrap();
    let points = points(rows, widths[0], floats, seed ^ 2);
    let sums = one_by_one(&file.network().unwrap(), &points);
    ran(&mut Scalar, &file, &points, &sums);
    for backend in Backend::all() {
        for threads in [
            Threads::with_tile(100),
            Threads::default(),
            Threads::alone(),
        ] {
            let mut threads = threads.with_backend(backend);
            let built = build(&mut threads, &model, &options, &recorded, &()).unwrap();
            assert!(
                lasting(&built) == lasting(&expected),
                "{backend} {layouts:?}"
            );
            assert_eq!(
                (&built.engine, &built.engine_note),
                (&threads.name(), &None)
            );
            ran(&mut threads, &file, &points, &sums);
        }
    }
    let plain = build(&mut Threads::default(), &model, &options, &recorded, &()).unwrap();
    assert!(plain.bytes == expected.bytes);
    assert!(file.run(&mut Threads::default(), &points).unwrap().sums == sums);
}

/// Layouts that weights can be brought into.
fn any_layout() -> impl Strategy<Value = Layout> {
    let mut layouts = Layout::ALL.to_vec();
    layouts.retain(|layout| layout.can_encode());
    prop::sample::select(layouts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_engine_gives_core_s_bits(
        layers in prop::collection::vec((any_layout(), 1usize..90), 1..5),
        inputs in 1usize..90,
        rows in 1usize..40,
        floats: bool,
        seed in any::<u64>(),
    ) {
        let (layouts, outputs): (Vec<_>, Vec<usize>) = layers.into_iter().unzip();
        let mut widths = vec![inputs];
        widths.extend(outputs);
        // Blocks want whole blocks of inputs.
        for (width, layout) in widths.iter_mut().zip(&layouts) {
            if let Layout::Block(format) = layout {
                *width = width.next_multiple_of(format.len());
            }
        }
        check(&layouts, &widths, rows, floats, seed);
    }
}

/// One less than a batch, a batch, and more than one, of both kinds of points.
#[test]
fn batches_do_not_show() {
    for (rows, floats) in [
        (BATCH - 1, false),
        (BATCH, true),
        (2 * BATCH + 1, false),
        (BATCH + 3, true),
    ] {
        check(
            &[Layout::TernaryLanes, Layout::Int8Pairs, Layout::Int8],
            &[9, 17, 5, 3],
            rows,
            floats,
            7,
        );
    }
}

/// A scale with which a code comes to an infinity is none that int8 values stay under.
#[test]
fn a_value_that_overflows_is_named_by_row_and_column() {
    let (_folder, model) = model(&[2, 1], 1);
    let mut options = options(&[Layout::Int8]);
    // A hundred of it fit an f32.
    let huge = f32::MAX / 100.5;
    options.input_scale = Some(huge);
    let recorded = points(3, 2, false, 1);
    let built = build(&mut Threads::default(), &model, &options, &recorded, &()).unwrap();
    let file = NetworkFile::from_bytes("net.gguf", built.bytes).unwrap();
    let Values::I8 { mut grid, .. } = Values::int8(vec![]) else {
        unreachable!()
    };
    grid.scale = huge;
    let ask = |last: i8| {
        let values = Values::I8 {
            codes: vec![1, -100, 99, last],
            grid,
        };
        file.run(
            &mut Threads::default(),
            &Points::new("points", 2, 2, values).unwrap(),
        )
    };
    assert_eq!(ask(100).unwrap().sums.len(), 2);
    let line = ask(101).unwrap_err().to_string();
    assert!(
        line.contains("row 1, column 1 (from 0) is not finite"),
        "{line}"
    );
}

#[test]
fn minus_128_is_minus_127() {
    let (_folder, model) = model(&[2, 1], 1);
    let mut options = options(&[Layout::Int8]);
    options.input_scale = Some(1.0);
    let points = |codes: Vec<i8>| Points::new("points", 1, 2, Values::int8(codes)).unwrap();
    let built = build(
        &mut Threads::default(),
        &model,
        &options,
        &points(vec![3, 4]),
        &(),
    )
    .unwrap();
    let file = NetworkFile::from_bytes("net.gguf", built.bytes).unwrap();
    let sums = |codes| {
        file.run(&mut Threads::default(), &points(codes))
            .unwrap()
            .sums
    };
    assert_eq!(sums(vec![-128, 5]), sums(vec![-127, 5]));
    assert_ne!(sums(vec![-126, 5]), sums(vec![-127, 5]));
}
