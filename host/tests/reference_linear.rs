//! Products of the linear layer against onnxruntime, PyPI's gguf and Python's integers.

use crate::support;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tercet_core::block::{self, Format};
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, Rescale, Table, pack};
use tercet_core::number::Random;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::parallel::Threads;

/// Rows and columns; the last is the longest that is taken.
const SHAPES: [(usize, usize); 5] = [(1, 1), (64, 256), (37, 333), (256, 1024), (3, 65_536)];

fn codes(random: &mut Random, len: usize, lowest: i64, highest: i64) -> Vec<i8> {
    let span = (highest - lowest + 1) as u64;
    let draw = |_| (lowest + random.below(span) as i64) as i8;
    (0..len).map(draw).collect()
}

fn bytes_of(codes: &[i8]) -> Vec<u8> {
    codes.iter().map(|&code| code as u8).collect()
}

/// The sums by the threads' engine.
fn sums(layout: Layout, (rows, cols): (usize, usize), bytes: &[u8], x: &[i8]) -> Vec<i64> {
    let matrix = Matrix::new(layout, rows, cols, bytes).unwrap();
    let mut out = vec![0; rows];
    let mut scratch = vec![0; matrix.scratch_len()];
    let (layer, x) = (Layer::new(matrix), I8Sym::new(x).unwrap());
    Threads::with_tile(5000)
        .sums(&layer, x, &mut out, &mut scratch)
        .unwrap();
    out
}

fn read_i64(path: &Path) -> Vec<i64> {
    let bytes = fs::read(path).unwrap();
    let (numbers, rest) = bytes.as_chunks();
    assert!(rest.is_empty());
    numbers.iter().map(|&n| i64::from_le_bytes(n)).collect()
}

#[test]
fn integer_products_equal_onnxruntime() {
    let Some(python) = support::python_with(&["numpy", "onnx", "onnxruntime"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut compared = 0;
    for (seed, (rows, cols)) in (1..).zip(SHAPES) {
        for layout in Layout::ALL {
            if let Layout::Block(_) = layout {
                continue;
            }
            let mut random = Random::new(seed);
            let (lowest, highest) = layout.codes();
            let weights = codes(&mut random, rows * cols, lowest.into(), highest.into());
            let x = codes(&mut random, cols, -127, 127);
            let mut bytes = vec![0; layout.bytes(rows, cols).unwrap()];
            pack::pack(layout, rows, cols, &weights, &mut bytes).unwrap();
            fs::write(path("weights"), bytes_of(&weights)).unwrap();
            fs::write(path("x"), bytes_of(&x)).unwrap();
            let files = ["weights", "x", "sums"].map(|name| OsString::from(path(name)));
            let shape = [rows, cols].map(|n| OsString::from(n.to_string()));
            support::run(
                &python,
                "linear.py",
                ["int8".into()].into_iter().chain(shape).chain(files),
            );
            let found = sums(layout, (rows, cols), &bytes, &x);
            assert_eq!(found, read_i64(&path("sums")), "{layout:?} {rows} x {cols}");
            compared += rows * cols;
        }
    }
    println!("{compared} products");
}

#[test]
fn block_products_equal_exact_sums_of_what_gguf_decodes() {
    let Some(python) = support::python_with(&["numpy", "gguf"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // PyPI's gguf has no Q2_0.
    for format in [Format::Tq1_0, Format::Tq2_0, Format::Q8_0, Format::Q4_0] {
        let (rows, cols) = (40, 768);
        let mut random = Random::new(7);
        let values: Vec<f32> = (0..rows * cols)
            .map(|_| (random.below(4001) as f32 - 2000.0) / 512.0)
            .collect();
        let mut bytes = vec![0; format.encoded_len(values.len()).unwrap()];
        block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes).unwrap();
        let x = codes(&mut random, cols, -127, 127);
        fs::write(path("weights"), &bytes).unwrap();
        fs::write(path("x"), bytes_of(&x)).unwrap();
        let files = ["weights", "x", "sums"].map(|name| OsString::from(path(name)));
        let what = ["blocks", &format.name().to_uppercase()].map(OsString::from);
        let shape = [rows, cols].map(|n| OsString::from(n.to_string()));
        support::run(
            &python,
            "linear.py",
            what.into_iter().chain(shape).chain(files),
        );
        let found = sums(Layout::Block(format), (rows, cols), &bytes, &x);
        assert_eq!(found, read_i64(&path("sums")), "{format:?}");
    }
}

#[test]
fn int8_outputs_equal_fractions_rounded_once() {
    let Some(python) = support::python_with(&["numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut random = Random::new(11);
    let rows = 20_000;
    // One weight a row and one activation: the sum is their product plus a shifted bias.
    let weights = codes(&mut random, rows, -128, 127);
    let bytes = bytes_of(&weights);
    let matrix = Matrix::new(Layout::Int8, rows, 1, &bytes).unwrap();
    let biases: Vec<i32> = (0..rows)
        .map(|_| (random.next_u64() as i32) >> random.below(32))
        .collect();
    let multipliers: Vec<i32> = (0..rows)
        .map(|_| (1 << 30) | (random.next_u64() >> 34) as i32)
        .collect();
    let shifts: Vec<u8> = (0..rows).map(|_| 1 + random.below(94) as u8).collect();
    let layer = Layer::new(matrix)
        .with_bias(Table::Words(&biases), 13)
        .unwrap();
    let rescale = Rescale::rows(Table::Words(&multipliers), &shifts).unwrap();
    let x = I8Sym::new(&[-127]).unwrap();
    let mut scratch = vec![0; layer.weights().scratch_len()];
    let (mut exact, mut out) = (vec![0; rows], vec![0; rows]);
    let mut engine = Threads::with_tile(999);
    engine.sums(&layer, x, &mut exact, &mut scratch).unwrap();
    engine
        .dense(&layer, &rescale, x, &mut out, &mut scratch)
        .unwrap();

    let le = |sums: &[i64]| -> Vec<u8> { sums.iter().flat_map(|sum| sum.to_le_bytes()).collect() };
    fs::write(path("sums"), le(&exact)).unwrap();
    let words: Vec<u8> = multipliers.iter().flat_map(|m| m.to_le_bytes()).collect();
    fs::write(path("multipliers"), words).unwrap();
    fs::write(path("shifts"), &shifts).unwrap();
    let files = ["sums", "multipliers", "shifts", "out"].map(|name| OsString::from(path(name)));
    support::run(
        &python,
        "linear.py",
        ["requantize".into()].into_iter().chain(files),
    );
    assert_eq!(bytes_of(&out), fs::read(path("out")).unwrap());
    // Not all at the clamp.
    assert!(
        out.iter()
            .filter(|y| (-126..=126).contains(*y) && **y != 0)
            .count()
            > 500
    );
}
