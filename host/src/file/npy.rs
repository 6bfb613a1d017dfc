//! NumPy's npy: one array, a magic number, a Python dictionary as header, then the values.
//!
//! Read: little-endian `f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1` arrays in C order. The tensor is named after the file.

use std::path::Path;

use npyz::{DType as NpyType, Endianness, NpyHeader, Order, TypeChar, TypeStr, WriterBuilder};

use super::map::Map;
use super::output::Output;
use crate::Error;
use crate::dtype::{DType, values};
use crate::model::{Container, Contents, Entry, Metadata};

const FORMAT: &str = "npy";
/// NumPy itself refuses longer headers by default (10,000 bytes); arrays of plain numbers need a hundred.
const MAX_HEADER: usize = 65_536;
/// NumPy allows 64 dimensions; the dictionary and a tuple are two more brackets.
const MAX_DEPTH: usize = 8;

pub(crate) fn read(map: Map) -> Result<Contents, Error> {
    let path = map.path();
    let bytes = map.bytes();
    let bad = |reason: String| Error::bad(path, FORMAT, reason);
    check_header(bytes).map_err(|reason| bad(reason.into()))?;

    let mut rest = bytes;
    let header = NpyHeader::from_reader(&mut rest).map_err(|e| bad(first_line(&e)))?;
    let start = bytes.len() - rest.len();
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let NpyType::Plain(kind) = header.dtype() else {
        return Err(Error::tensor(path, &name, "records are not numbers"));
    };
    let dtype = read_dtype(&kind).map_err(|reason| Error::tensor(path, &name, reason))?;
    let shape: Option<Vec<usize>> = header.shape().iter().map(|&n| n.try_into().ok()).collect();
    let size = shape
        .as_deref()
        .and_then(values)
        .and_then(|n| dtype.bytes(n));
    let (Some(shape), Some(len)) = (shape, size) else {
        return Err(bad("the array's size overflows".into()));
    };
    if header.order() == Order::Fortran && shape.iter().filter(|&&n| n != 1).count() > 1 {
        let reason = "it is in Fortran order; save numpy.ascontiguousarray(array)";
        return Err(Error::tensor(path, &name, reason));
    }
    if rest.len() != len {
        let present = rest.len();
        return Err(bad(format!(
            "the array claims {len} bytes, the file has {present} after its header"
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

/// The parser draws its syntax errors over several lines; the first says what is wrong and where.
fn first_line(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.lines()
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

/// Refuses headers that the parser is not made for: it allocates the length it is told, recurses into brackets
/// and multiplies the dimensions unchecked.
fn check_header(bytes: &[u8]) -> Result<(), &'static str> {
    let truncated = "it ends inside its header";
    let version = *bytes.get(6).ok_or(truncated)?;
    let (at, length) = match version {
        1 => (
            10,
            bytes
                .get(8..10)
                .map(|b| usize::from(u16::from_le_bytes([b[0], b[1]]))),
        ),
        _ => (
            12,
            bytes
                .get(8..12)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize),
        ),
    };
    let length = length.ok_or(truncated)?;
    if length > MAX_HEADER {
        return Err("its header is longer than 65536 bytes");
    }
    let text = bytes.get(at..at + length).ok_or(truncated)?;
    let mut depth = 0usize;
    let mut product = 1u64;
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'0'..=b'9' => {
                let mut number = u64::from(byte - b'0');
                while let Some((&digit @ b'0'..=b'9', after)) = rest.split_first() {
                    let next = number
                        .checked_mul(10)
                        .and_then(|n| n.checked_add(u64::from(digit - b'0')));
                    number = next.ok_or("a number in its header overflows")?;
                    rest = after;
                }
                if rest
                    .first()
                    .is_some_and(|&b| b == b'_' || b.is_ascii_alphabetic())
                {
                    return Err("a number in its header is not decimal");
                }
                product = product
                    .checked_mul(number.max(1))
                    .ok_or("the array's size overflows")?;
            }
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err("its header nests too deeply");
        }
    }
    Ok(())
}

fn read_dtype(kind: &TypeStr) -> Result<DType, String> {
    let size = kind.size_field();
    if kind.endianness() == Endianness::Big && size > 1 {
        return Err(format!(
            "type {kind} is big-endian; save array.astype('<{}')",
            &kind.to_string()[1..]
        ));
    }
    Ok(match (kind.type_char(), size) {
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Float, 8) => DType::F64,
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Uint, 1) => DType::U8,
        (TypeChar::Uint, 2) => DType::U16,
        (TypeChar::Uint, 4) => DType::U32,
        (TypeChar::Uint, 8) => DType::U64,
        (TypeChar::Bool, 1) => DType::Bool,
        _ => return Err(format!("unknown dtype {kind}")),
    })
}

/// The NumPy type string of a type; `None` where it has none.
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

/// Writes the header of an array; its values are to follow.
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
    let kind: TypeStr = kind
        .parse()
        .expect("the table above holds valid type strings");
    let shape: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
    let mut header = Vec::new();
    npyz::WriteOptions::new_header_only()
        .dtype(NpyType::new_scalar(kind))
        .shape(&shape)
        .writer(&mut header)
        .write_header_only()
        .map_err(Error::io(path, "write"))?;
    output.write(&header)
}
