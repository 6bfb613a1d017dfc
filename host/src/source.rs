//! Tensors as values: floats, blocks, or codes with the scales that are stored beside them.

use std::path::Path;

use tercet_core::block::i2_s::{self, Interleave};
use tercet_core::block::{BlockError, Format};
use tercet_core::palette::{IndexMatrix, Width};
use tercet_core::quant::Grid;

use crate::dtype::{DType, values};
use crate::palette::{self, Stored};
use crate::simd::{Backend, Stores};
use crate::tensor_file::Tensor;
use crate::{Error, TensorFile, floats};

mod amounts;
mod paired;
mod restore;
mod view;

pub(crate) use crate::points::TILE;
pub use amounts::{Amount, Amounts};
pub(crate) use restore::{ChunkBuffers, Restored, chunks, gather, on_engine, restore};
pub(crate) use view::{tiles, windows};

/// Values that are read, encoded and measured at a time: 4 MiB as `f32`. A multiple of every block.
pub(crate) const CHUNK: usize = 1 << 20;

/// A tensor whose values can be read as `f32` from any whole block on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    model: &'a TensorFile,
    pub(crate) path: &'a Path,
    pub(crate) tensor: Tensor<'a>,
    kind: Kind<'a>,
    /// Rows of a head whose two halves are read in turn; `None` if all rows are read in their order.
    head: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Kind<'a> {
    /// Plain numbers: floats, and integers of up to 16 bits, which `f32` represents exactly.
    Plain,
    Blocks(Format),
    /// int8 codes: value = scale of the group · (code − zero point).
    Codes {
        scales: Tensor<'a>,
        zero_points: Option<Tensor<'a>>,
        group: usize,
    },
    /// Hugging Face BitNet: row r of the first quarter holds rows r, r + R/4, r + R/2 and r + 3R/4 in two bits each.
    Packed {
        scale: f32,
    },
    I2s(Interleave),
    /// Indices into codebooks; the shape of the values is a separate tensor.
    Palette {
        stored: Stored<'a>,
        shape: Tensor<'a>,
    },
    /// Copied, never read.
    Opaque,
}

impl<'a> Source<'a> {
    /// Determines the values of a tensor, with the scales that `model` has for it.
    pub(crate) fn new(model: &'a TensorFile, tensor: Tensor<'a>) -> Result<Self, Error> {
        let (path, reading) = (model.path(), model.reading());
        let scales = model.get(&format!("{}_scale", tensor.name));
        if tensor.dtype == DType::U8
            && let Some(kind) = palette(model, tensor)?
        {
            return Ok(Self {
                model,
                path,
                tensor,
                kind,
                head: None,
            });
        }
        let kind = match (tensor.dtype, scales) {
            (DType::Block(format), _) => Kind::Blocks(format),
            (DType::I2S, _) => reading.i2_s.map_or(Kind::Opaque, Kind::I2s),
            (DType::I8, Some(scales)) if scales.dtype.is_float() => {
                let zero_points = model.get(&format!("{}_zero_point", tensor.name));
                codes(path, tensor, scales, zero_points)?
            }
            (DType::U8, Some(scales)) if scales.dtype.is_float() && scales.values() == 1 => {
                let scale = floats::one(scales.dtype, scales.bytes);
                let scale = reading.weight_scale.unit(scale);
                let scale = scale.map_err(|e| Error::tensor(path, scales.name, e))?;
                Kind::Packed { scale }
            }
            (dtype, _) if floats::readable(dtype) => Kind::Plain,
            _ => Kind::Opaque,
        };
        Ok(Self {
            model,
            path,
            tensor,
            kind,
            head: None,
        })
    }

    /// Returns the value of the code 1 in a packed tensor; `None` for others.
    pub(crate) fn unit(&self) -> Option<f32> {
        match self.kind {
            Kind::Packed { scale } => Some(scale),
            _ => None,
        }
    }

    /// Returns the shape of the values. A packed tensor has four times its stored rows, and a palette stores its shape
    /// beside it.
    pub(crate) fn shape(&self) -> Vec<usize> {
        if let Kind::Palette { shape, .. } = self.kind {
            return dims(&shape).unwrap_or_default();
        }
        let mut shape = self.tensor.shape.to_vec();
        if let (Kind::Packed { .. }, Some(rows)) = (self.kind, shape.first_mut()) {
            *rows = rows.saturating_mul(4);
        }
        shape
    }

    pub(crate) fn values(&self) -> usize {
        values(&self.shape()).unwrap_or(0)
    }

    /// False for types that are only copied.
    pub(crate) fn is_readable(&self) -> bool {
        !matches!(self.kind, Kind::Opaque)
    }

    /// True for codes and blocks; false for plain numbers.
    pub(crate) fn is_quantized(&self) -> bool {
        !matches!(self.kind, Kind::Plain | Kind::Opaque)
    }

    /// Returns the grid of int8 codes that share one.
    pub(crate) fn grid(&self) -> Option<Grid> {
        let Kind::Codes {
            scales,
            zero_points,
            ..
        } = self.kind
        else {
            return None;
        };
        let grid = Grid {
            scale: floats::one(scales.dtype, scales.bytes.get(..scales.dtype.block().1)?),
            zero_point: zero_points.map_or(0, |z| z.bytes.first().map_or(0, |&byte| byte as i8)),
            low: -128,
            high: 127,
        };
        // A scale that is not finite is refused when the values are read.
        (scales.values() == 1).then_some(grid)?.checked().ok()
    }

    /// Returns the type's name in reports.
    pub(crate) fn type_name(&self) -> String {
        match self.kind {
            Kind::Packed { .. } => "bitnet-hf".into(),
            Kind::Palette { stored, .. } => palette::name(stored.layout.width()).into(),
            _ => self.tensor.dtype.name().into_owned(),
        }
    }

    /// Returns the bytes of the tensor that `count` of its values take, which are the unit of progress.
    pub(crate) fn bytes_of(&self, count: usize) -> u64 {
        let values = self.values().max(1) as u128;
        (self.tensor.bytes.len() as u128 * count as u128 / values) as u64
    }

    /// As [`Source::read`], for values in their stored order.
    fn read_stored(&self, start: usize, out: &mut [f32]) -> Result<(), Error> {
        let refuse = |reason: String| Error::tensor(self.path, self.tensor.name, reason);
        self.page_in(start, out.len());
        let bytes = self.tensor.bytes;
        match self.kind {
            Kind::Plain => {
                let size = self.tensor.dtype.block().1;
                floats::widen(
                    self.tensor.dtype,
                    &bytes[start * size..][..out.len() * size],
                    out,
                );
            }
            Kind::Blocks(format) => {
                let (len, size) = format.layout();
                let first = start / len;
                let bytes = &bytes[first * size..][..out.len() / len * size];
                Backend::default()
                    .decode_blocks(format, bytes, out, Stores::Cached)
                    .map_err(|e| refuse(place_block(e, first)))?;
            }
            Kind::Codes {
                scales,
                zero_points,
                group,
            } => {
                let mut at = start;
                let mut rest = out;
                while !rest.is_empty() {
                    let index = at / group;
                    let (part, after) = rest.split_at_mut((group - at % group).min(rest.len()));
                    let size = scales.dtype.block().1;
                    let scale = floats::one(scales.dtype, &scales.bytes[index * size..][..size]);
                    if !scale.is_finite() {
                        let reason = format!("scale {index} is not finite");
                        return Err(Error::tensor(self.path, scales.name, reason));
                    }
                    let zero = zero_points.map_or(0, |z| z.bytes[index] as i8);
                    let codes = signed(&bytes[at..][..part.len()]);
                    Backend::default().dequantize(codes, zero, scale, part, Stores::Cached);
                    at += part.len();
                    rest = after;
                }
            }
            Kind::Packed { scale } => {
                let quarter = bytes.len();
                let mut at = start;
                let mut rest = out;
                while !rest.is_empty() {
                    let (lane, from) = (at / quarter, at % quarter);
                    let (part, after) = rest.split_at_mut((quarter - from).min(rest.len()));
                    let (bytes, shift) = (&bytes[from..][..part.len()], 2 * lane as u32);
                    if !Backend::default().decode_row(bytes, shift, scale, part, Stores::Cached) {
                        let three = bytes.iter().position(|byte| byte >> shift & 3 == 3);
                        return Err(refuse(format!(
                            "value {} has code 3, which stands for nothing",
                            at + three.unwrap_or(0)
                        )));
                    }
                    at += part.len();
                    rest = after;
                }
            }
            Kind::I2s(layout) => {
                let (codes, tail) = bytes.split_at(self.values() / 4);
                let codes = &codes[start / 4..][..out.len() / 4];
                // The bytes after the codes are a tensor without values: its scale.
                let scale =
                    i2_s::codes(layout, tail, &mut []).map_err(|e| refuse(e.to_string()))?;
                let backend = Backend::default();
                if !backend.decode_groups(layout, codes, scale, out, Stores::Cached) {
                    // Build a separate tensor, so that core can name the place in it.
                    let part = [codes, tail].concat();
                    i2_s::decode(layout, &part, out).map_err(|e| {
                        refuse(match e {
                            BlockError::CodeRange { index } => BlockError::CodeRange {
                                index: index + start,
                            }
                            .to_string(),
                            other => other.to_string(),
                        })
                    })?;
                }
            }
            Kind::Palette { stored, .. } => {
                stored
                    .read(start, out)
                    .map_err(|group| refuse(format!("the scale of group {group} is not finite")))?;
            }
            Kind::Opaque => {
                return Err(refuse(format!(
                    "type {} cannot be read",
                    self.tensor.dtype.name()
                )));
            }
        }
        Ok(())
    }
}

/// Returns bytes as codes.
pub(crate) fn signed(bytes: &[u8]) -> &[i8] {
    // SAFETY: an i8 has the size and the alignment of a byte, and every pattern is one.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// Returns bytes as room for codes.
pub(crate) fn signed_mut(bytes: &mut [u8]) -> &mut [i8] {
    // SAFETY: as in `signed`, and the borrow of the bytes is exclusive too; what is written is a byte's pattern again.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}

/// Checks the scales of int8 codes: one, one per row, or one for each of equal parts of a row.
fn codes<'a>(
    path: &Path,
    tensor: Tensor<'a>,
    scales: Tensor<'a>,
    zero_points: Option<Tensor<'a>>,
) -> Result<Kind<'a>, Error> {
    let row = tensor.row();
    let outer = &tensor.shape[..tensor.shape.len().saturating_sub(1)];
    let parts = match scales.shape {
        _ if scales.values() == 1 => None,
        shape if shape == outer => Some(1),
        [leading @ .., parts] if leading == outer && *parts > 0 && row.is_multiple_of(*parts) => {
            Some(*parts)
        }
        shape => {
            let reason = format!(
                "its shape {shape:?} does not fit `{}` of {:?}",
                tensor.name, tensor.shape
            );
            return Err(Error::tensor(path, scales.name, reason));
        }
    };
    let fits =
        |points: &Tensor<'_>| points.dtype == DType::I8 && points.values() == scales.values();
    if let Some(points) = zero_points.filter(|points| !fits(points)) {
        let reason = format!("it is not one int8 for each value of `{}`", scales.name);
        return Err(Error::tensor(path, points.name, reason));
    }
    let group = parts.map_or(tensor.values(), |parts| row / parts).max(1);
    Ok(Kind::Codes {
        scales,
        zero_points,
        group,
    })
}

/// Returns the three tensors beside a palette's indices; `None` unless all exist and have the right types.
fn palette<'a>(model: &'a TensorFile, tensor: Tensor<'a>) -> Result<Option<Kind<'a>>, Error> {
    let beside = |suffix: &str, dtype: DType| {
        let found = model.get(&format!("{}{suffix}", tensor.name));
        found.filter(|found| found.dtype == dtype)
    };
    let found = (
        beside("_palette", DType::I8),
        beside("_palette_scale", DType::F32),
        beside("_palette_shape", DType::I64),
    );
    let (Some(codebooks), Some(scales), Some(shape)) = found else {
        return Ok(None);
    };
    let refuse = |of: &Tensor<'_>, reason: &str| Err(Error::tensor(model.path(), of.name, reason));
    let (groups, width) = match codebooks.shape {
        &[groups, entries] => {
            let width = Width::ALL
                .into_iter()
                .find(|width| width.entries() == entries);
            (groups, width)
        }
        _ => (0, None),
    };
    let Some(width) = width else {
        return refuse(&codebooks, "it is not [groups, 2, 4, 8, … or 256]");
    };
    if scales.shape != [groups] {
        return refuse(&scales, "it is not one number per codebook");
    }
    let Some(dims) = dims(&shape).filter(|dims| values(dims).is_some()) else {
        return refuse(&shape, "it is not a shape");
    };
    let (cols, outer) = dims
        .split_last()
        .map_or((1, &[][..]), |(&cols, outer)| (cols, outer));
    let rows = values(outer).unwrap_or(0);
    let layout = match IndexMatrix::new(width, rows, cols, groups) {
        Ok(layout) => layout,
        Err(error) => return refuse(&tensor, &error.to_string()),
    };
    if tensor.shape != [outer, &[layout.row_bytes()]].concat() {
        let reason = format!(
            "its shape {:?} does not fit {dims:?} of {} bits",
            tensor.shape,
            width.bits()
        );
        return refuse(&tensor, &reason);
    }
    let stored = Stored {
        layout,
        indices: tensor.bytes,
        codebooks: codebooks.bytes,
        scales: scales.bytes,
    };
    Ok(Some(Kind::Palette { stored, shape }))
}

/// Returns a shape that is stored as a tensor of one dimension; `None` if it is no shape.
fn dims(shape: &Tensor<'_>) -> Option<Vec<usize>> {
    let dims = shape.bytes.as_chunks().0.iter();
    let dims = dims.map(|&dim| usize::try_from(i64::from_le_bytes(dim)).ok());
    dims.collect::<Option<_>>()
        .filter(|_| shape.shape.len() == 1)
}

/// True for the tensors that hold a quantized tensor's scales, zero points or palettes.
pub(crate) fn is_sidecar(model: &TensorFile, name: &str) -> bool {
    let owned = |suffix: &str, by_palette: bool| {
        let owner = name.strip_suffix(suffix).and_then(|owner| model.get(owner));
        owner.is_some_and(|owner| {
            // An owner whose scales do not fit is refused when it is read itself.
            matches!(owner.dtype, DType::I8 | DType::U8)
                && Source::new(model, owner).is_ok_and(|source| {
                    let palette = matches!(source.kind, Kind::Palette { .. });
                    source.is_quantized() && palette == by_palette
                })
        })
    };
    owned("_scale", false)
        || owned("_zero_point", false)
        || ["_palette", "_palette_scale", "_palette_shape"]
            .iter()
            .any(|suffix| owned(suffix, true))
}

/// Formats a block error of a part of a tensor that begins at block `first`, with its place in the whole tensor.
pub(crate) fn place_block(error: BlockError, first: usize) -> String {
    use BlockError::{ScaleNotFinite, ScaleOverflow};
    match error {
        ScaleOverflow { block } => ScaleOverflow {
            block: block + first,
        },
        ScaleNotFinite { block } => ScaleNotFinite {
            block: block + first,
        },
        other => other,
    }
    .to_string()
}
