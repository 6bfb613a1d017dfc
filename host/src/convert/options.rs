//! Options of conversions.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tercet_core::block::Format;
use tercet_core::block::bitnet_hf::WeightScale;
use tercet_core::palette::Width;
use tercet_core::quant::{Rule, ScaleRule};

use crate::{DType, Error, palette};

pub use tercet_core::quant::calibrate::Scheme;

/// The target of a quantization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// GGUF blocks of a format that has an encoder ([`Format::can_encode`]).
    Blocks(Format),
    /// Microsoft's I2_S for bitnet.cpp on x86, in GGUF: ternary codes with one `f32` scale per matrix of a language model.
    I2S,
    /// int8 codes with `f32` scales, in safetensors.
    Int8,
    /// int8 codes −1, 0, +1 with `f32` scales, in safetensors.
    Ternary,
    /// Hugging Face BitNet: four ternary codes per byte with one scale per tensor, in safetensors.
    BitnetHf,
    /// Indices of 1 to 8 bits into int8 codebooks chosen by k-means, in safetensors.
    Palette(Width),
    /// A GGUF block format for each tensor, with the least total squared error within [`QuantizeOptions::bits`].
    Auto,
}

impl Target {
    /// Every target, in the order of help texts. Block formats that can only be read are not targets.
    pub const ALL: [Self; Format::ENCODED.len() + Width::ALL.len() + 5] = {
        let mut all = [Self::Auto; Format::ENCODED.len() + Width::ALL.len() + 5];
        let mut next = 0;
        while next < Format::ENCODED.len() {
            all[next] = Self::Blocks(Format::ENCODED[next]);
            next += 1;
        }
        all[next] = Self::I2S;
        all[next + 1] = Self::Int8;
        all[next + 2] = Self::Ternary;
        all[next + 3] = Self::BitnetHf;
        next += 4;
        let mut width = 0;
        while width < Width::ALL.len() {
            all[next + width] = Self::Palette(Width::ALL[width]);
            width += 1;
        }
        // The last one is `Auto`.
        all
    };

    /// Returns the name that [`Target::from_str`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocks(format) => format.name(),
            Self::I2S => "i2_s",
            Self::Int8 => "int8",
            Self::Ternary => "ternary",
            Self::BitnetHf => "bitnet-hf",
            Self::Palette(width) => palette::name(width),
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the error for a target format without an encoder.
pub(crate) fn read_only(format: Format) -> Error {
    Error::options(format!(
        "{} can be read but not written: its tensors are copied, dequantized and multiplied",
        format.name()
    ))
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|target| target.name() == name);
        found.ok_or_else(|| match Format::from_name(name) {
            Some(format) => read_only(format),
            None => Error::options(format!("`{name}` is not a format to quantize to")),
        })
    }
}

/// The values that share a scale in `int8` and `ternary` tensors and in palettes. GGUF blocks have their own length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Per {
    /// All values of a tensor.
    Tensor,
    /// The values of a row: the innermost dimension.
    Row,
    /// Runs of this many values within a row, which must divide the row. Not for palettes.
    Block(usize),
    /// At most this many rows, only for palettes.
    Rows(usize),
}

impl FromStr for Per {
    type Err = Error;

    /// Reads `tensor`, `row`, `block:N` or `rows:N`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let count = |prefix| text.strip_prefix(prefix)?.parse().ok().filter(|&n| n > 0);
        let found = match text {
            "tensor" => Some(Self::Tensor),
            "row" => Some(Self::Row),
            _ => count("block:")
                .map(Self::Block)
                .or_else(|| count("rows:").map(Self::Rows)),
        };
        found.ok_or_else(|| {
            Error::options(format!(
                "`{text}` is neither tensor, row, rows:N nor block:N"
            ))
        })
    }
}

/// Options for quantizing a model.
///
/// ```
/// use tercet_core::block::Format;
/// use tercet_host::{QuantizeOptions, convert::Target};
///
/// let options = QuantizeOptions { exclude: vec!["*embed*".into()], ..QuantizeOptions::new(Target::Blocks(Format::Tq2_0)) };
/// assert_eq!(options.rule, None); // the target's own
/// ```
#[derive(Clone, Debug)]
pub struct QuantizeOptions {
    /// The format of the quantized tensors.
    pub target: Target,
    /// The rule that chooses the values that become ±1, in ternary formats. `None`: abs-max for GGUF blocks (ggml's
    /// bytes), abs-mean for `ternary`, and the optimum for `auto`, which aims for the least error.
    pub rule: Option<Rule>,
    /// The source of a ternary scale.
    pub scale: ScaleRule,
    /// The values that share a scale. `None`: the row for `int8`, the tensor for `ternary` and palettes.
    pub per: Option<Per>,
    /// With or without a zero point, for `int8`.
    pub grid: Scheme,
    /// For palettes, a model file with a tensor of plain numbers, none negative, for each tensor that becomes a
    /// palette, with its name and shape: the weight of each value's squared error. For `auto`, a file with the sums of
    /// squares of every matrix' inputs, as [`Inputs::write`](crate::language::Inputs::write) and llama-imatrix write it
    /// in GGUF. The error is then the relative error of each matrix' products
    /// ([`AutoReport::squared_error`](super::AutoReport)). The embedding and the head may be missing in that file;
    /// their inputs count the same. `None`: all values count the same.
    pub importance: Option<PathBuf>,
    /// Bits per weight that `auto` may use, over all tensors that it chooses for. Required for `auto`.
    pub bits: Option<f64>,
    /// Quantize only tensors whose name matches one of these globs, with any number of dimensions. Empty: every float
    /// tensor of at least two dimensions.
    pub include: Vec<String>,
    /// Never quantize tensors whose name matches one of these globs.
    pub exclude: Vec<String>,
    /// The meaning of the `weight_scale` written by `bitnet-hf`.
    pub weight_scale: WeightScale,
    /// Replaces an existing output.
    pub force: bool,
}

impl QuantizeOptions {
    /// Returns the defaults for a target.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            rule: None,
            scale: ScaleRule::Rule,
            per: None,
            grid: Scheme::Symmetric,
            importance: None,
            bits: None,
            include: Vec::new(),
            exclude: Vec::new(),
            weight_scale: WeightScale::default(),
            force: false,
        }
    }
}

/// A float type to restore values to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatType {
    /// 32 bits; every restored value is exact.
    #[default]
    F32,
    /// IEEE's 16 bits, rounded half to even; values beyond 65,504 are refused.
    F16,
    /// The upper 16 bits of `f32`, rounded half to even.
    Bf16,
}

/// Options for restoring a model.
#[derive(Clone, Debug, Default)]
pub struct DequantizeOptions {
    /// The type of the restored tensors.
    pub dtype: FloatType,
    /// Replaces an existing output.
    pub force: bool,
}

impl FloatType {
    pub(crate) fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::Bf16 => DType::Bf16,
        }
    }

    /// Returns GGUF's number of a file whose tensors are mostly of this type.
    pub(crate) fn file_type(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Bf16 => 32,
        }
    }
}
