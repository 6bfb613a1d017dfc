//! Assigns the tensors of a file to their places, by name.

use super::view::DecoderLayer;
use super::weights::{FloatMatrix, FloatType, Values, Weights, floats};
use super::{Architecture, Config, ModelError};
use crate::block::Format;
use crate::gguf::{Reader, TensorInfo, TensorType};
use crate::linear::{self, Layout, LinearError, Matrix};

const F32_COLS: &str = "F32, one a column";
const F32_ROWS: &str = "F32, one a row";
const F32_ONE: &str = "one F32";
const MATRIX: &str =
    "a matrix of this shape, of a type that is multiplied: F32, F16, BF16 or blocks";

/// Tensors outside the layers.
#[derive(Default)]
pub(super) struct Outside<'a> {
    pub(super) embedding: Option<Weights<'a>>,
    pub(super) head: Option<Weights<'a>>,
    pub(super) norm: Option<&'a [u8]>,
    pub(super) rope_factors: &'a [u8],
}

/// A tensor and its name in errors.
struct NamedTensor<'a> {
    number: u64,
    info: TensorInfo<'a>,
    layer: Option<usize>,
    /// Its name without `blk.N.`.
    name: &'static str,
}

impl<'a> NamedTensor<'a> {
    const fn not(&self, expected: &'static str) -> ModelError {
        let tensor = self.name;
        match self.layer {
            Some(layer) => ModelError::LayerTensor {
                layer,
                tensor,
                expected,
            },
            None => ModelError::Tensor { tensor, expected },
        }
    }

    /// Returns a vector of f32 of that length.
    fn vector(&self, len: usize, expected: &'static str) -> Result<&'a [u8], ModelError> {
        let elements = self.info.shape.elements();
        match self.info.kind == TensorType::F32 && elements == len as u64 && whole(&self.info) {
            true => Ok(self.info.data),
            false => Err(self.not(expected)),
        }
    }

    /// Returns a matrix with rows of `cols` values, and with that number of `rows` if it is known.
    fn matrix(
        &self,
        cols: usize,
        rows: Option<usize>,
        wide: bool,
    ) -> Result<Values<'a>, ModelError> {
        let info = &self.info;
        let elements = info.shape.elements();
        let found = elements
            .checked_div(cols as u64)
            .and_then(|rows| usize::try_from(rows).ok());
        let fits = info.shape.row() == cols as u64
            && found.is_some_and(|found| found > 0 && rows.is_none_or(|rows| rows == found));
        let rows = found
            .filter(|_| fits && whole(info))
            .ok_or(self.not(MATRIX))?;
        let floats = match info.kind {
            TensorType::F32 => Some(FloatType::F32),
            TensorType::F16 => Some(FloatType::F16),
            TensorType::BF16 => Some(FloatType::Bf16),
            _ => None,
        };
        if let Some(kind) = floats {
            let matrix = FloatMatrix::new(kind, cols, info.data);
            return matrix.map(Values::Floats).ok_or(self.not(MATRIX));
        }
        let format = Format::from_gguf_type(info.kind.0).ok_or(self.not(MATRIX))?;
        let refused = |error: LinearError| ModelError::Weights {
            tensor: self.number,
            error,
        };
        let matrix = Matrix::new(Layout::Block(format), rows, cols, info.data).map_err(refused)?;
        if wide {
            matrix.check_wide().map_err(refused)?;
        }
        Ok(Values::Blocks(linear::Layer::new(matrix)))
    }
}

/// Returns true if all bytes are present; a reader from `inspect` may lack some.
fn whole(info: &TensorInfo<'_>) -> bool {
    info.byte_len() == Ok(info.data.len() as u64)
}

/// Assigns every tensor of the file to its place. O(tensors), and one pass over the scales of all blocks.
pub(super) fn place<'a>(
    file: &Reader<'a>,
    config: &mut Config,
    layers: &mut [DecoderLayer<'a>],
) -> Result<Outside<'a>, ModelError> {
    let mut outside = Outside::default();
    for (number, info) in (0..).zip(file.tensors()) {
        let superfluous = ModelError::Superfluous { tensor: number };
        let found = |layer, name| NamedTensor {
            number,
            info,
            layer,
            name,
        };
        let Some(rest) = info.name.strip_prefix("blk.") else {
            match outside.take(found(None, ""), config)? {
                true => continue,
                false => return Err(superfluous),
            }
        };
        let (layer, name) = rest.split_once(['.']).ok_or(superfluous)?;
        let index = number_of(layer).ok_or(superfluous)?;
        let layer = layers.get_mut(index).ok_or(superfluous)?;
        match take(layer, name, |name| found(Some(index), name), config)? {
            true => {}
            false => return Err(superfluous),
        }
    }
    Ok(outside)
}

/// Parses a number in a name: digits without a sign or leading zeros.
fn number_of(digits: &str) -> Option<usize> {
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    let leading = digits.len() > 1 && digits.starts_with(['0']);
    (plain && !leading).then(|| digits.parse().ok())?
}

impl<'a> Outside<'a> {
    /// Assigns a tensor; false if it has no place or occurred before.
    fn take(&mut self, found: NamedTensor<'a>, config: &mut Config) -> Result<bool, ModelError> {
        let wide = config.wide();
        let named = |name| NamedTensor { name, ..found };
        match found.info.name {
            "token_embd.weight" => {
                let values = named("token_embd.weight").matrix(config.width, None, wide)?;
                let weights = Weights::new(values);
                config.vocabulary = weights.rows();
                Ok(self.embedding.replace(weights).is_none())
            }
            "output.weight" => {
                let values = named("output.weight").matrix(config.width, None, wide)?;
                Ok(self.head.replace(Weights::new(values)).is_none())
            }
            "output_norm.weight" => {
                let gains = named("output_norm.weight").vector(config.width, F32_COLS)?;
                Ok(self.norm.replace(gains).is_none())
            }
            "rope_freqs.weight" if config.architecture == Architecture::Llama => {
                let factors = named("rope_freqs.weight")
                    .vector(config.head / 2, "F32, one a pair of a head")?;
                let first = self.rope_factors.is_empty();
                self.rope_factors = factors;
                Ok(first)
            }
            _ => Ok(false),
        }
    }
}

/// Names of a layer's matrices, in the order of [`DecoderLayer::weights`], each with its bias and its scale.
const MATRICES: [[&str; 3]; 7] = [
    ["attn_q.weight", "attn_q.bias", "attn_q.scale"],
    ["attn_k.weight", "attn_k.bias", "attn_k.scale"],
    ["attn_v.weight", "attn_v.bias", "attn_v.scale"],
    [
        "attn_output.weight",
        "attn_output.bias",
        "attn_output.scale",
    ],
    ["ffn_gate.weight", "ffn_gate.bias", "ffn_gate.scale"],
    ["ffn_up.weight", "ffn_up.bias", "ffn_up.scale"],
    ["ffn_down.weight", "ffn_down.bias", "ffn_down.scale"],
];

/// Assigns a tensor of a layer; false if it has no place or occurred before.
fn take<'a>(
    layer: &mut DecoderLayer<'a>,
    name: &str,
    found: impl Fn(&'static str) -> NamedTensor<'a>,
    config: &Config,
) -> Result<bool, ModelError> {
    let is_bitnet = config.architecture == Architecture::BitNet;
    let (width, hidden) = (config.width, config.hidden);
    let (queries, keys) = (config.query_width(), config.kv_width());
    let norm = match name {
        "attn_norm.weight" => Some(("attn_norm.weight", width, &mut layer.attention_norm)),
        "ffn_norm.weight" => Some(("ffn_norm.weight", width, &mut layer.feed_forward_norm)),
        "attn_sub_norm.weight" if is_bitnet => Some((
            "attn_sub_norm.weight",
            queries,
            &mut layer.attention_sub_norm,
        )),
        "ffn_sub_norm.weight" if is_bitnet => Some((
            "ffn_sub_norm.weight",
            hidden,
            &mut layer.feed_forward_sub_norm,
        )),
        _ => None,
    };
    if let Some((name, len, slot)) = norm {
        let first = slot.is_empty();
        *slot = found(name).vector(len, F32_COLS)?;
        return Ok(first);
    }
    let names = MATRICES.iter().enumerate().find_map(|(at, names)| {
        let which = names.iter().position(|&own| own == name)?;
        Some((at, which, *names.get(which)?))
    });
    let Some((at, which, name)) = names else {
        return Ok(false);
    };
    let (slot, cols, rows) = match at {
        0 => (&mut layer.query, width, queries),
        1 => (&mut layer.key, width, keys),
        2 => (&mut layer.value, width, keys),
        3 => (&mut layer.output, queries, width),
        4 => (&mut layer.gate, width, hidden),
        5 => (&mut layer.up, width, hidden),
        _ => (&mut layer.down, hidden, width),
    };
    let tensor = found(name);
    match which {
        0 => {
            let first = slot.values == Values::None;
            slot.values = tensor.matrix(cols, Some(rows), config.wide())?;
            Ok(first)
        }
        1 if is_bitnet => Ok(false),
        1 => {
            let first = slot.bias.is_empty();
            slot.bias = tensor.vector(rows, F32_ROWS)?;
            Ok(first)
        }
        _ => {
            let factor = floats(tensor.vector(1, F32_ONE)?)
                .next()
                .filter(|factor| factor.is_finite())
                .ok_or(tensor.not("finite"))?;
            Ok(slot.scale.replace(factor).is_none())
        }
    }
}
