//! GGUF files from arrays and blocks, and back.

use std::path::{Path, PathBuf};

use numpy::ndarray::arr0;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use tercet_core::block::Format;
use tercet_core::gguf::{
    Array, Reader, Refusal, Sink, TensorSpec, TensorType, Value, ValueType, WriteError, Writer,
};
use tercet_host::file::output::Output;
use tercet_host::{Container, DType, Error, Tensor, TensorFile};

use crate::arrays::values;
use crate::blocks::Blocks;
use crate::error::{raised, refused};

/// An output behind a buffer, because the header comes in pieces of four bytes.
struct Buffered {
    output: Output,
    buffer: Vec<u8>,
}

const BUFFER: usize = 1 << 16;

impl Buffered {
    fn flush(&mut self) -> Result<(), Error> {
        self.output.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Sink for Buffered {
    type Error = Error;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() > BUFFER {
            return self.output.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }
}

/// A tensor to write: its name, its shape with the outermost dimension first, its type, and its bytes.
type Part<'py> = (String, Vec<u64>, String, PyReadonlyArray1<'py, u8>);

/// Writes tensors and metadata, and returns the size of the file. A value of metadata is a text, a list of texts, or an
/// array of numbers with one dimension or none.
#[pyfunction]
#[pyo3(signature = (path, parts, metadata, *, force))]
pub(crate) fn write_gguf(
    py: Python<'_>,
    path: PathBuf,
    parts: Vec<Part<'_>>,
    metadata: Vec<(String, Bound<'_, PyAny>)>,
    force: bool,
) -> PyResult<u64> {
    let mut specs = Vec::new();
    let mut bytes = Vec::new();
    for (name, shape, kind, data) in &parts {
        let refuse = |reason: &dyn ToString| raised(of_tensor(&path, name, reason));
        let kind = tensor_type(kind).ok_or_else(|| refuse(&format!("GGUF has no type {kind}")))?;
        let dims: Vec<u64> = shape.iter().rev().copied().collect();
        specs.push(TensorSpec::new(name, &dims, kind).map_err(|error| refuse(&error))?);
        bytes.push(data.as_slice().map_err(refused)?);
    }
    let owned: PyResult<Vec<Entry<'_>>> = metadata
        .iter()
        .map(|(key, value)| Entry::of(key, value))
        .collect();
    let owned = owned?;
    let texts: Vec<Vec<&str>> = owned.iter().map(Entry::texts).collect();
    let mut entries = Vec::new();
    for ((entry, texts), (key, _)) in owned.iter().zip(&texts).zip(&metadata) {
        entries.push((key.as_str(), entry.value(texts)?));
    }
    py.detach(|| write(&path, &specs, &bytes, &entries, force))
        .map_err(raised)
}

fn write(
    path: &Path,
    specs: &[TensorSpec<'_>],
    bytes: &[&[u8]],
    entries: &[(&str, Value<'_>)],
    force: bool,
) -> Result<u64, Error> {
    let fail = |error: WriteError<Error>| match error {
        WriteError::Sink(error) => error,
        WriteError::Refused(refusal) => refusal_of(path, specs, refusal),
    };
    let sink = Buffered {
        output: Output::create(path, [], force)?,
        buffer: Vec::with_capacity(BUFFER),
    };
    let mut header = Writer::new(sink, entries.len() as u64, specs).map_err(fail)?;
    for (key, value) in entries {
        header.entry(key, *value).map_err(fail)?;
    }
    let mut data = header.into_data().map_err(fail)?;
    for (spec, bytes) in specs.iter().zip(bytes) {
        data.begin(spec.name)
            .map_err(|error| refusal_of(path, specs, error))?;
        data.write(bytes).map_err(fail)?;
    }
    let mut sink = data
        .finish()
        .map_err(|error| refusal_of(path, specs, error))?;
    sink.flush()?;
    sink.output.finish()
}

/// Returns the writer's refusal, with the name of the tensor if it has a tensor's number.
fn refusal_of(path: &Path, specs: &[TensorSpec<'_>], refusal: Refusal) -> Error {
    match refusal {
        Refusal::NameLength { tensor, .. } | Refusal::Layout { tensor, .. } => {
            let name = specs.get(tensor as usize).map_or("", |spec| spec.name);
            of_tensor(path, name, &refusal)
        }
        _ => Error::Unsupported {
            path: path.to_path_buf(),
            reason: refusal.to_string(),
        },
    }
}

fn of_tensor(path: &Path, name: &str, reason: &dyn ToString) -> Error {
    Error::Tensor {
        path: path.to_path_buf(),
        tensor: name.to_owned(),
        reason: reason.to_string(),
    }
}

fn tensor_type(name: &str) -> Option<TensorType> {
    Some(match name {
        "f64" => TensorType::F64,
        "f32" => TensorType::F32,
        "f16" => TensorType::F16,
        "bf16" => TensorType::BF16,
        "i64" => TensorType::I64,
        "i32" => TensorType::I32,
        "i16" => TensorType::I16,
        "i8" => TensorType::I8,
        name => TensorType(Format::from_name(name)?.gguf_type()),
    })
}

macro_rules! numbers {
    ($($variant:ident($type:ty)),+ $(,)?) => {
        /// A value of metadata that Python owns.
        enum Entry<'py> {
            Text(String),
            Texts(Vec<String>),
            $($variant(PyReadonlyArrayDyn<'py, $type>),)+
        }

        impl<'py> Entry<'py> {
            fn of(key: &str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
                if let Ok(text) = value.extract() {
                    return Ok(Self::Text(text));
                }
                $(if let Ok(array) = value.extract() {
                    return Ok(Self::$variant(array));
                })+
                let texts = value.extract().map(Self::Texts);
                texts.map_err(|_| refused(format_args!("GGUF has no type for the metadata `{key}`")))
            }

            fn texts(&self) -> Vec<&str> {
                match self {
                    Self::Texts(texts) => texts.iter().map(String::as_str).collect(),
                    _ => Vec::new(),
                }
            }

            /// Returns the value; `texts` are [`Entry::texts`].
            fn value<'a>(&'a self, texts: &'a [&'a str]) -> PyResult<Value<'a>> {
                Ok(match self {
                    Self::Text(text) => Value::String(text),
                    Self::Texts(_) => Value::from(texts),
                    $(Self::$variant(array) => match (array.ndim(), values(array)?) {
                        (0, &[number]) => Value::$variant(number),
                        (_, numbers) => Value::from(numbers),
                    },)+
                })
            }
        }

        /// Returns a text, an array of numbers with one dimension or none, or a list.
        fn python<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
            Ok(match value {
                Value::String(text) => PyString::new(py, text).into_any(),
                Value::Array(array) => list(py, &array)?,
                $(Value::$variant(number) => arr0(number).into_pyarray(py).into_any(),)+
                _ => return Err(refused("a value of metadata has an unknown type")),
            })
        }

        fn list<'py>(py: Python<'py>, array: &Array<'_>) -> PyResult<Bound<'py, PyAny>> {
            Ok(match array.kind() {
                $(ValueType::$variant => {
                    let numbers = array.iter().filter_map(|value| match value {
                        Value::$variant(number) => Some(number),
                        _ => None,
                    });
                    numbers.collect::<Vec<$type>>().into_pyarray(py).into_any()
                })+
                _ => {
                    let items: PyResult<Vec<_>> = array.iter().map(|item| python(py, item)).collect();
                    PyList::new(py, items?)?.into_any()
                }
            })
        }
    };
}

numbers! {
    U8(u8), I8(i8), U16(u16), I16(i16), U32(u32), I32(i32), F32(f32), Bool(bool), U64(u64), I64(i64), F64(f64),
}

/// Writes a file of one tensor as the package's `write_gguf` does.
pub(crate) fn save<T: pyo3::PyTypeInfo>(
    tensor: &Bound<'_, T>,
    path: Bound<'_, PyAny>,
    name: &str,
    force: bool,
) -> PyResult<()> {
    let py = tensor.py();
    let (tensors, options) = (PyDict::new(py), PyDict::new(py));
    tensors.set_item(name, tensor)?;
    options.set_item("force", force)?;
    let package = py.import("tercet")?;
    package.call_method("write_gguf", (path, tensors), Some(&options))?;
    Ok(())
}

/// Returns the tensors of a file by name, and its metadata: blocks, or for plain numbers a type, a shape and bytes.
#[pyfunction]
pub(crate) fn read_gguf<'py>(
    py: Python<'py>,
    path: PathBuf,
    names: Option<Vec<String>>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let model = py.detach(|| TensorFile::open(&path)).map_err(raised)?;
    if model.container() != Container::Gguf {
        let reason = format!("a {} file, not a GGUF file", model.container().name());
        return Err(raised(Error::Unsupported { path, reason }));
    }
    let reader = Reader::new(model.raw()).map_err(refused)?;
    let metadata = PyDict::new(py);
    for (key, value) in reader.metadata() {
        metadata.set_item(key, python(py, value)?)?;
    }
    let tensors = PyDict::new(py);
    let Some(names) = names else {
        for tensor in model.tensors() {
            tensors.set_item(tensor.name, read(py, &path, &tensor)?)?;
        }
        return Ok((tensors, metadata));
    };
    for name in names {
        let tensor = model.get(&name).ok_or_else(|| {
            raised(Error::NoSuchTensor {
                path: path.clone(),
                tensor: name.clone(),
                close: Vec::new(),
            })
        })?;
        tensors.set_item(&name, read(py, &path, &tensor)?)?;
        for side in ["scale", "zero_point"] {
            let side = format!("{name}_{side}");
            if let Some(tensor) = model.get(&side) {
                tensors.set_item(side, read(py, &path, &tensor)?)?;
            }
        }
    }
    Ok((tensors, metadata))
}

fn read<'py>(py: Python<'py>, path: &Path, tensor: &Tensor<'_>) -> PyResult<Bound<'py, PyAny>> {
    match tensor.dtype {
        DType::Block(format) => {
            let blocks = Blocks::of(format, tensor.shape.to_vec(), tensor.bytes.to_vec());
            Ok(Bound::new(py, blocks)?.into_any())
        }
        DType::I2S | DType::Ggml(_) => {
            let reason = format!("the type {} is not decoded", tensor.dtype.name());
            Err(raised(of_tensor(path, tensor.name, &reason)))
        }
        dtype => {
            let bytes = PyArray1::from_slice(py, tensor.bytes);
            let plain = (dtype.name().into_owned(), tensor.shape.to_vec(), bytes);
            Ok(plain.into_pyobject(py)?.into_any())
        }
    }
}
