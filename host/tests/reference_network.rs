//! Integer networks against a restatement in NumPy that reads the file with gguf's own reader.

use crate::support;
use std::path::{Path, PathBuf};

use tercet_core::block::Format;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::network::{Buffers, Network};
use tercet_core::linear::{I8Sym, Layout};
use tercet_core::scalar::Scalar;
use tercet_host::TensorFile;
use tercet_host::network::{BuildOptions, NetworkFile, build};
use tercet_host::parallel::Threads;
use tercet_host::points::{Destination, Points, ReadOptions, Values, write_points};

/// Images that the classifier was trained on; the other 899 are held out.
const TRAINED: usize = 898;

fn demo(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../gpu/demo")
        .join(name)
}

/// The classifier's features, as `gpu/demo/train.py` makes them: pixels and their differences right, down and
/// down-right.
fn features() -> (Points, Points) {
    let images = Points::open(
        demo("images.npy").to_str().unwrap(),
        &ReadOptions::default(),
    );
    let Values::U8(pixels) = images.unwrap().values().clone() else {
        panic!("the images are bytes");
    };
    let mut features = Vec::new();
    for image in pixels.chunks(64) {
        let at = |row: usize, column: usize| match row < 8 && column < 8 {
            true => image[8 * row + column] as i8,
            false => 0,
        };
        for (down, right) in [(8, 8), (0, 1), (1, 0), (1, 1)] {
            let places = (0..64).map(|place| (place / 8, place % 8));
            features.extend(places.map(|(r, c)| at(r, c) - at(r + down, c + right)));
        }
    }
    let held_out = features.split_off(TRAINED * 256);
    let points = |values: Vec<i8>| {
        let rows = values.len() / 256;
        Points::new("features", rows, 256, Values::int8(values)).unwrap()
    };
    (points(features), points(held_out))
}

/// The digits network with its hidden layer in a layout, and its head in another.
fn network(hidden: Layout, head: Layout, train: &Points) -> NetworkFile {
    let model = TensorFile::open(demo("digits.safetensors")).unwrap();
    let layers = vec![
        "hidden:relu".parse().unwrap(),
        format!("head:{}", head.name()).parse().unwrap(),
    ];
    let built = build(
        &mut Threads::default(),
        &model,
        &BuildOptions::new(layers, hidden),
        train,
        &(),
    )
    .unwrap();
    NetworkFile::from_bytes("digits.gguf", built.bytes).unwrap()
}

#[test]
fn numpy_gives_the_same_logits_for_every_held_out_digit() {
    let Some(python) = support::python_with(&["numpy", "gguf"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (train, test) = features();
    let to = Destination {
        path: &at("test.npy"),
        inputs: &[],
        overwrite: false,
    };
    write_points(to, &test).unwrap();
    for layout in Layout::ALL {
        // The first is not known to gguf's reader yet; the others are not written.
        if layout == Layout::Block(Format::Q2_0) || !layout.can_encode() {
            continue;
        }
        // Heads in every layout that rows of 64 fit.
        let head = match layout.bytes(10, 64) {
            Ok(_) => layout,
            Err(_) => Layout::Int8,
        };
        let file = network(layout, head, &train);
        std::fs::write(at("net.gguf"), file.bytes()).unwrap();
        let arguments = ["net.gguf", "test.npy", "out"].map(at);
        support::run(&python, "network.py", arguments);
        let out = std::fs::read(at("out")).unwrap();
        let out: Vec<i64> = out
            .as_chunks()
            .0
            .iter()
            .map(|&b| i64::from_le_bytes(b))
            .collect();
        let (sums, classes) = out.split_at(899 * 10);
        let answers = file.run(&mut Threads::default(), &test).unwrap();
        assert_eq!(answers.sums, sums, "{}", layout.name());
        let ours: Vec<i64> = answers.classes.iter().map(|&class| class as i64).collect();
        assert_eq!(ours, classes, "{}", layout.name());
        println!("{}: 8990 logits of 899 digits are equal", layout.name());
    }
}

/// All sums of some inputs, by an engine.
fn sums<E: LinearEngine>(network: &Network<'_, 64>, engine: &mut E, inputs: &[i8]) -> Vec<i64> {
    let mut all = Vec::new();
    for x in inputs.chunks(network.inputs()) {
        let mut sums = vec![0; network.outputs()];
        let mut buffers = Buffers {
            activations: &mut vec![0; network.activations_len()],
            scratch: &mut vec![0; network.scratch_len()],
        };
        let ran = network.run(engine, I8Sym::new(x).unwrap(), &mut buffers, &mut sums);
        ran.unwrap_or_else(|error| panic!("{error}"));
        all.extend(sums);
    }
    all
}

#[test]
fn threads_give_the_logits_of_one() {
    let (train, test) = features();
    let Values::I8 { codes, .. } = test.values() else {
        panic!("the features are int8");
    };
    for layout in Layout::ALL.into_iter().filter(|layout| layout.can_encode()) {
        let file = network(layout, Layout::Int8, &train);
        let network = file.network().unwrap();
        let expected = sums(&network, &mut Scalar, &codes[..50 * 256]);
        assert_eq!(
            file.run(&mut Threads::default(), &test).unwrap().sums[..500],
            expected
        );
        // Tiles of one row's size, of some, and of all.
        for tile in [1, 4096, 1 << 20] {
            let mut threads = Threads::with_tile(tile);
            assert_eq!(sums(&network, &mut threads, &codes[..50 * 256]), expected);
        }
    }
}
