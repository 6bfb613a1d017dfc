//! What I2_S cannot hold, and what bitnet.cpp would misread: refused by name.

use std::path::{Path, PathBuf};

use crate::convert_i2_s::{options, values};
use crate::files::runs::run;
use crate::files::{Folder, Given, le, safetensors, weights};
use tercet_core::block::{Format, decode};
use tercet_core::gguf::{SliceSink, TensorSpec, TensorType, Writer};
use tercet_core::quant::Rule;
use tercet_host::language::ternary;
use tercet_host::parallel::Threads;
use tercet_host::{DType, Error, QuantizeOptions, TensorFile, quantize};

/// A GGUF file of tensors.
fn gguf(
    folder: &Folder,
    architecture: &str,
    tensors: &[(&str, &[u64], TensorType, &[u8])],
) -> PathBuf {
    let specs: Vec<_> = (tensors.iter())
        .map(|(name, dims, kind, _)| TensorSpec::new(name, dims, *kind).unwrap())
        .collect();
    let room = tensors
        .iter()
        .map(|(.., bytes)| bytes.len() + 256)
        .sum::<usize>();
    let mut bytes = vec![0; room + 4096];
    let mut writer = Writer::new(SliceSink::new(&mut bytes), 1, &specs).unwrap();
    writer.entry("general.architecture", architecture).unwrap();
    let mut data = writer.into_data().unwrap();
    for (name, _, _, bytes) in tensors {
        data.begin(name).unwrap();
        data.write(bytes).unwrap();
    }
    let len = data.finish().unwrap().len();
    let path = folder.file("in.gguf");
    std::fs::write(&path, &bytes[..len]).unwrap();
    path
}

/// The error of a conversion, which leaves no file.
fn refused(folder: &Folder, input: &Path, options: &QuantizeOptions) -> Error {
    let out = folder.file("refused.gguf");
    let model = TensorFile::open(input).unwrap();
    let error = quantize(&mut Threads::default(), &model, options, &out, &()).unwrap_err();
    assert!(!out.exists());
    error
}

#[test]
fn only_language_models_in_gguf_are_for_it() {
    let folder = Folder::new();
    let plain = folder.file("in.safetensors");
    let given = [Given::f32("w.weight", &[4, 128], &weights(1, 512))];
    safetensors(&plain, &given, &[]);
    let w = le(&weights(1, 512));
    let other = gguf(&folder, "qwen2", &[("w", &[128, 4], TensorType::F32, &w)]);
    for input in [plain, other] {
        let error = refused(&folder, &input, &options());
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let said = error.to_string();
        assert!(
            said.contains("in.")
                && said.contains("language models in GGUF")
                && said.contains("llama, bitnet"),
            "{said}"
        );
    }
}

#[test]
fn what_bitnet_cpp_would_misread_is_refused_by_name() {
    let folder = Folder::new();
    let floats = le(&weights(1, 4 * 4 * 128));
    let named = |dims: &[u64], names: &[&str]| {
        let count = dims.iter().product::<u64>() as usize;
        let tensor = (
            "blk.0.ffn_up.weight",
            dims,
            TensorType::F32,
            &floats[..count * 4],
        );
        let input = gguf(&folder, "llama", &[tensor]);
        let mut options = options();
        options.include = names.iter().map(|name| name.to_string()).collect();
        refused(&folder, &input, &options).to_string()
    };
    for (dims, include, reason) in [
        (
            &[96, 4][..],
            &[][..],
            "rows of 96 values do not divide into i2_s groups of 128; exclude it",
        ),
        (
            &[128, 6],
            &[],
            "bitnet.cpp takes i2_s rows 4 at a time, and 6 do not divide by 4; exclude it",
        ),
        (
            &[128, 4, 4],
            &[],
            "its shape [4, 4, 128] is not that of a matrix; exclude it",
        ),
        (
            &[128],
            &["blk*"],
            "its shape [128] is not that of a matrix; exclude it",
        ),
    ] {
        let said = named(dims, include);
        assert!(
            said.contains("tensor `blk.0.ffn_up.weight`: ") && said.contains(reason),
            "{said}"
        );
    }
    // Excluded, it is copied.
    let input = gguf(
        &folder,
        "llama",
        &[
            ("a.weight", &[96, 4], TensorType::F32, &floats[..96 * 16]),
            ("b.weight", &[128, 4], TensorType::F32, &floats[..128 * 16]),
        ],
    );
    let excluding = QuantizeOptions {
        exclude: vec!["a.*".into()],
        ..options()
    };
    let (_, output) = run(
        &TensorFile::open(input).unwrap(),
        &excluding,
        &folder.file("out.gguf"),
    );
    let types = ["a.weight", "b.weight"].map(|name| output.get(name).unwrap().dtype);
    assert_eq!(types, [DType::F32, DType::I2S]);
}

#[test]
fn blocks_of_more_than_one_magnitude_are_refused_with_the_value() {
    let folder = Folder::new();
    let half = half::f16::from_f32(0.5);
    for format in [Format::Tq1_0, Format::Tq2_0, Format::Q2_0] {
        let kind = TensorType(format.gguf_type());
        let codes = [1i8, 0, -1, 0].repeat(4 * 64);
        let same = ternary(format, &codes, half).unwrap();
        // The third block of 256 values, or of 64, has another scale.
        let mut other = same.clone();
        let at = 2 * format.bytes() + format.scale_offset();
        other[at..at + 2].copy_from_slice(&half::f16::from_f32(0.25).to_le_bytes());
        let dims = [256, 4];
        let name = "blk.0.attn_q.weight";
        let input = gguf(&folder, "bitnet", &[(name, &dims, kind, &other)]);
        let said = refused(&folder, &input, &options()).to_string();
        let index = 2 * format.len();
        let reason = format!(
            "tensor `{name}`: value {index} is 0.25 and the largest is 0.5, but i2_s has one scale for all {} blocks",
            format.name()
        );
        assert!(
            said.contains(&reason) && said.contains("tercet dequantize"),
            "{said}"
        );
        // Scales of blocks of zeros say nothing.
        let (first, rest) = codes.split_at(format.len());
        let zeros = [vec![0; first.len()], rest.to_vec()].concat();
        let mut blocks = ternary(format, &zeros, half).unwrap();
        let at = format.scale_offset();
        blocks[at..at + 2].copy_from_slice(&half::f16::from_f32(2.0).to_le_bytes());
        let input = gguf(&folder, "bitnet", &[(name, &dims, kind, &blocks)]);
        let (_, output) = run(
            &TensorFile::open(input).unwrap(),
            &options(),
            &folder.file("out.gguf"),
        );
        let (found, scale) = values(output.get(name).unwrap().bytes);
        assert_eq!((found, scale), (zeros, 0.5));
    }
    // The fourth code of two bits is twice the scale.
    let mut two = ternary(Format::Q2_0, &[1i8, 0, -1, 0].repeat(4 * 32), half).unwrap();
    two[2] |= 3;
    let mut floats = [0.0; 512];
    decode(Format::Q2_0, &two, &mut floats).unwrap();
    assert_eq!(floats[0], 1.0);
    let kind = TensorType(Format::Q2_0.gguf_type());
    let input = gguf(
        &folder,
        "bitnet",
        &[("blk.0.attn_q.weight", &[128, 4], kind, &two)],
    );
    let said = refused(&folder, &input, &options()).to_string();
    assert!(
        said.contains("value 2 is -0.5 and the largest is 1, but i2_s has one scale"),
        "{said}"
    );
}

#[test]
fn a_value_that_is_not_finite_is_named() {
    let folder = Folder::new();
    for (at, bad) in [
        (0, f32::NAN),
        (40_000, f32::INFINITY),
        (99_999, f32::NEG_INFINITY),
    ] {
        let mut values = vec![0.5f32; 392 * 256];
        (values[at], values[100_000]) = (bad, f32::NAN);
        let tensor = ("x", &[256, 392][..], TensorType::F32, &le(&values)[..]);
        let input = gguf(&folder, "bitnet", &[tensor]);
        let said = refused(&folder, &input, &options()).to_string();
        assert!(
            said.contains(&format!("tensor `x`: value {at} is not finite")),
            "{said}"
        );
        assert_eq!(folder.names(), ["in.gguf"]);
    }
}

#[test]
fn types_that_bitnet_cpp_lacks_are_not_copied_beside_it() {
    let folder = Folder::new();
    let blocks = ternary(
        Format::Q2_0,
        &[1i8, 0, -1, 0].repeat(4 * 32),
        half::f16::ONE,
    )
    .unwrap();
    let kind = TensorType(Format::Q2_0.gguf_type());
    let carried = (0..4 * 128 / 32 * 17).map(|_| 0).collect::<Vec<u8>>();
    for (name, kind, bytes, said) in [
        ("token_embd.weight", kind, &blocks, "q2_0"),
        // MXFP4, whose number is TL2's there.
        ("blk.0.attn_q.weight", TensorType(39), &carried, "mxfp4"),
    ] {
        let input = gguf(&folder, "bitnet", &[(name, &[128, 4], kind, bytes)]);
        let error = refused(&folder, &input, &options()).to_string();
        let reason = format!("tensor `{name}`: bitnet.cpp does not read {said}");
        assert!(error.contains(&reason), "{error}");
    }
}

#[test]
fn options_of_other_targets_are_refused() {
    let folder = Folder::new();
    let w = le(&weights(1, 512));
    let input = gguf(&folder, "bitnet", &[("w", &[128, 4], TensorType::F32, &w)]);
    for rule in [Rule::AbsMax, Rule::AbsMean, Rule::Optimal] {
        let options = QuantizeOptions {
            rule: Some(rule),
            ..options()
        };
        let said = refused(&folder, &input, &options).to_string();
        assert!(
            said.contains("a ternary rule does not apply to i2_s"),
            "{said}"
        );
    }
    let out = folder.file("out.safetensors");
    let model = TensorFile::open(&input).unwrap();
    let error = quantize(&mut Threads::default(), &model, &options(), &out, &()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("safetensors does not hold i2_s; name the output *.gguf")
    );
}
