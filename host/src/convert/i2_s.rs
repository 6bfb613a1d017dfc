//! I2_S tensors as bitnet.cpp reads them on x86: ternary codes, then one `f32` scale for all of them.
//!
//! The scale is needed before the first code, so the values are read three times: for their largest, to find out if all
//! others have its magnitude, and for the codes.

use tercet_core::block::i2_s::{self, Interleave};

use super::one_scale::{code, digit, other_than};
use super::runs::Coder;
use super::span::Done;
use super::stats;
use super::stream::Sink;
use crate::simd::{Backend, Stores};
use crate::source::Source;
use crate::{Error, Progress};

/// bitnet.cpp's number of a file whose matrices are I2_S. Newer llama.cpp has given the number to another type.
pub(super) const FILE_TYPE: u32 = 40;

/// The only layout that is written.
const LAYOUT: Interleave = Interleave::X86x128;

/// Bytes of a tensor without values: the scale and its padding.
const TAIL: usize = 32;

/// Returns the bytes of a tensor, for rows that are whole groups.
pub(super) const fn bytes(values: u64) -> u64 {
    values / 4 + TAIL as u64
}

/// Returns why bitnet.cpp would misread such a matrix as I2_S; `None` if it would not.
pub(super) fn misread(shape: &[usize]) -> Option<String> {
    /// bitnet.cpp divides the rows among its threads by this many, and writes past the end if the last are fewer.
    const ROWS: usize = 4;
    let group = LAYOUT.group();
    match *shape {
        [_, cols] if !cols.is_multiple_of(group) => Some(format!(
            "rows of {cols} values do not divide into i2_s groups of {group}"
        )),
        [rows, _] if !rows.is_multiple_of(ROWS) => Some(format!(
            "bitnet.cpp takes i2_s rows {ROWS} at a time, and {rows} do not divide by {ROWS}"
        )),
        [_, _] => None,
        _ => Some(format!("its shape {shape:?} is not that of a matrix")),
    }
}

/// Encodes a matrix with one scale.
///
/// Values that are all −s, 0 and s keep the scale s. Others have their exact mean magnitude as scale, and a code is the
/// value divided by it, rounded half to even and clipped. Blocks are only repacked: values of more than one magnitude
/// are refused.
pub(super) fn encode(
    source: &Source<'_>,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Done, Error> {
    let refuse = |reason: String| Error::tensor(source.path, source.tensor.name, reason);
    let stats = stats::of_tensor(source)?;
    let largest = stats.abs_max();
    let scale = match other_than(source, largest)? {
        None => largest,
        Some((index, value)) if source.is_quantized() => {
            return Err(refuse(format!(
                "value {index} is {value} and the largest is {largest}, but i2_s has one scale for all {} blocks of a \
                 tensor; tercet dequantize makes floats of them, which are rounded to one scale",
                source.type_name()
            )));
        }
        Some(_) => stats.abs_mean().unwrap_or(0.0),
    };
    let coder = OneScale {
        scale,
        inverse: 1.0 / scale,
    };
    let done = code(source, &coder, true, progress, sink)?;
    let mut tail = [0; TAIL];
    i2_s::encode(LAYOUT, &[], scale, &mut tail).map_err(|error| refuse(error.to_string()))?;
    sink(0, &tail)?;
    Ok(done)
}

/// The codes of a tensor, without what follows them.
struct OneScale {
    scale: f32,
    /// 1 / scale.
    inverse: f32,
}

impl Coder for OneScale {
    fn bytes(&self, values: usize) -> usize {
        values / 4
    }

    fn encode(&self, _: usize, values: &[f32], out: &mut [u8]) -> Result<u64, String> {
        let codes: Vec<i8> = values.iter().map(|&x| digit(x, self.inverse)).collect();
        let mut tensor = vec![0; out.len() + TAIL];
        i2_s::encode(LAYOUT, &codes, self.scale, &mut tensor).map_err(|e| e.to_string())?;
        out.copy_from_slice(&tensor[..out.len()]);
        Ok(0)
    }

    fn restore(&self, _: usize, bytes: &[u8], out: &mut [f32]) -> Result<(), String> {
        let backend = Backend::default();
        let ternary = backend.decode_groups(LAYOUT, bytes, self.scale, out, Stores::Cached);
        assert!(ternary, "every code was encoded");
        Ok(())
    }
}
