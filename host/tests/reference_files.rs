//! Files written here, read by the formats' own Python packages, and the other way round.

use crate::support;
use std::path::Path;

use crate::files::{Folder, Given, safetensors, weights};
use tercet_core::block::Format;
use tercet_host::convert::{Per, Scheme, Target};
use tercet_host::parallel::Threads;
use tercet_host::{DType, DequantizeOptions, QuantizeOptions, TensorFile, dequantize, quantize};

const MODULES: &[&str] = &["gguf", "numpy", "safetensors"];

/// What Python reads from a file: a line for each tensor, and the bytes of all values as `f32`.
fn read(python: &Path, folder: &Folder, path: &Path) -> (Vec<String>, Vec<u8>) {
    let values = folder.file("values.f32");
    let text = support::run(
        python,
        "files.py",
        ["read".as_ref(), path.as_os_str(), values.as_os_str()],
    );
    let lines = text.lines().map(str::to_owned).collect();
    (lines, std::fs::read(values).unwrap())
}

/// The same from a model's restored floats.
fn ours(folder: &Folder, path: &Path) -> Vec<u8> {
    let back = folder.file("ours.safetensors");
    let options = DequantizeOptions {
        force: true,
        ..DequantizeOptions::default()
    };
    dequantize(
        &mut Threads::default(),
        &TensorFile::open(path).unwrap(),
        &options,
        &back,
        &(),
    )
    .unwrap();
    let back = TensorFile::open(&back).unwrap();
    let model = TensorFile::open(path).unwrap();
    let names = model.tensors().filter_map(|tensor| back.get(tensor.name));
    names.flat_map(|tensor| tensor.bytes.to_vec()).collect()
}

fn input(folder: &Folder) -> TensorFile {
    let path = folder.file("in.safetensors");
    let given = [
        Given::f32("a.weight", &[6, 512], &weights(1, 6 * 512)),
        Given::f32("b.weight", &[2, 3, 256], &weights(2, 6 * 256)),
        Given::f32("c.weight", &[4, 96], &weights(3, 4 * 96)),
        Given::f32("norm", &[10], &weights(4, 10)),
    ];
    safetensors(&path, &given, &[("format", "pt")]);
    TensorFile::open(path).unwrap()
}

#[test]
fn gguf_written_opens_in_gguf_reader_with_equal_values() {
    let Some(python) = support::python_with(MODULES) else {
        return;
    };
    let folder = Folder::new();
    let model = input(&folder);
    for target in [
        Target::Blocks(Format::Tq1_0),
        Target::Blocks(Format::Tq2_0),
        Target::Blocks(Format::Q8_0),
        Target::Blocks(Format::Q4_0),
    ] {
        let out = folder.file(&format!("{target}.gguf"));
        quantize(
            &mut Threads::default(),
            &model,
            &QuantizeOptions::new(target),
            &out,
            &(),
        )
        .unwrap();
        let (lines, values) = read(&python, &folder, &out);
        let c = if target == Target::Blocks(Format::Q8_0) {
            "q8_0"
        } else {
            "q4_0"
        };
        let expected = [
            format!("a.weight {target} 6x512"),
            format!("b.weight {target} 2x3x256"),
            format!("c.weight {c} 4x96"),
            "norm f32 10".to_owned(),
        ];
        assert_eq!(lines, expected);
        assert!(values == ours(&folder, &out), "{target}: values differ");
    }
}

#[test]
fn safetensors_and_npy_written_open_in_python_with_equal_values() {
    let Some(python) = support::python_with(MODULES) else {
        return;
    };
    let folder = Folder::new();
    let model = input(&folder);
    for (target, grid) in [
        (Target::Int8, Scheme::Symmetric),
        (Target::Int8, Scheme::Affine),
        (Target::Ternary, Scheme::Symmetric),
    ] {
        for per in [Per::Tensor, Per::Row, Per::Block(32)] {
            let out = folder.file("out.safetensors");
            let options = QuantizeOptions {
                grid,
                per: Some(per),
                force: true,
                ..QuantizeOptions::new(target)
            };
            quantize(&mut Threads::default(), &model, &options, &out, &()).unwrap();
            let (mut lines, _) = read(&python, &folder, &out);
            lines.sort();
            let expected = [
                "a.weight int8 6x512",
                "b.weight int8 2x3x256",
                "c.weight int8 4x96",
                "norm float32 10",
            ];
            assert_eq!(lines, expected);

            // safetensors lists in an order of its own: compare tensor by tensor.
            for name in ["a.weight", "b.weight", "c.weight"] {
                let one = folder.file("one.safetensors");
                let held = TensorFile::open(&out).unwrap();
                let parts = ["", "_scale", "_zero_point"].map(|suffix| format!("{name}{suffix}"));
                let given: Vec<Given> = ["w", "w_scale", "w_zero_point"]
                    .into_iter()
                    .zip(&parts)
                    .filter_map(|(short, part)| {
                        let tensor = held.get(part)?;
                        let dtype = match tensor.dtype {
                            DType::I8 => safetensors::Dtype::I8,
                            _ => safetensors::Dtype::F32,
                        };
                        Some(Given::new(
                            short,
                            dtype,
                            tensor.shape,
                            tensor.bytes.to_vec(),
                        ))
                    })
                    .collect();
                safetensors(&one, &given, &[]);
                let (_, values) = read(&python, &folder, &one);
                assert!(
                    values == ours(&folder, &one),
                    "{target} {per:?}: values of {name} differ"
                );
            }
        }
    }
    let single = folder.file("single.safetensors");
    safetensors(
        &single,
        &[Given::f32("w", &[2, 256], &weights(8, 512))],
        &[],
    );
    let coded = folder.file("single.gguf");
    let model = TensorFile::open(&single).unwrap();
    quantize(
        &mut Threads::default(),
        &model,
        &QuantizeOptions::new(Target::Blocks(Format::Tq2_0)),
        &coded,
        &(),
    )
    .unwrap();
    let npy = folder.file("single.npy");
    dequantize(
        &mut Threads::default(),
        &TensorFile::open(&coded).unwrap(),
        &DequantizeOptions::default(),
        &npy,
        &(),
    )
    .unwrap();
    let (lines, values) = read(&python, &folder, &npy);
    assert_eq!(lines, ["array float32 2x256"]);
    assert!(values == ours(&folder, &coded));
}

#[test]
fn metadata_of_a_gguf_model_is_carried_through() {
    let Some(python) = support::python_with(MODULES) else {
        return;
    };
    let folder = Folder::new();
    let before = folder.file("before.gguf");
    support::run(
        &python,
        "files.py",
        ["write-gguf".as_ref(), before.as_os_str()],
    );
    let model = TensorFile::open(&before).unwrap();
    let after = folder.file("after.gguf");
    quantize(
        &mut Threads::default(),
        &model,
        &QuantizeOptions::new(Target::Blocks(Format::Tq2_0)),
        &after,
        &(),
    )
    .unwrap();
    let same = [
        "same-metadata".as_ref(),
        before.as_os_str(),
        after.as_os_str(),
    ];
    let entries: usize = support::run(&python, "files.py", same)
        .trim()
        .parse()
        .unwrap();
    assert!(entries >= 12, "only {entries} entries were compared");

    let (lines, values) = read(&python, &folder, &after);
    let expected = [
        "token_embd.weight q8_0 4x256",
        "blk.0.ffn_up.weight tq2_0 3x2x512",
        "blk.0.attn_norm.weight f32 256",
        "blk.0.ids i32 2x3",
        "blk.0.q5.weight q5_0 2x64",
    ];
    assert_eq!(lines, expected);
    assert!(!values.is_empty());
    let written = TensorFile::open(&after).unwrap();
    for name in ["blk.0.attn_norm.weight", "blk.0.ids", "blk.0.q5.weight"] {
        let (before, after) = (model.get(name).unwrap(), written.get(name).unwrap());
        assert_eq!(
            (before.bytes, before.shape, before.dtype),
            (after.bytes, after.shape, after.dtype)
        );
    }
    let file_type = written
        .metadata()
        .iter()
        .find(|(key, _)| key == "general.file_type");
    assert_eq!(file_type.map(|(_, value)| &**value), Some("37"));
}
