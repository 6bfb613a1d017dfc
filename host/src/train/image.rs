//! The file made from a run's weights, in memory.

use half::f16;
use tercet_core::block::Format;
use tercet_core::gguf::Reader;
use tercet_core::model::{DecoderLayer, Model, ModelError};

use crate::Error;
use crate::convert::codec;
use crate::dtype::DType;
use crate::language::{Description, Extras, Role, Slot, Vocabulary, byte_rows, specs, ternary};

use super::options::TrainOptions;
use std::path::Path;

/// Name of the file in messages before it has one.
pub(super) const NAME: &str = "the model in training";

/// A GGUF file whose tensors are written again after every step.
#[derive(Debug)]
pub(super) struct Image {
    bytes: Vec<u8>,
    /// The place of each tensor's bytes, in order.
    places: Vec<std::ops::Range<usize>>,
    format: Format,
}

impl Image {
    /// Returns a file of zeros.
    pub(super) fn new(
        options: &TrainOptions,
        vocabulary: Vocabulary,
        format: Format,
    ) -> Result<Self, Error> {
        let parameters = options.parameters;
        let slots = parameters.tensors(Extras::default());
        let types: Vec<(&Slot, DType)> = slots
            .iter()
            .map(|slot| match slot.role {
                Role::Embedding => (slot, DType::Block(Format::Q8_0)),
                Role::Matrix => (slot, DType::Block(format)),
                _ => (slot, DType::F32),
            })
            .collect();
        let path = Path::new(NAME);
        let specs = specs(path, &types)?;
        let description = Description {
            parameters,
            vocabulary,
            extras: Vec::new(),
            dtype: DType::Block(format),
        };
        let (_, file_type) = codec(description.dtype)?;
        let bytes = description.zeros(file_type, &specs)?;
        let reader = Reader::new(&bytes).map_err(|error| Error::bad(path, "GGUF", error))?;
        let data = bytes.len() - reader.data().len();
        let places = reader
            .tensors()
            .map(|tensor| {
                let first = data + tensor.offset as usize;
                first..first + tensor.data.len()
            })
            .collect();
        Ok(Self {
            bytes,
            places,
            format,
        })
    }

    /// Returns the file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the file, without the rest.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes a ternary tensor.
    pub(super) fn ternary(&mut self, tensor: usize, codes: &[i8], scale: f16) {
        let bytes = ternary(self.format, codes, scale).expect("rows divide into blocks");
        self.write(tensor, &bytes);
    }

    /// Writes the embedding.
    pub(super) fn rows(&mut self, tensor: usize, cols: usize, codes: &[i8], scales: &[f16]) {
        let bytes = byte_rows(cols, codes, scales).expect("rows divide into blocks");
        self.write(tensor, &bytes);
    }

    /// Writes gains.
    pub(super) fn floats(&mut self, tensor: usize, values: &[f32]) {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.write(tensor, &bytes);
    }

    fn write(&mut self, tensor: usize, bytes: &[u8]) {
        let place = self.places[tensor].clone();
        self.bytes[place].copy_from_slice(bytes);
    }
}

/// Calls a function with the model of a file in memory.
pub(super) fn with_model<T>(
    bytes: &[u8],
    work: impl FnOnce(&Model<'_, '_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let refuse = |error: ModelError| Error::unsupported(NAME.as_ref(), error);
    let reader = Reader::new(bytes).map_err(|error| Error::bad(NAME.as_ref(), "GGUF", error))?;
    let (layers, steps) = Model::lengths(&reader).map_err(refuse)?;
    let (mut layers, mut steps) = (vec![DecoderLayer::EMPTY; layers], vec![0; steps]);
    let model = Model::new(&reader, &mut layers, &mut steps).map_err(refuse)?;
    work(&model)
}
