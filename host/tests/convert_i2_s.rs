//! Language models for bitnet.cpp: I2_S, read back by its index rule.

use std::path::Path;

use crate::files::Folder;
use crate::files::runs::{floats, line, restored, run};
use tercet_core::block::Format;
use tercet_core::block::i2_s::Interleave;
use tercet_core::gguf::{Reader, Value};
use tercet_host::convert::{FloatType, Target};
use tercet_host::language::{Parameters, tiny};
use tercet_host::parallel::Threads;
use tercet_host::{DType, DequantizeOptions, QuantizeOptions, Reading, TensorFile, dequantize};

/// A width that I2_S can hold.
const LLAMA: Parameters = Parameters {
    embedding_length: 128,
    feed_forward_length: 256,
    head_length: 32,
    ..tiny::LLAMA
};

pub(crate) fn options() -> QuantizeOptions {
    QuantizeOptions {
        force: true,
        ..QuantizeOptions::new(Target::I2S)
    }
}

/// A tensor's values: value i of a group of 128 is in byte i mod 32, at bits 6 − 2 (i / 32), and the scale follows the
/// codes, and then 28 zeros.
pub(crate) fn values(bytes: &[u8]) -> (Vec<i8>, f32) {
    let (packed, tail) = bytes.split_at(bytes.len() - 32);
    let code = |i: usize| {
        let byte = packed[i / 128 * 32 + i % 32];
        (byte >> (6 - 2 * (i % 128 / 32)) & 3) as i8 - 1
    };
    assert_eq!(tail[4..], [0; 28]);
    let scale = f32::from_le_bytes(tail[..4].try_into().unwrap());
    ((0..packed.len() * 4).map(code).collect(), scale)
}

/// What `tercet dequantize` restores, under the tensor's name.
fn original(model: &TensorFile, folder: &Folder, name: &str) -> Vec<f32> {
    let path = folder.file("restored.safetensors");
    if !path.exists() {
        restored(model, &path);
    }
    floats(&TensorFile::open(path).unwrap(), name)
}

fn is_matrix(name: &str) -> bool {
    name.starts_with("blk.") && name.ends_with(".weight") && !name.contains("norm")
}

/// Metadata but the type of the file, as text.
fn metadata(path: &Path) -> (Vec<String>, Option<u32>) {
    let bytes = std::fs::read(path).unwrap();
    let reader = Reader::new(&bytes).unwrap();
    let file_type = match reader.get("general.file_type") {
        Some(Value::U32(number)) => Some(number),
        _ => None,
    };
    let entries = (reader.metadata()).filter(|(key, _)| *key != "general.file_type");
    let all = |value: Value<'_>| match value.as_array() {
        Some(array) => array.iter().map(|item| format!("{item:?},")).collect(),
        None => format!("{value:?}"),
    };
    (
        entries
            .map(|(key, value)| key.to_owned() + &all(value))
            .collect(),
        file_type,
    )
}

#[test]
fn the_bundled_model_is_repacked_without_a_change() {
    let folder = Folder::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/models/nano.gguf");
    let model = TensorFile::open(&path).unwrap();
    let out = folder.file("out.gguf");
    let (report, output) = run(&model, &options(), &out);
    let mut matrices = 0;
    for tensor in model.tensors() {
        let (line, written) = (line(&report, tensor.name), output.get(tensor.name).unwrap());
        assert_eq!(written.shape, tensor.shape);
        if !is_matrix(tensor.name) {
            assert_eq!((written.dtype, written.bytes), (tensor.dtype, tensor.bytes));
            assert_eq!(line.to, line.from);
            continue;
        }
        matrices += 1;
        assert_eq!((line.from.as_str(), line.to.as_str()), ("tq1_0", "i2_s"));
        assert_eq!((line.relative_error, &line.note), (Some(0.0), &None));
        assert_eq!(written.dtype, DType::I2S);
        let (codes, scale) = values(written.bytes);
        // The scale of the first block, which ends with it.
        let block = half::f16::from_le_bytes(tensor.bytes[52..54].try_into().unwrap());
        assert_eq!(scale, block.to_f32(), "{}", tensor.name);
        let found: Vec<f32> = codes.iter().map(|&code| f32::from(code) * scale).collect();
        assert_eq!(
            found,
            original(&model, &folder, tensor.name),
            "{}",
            tensor.name
        );
    }
    assert_eq!(matrices, 2 * 7);
    let ((before, _), (after, file_type)) = (metadata(&path), metadata(&out));
    assert_eq!((before, file_type), (after, Some(40)));
    // The command's own reader.
    let reading = Reading {
        i2_s: Some(Interleave::X86x128),
        ..Reading::default()
    };
    let back = restored(
        &output.with_reading(reading),
        &folder.file("back.safetensors"),
    );
    for tensor in model.tensors().filter(|tensor| is_matrix(tensor.name)) {
        assert_eq!(
            floats(&back, tensor.name),
            original(&model, &folder, tensor.name)
        );
    }
}

#[test]
fn floats_and_every_ternary_block_become_the_same_tensors() {
    let folder = Folder::new();
    let made = |dtype: DType| {
        let (path, out) = (folder.file("in.gguf"), folder.file("out.gguf"));
        tiny::bitnet(&path, tiny::BITNET, 3, dtype, true).unwrap();
        let (report, output) = run(&TensorFile::open(path).unwrap(), &options(), &out);
        for tensor in output.tensors().filter(|tensor| is_matrix(tensor.name)) {
            assert_eq!(tensor.dtype, DType::I2S);
            assert_eq!(line(&report, tensor.name).relative_error, Some(0.0));
        }
        let embedding = line(&report, "token_embd.weight");
        let note = "the embedding or the head: f16, as bitnet.cpp writes them";
        match dtype {
            DType::Block(_) => assert_eq!(embedding.to, "q8_0"),
            _ => assert_eq!(
                (embedding.to.as_str(), embedding.note.as_deref()),
                ("f16", Some(note))
            ),
        }
        let matrices = output.tensors().filter(|tensor| is_matrix(tensor.name));
        let matrices = matrices.map(|tensor| (tensor.name.to_owned(), tensor.bytes.to_vec()));
        matrices.collect::<Vec<_>>()
    };
    let expected = made(DType::F32);
    assert_eq!(expected.len(), 2 * 7);
    for format in [Format::Tq1_0, Format::Tq2_0, Format::Q2_0] {
        assert!(made(DType::Block(format)) == expected, "{format:?}");
    }
    assert!(made(DType::F16) == expected);
}

#[test]
fn floats_of_a_llama_get_their_mean_magnitude() {
    let folder = Folder::new();
    let mixed = folder.file("mixed.gguf");
    tiny::llama(&mixed, LLAMA, 5, false).unwrap();
    let model = folder.file("in.gguf");
    let options_of = DequantizeOptions {
        dtype: FloatType::F32,
        force: false,
    };
    let mixed = TensorFile::open(mixed).unwrap();
    dequantize(&mut Threads::default(), &mixed, &options_of, &model, &()).unwrap();
    let model = TensorFile::open(model).unwrap();
    let (report, output) = run(&model, &options(), &folder.file("out.gguf"));
    let mut coded = 0;
    for tensor in model.tensors() {
        let written = output.get(tensor.name).unwrap();
        if tensor.name == "output.weight" || tensor.name == "token_embd.weight" {
            assert_eq!(written.dtype, DType::F16);
        } else if !is_matrix(tensor.name) {
            assert_eq!((written.dtype, written.bytes), (tensor.dtype, tensor.bytes));
        } else {
            let (codes, scale) = values(written.bytes);
            let given = original(&model, &folder, tensor.name);
            let sum: f64 = given.iter().map(|&x| f64::from(x.abs())).sum();
            let mean = sum / given.len() as f64;
            assert!(
                (f64::from(scale) / mean - 1.0).abs() < 1e-6,
                "{}",
                tensor.name
            );
            for (&x, &code) in given.iter().zip(&codes) {
                let ratio = f64::from(x) / f64::from(scale);
                // Not at the border itself.
                if (ratio.abs() - 0.5).abs() > 1e-6 {
                    assert_eq!(f64::from(code), ratio.round().clamp(-1.0, 1.0));
                    coded += 1;
                }
            }
            let error = line(&report, tensor.name).relative_error.unwrap();
            assert!(error > 0.0 && error < 1.0, "{error}");
        }
    }
    assert!(coded > 2 * 7 * 64 * 128, "{coded}");
}
