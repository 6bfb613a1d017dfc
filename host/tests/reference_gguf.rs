//! GGUF files against the `gguf` package and ggml's own reader, both ways.

use crate::support;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use tercet_core::gguf::{
    ALIGNMENT_KEY, Array, Reader, Shape, Sink, TensorSpec, TensorType, Value, ValueType, Writer,
};

const SCRIPT: &str = "gguf_files.py";

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn type_name(kind: ValueType) -> &'static str {
    match kind {
        ValueType::U8 => "UINT8",
        ValueType::I8 => "INT8",
        ValueType::U16 => "UINT16",
        ValueType::I16 => "INT16",
        ValueType::U32 => "UINT32",
        ValueType::I32 => "INT32",
        ValueType::F32 => "FLOAT32",
        ValueType::Bool => "BOOL",
        ValueType::String => "STRING",
        ValueType::Array => "ARRAY",
        ValueType::U64 => "UINT64",
        ValueType::I64 => "INT64",
        ValueType::F64 => "FLOAT64",
    }
}

/// The types from the outermost in; the script's reader does not see the type of an empty array's elements.
fn types(value: &Value<'_>, out: &mut Vec<&'static str>) {
    out.push(type_name(value.kind()));
    if let Some(first) = value.as_array().and_then(|array| array.iter().next()) {
        types(&first, out);
    }
}

/// The innermost values as the script prints them.
fn values(value: &Value<'_>, out: &mut Vec<String>) {
    out.push(match *value {
        Value::U8(x) => x.to_string(),
        Value::I8(x) => x.to_string(),
        Value::U16(x) => x.to_string(),
        Value::I16(x) => x.to_string(),
        Value::U32(x) => x.to_string(),
        Value::I32(x) => x.to_string(),
        Value::U64(x) => x.to_string(),
        Value::I64(x) => x.to_string(),
        Value::Bool(x) => u8::from(x).to_string(),
        Value::F32(x) => hex(&f64::from(x).to_le_bytes()),
        Value::F64(x) => hex(&x.to_le_bytes()),
        Value::String(text) => hex(text.as_bytes()),
        Value::Array(array) => return array.iter().for_each(|item| values(&item, out)),
        _ => unreachable!("thirteen types"),
    });
}

fn entry_line(key: &str, value: &Value<'_>) -> String {
    let (mut kinds, mut items) = (Vec::new(), Vec::new());
    types(value, &mut kinds);
    values(value, &mut items);
    format!("entry {key} {} {}", kinds.join(" "), items.join(","))
}

fn tensor_line(name: &str, kind: TensorType, shape: &Shape, data: &[u8]) -> String {
    let dims: Vec<_> = shape.dims().iter().map(u64::to_string).collect();
    format!("tensor {name} {kind} {} {}", dims.join(","), hex(data))
}

fn assert_lines(found: &str, wanted: &[String]) {
    for (found, wanted) in found.lines().zip(wanted) {
        assert_eq!(found.trim_end(), wanted.trim_end());
    }
    assert_eq!(found.lines().count(), wanted.len());
    println!("{} lines equal", wanted.len());
}

/// Entries of every type, and tensors of `kinds`; `nested` adds an array of arrays, which ggml refuses.
fn sample(kinds: &[TensorType], nested: bool) -> (Vec<u8>, Vec<String>) {
    let tokens: Vec<String> = (0..5000).map(|i| format!("▁token-{i} \0𝄞")).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let scores: Vec<f32> = (0..5000).map(|i| -(i as f32) / 3.0).collect();
    let lists = [Array::from(&[1u16, 2][..]), Array::from(&[3u16][..])];
    let mut entries: Vec<(&str, Value<'_>)> = vec![
        ("general.architecture", "demo".into()),
        (ALIGNMENT_KEY, 128u32.into()),
        ("scalar.u8", u8::MAX.into()),
        ("scalar.i8", i8::MIN.into()),
        ("scalar.u16", u16::MAX.into()),
        ("scalar.i16", i16::MIN.into()),
        ("scalar.u32", u32::MAX.into()),
        ("scalar.i32", i32::MIN.into()),
        ("scalar.u64", u64::MAX.into()),
        ("scalar.i64", i64::MIN.into()),
        ("scalar.f32", f32::from_bits(1).into()),
        ("scalar.f64", f64::NEG_INFINITY.into()),
        ("scalar.bool", true.into()),
        ("scalar.empty", "".into()),
        ("array.u8", [0u8, 255][..].into()),
        ("array.i8", [-128i8, 127][..].into()),
        ("array.u16", [1u16, 65_535][..].into()),
        ("array.i16", [-2i16, 3][..].into()),
        ("array.u32", [4u32][..].into()),
        ("array.i32", [-5i32; 300][..].into()),
        ("array.u64", [u64::MAX][..].into()),
        ("array.i64", [i64::MIN][..].into()),
        ("array.f64", [-0.0f64, 1e-310][..].into()),
        ("array.bool", [true, false, true][..].into()),
        ("array.none", [0f32; 0][..].into()),
        ("tokenizer.ggml.tokens", tokens[..].into()),
        ("tokenizer.ggml.scores", scores[..].into()),
    ];
    if nested {
        entries.push(("array.nested", lists[..].into()));
    }
    let shapes: [&[u64]; 4] = [&[], &[3], &[1, 2, 2], &[1, 1, 1, 5]];
    let names: Vec<_> = kinds
        .iter()
        .map(|kind| format!("blk.{kind}.weight"))
        .collect();
    let specs: Vec<_> = (kinds.iter().zip(&names).zip(shapes.iter().cycle()))
        .map(|((&kind, name), rows)| {
            let block = u64::from(kind.layout().unwrap().block_len);
            let dims = [&[2 * block], *rows].concat();
            TensorSpec::new(name, &dims[..dims.len().min(4)], kind).unwrap()
        })
        .collect();

    let mut lines = Vec::new();
    let mut writer = Writer::new(Bytes(Vec::new()), entries.len() as u64, &specs).unwrap();
    for (key, value) in &entries {
        writer.entry(key, *value).unwrap();
        lines.push(entry_line(key, value));
    }
    let mut writer = writer.into_data().unwrap();
    for spec in &specs {
        let len = spec.byte_len().unwrap();
        let data: Vec<u8> = (0..len).map(|i| (i * 31 + len) as u8).collect();
        writer.begin(spec.name).unwrap();
        for piece in data.chunks(50) {
            writer.write(piece).unwrap();
        }
        lines.push(tensor_line(spec.name, spec.kind, &spec.shape, &data));
    }
    (writer.finish().unwrap().0, lines)
}

/// gguf 0.19 has no Q2_0, and gives Q8_1 (never stored in files) 40 bytes where ggml has 36.
fn known_to_the_package() -> Vec<TensorType> {
    let unlike = [TensorType::Q2_0, TensorType::Q8_1];
    let all = TensorType::all().iter().copied();
    all.filter(|kind| !unlike.contains(kind)).collect()
}

#[test]
fn gguf_reader_finds_what_the_writer_wrote() {
    let Some(python) = support::python_with(&["gguf"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.gguf");
    let (bytes, lines) = sample(&known_to_the_package(), true);
    fs::write(&path, bytes).unwrap();
    let found = support::run(&python, SCRIPT, [OsStr::new("dump"), path.as_os_str()]);
    assert_lines(&found, &lines);
}

#[test]
fn the_reader_finds_what_gguf_writer_wrote() {
    let Some(python) = support::python_with(&["gguf", "numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.gguf");
    let written = support::run(&python, SCRIPT, [OsStr::new("write"), path.as_os_str()]);
    let bytes = fs::read(&path).unwrap();
    let reader = Reader::new(&bytes).unwrap();
    reader
        .check_names(&mut vec![0; reader.name_scratch_len()])
        .unwrap();
    assert_eq!(reader.alignment(), 64);
    let mut lines: Vec<_> = reader
        .metadata()
        .map(|(key, value)| entry_line(key, &value))
        .collect();
    lines.extend(
        reader
            .tensors()
            .map(|info| tensor_line(info.name, info.kind, &info.shape, info.data)),
    );
    assert_lines(&written, &lines);
}

#[test]
fn ggml_opens_what_the_writer_wrote() {
    let (Some(python), Some(ggml)) = (support::python(), support::ggml()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.gguf");
    let (bytes, _) = sample(TensorType::all(), false);
    fs::write(&path, &bytes).unwrap();
    let args = [OsStr::new("ggml"), ggml.as_os_str(), path.as_os_str()];
    let found = support::run(&python, SCRIPT, args);
    let reader = Reader::new(&bytes).unwrap();
    let mut lines: Vec<_> = reader
        .metadata()
        .map(|(key, _)| format!("key {key}"))
        .collect();
    let tensors = reader.tensors();
    lines.extend(
        tensors.map(|info| format!("tensor {} {} {}", info.name, info.kind.0, hex(info.data))),
    );
    assert_lines(&found, &lines);
}

/// Lines of number, name, elements and bytes of a block.
fn assert_layouts(found: &str, kinds: &[TensorType]) {
    let layout = |kind: &TensorType| {
        let layout = kind.layout().unwrap();
        format!(
            "{} {kind} {} {}",
            kind.0, layout.block_len, layout.block_bytes
        )
    };
    assert_lines(found, &kinds.iter().map(layout).collect::<Vec<_>>());
}

#[test]
fn block_layouts_are_those_of_the_package_and_of_ggml() {
    let Some(python) = support::python_with(&["gguf"]) else {
        return;
    };
    let found = support::run(&python, SCRIPT, ["types"]);
    assert_layouts(&found, &known_to_the_package());
    let Some(ggml) = support::ggml() else {
        return;
    };
    let args = [Path::new("ggml-types"), &ggml];
    assert_layouts(&support::run(&python, SCRIPT, args), TensorType::all());
}
