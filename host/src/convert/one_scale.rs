//! Codes with a scale for more than a block: ternary codes with one per tensor, int8 codes with one per row.
//!
//! Both need their scales before the first code, so plain floats are read twice.

use half::f16;
use tercet_core::block::Format;
use tercet_core::quant::Measures;

use super::measure::Loss;
use super::runs::{self, Coder};
use super::span::{Done, Span};
use super::stats;
use super::stream::{Encoder, Parts, Sink, stream};
use crate::dtype::DType;
use crate::language::{byte_rows, ternary as ternary_blocks};
use crate::parallel::each::numbers;
use crate::simd::{Backend, Stores};
use crate::source::{CHUNK, Source, tiles};
use crate::{Error, Progress, floats};

/// The smallest scale of a ternary tensor, 2⁻¹⁴: below it f16 loses digits.
const LEAST: f32 = 1.0 / 16_384.0;
/// The largest int8 code.
const LIMIT: f32 = 127.0;

/// Encodes a matrix as −1, 0 and 1 with one scale, in blocks of a ternary format, or as their values in `f32` or `f16`.
///
/// The scale is the exact mean magnitude as f16, and a code is the value divided by it, rounded half to even and
/// clipped. Codes that are already packed stay as they are, and their scale is the value of their 1 as f16. If `kept`,
/// values that are all −s, 0 or s for some s get the scale s, and stay as they are too.
pub(super) fn ternary(
    source: &Source<'_>,
    dtype: DType,
    kept: bool,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Done, Error> {
    let refuse = |reason: String| Error::tensor(source.path, source.tensor.name, reason);
    let unit = match source.unit() {
        Some(unit) => unit,
        None => {
            let stats = stats::of_tensor(source)?;
            let largest = stats.abs_max();
            match kept && other_than(source, largest)?.is_none() {
                true => largest,
                false => stats.abs_mean().unwrap_or(0.0),
            }
        }
    };
    let scale = f16::from_f32(unit);
    if !(LEAST..f32::INFINITY).contains(&scale.to_f32()) {
        return Err(refuse(format!(
            "its scale would be {unit}, but f16 holds scales in full only from 2^-14 to 65504"
        )));
    }
    let inverse = 1.0 / scale.to_f32();
    let coder = Ternary {
        dtype,
        scale,
        inverse,
    };
    code(source, &coder, !source.is_quantized(), progress, sink)
}

/// Returns the first value that is not −s, 0 or s, with its index.
pub(super) fn other_than(source: &Source<'_>, s: f32) -> Result<Option<(usize, f32)>, Error> {
    let other = |values: &[f32]| {
        let found = values.iter().position(|x| *x != 0.0 && x.abs() != s);
        (values.len(), found.map(|index| (index, values[index])))
    };
    let found = tiles(source, 0, source.values(), other, |a, b| {
        let second = b.1.map(|(index, value)| (a.0 + index, value));
        (a.0 + b.0, a.1.or(second))
    })?;
    Ok(found.and_then(|(_, other)| other))
}

/// Returns the code of a value, given 1 / scale.
pub(super) fn digit(x: f32, inverse: f32) -> i8 {
    let scaled = x * inverse;
    // ½ rounds to the even 0, and all above it to 1.
    i8::from(scaled > 0.5) - i8::from(scaled < -0.5)
}

/// Encodes a matrix as Q8_0 with one scale per row: d = f16(max |row| / 127), codes rounded half away from zero. The
/// rows divide into its blocks.
pub(super) fn rows(
    source: &Source<'_>,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Done, Error> {
    let cols = source.tensor.row();
    let coder = Rows {
        cols,
        scales: row_scales(source, cols)?,
    };
    code(source, &coder, !source.is_quantized(), progress, sink)
}

/// A tensor in conversion by its own coder.
struct Coded<'a, 's, C> {
    source: &'a Source<'s>,
    coder: &'a C,
    flushed: u64,
    /// `None` if nothing is measured.
    loss: Option<Loss>,
}

impl<C: Coder + Send> Encoder for Coded<'_, '_, C> {
    fn end(&self) -> usize {
        self.source.values()
    }

    fn chunk(&mut self, first: usize, out: &mut Parts) -> Result<usize, Error> {
        let len = CHUNK.min(self.end() - first);
        let out = out.room(0, self.coder.bytes(len));
        let chunk = Span {
            source: self.source,
            first,
            len,
        };
        self.flushed += runs::encode(chunk, self.coder, out, self.loss.as_mut())?;
        Ok(first + len)
    }
}

/// Encodes a tensor with its own coder, and measures the loss if `measured`: not that of a source which is itself
/// quantized, and so no original, unless its values must stay.
pub(super) fn code(
    source: &Source<'_>,
    coder: &(impl Coder + Send),
    measured: bool,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Done, Error> {
    let mut coded = Coded {
        source,
        coder,
        flushed: 0,
        loss: measured.then(Loss::default),
    };
    stream(source, &mut coded, progress, sink)?;
    let measures: Option<Measures> = coded.loss.and_then(|loss| loss.finish());
    Ok(Done {
        flushed: coded.flushed,
        measures,
    })
}

/// Returns the scale of each row.
fn row_scales(source: &Source<'_>, cols: usize) -> Result<Vec<f16>, Error> {
    let rows = source.values() / cols.max(1);
    // Rows per task: at most as many values as a chunk, or one row.
    let each = (CHUNK / 16 / cols.max(1)).max(1);
    let mut scales = Vec::with_capacity(rows);
    let tasks = numbers(0..rows.div_ceil(each)).gather_with(Vec::new, |buffer, _, task| {
        let first = task * each;
        let count = each.min(rows - first);
        let values = source.view(first * cols, count * cols, buffer)?;
        let scales = (first..).zip(values.chunks_exact(cols));
        let scale = |(row, values): (usize, &[f32])| {
            let largest = values.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            let bad = values.iter().position(|x| !x.is_finite());
            if let Some(bad) = bad {
                let index = row * cols + bad;
                return Err(Error::not_finite(source.path, source.tensor.name, index));
            }
            let scale = f16::from_f32(largest / LIMIT);
            if scale.is_infinite() {
                let reason = format!("row {row} has {largest}, too large for q8_0's scale");
                return Err(Error::tensor(source.path, source.tensor.name, reason));
            }
            Ok(scale)
        };
        scales.map(scale).collect::<Result<Vec<_>, Error>>()
    });
    // In order, so that the lowest index is reported.
    for task in tasks {
        scales.extend(task?);
    }
    Ok(scales)
}

/// Ternary codes with one scale.
struct Ternary {
    /// Blocks of a ternary format, `f32` or `f16`.
    dtype: DType,
    scale: f16,
    /// 1 / scale.
    inverse: f32,
}

impl Coder for Ternary {
    fn bytes(&self, values: usize) -> usize {
        let (len, bytes) = self.dtype.block();
        values / len * bytes
    }

    fn encode(&self, first: usize, values: &[f32], out: &mut [u8]) -> Result<u64, String> {
        let codes: Vec<i8> = values.iter().map(|&x| digit(x, self.inverse)).collect();
        if let DType::Block(format) = self.dtype {
            let bytes = ternary_blocks(format, &codes, self.scale).map_err(|e| e.to_string())?;
            out.copy_from_slice(&bytes);
        } else {
            let scale = self.scale.to_f32();
            let values: Vec<f32> = codes.iter().map(|&code| f32::from(code) * scale).collect();
            floats::narrow(self.dtype, &values, out)
                .map_err(|index| format!("value {} is too large", first + index))?;
        }
        Ok(0)
    }

    fn restore(&self, _: usize, bytes: &[u8], out: &mut [f32]) -> Result<(), String> {
        match self.dtype {
            DType::Block(format) => decode(format, bytes, out),
            dtype => {
                floats::widen(dtype, bytes, out);
                Ok(())
            }
        }
    }
}

/// Q8_0 with one scale per row.
struct Rows {
    cols: usize,
    scales: Vec<f16>,
}

impl Coder for Rows {
    fn bytes(&self, values: usize) -> usize {
        values / Format::Q8_0.len() * Format::Q8_0.bytes()
    }

    /// Blocks do not cross rows, so a block is encoded like a row of its own.
    fn encode(&self, first: usize, values: &[f32], out: &mut [u8]) -> Result<u64, String> {
        let (len, bytes) = (Format::Q8_0.len(), Format::Q8_0.bytes());
        let mut flushed = 0;
        let blocks = values.chunks_exact(len).zip(out.chunks_exact_mut(bytes));
        for (index, (values, out)) in blocks.enumerate() {
            let scale = self.scales[(first + index * len) / self.cols];
            let inverse = match scale.to_f32() {
                0.0 => 0.0,
                scale => 1.0 / scale,
            };
            flushed += u64::from(inverse == 0.0 && values.iter().any(|&x| x != 0.0));
            let code = |x: &f32| (x * inverse).round().clamp(-LIMIT, LIMIT) as i8;
            let codes: Vec<i8> = values.iter().map(code).collect();
            let block = byte_rows(len, &codes, &[scale]).map_err(|e| e.to_string())?;
            out.copy_from_slice(&block);
        }
        Ok(flushed)
    }

    fn restore(&self, _: usize, bytes: &[u8], out: &mut [f32]) -> Result<(), String> {
        decode(Format::Q8_0, bytes, out)
    }
}

fn decode(format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), String> {
    Backend::default()
        .decode_blocks(format, bytes, out, Stores::Cached)
        .map(|_| ())
        .map_err(|error| error.to_string())
}
