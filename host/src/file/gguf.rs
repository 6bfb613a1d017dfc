//! GGUF, through [`tercet_core::gguf`]: with reversed dimensions, and metadata copied and shown as text.

use std::collections::HashSet;
use std::path::Path;

use tercet_core::block::Format;
use tercet_core::gguf::{
    DataWriter, GgufError, Reader, Refusal, Sink, TensorSpec, TensorType, Value, WriteError,
    Writer as Header,
};

use super::OutputTensor;
use super::map::Map;
use super::output::Output;
use crate::dtype::DType;
use crate::tensor_file::{Container, Contents, Entry, Metadata};
use crate::{Error, TensorFile};

const FORMAT: &str = "GGUF";
/// The architecture name in a file made from another format; llama.cpp runs no such architecture.
const ARCHITECTURE: &str = "tercet";
/// Prefix of keys from safetensors metadata, which is removed on the way back.
const PREFIX: &str = "safetensors.";
/// The version of ggml's block layouts.
const QUANTIZATION_VERSION: u32 = 2;
/// Array elements in the text form.
const SHOWN: usize = 4;

pub(crate) fn read(map: Map) -> Result<Contents, Error> {
    let path = map.path();
    let bad = |reason: String| Error::bad(path, FORMAT, reason);
    let reader = Reader::new(map.bytes()).map_err(|e| refusal(path, map.bytes(), e))?;
    let mut keys = HashSet::new();
    if let Some((key, _)) = reader.metadata().find(|(key, _)| !keys.insert(*key)) {
        return Err(bad(format!("two metadata entries have the key `{key}`")));
    }
    // The data section is the end of the file.
    let data = map.bytes().len() - reader.data().len();
    let mut entries = Vec::new();
    for tensor in reader.tensors() {
        let dims = tensor.shape.dims().iter().rev();
        let shape: Option<Vec<usize>> = dims.map(|&dim| dim.try_into().ok()).collect();
        entries.push(Entry {
            name: tensor.name.to_owned(),
            shape: shape.ok_or_else(|| {
                Error::tensor(path, tensor.name, "its shape exceeds the address space")
            })?,
            dtype: read_dtype(tensor.kind),
            file: 0,
            // The reader cut `data` at this offset, so both fit.
            start: data + tensor.offset as usize,
            len: tensor.data.len(),
        });
    }
    let metadata = reader
        .metadata()
        .map(|(key, value)| (key.to_owned(), text(&value)));
    let metadata = metadata.collect();
    Ok(Contents {
        container: Container::Gguf,
        maps: vec![map],
        entries,
        metadata,
    })
}

/// Returns the reader's error, with the name of the tensor if it has a tensor's number.
fn refusal(path: &Path, bytes: &[u8], error: GgufError) -> Error {
    let described = error
        .tensor()
        .and_then(|tensor| Reader::described(bytes, tensor));
    match described {
        Some((offset, name)) => {
            let reason = format!("bad {FORMAT} file: {error} (it is described at offset {offset})");
            Error::tensor(path, name, reason)
        }
        None => Error::bad(path, FORMAT, error),
    }
}

fn text(value: &Value<'_>) -> String {
    match value {
        Value::U8(x) => x.to_string(),
        Value::I8(x) => x.to_string(),
        Value::U16(x) => x.to_string(),
        Value::I16(x) => x.to_string(),
        Value::U32(x) => x.to_string(),
        Value::I32(x) => x.to_string(),
        Value::F32(x) => x.to_string(),
        Value::Bool(x) => x.to_string(),
        Value::String(x) => (*x).to_owned(),
        Value::U64(x) => x.to_string(),
        Value::I64(x) => x.to_string(),
        Value::F64(x) => x.to_string(),
        Value::Array(array) => {
            let mut items: Vec<String> = array.iter().take(SHOWN).map(|item| text(&item)).collect();
            if array.len() > SHOWN {
                items.push(format!("… {} in all", array.len()));
            }
            format!("[{}]", items.join(", "))
        }
        _ => "?".to_owned(),
    }
}

/// Returns a GGUF model's metadata in the form of safetensors: as texts, without arrays such as a tokenizer's.
pub(crate) fn scalar_metadata(model: &TensorFile) -> Metadata {
    let Ok(reader) = Reader::new(model.raw()) else {
        return Metadata::new();
    };
    let scalars = reader
        .metadata()
        .filter(|(_, value)| value.as_array().is_none());
    scalars
        .map(|(key, value)| {
            (
                key.strip_prefix(PREFIX).unwrap_or(key).to_owned(),
                text(&value),
            )
        })
        .collect()
}

pub(crate) fn read_dtype(kind: TensorType) -> DType {
    match kind {
        TensorType::F64 => DType::F64,
        TensorType::F32 => DType::F32,
        TensorType::F16 => DType::F16,
        TensorType::BF16 => DType::Bf16,
        TensorType::I64 => DType::I64,
        TensorType::I32 => DType::I32,
        TensorType::I16 => DType::I16,
        TensorType::I8 => DType::I8,
        TensorType::I2_S => DType::I2S,
        other => Format::from_gguf_type(other.0).map_or(DType::Ggml(other), DType::Block),
    }
}

pub(crate) fn write_dtype(dtype: DType) -> Option<TensorType> {
    Some(match dtype {
        DType::F64 => TensorType::F64,
        DType::F32 => TensorType::F32,
        DType::F16 => TensorType::F16,
        DType::Bf16 => TensorType::BF16,
        DType::I64 => TensorType::I64,
        DType::I32 => TensorType::I32,
        DType::I16 => TensorType::I16,
        DType::I8 => TensorType::I8,
        DType::I2S => TensorType::I2_S,
        DType::Block(format) => TensorType(format.gguf_type()),
        DType::Ggml(kind) => kind,
        _ => return None,
    })
}

/// Returns the descriptions of the tensors to write into `output`.
pub(crate) fn specs<'a>(
    output: &Output,
    parts: &'a [OutputTensor],
) -> Result<Vec<TensorSpec<'a>>, Error> {
    let spec = |part: &'a OutputTensor| {
        let refuse = |reason: String| Error::tensor(output.path(), &part.name, reason);
        let kind = write_dtype(part.dtype).ok_or_else(|| {
            refuse(format!(
                "GGUF has no type {}; write .safetensors",
                part.dtype.name()
            ))
        })?;
        let dims: Vec<u64> = part.shape.iter().rev().map(|&dim| dim as u64).collect();
        TensorSpec::new(&part.name, &dims, kind).map_err(|e| refuse(e.to_string()))
    };
    parts.iter().map(spec).collect()
}

/// A key of metadata and its value.
pub(crate) type Pair<'a> = (String, Value<'a>);

/// The facts that a file states about itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    /// `general.file_type`: the type of most tensors, if GGUF has a number for it.
    pub(crate) file_type: Option<u32>,
    /// All other metadata; `None` for that of the input.
    pub(crate) entries: Option<&'a [Pair<'a>]>,
}

/// Writes tensors in order, each in pieces.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    data: DataWriter<'a, Buffered>,
    specs: &'a [TensorSpec<'a>],
    begun: usize,
}

impl<'a> Writer<'a> {
    /// Writes header, metadata and descriptions of a file that is made from `model`.
    pub(crate) fn new(
        output: Output,
        model: &TensorFile,
        about: About<'_>,
        specs: &'a [TensorSpec<'a>],
    ) -> Result<Self, Error> {
        if let Some(entries) = about.entries {
            return Self::described(output, entries, about.file_type, specs);
        }
        let carried = match model.container() {
            Container::Gguf => {
                Some(Reader::new(model.raw()).map_err(|e| Error::bad(output.path(), FORMAT, e))?)
            }
            _ => None,
        };
        let mut entries: Vec<Pair<'_>> = Vec::new();
        match &carried {
            Some(reader) => {
                let ours = ["general.file_type", "general.quantization_version"];
                let kept = reader.metadata().filter(|(key, _)| !ours.contains(key));
                entries.extend(kept.map(|(key, value)| (key.to_owned(), value)));
            }
            None => {
                entries.push(("general.architecture".into(), Value::String(ARCHITECTURE)));
                let texts = model.metadata().iter();
                entries.extend(
                    texts.map(|(key, value)| (format!("{PREFIX}{key}"), Value::String(value))),
                );
            }
        }
        Self::described(output, &entries, about.file_type, specs)
    }

    /// Writes header, metadata and descriptions: the given entries, the version of the block layouts, and the file's
    /// type.
    pub(crate) fn described(
        output: Output,
        entries: &[Pair<'_>],
        file_type: Option<u32>,
        specs: &'a [TensorSpec<'a>],
    ) -> Result<Self, Error> {
        let path = output.path().to_path_buf();
        let fail = |error: WriteError<Error>| match error {
            WriteError::Sink(error) => error,
            WriteError::Refused(
                refusal @ (Refusal::NameLength { tensor, .. } | Refusal::Layout { tensor, .. }),
            ) => {
                let name = specs.get(tensor as usize).map_or("", |spec| spec.name);
                Error::tensor(&path, name, refusal)
            }
            WriteError::Refused(refusal) => Error::unsupported(&path, refusal),
        };
        let sink = Buffered {
            output,
            buffer: Vec::with_capacity(Buffered::LEN),
        };
        let data = header(sink, entries, file_type, specs).map_err(fail)?;
        Ok(Self {
            data,
            specs,
            begun: 0,
        })
    }

    /// Appends bytes to a part; parts come in order.
    pub(crate) fn write(&mut self, part: usize, bytes: &[u8]) -> Result<(), Error> {
        self.begin(part);
        self.data.write(bytes).map_err(|error| match error {
            WriteError::Sink(error) => error,
            WriteError::Refused(refusal) => {
                unreachable!("a part is longer than was planned: {refusal}")
            }
        })
    }

    /// Begins every part up to and including `part`; the skipped ones have no bytes.
    fn begin(&mut self, part: usize) {
        while self.begun <= part {
            let name = self.specs[self.begun].name;
            self.data
                .begin(name)
                .expect("parts come in order, each complete");
            self.begun += 1;
        }
    }

    /// Puts the file in place and returns its size.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        if let Some(last) = self.specs.len().checked_sub(1) {
            self.begin(last);
        }
        let mut sink = self.data.finish().expect("every part was written in full");
        sink.flush()?;
        sink.output.finish()
    }
}

/// Writes all of a file except the tensors' bytes: the given entries, the version of the block layouts, and the file's
/// type.
fn header<'a, S: Sink>(
    sink: S,
    entries: &[Pair<'_>],
    file_type: Option<u32>,
    specs: &'a [TensorSpec<'a>],
) -> Result<DataWriter<'a, S>, WriteError<S::Error>> {
    let version = Some((
        "general.quantization_version",
        Value::U32(QUANTIZATION_VERSION),
    ));
    let file_type = file_type.map(|number| ("general.file_type", Value::U32(number)));
    let own = version.into_iter().chain(file_type);
    let count = entries.len() + own.clone().count();
    let mut header = Header::new(sink, count as u64, specs)?;
    let given = entries.iter().map(|(key, value)| (key.as_str(), *value));
    for (key, value) in given.chain(own) {
        header.entry(key, value)?;
    }
    header.into_data()
}

/// Returns a file in memory whose tensors are zeros.
///
/// # Errors
/// Contents that the format cannot hold.
pub(crate) fn zeros(
    entries: &[Pair<'_>],
    file_type: Option<u32>,
    specs: &[TensorSpec<'_>],
) -> Result<Vec<u8>, Refusal> {
    let refused = |error: WriteError<std::convert::Infallible>| match error {
        WriteError::Sink(never) => match never {},
        WriteError::Refused(refusal) => refusal,
    };
    let mut data = header(Bytes(Vec::new()), entries, file_type, specs).map_err(refused)?;
    let zeros = [0; 1 << 12];
    for spec in specs {
        data.begin(spec.name)?;
        let mut left = data.missing();
        while left > 0 {
            let now = left.min(zeros.len() as u64);
            data.write(&zeros[..now as usize]).map_err(refused)?;
            left -= now;
        }
    }
    Ok(data.finish()?.0)
}

/// A sink in memory.
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = std::convert::Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// An output behind a buffer, because the header comes in pieces of four bytes.
#[derive(Debug)]
struct Buffered {
    output: Output,
    buffer: Vec<u8>,
}

impl Buffered {
    const LEN: usize = 1 << 16;

    fn flush(&mut self) -> Result<(), Error> {
        self.output.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Sink for Buffered {
    type Error = Error;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.buffer.len() + bytes.len() > Self::LEN {
            self.flush()?;
        }
        if bytes.len() > Self::LEN {
            return self.output.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }
}
