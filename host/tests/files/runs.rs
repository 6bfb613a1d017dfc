//! A small model, and conversions that must succeed.

use std::path::Path;

use half::{bf16, f16};
use safetensors::Dtype;
use tercet_host::convert::TensorReport;
use tercet_host::parallel::Threads;
use tercet_host::{
    DType, DequantizeOptions, QuantizeOptions, Report, TensorFile, dequantize, quantize,
};

use super::{Folder, Given, safetensors, weights};

/// A small model: a matrix, a second in f16, a norm, and integers.
pub fn model(folder: &Folder) -> TensorFile {
    let halves: Vec<u8> = weights(2, 2 * 512)
        .iter()
        .flat_map(|&x| f16::from_f32(x).to_le_bytes())
        .collect();
    let path = folder.file("in.safetensors");
    let given = [
        Given::f32("a.weight", &[3, 256], &weights(1, 768)),
        Given::new("b.weight", Dtype::F16, &[2, 512], halves),
        Given::f32("norm.weight", &[256], &weights(3, 256)),
        Given::new("ids", Dtype::I64, &[2, 2], (0..32).collect()),
    ];
    safetensors(&path, &given, &[("format", "pt")]);
    TensorFile::open(path).expect("a sound file")
}

pub fn run(model: &TensorFile, options: &QuantizeOptions, out: &Path) -> (Report, TensorFile) {
    let report = quantize(&mut Threads::default(), model, options, out, &())
        .unwrap_or_else(|e| panic!("{e}"));
    (
        report,
        TensorFile::open(out).unwrap_or_else(|e| panic!("{e}")),
    )
}

pub fn restored(model: &TensorFile, out: &Path) -> TensorFile {
    dequantize(
        &mut Threads::default(),
        model,
        &DequantizeOptions::default(),
        out,
        &(),
    )
    .unwrap_or_else(|e| panic!("{e}"));
    TensorFile::open(out).expect("a sound file")
}

pub fn line<'a>(report: &'a Report, name: &str) -> &'a TensorReport {
    report
        .tensors
        .iter()
        .find(|line| line.name == name)
        .expect(name)
}

pub fn floats(model: &TensorFile, name: &str) -> Vec<f32> {
    let tensor = model.get(name).expect(name);
    match tensor.dtype {
        DType::F32 => tensor
            .bytes
            .as_chunks()
            .0
            .iter()
            .map(|&b| f32::from_le_bytes(b))
            .collect(),
        DType::F16 => tensor
            .bytes
            .as_chunks()
            .0
            .iter()
            .map(|&b| f16::from_le_bytes(b).to_f32())
            .collect(),
        DType::Bf16 => tensor
            .bytes
            .as_chunks()
            .0
            .iter()
            .map(|&b| bf16::from_le_bytes(b).to_f32())
            .collect(),
        other => panic!("{name} is {}", other.name()),
    }
}
