//! A model whose file was read when the program was built.
//!
//! A build script reads and checks the file, and writes where its tensors are as constants
//! ([`build_script::model`](crate::build_script::model)). The program then needs no code that reads metadata and finds
//! tensors by their names. It only compares the file with what was read.

use super::weights::{Values, Weights};
use super::{Config, DecoderLayer, Model, ModelError};
use crate::conformance::Digest;
use crate::linear::network::LayerSize;
use crate::linear::{Layer, Matrix};

/// Place of a tensor in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TensorPlace {
    /// Number of bytes before it.
    pub at: usize,
    /// Its number of bytes; 0 if there is none.
    pub len: usize,
}

impl TensorPlace {
    /// Returns the tensor's bytes; none if the file is shorter.
    fn of(self, file: &[u8]) -> &[u8] {
        super::part(file, self.at, self.len)
    }
}

/// Place of a matrix in a file, with those of its bias and scale.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MatrixPlace {
    /// Its layout, rows and columns.
    pub size: LayerSize,
    /// Place of its weights.
    pub weights: TensorPlace,
    /// Place of the bias, if there is one.
    pub bias: TensorPlace,
    /// Final factor of the product, if the file has such a tensor.
    pub scale: Option<f32>,
}

impl MatrixPlace {
    /// Returns the matrix, after a pass that checks it.
    // One copy for all matrices.
    #[inline(never)]
    fn of<'a>(&self, file: &'a [u8], wide: bool) -> Result<Weights<'a>, ModelError> {
        let LayerSize { layout, rows, cols } = self.size;
        let matrix = Matrix::new(layout, rows, cols, self.weights.of(file))?;
        if wide {
            matrix.check_wide()?;
        }
        Ok(Weights {
            bias: self.bias.of(file),
            scale: self.scale,
            ..Weights::new(Values::Blocks(Layer::new(matrix)))
        })
    }
}

/// Places of a layer's tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LayerPlaces {
    /// Gains of the norms: before attention, after it, before the feed-forward network, after its gate.
    pub norms: [TensorPlace; 4],
    /// Matrices, in the order of [`DecoderLayer::weights`].
    pub matrices: [MatrixPlace; 7],
}

/// What a build script read in a model's file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BuiltModel<'s> {
    /// The model's shape.
    pub config: Config,
    /// Number of bytes of the file.
    pub len: usize,
    /// Number of bytes before the first tensor.
    pub header: usize,
    /// Their [hash](header_hash).
    pub hash: u64,
    /// Places of the layers' tensors.
    pub layers: &'s [LayerPlaces],
    /// Place of the embedding.
    pub embedding: MatrixPlace,
    /// Place of the gains of the norm before the head.
    pub norm: TensorPlace,
    /// Place of the head, if it is not the embedding.
    pub head: Option<MatrixPlace>,
    /// Increase of the phase per position, of each pair of a head: see [`Rope`](super::Rope).
    pub steps: &'s [u64],
}

/// Returns the [`Digest`] of a file's metadata and descriptions of tensors. O(n).
pub fn header_hash(bytes: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.bytes(bytes);
    digest.value()
}

impl<'a, 'l> Model<'a, 'l> {
    /// Returns the model of a file that a build script read. `layers` has at least as many elements as the model has
    /// layers, and any content.
    ///
    /// The result is that of [`Model::new`] for the same file. O(metadata), and one pass over the scales of blocks. No
    /// tensor is copied.
    ///
    /// # Errors
    /// [`ModelError::OtherFile`] for a file of another length or with another beginning;
    /// [`ModelError::Linear`] for blocks whose scales no model has; [`ModelError::Layers`].
    #[inline(never)]
    pub fn built(
        file: &'a [u8],
        built: &BuiltModel<'l>,
        layers: &'l mut [DecoderLayer<'a>],
    ) -> Result<Self, ModelError> {
        let header = super::part(file, 0, built.header);
        if file.len() != built.len || header_hash(header) != built.hash {
            return Err(ModelError::OtherFile);
        }
        let (max, found) = (layers.len(), built.layers.len());
        let layers = layers
            .get_mut(..found)
            .ok_or(ModelError::Layers { found, max })?;
        let wide = built.config.wide();
        for (layer, places) in layers.iter_mut().zip(built.layers) {
            let [attention, attention_sub, feed_forward, feed_forward_sub] = places.norms;
            *layer = DecoderLayer {
                attention_norm: attention.of(file),
                attention_sub_norm: attention_sub.of(file),
                feed_forward_norm: feed_forward.of(file),
                feed_forward_sub_norm: feed_forward_sub.of(file),
                ..DecoderLayer::EMPTY
            };
            for (weights, place) in layer.weights_mut().into_iter().zip(&places.matrices) {
                *weights = place.of(file, wide)?;
            }
        }
        let head = match &built.head {
            Some(place) => Some(place.of(file, wide)?),
            None => None,
        };
        let outside = (built.embedding.of(file, wide)?, built.norm.of(file), head);
        Ok(Self::of(built.config, layers, outside, built.steps))
    }
}
