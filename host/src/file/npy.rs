//! NumPy's npy format: one array, as a magic number, a header that is a Python dictionary, then the values.
//!
//! It reads little-endian `f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1` arrays in C order. The tensor is named after the file.

mod header;

use std::path::Path;

use super::map::Map;
use super::output::Output;
use crate::Error;
use crate::dtype::{DType, values};
use crate::tensor_file::{Container, Contents, Entry, Metadata};

const FORMAT: &str = "npy";
/// Characters of an unknown type in an error.
const SHOWN: usize = 24;

pub(crate) fn read(map: Map) -> Result<Contents, Error> {
    let path = map.path();
    let bytes = map.bytes();
    let bad = |reason: String| Error::bad(path, FORMAT, reason);
    let (header, start) = header::read(bytes).map_err(bad)?;
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let Some(descr) = header.descr else {
        return Err(Error::tensor(path, &name, "records are not numbers"));
    };
    let dtype = read_dtype(&descr).map_err(|reason| Error::tensor(path, &name, reason))?;
    let shape: Option<Vec<usize>> = header.shape.iter().map(|&n| n.try_into().ok()).collect();
    let size = shape
        .as_deref()
        .and_then(values)
        .and_then(|n| dtype.bytes(n));
    let (Some(shape), Some(len)) = (shape, size) else {
        return Err(bad("the array's size overflows".into()));
    };
    if header.fortran_order && shape.iter().filter(|&&n| n != 1).count() > 1 {
        let reason = "it is in Fortran order; save numpy.ascontiguousarray(array)";
        return Err(Error::tensor(path, &name, reason));
    }
    let present = bytes.len() - start;
    if present != len {
        return Err(bad(format!(
            "the array claims {len} bytes, but the file has {present} after its header"
        )));
    }
    let entry = Entry {
        name,
        shape,
        dtype,
        file: 0,
        start,
        len,
    };
    Ok(Contents {
        container: Container::Npy,
        maps: vec![map],
        entries: vec![entry],
        metadata: Metadata::new(),
    })
}

fn read_dtype(descr: &str) -> Result<DType, String> {
    let unknown = || {
        let shown: String = descr.chars().take(SHOWN).collect();
        format!("unknown dtype {shown}")
    };
    let (order, kind) = descr.split_at_checked(1).ok_or_else(unknown)?;
    let dtype = match kind {
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "b1" => DType::Bool,
        _ => return Err(unknown()),
    };
    match order {
        "<" => Ok(dtype),
        // A byte has no order.
        "|" | ">" if dtype.block().1 == 1 => Ok(dtype),
        ">" => Err(format!(
            "type {descr} is big-endian; save array.astype('<{kind}')"
        )),
        _ => Err(unknown()),
    }
}

/// Returns the NumPy type string of a type; `None` if it has none.
pub(crate) fn write_dtype(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::F64 => "<f8",
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::I64 => "<i8",
        DType::I32 => "<i4",
        DType::I16 => "<i2",
        DType::I8 => "|i1",
        DType::U64 => "<u8",
        DType::U32 => "<u4",
        DType::U16 => "<u2",
        DType::U8 => "|u1",
        DType::Bool => "|b1",
        _ => return None,
    })
}

/// Writes the header of an array; its values must follow.
pub(crate) fn write_header(
    output: &mut Output,
    name: &str,
    shape: &[usize],
    dtype: DType,
) -> Result<(), Error> {
    let path: &Path = output.path();
    let kind = write_dtype(dtype).ok_or_else(|| {
        Error::tensor(
            path,
            name,
            format!("npy has no type {}; write .safetensors", dtype.name()),
        )
    })?;
    output.write(&header::write(kind, shape))
}
