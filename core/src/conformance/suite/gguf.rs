//! GGUF files: the writer's output, the reader's output, and errors.

use super::Digest;
use crate::gguf::{Reader, Sink, SliceSink, TensorSpec, TensorType, Value, WriteError, Writer};
use crate::number::Random;

/// A file of some 600 bytes.
const FILE: usize = 1024;

pub(super) fn run(report: &mut dyn FnMut(&'static str, u64)) {
    let mut file = [0; FILE];
    let (name, mut digest) = ("gguf/write", Digest::new());
    let written = write(SliceSink::new(&mut file)).map(|sink| sink.len());
    let len = digest.outcome(written).unwrap_or(0);
    let file = file.get_mut(..len).unwrap_or_default();
    digest.bytes(file);
    report(name, digest.value());
    report("gguf/read", read(file));
    report("gguf/refuse", refuse(file));
}

/// Writes every scalar type, strings, and tensors whose lengths need padding.
fn write<S: Sink>(sink: S) -> Result<S, Failure> {
    let tensors = [
        TensorSpec::new("blocks", &[256, 1], TensorType::TQ2_0).map_err(|_| Failure)?,
        TensorSpec::new("floats", &[3], TensorType::F32).map_err(|_| Failure)?,
        TensorSpec::new("empty", &[0], TensorType::F16).map_err(|_| Failure)?,
        TensorSpec::new("rows", &[32, 2], TensorType::Q8_0).map_err(|_| Failure)?,
    ];
    let entries = [
        ("general.architecture", Value::String("conformance")),
        ("u8", Value::U8(200)),
        ("i8", Value::I8(-100)),
        ("u16", Value::U16(60_000)),
        ("i16", Value::I16(-30_000)),
        ("u32", Value::U32(4_000_000_000)),
        ("i32", Value::I32(-2_000_000_000)),
        ("f32", Value::F32(-0.1)),
        ("bool", Value::Bool(true)),
        ("u64", Value::U64(u64::MAX)),
        ("i64", Value::I64(i64::MIN)),
        ("f64", Value::F64(1.0e-300)),
    ];
    let mut writer = Writer::new(sink, entries.len() as u64, &tensors)?;
    for (key, value) in entries {
        writer.entry(key, value)?;
    }
    let mut data = writer.into_data()?;
    let mut random = Random::new(19);
    for tensor in &tensors {
        data.begin(tensor.name).map_err(|_| Failure)?;
        for _ in 0..tensor.byte_len().map_err(|_| Failure)? {
            data.write(&[random.next_u64() as u8])?;
        }
    }
    data.finish().map_err(|_| Failure)
}

/// The file is fixed, so failures need no details.
struct Failure;

impl<E> From<WriteError<E>> for Failure {
    fn from(_: WriteError<E>) -> Self {
        Self
    }
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the fixed file could not be written")
    }
}

#[inline(never)]
fn read(file: &[u8]) -> u64 {
    let mut digest = Digest::new();
    let Some(reader) = digest.outcome(Reader::new(file)) else {
        return digest.value();
    };
    for (key, value) in reader.metadata() {
        digest.bytes(key.as_bytes());
        match value {
            Value::U8(x) => digest.u64(x.into()),
            Value::I8(x) => digest.u64(x as u64),
            Value::U16(x) => digest.u64(x.into()),
            Value::I16(x) => digest.u64(x as u64),
            Value::U32(x) => digest.u64(x.into()),
            Value::I32(x) => digest.u64(x as u64),
            Value::U64(x) => digest.u64(x),
            Value::I64(x) => digest.u64(x as u64),
            Value::F32(x) => digest.f32(x),
            Value::F64(x) => digest.f64(x),
            Value::Bool(x) => digest.u64(x.into()),
            Value::String(x) => digest.bytes(x.as_bytes()),
            Value::Array(x) => digest.u64(x.len() as u64),
        }
    }
    for tensor in reader.tensors() {
        digest.bytes(tensor.name.as_bytes());
        for &dim in tensor.shape.dims() {
            digest.u64(dim);
        }
        digest.bytes(tensor.data);
    }
    digest.value()
}

/// Every shorter file, and every byte inverted in turn: success or error, including its message.
#[inline(never)]
fn refuse(file: &mut [u8]) -> u64 {
    let mut digest = Digest::new();
    for len in 0..file.len() {
        digest.outcome(Reader::new(file.get(..len).unwrap_or_default()));
    }
    for index in 0..file.len() {
        for _ in 0..2 {
            if let Some(byte) = file.get_mut(index) {
                *byte = !*byte;
            }
            digest.outcome(Reader::new(file));
        }
    }
    digest.value()
}
