//! Language models in GGUF: matrices get the requested format, and the other tensors another one, so that the model
//! runs.

use tercet_core::block::Format;

use super::options::QuantizeOptions;
use super::plan::Action;
use crate::TensorFile;
use crate::dtype::DType;
use crate::tensor_file::{Container, Tensor};

/// The note of an embedding and of a head.
const BESIDE: &str = "the embedding or the head: q8_0, one scale a row";

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
        if matches!(tensor.name, "token_embd.weight" | "output.weight") {
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
