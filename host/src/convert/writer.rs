//! The output file, in any format.

use tercet_core::gguf::TensorSpec;

use crate::file::gguf::About;
use crate::file::output::Output;
use crate::file::{OutputTensor, gguf, npy, safetensors};
use crate::tensor_file::{Container, Metadata};
use crate::{Error, TensorFile};

/// The tensors to write, in their order.
#[derive(Debug)]
pub(crate) struct OutputLayout<'a> {
    parts: &'a [OutputTensor],
    /// GGUF's descriptions; empty for other formats.
    specs: Vec<TensorSpec<'a>>,
}

impl<'a> OutputLayout<'a> {
    pub(crate) fn new(
        container: Container,
        output: &Output,
        parts: &'a [OutputTensor],
    ) -> Result<Self, Error> {
        let specs = match container {
            Container::Gguf => gguf::specs(output, parts)?,
            _ => Vec::new(),
        };
        Ok(Self { parts, specs })
    }
}

/// Writes the bytes of the planned parts, part by part; each part in order and completely.
#[derive(Debug)]
pub(crate) enum Writer<'a> {
    Safetensors(safetensors::Writer),
    Npy { output: Output, left: u64 },
    Gguf(gguf::Writer<'a>),
}

impl<'a> Writer<'a> {
    /// Lays out the file and writes everything before the tensors.
    pub(crate) fn new(
        model: &TensorFile,
        container: Container,
        mut output: Output,
        about: About<'_>,
        layout: &'a OutputLayout<'a>,
    ) -> Result<Self, Error> {
        let parts = layout.parts;
        Ok(match container {
            Container::Safetensors => {
                let metadata = safetensors_metadata(model);
                Self::Safetensors(safetensors::Writer::new(output, &metadata, parts)?)
            }
            Container::Gguf => Self::Gguf(gguf::Writer::new(output, model, about, &layout.specs)?),
            Container::Llama2c => {
                let reason = "llama2.c checkpoints can be read but not written";
                return Err(Error::unsupported(output.path(), reason));
            }
            Container::Npy => {
                let [part] = parts else {
                    let count = parts.len();
                    return Err(Error::unsupported(
                        output.path(),
                        format!(
                            "npy holds one array, but the model has {count} tensors; name the output *.safetensors"
                        ),
                    ));
                };
                npy::write_header(&mut output, &part.name, &part.shape, part.dtype)?;
                Self::Npy {
                    output,
                    left: part.bytes,
                }
            }
        })
    }

    /// Appends bytes to a part.
    pub(crate) fn write(&mut self, part: usize, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::Safetensors(writer) => writer.write(part, bytes),
            Self::Gguf(writer) => writer.write(part, bytes),
            Self::Npy { output, left } => {
                *left -= bytes.len() as u64;
                output.write(bytes)
            }
        }
    }

    /// Puts the file in place and returns its size.
    pub(crate) fn finish(self) -> Result<u64, Error> {
        match self {
            Self::Safetensors(writer) => writer.finish(),
            Self::Gguf(writer) => writer.finish(),
            Self::Npy { output, left } => {
                assert_eq!(left, 0, "the array is shorter than was planned");
                output.finish()
            }
        }
    }
}

/// Returns the metadata of a safetensors file: that of a safetensors input unchanged, that of a GGUF input as text
/// without arrays.
fn safetensors_metadata(model: &TensorFile) -> Metadata {
    match model.container() {
        Container::Gguf => gguf::scalar_metadata(model),
        _ => model.metadata().clone(),
    }
}
