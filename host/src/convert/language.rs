//! Language models in GGUF: matrices get the requested format, and the other tensors another one, so that the model
//! runs.

use std::path::Path;

use tercet_core::block::Format;

use super::codec::Codec;
use super::i2_s;
use super::options::QuantizeOptions;
use super::plan::Action;
use crate::dtype::DType;
use crate::file::gguf;
use crate::tensor_file::{Container, Tensor};
use crate::{Error, TensorFile};

/// The note of an embedding and of a head.
const BESIDE: &str = "the embedding or the head: q8_0, one scale a row";
/// The same beside I2_S.
const BESIDE_I2_S: &str = "the embedding or the head: f16, as bitnet.cpp writes them";
/// The first GGUF type that bitnet.cpp's fork of llama.cpp does not have, or has as another type.
const FORKED: u32 = 36;

/// Facts about a language model that are known before its tensors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Language {
    /// True if it is trained with ternary matrices, with one scale each.
    is_bitnet: bool,
}

impl Language {
    /// Returns `None` if it is no GGUF file of an architecture that is run.
    pub(super) fn of(model: &TensorFile) -> Option<Self> {
        if model.container() != Container::Gguf {
            return None;
        }
        let mut metadata = model.metadata().iter();
        let (_, name) = metadata.find(|(key, _)| key == "general.architecture")?;
        let is_bitnet = match name.as_str() {
            "llama" => false,
            "bitnet" | "bitnet-b1.58" | "bitnet-25" => true,
            _ => return None,
        };
        Some(Self { is_bitnet })
    }

    /// Returns the action for a matrix of floats if blocks of `wanted` are requested, with a note if it is another one;
    /// `None` if it is treated like any tensor.
    pub(super) fn action(
        self,
        tensor: &Tensor<'_>,
        wanted: Format,
        options: &QuantizeOptions,
    ) -> Option<(Action, Option<String>)> {
        let fits = |format: Format| tensor.row().is_multiple_of(format.len());
        if is_beside(tensor) {
            let note = (wanted != Format::Q8_0).then(|| BESIDE.to_owned());
            return fits(Format::Q8_0).then_some((Action::ByteRows, note));
        }
        // With a requested rule there are blocks of that rule, each with its own scale.
        if !self.is_bitnet || !wanted.is_ternary() || options.rule.is_some() {
            return None;
        }
        let format = [wanted, Format::Q2_0]
            .into_iter()
            .find(|&format| fits(format))?;
        let note = (format != wanted).then(|| {
            let (row, name, len) = (tensor.row(), wanted.name(), wanted.len());
            format!(
                "{}: rows of {row} do not divide into {name} blocks of {len}",
                format.name()
            )
        });
        let dtype = DType::Block(format);
        let kept = true;
        Some((Action::Ternary { dtype, kept }, note))
    }
}

/// True for the embedding and a separate head.
fn is_beside(tensor: &Tensor<'_>) -> bool {
    matches!(tensor.name, "token_embd.weight" | "output.weight")
}

/// True for a matrix of a layer in ternary blocks, which I2_S can hold if they all have one scale.
pub(super) fn is_repacked(tensor: &Tensor<'_>) -> bool {
    let ternary = matches!(tensor.dtype, DType::Block(format) if format.is_ternary());
    ternary && !is_beside(tensor)
}

/// Returns the action for a matrix of a language model if I2_S is requested, with a note if it is another type.
///
/// bitnet.cpp's own quantizer makes the embedding and the head f16. Its kernels run them as Q8_0 too, but that would
/// change their values.
pub(super) fn i2_s_action(
    path: &Path,
    tensor: &Tensor<'_>,
) -> Result<(Action, Option<String>), Error> {
    if is_beside(tensor) {
        let action = match tensor.dtype {
            DType::F16 => Action::Copy,
            _ => Action::Stream(Codec::Floats(DType::F16)),
        };
        return Ok((action, Some(BESIDE_I2_S.to_owned())));
    }
    match i2_s::misread(tensor.shape) {
        None => Ok((Action::I2S, None)),
        Some(reason) => {
            let reason = format!("{reason}; exclude it");
            Err(Error::tensor(path, tensor.name, reason))
        }
    }
}

/// Checks that bitnet.cpp knows the type of a tensor that is copied beside I2_S.
pub(super) fn check_copied(path: &Path, tensor: &Tensor<'_>) -> Result<(), Error> {
    let kind = gguf::write_dtype(tensor.dtype);
    let unknown = |number: u32| number >= FORKED && tensor.dtype != DType::I2S;
    match kind {
        Some(kind) if unknown(kind.0) => {
            let name = tensor.dtype.name();
            let reason =
                format!("bitnet.cpp does not read {name}; tercet dequantize the model first");
            Err(Error::tensor(path, tensor.name, reason))
        }
        _ => Ok(()),
    }
}
