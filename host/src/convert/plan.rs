//! Decides the action for each tensor before a byte is written, only from names, types and sizes.

use std::path::Path;

use tercet_core::block::Format;
use tercet_core::palette::IndexMatrix;
use tercet_core::quant::{Groups, Method, Rule, int8};

use super::codec::Codec;
use super::i2_s;
use super::language::{self, Language};
use super::options::{DequantizeOptions, Per, QuantizeOptions, Scheme, Target};
use super::select::Selection;
use crate::dtype::DType;
use crate::file::OutputTensor;
use crate::source::{Source, is_sidecar};
use crate::tensor_file::Tensor;
use crate::{Error, TensorFile};

/// The conversion of one tensor.
#[derive(Clone, Debug)]
pub(crate) struct Conversion<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) action: Action,
    /// Why the action is not the requested one.
    pub(crate) note: Option<String>,
}

/// The action for a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Action {
    /// The same bytes with the same type.
    Copy,
    /// GGUF blocks, or plain floats of a type.
    Stream(Codec),
    /// int8 codes, scales, and zero points if `affine`.
    Codes {
        method: Method,
        groups: Groups,
        affine: bool,
    },
    /// −1, 0 and 1 with one scale for the tensor.
    Ternary {
        /// Blocks of a ternary format, or floats.
        dtype: DType,
        /// True if values that are already −s, 0 and s keep their s.
        kept: bool,
    },
    /// Q8_0 with one scale per row.
    ByteRows,
    /// I2_S: −1, 0 and 1 with one scale for the tensor.
    I2S,
    /// Hugging Face BitNet.
    Packed,
    /// Indices, codebooks, scales and the shape.
    Palette(IndexMatrix),
}

impl Action {
    /// Returns the single type of the output, if the action makes one tensor.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match *self {
            Self::Stream(codec) => Some(codec.dtype()),
            Self::Ternary { dtype, .. } => Some(dtype),
            Self::ByteRows => Some(DType::Block(Format::Q8_0)),
            Self::I2S => Some(DType::I2S),
            _ => None,
        }
    }
}

impl Conversion<'_> {
    /// Returns the tensors that the step writes, in that order.
    pub(crate) fn parts(&self) -> Vec<OutputTensor> {
        let tensor = &self.source.tensor;
        let shape = self.source.shape();
        let values = self.source.values() as u64;
        let part = |suffix: &str, shape: Vec<usize>, dtype: DType, bytes: u64| OutputTensor {
            name: format!("{}{suffix}", tensor.name),
            shape,
            dtype,
            bytes,
        };
        match self.action {
            Action::Copy => vec![part(
                "",
                tensor.shape.to_vec(),
                tensor.dtype,
                tensor.bytes.len() as u64,
            )],
            Action::Stream(_) | Action::Ternary { .. } | Action::ByteRows => {
                let dtype = self.action.dtype().unwrap_or(tensor.dtype);
                let (len, size) = dtype.block();
                let bytes = values / len as u64 * size as u64;
                vec![part("", shape, dtype, bytes)]
            }
            Action::I2S => vec![part("", shape, DType::I2S, i2_s::bytes(values))],
            Action::Codes { groups, affine, .. } => {
                let scales = scale_shape(&shape, groups);
                let mut parts = vec![
                    part("", shape, DType::I8, values),
                    part(
                        "_scale",
                        scales.clone(),
                        DType::F32,
                        groups.count as u64 * 4,
                    ),
                ];
                if affine {
                    parts.push(part("_zero_point", scales, DType::I8, groups.count as u64));
                }
                parts
            }
            Action::Packed => {
                let mut packed = shape;
                packed[0] /= 4;
                vec![
                    part("", packed, DType::U8, values / 4),
                    part("_scale", vec![1], DType::F32, 4),
                ]
            }
            Action::Palette(layout) => palette_parts(&shape, layout, part),
        }
    }

    /// True if the action makes blocks, or their fallback f16.
    pub(crate) fn is_quantizing(&self) -> bool {
        matches!(self.action, Action::Stream(_))
    }

    /// Returns the number of values that an engine encodes: neither copied, nor plain floats, nor codes with a scale
    /// for more than a block.
    pub(crate) fn coded_values(&self) -> u64 {
        match self.action {
            Action::Copy
            | Action::Stream(Codec::Floats(_))
            | Action::Ternary { .. }
            | Action::ByteRows
            | Action::I2S => 0,
            _ => self.source.values() as u64,
        }
    }

    /// Returns the type in the output, as named in the report.
    pub(crate) fn type_name(&self) -> String {
        match self.action {
            Action::Copy => self.source.type_name(),
            Action::Stream(_) | Action::Ternary { .. } | Action::ByteRows | Action::I2S => {
                let dtype = self.action.dtype().unwrap_or(self.source.tensor.dtype);
                dtype.name().into_owned()
            }
            Action::Codes {
                method: Method::Ternary { .. },
                ..
            } => "ternary".into(),
            Action::Codes { .. } => "int8".into(),
            Action::Packed => "bitnet-hf".into(),
            Action::Palette(layout) => Target::Palette(layout.width()).name().into(),
        }
    }
}

/// Returns the four tensors of a palette; see [`super`].
fn palette_parts(
    shape: &[usize],
    layout: IndexMatrix,
    part: impl Fn(&str, Vec<usize>, DType, u64) -> OutputTensor,
) -> Vec<OutputTensor> {
    let outer = shape.split_last().map_or(&[][..], |(_, outer)| outer);
    let indices = [outer, &[layout.row_bytes()]].concat();
    let (groups, entries) = (layout.groups(), layout.width().entries());
    let (books, dims) = (layout.codebook_len() as u64, shape.len());
    vec![
        part("", indices, DType::U8, layout.index_bytes() as u64),
        part("_palette", vec![groups, entries], DType::I8, books),
        part(
            "_palette_scale",
            vec![groups],
            DType::F32,
            groups as u64 * 4,
        ),
        part("_palette_shape", vec![dims], DType::I64, dims as u64 * 8),
    ]
}

/// Returns the scales' shape: one number; one per row, with a last dimension of 1 to match the codes; or one for each
/// part of a row.
fn scale_shape(shape: &[usize], groups: Groups) -> Vec<usize> {
    let mut scales = shape.to_vec();
    match (groups.count, scales.last_mut()) {
        (1, _) | (_, None) => vec![1],
        (_, Some(row)) => {
            *row /= groups.len;
            scales
        }
    }
}

/// Returns one step for each tensor of the model. For `auto` the blocks are chosen afterwards, among the steps with the
/// action [`Action::Stream`].
pub(crate) fn plan<'a>(
    model: &'a TensorFile,
    options: &QuantizeOptions,
) -> Result<Vec<Conversion<'a>>, Error> {
    let selection = Selection::new(model, options)?;
    let language = Language::of(model);
    let to_i2_s = options.target == Target::I2S;
    if to_i2_s && language.is_none() {
        let reason = "i2_s is for bitnet.cpp, which runs language models in GGUF files of the architecture llama, bitnet, \
                      bitnet-b1.58 or bitnet-25";
        return Err(Error::unsupported(model.path(), reason));
    }
    let mut steps = Vec::new();
    for tensor in model.tensors() {
        let source = Source::new(model, tensor)?;
        let refusal = if is_sidecar(model, tensor.name) {
            Some("belongs to a quantized tensor".to_owned())
        } else if source.is_quantized() && !(to_i2_s && language::is_repacked(&tensor)) {
            Some("quantized already".to_owned())
        } else if matches!(tensor.dtype, DType::Ggml(_)) {
            Some(format!("{} is carried, not decoded", tensor.dtype.name()))
        } else if !tensor.dtype.is_float() && !source.is_quantized() {
            Some(format!("{} is not a float type", tensor.dtype.name()))
        } else if tensor.values() == 0 {
            Some("holds no values".to_owned())
        } else {
            selection.refusal(&tensor).map(str::to_owned)
        };
        let (action, note) = match refusal {
            Some(reason) => (Action::Copy, Some(reason)),
            None => match (language, options.target) {
                (Some(language), Target::Blocks(format)) => language
                    .action(&tensor, format, options)
                    .unwrap_or_else(|| fallback(format, &tensor, options)),
                _ => quantized(model.path(), &source, options)?,
            },
        };
        if to_i2_s && action == Action::Copy {
            language::check_copied(model.path(), &tensor)?;
        }
        steps.push(Conversion {
            source,
            action,
            note,
        });
    }
    Ok(steps)
}

/// Returns the action for a tensor that is to be quantized, with a note if it is not the requested one.
fn quantized(
    path: &Path,
    source: &Source<'_>,
    options: &QuantizeOptions,
) -> Result<(Action, Option<String>), Error> {
    let tensor = &source.tensor;
    let row = tensor.row();
    let refuse = |reason: String| Error::tensor(path, tensor.name, reason);
    let into = |format| Ok(fallback(format, tensor, options));
    match options.target {
        Target::Blocks(format) => into(format),
        Target::I2S => language::i2_s_action(path, tensor),
        Target::Auto => into(Format::Tq2_0),
        Target::Int8 | Target::Ternary => {
            let ternary = options.target == Target::Ternary;
            let per = options
                .per
                .unwrap_or(if ternary { Per::Tensor } else { Per::Row });
            let rows = tensor.values() / row;
            let groups = match per {
                Per::Tensor => Groups::tensor(tensor.values()),
                Per::Row => Groups::rows(rows, row),
                Per::Block(len) => Groups::blocks(rows, row, len),
                Per::Rows(_) => unreachable!("checked: for palettes only"),
            };
            let groups = groups.map_err(|_| {
                refuse(format!(
                    "rows of {row} values do not divide into {per:?}; exclude it"
                ))
            })?;
            let affine = options.grid == Scheme::Affine;
            let method = match (ternary, affine) {
                (true, _) => Method::Ternary {
                    rule: options.rule.unwrap_or(Rule::AbsMean),
                    scale_rule: options.scale,
                },
                (false, false) => Method::Symmetric { limit: int8::LIMIT },
                (false, true) => Method::Affine,
            };
            let action = Action::Codes {
                method,
                groups,
                affine,
            };
            Ok((action, None))
        }
        Target::Palette(width) => {
            let rows = tensor.values() / row;
            let group = match options.per {
                Some(Per::Row) => 1,
                Some(Per::Rows(count)) => count,
                _ => rows,
            };
            let layout = IndexMatrix::with_rows(width, rows, row, group);
            let layout = layout.map_err(|error| refuse(error.to_string()))?;
            Ok((Action::Palette(layout), None))
        }
        Target::BitnetHf => match tensor.shape {
            [rows, _] if rows % 4 == 0 => Ok((Action::Packed, None)),
            [rows, _] => {
                let note = format!("kept: {rows} rows do not divide by 4");
                Ok((Action::Copy, Some(note)))
            }
            _ => Ok((Action::Copy, Some("kept: not a matrix".into()))),
        },
    }
}

/// Returns llama.cpp's fallback for rows that are not a multiple of a block: Q4_0 for the ternary and two-bit formats,
/// and f16 if even blocks of 32 do not fit. llama.cpp refuses such rows for Q8_0 and Q4_0 themselves; here they become
/// f16.
fn fallback(
    wanted: Format,
    tensor: &Tensor<'_>,
    options: &QuantizeOptions,
) -> (Action, Option<String>) {
    let row = tensor.row();
    let fits = |format: &Format| row.is_multiple_of(format.len());
    if fits(&wanted) {
        return (Action::Stream(Codec::blocks(wanted, options)), None);
    }
    let reason = |kept: &str| {
        let (name, len) = (wanted.name(), wanted.len());
        Some(format!(
            "{kept}: rows of {row} do not divide into {name} blocks of {len}"
        ))
    };
    match Some(Format::Q4_0).filter(|format| wanted.is_ternary() && fits(format)) {
        Some(format) => (
            Action::Stream(Codec::blocks(format, options)),
            reason(format.name()),
        ),
        None if tensor.dtype == DType::F16 => (Action::Copy, reason("f16")),
        None => (Action::Stream(Codec::Floats(DType::F16)), reason("f16")),
    }
}

/// Returns one step for each tensor that a restored model keeps.
pub(crate) fn restoring<'a>(
    model: &'a TensorFile,
    options: &DequantizeOptions,
) -> Result<Vec<Conversion<'a>>, Error> {
    let mut steps = Vec::new();
    for tensor in model
        .tensors()
        .filter(|tensor| !is_sidecar(model, tensor.name))
    {
        let source = Source::new(model, tensor)?;
        let restored = Action::Stream(Codec::Floats(options.dtype.dtype()));
        let (action, note) = if source.is_quantized() {
            (restored, None)
        } else if source.is_readable() {
            (Action::Copy, Some("not quantized".into()))
        } else if tensor.dtype == DType::I2S {
            let reason = "it is an i2_s tensor; name its layout, x86-128 or arm-64";
            return Err(Error::tensor(model.path(), tensor.name, reason));
        } else {
            (
                Action::Copy,
                Some(format!("{} is not restored", tensor.dtype.name())),
            )
        };
        steps.push(Conversion {
            source,
            action,
            note,
        });
    }
    Ok(steps)
}
