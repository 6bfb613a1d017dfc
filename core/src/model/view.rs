//! A model as a view of its file.

use super::tensors::{self, Outside};
use super::weights::{Values, Weights};
use super::{Architecture, Config, Gate, ModelError, Rope};
use crate::gguf::Reader;

/// The tensors of a layer. Norms are f32, little-endian.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DecoderLayer<'a> {
    /// Gains of the norm before attention.
    pub attention_norm: &'a [u8],
    /// Matrix from the residual to queries.
    pub query: Weights<'a>,
    /// Matrix from the residual to keys.
    pub key: Weights<'a>,
    /// Matrix from the residual to values.
    pub value: Weights<'a>,
    /// Gains of the norm after attention; empty if there is none.
    pub attention_sub_norm: &'a [u8],
    /// Matrix from attention to the residual.
    pub output: Weights<'a>,
    /// Gains of the norm before the feed-forward network.
    pub feed_forward_norm: &'a [u8],
    /// Matrix to the input of the gate's activation.
    pub gate: Weights<'a>,
    /// Matrix to the gate's factor.
    pub up: Weights<'a>,
    /// Gains of the norm after the gate; empty if there is none.
    pub feed_forward_sub_norm: &'a [u8],
    /// Matrix from the gated activation to the residual.
    pub down: Weights<'a>,
}

impl<'a> DecoderLayer<'a> {
    /// A layer without tensors.
    pub const EMPTY: Self = Self {
        attention_norm: &[],
        query: Weights::NONE,
        key: Weights::NONE,
        value: Weights::NONE,
        attention_sub_norm: &[],
        output: Weights::NONE,
        feed_forward_norm: &[],
        gate: Weights::NONE,
        up: Weights::NONE,
        feed_forward_sub_norm: &[],
        down: Weights::NONE,
    };

    /// Returns the layer's matrices, as [`DecoderLayer::weights`] does.
    pub(super) const fn weights_mut(&mut self) -> [&mut Weights<'a>; 7] {
        [
            &mut self.query,
            &mut self.key,
            &mut self.value,
            &mut self.output,
            &mut self.gate,
            &mut self.up,
            &mut self.down,
        ]
    }

    /// Returns the layer's matrices.
    pub fn weights(&self) -> [&Weights<'a>; 7] {
        [
            &self.query,
            &self.key,
            &self.value,
            &self.output,
            &self.gate,
            &self.up,
            &self.down,
        ]
    }
}

/// A checked model. Its tensors stay in place, in flash or in a memory map.
///
/// `'a` is the lifetime of the file, `'l` that of the caller's slices for layers and rotation steps.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a, 'l> {
    config: Config,
    layers: &'l [DecoderLayer<'a>],
    embedding: Weights<'a>,
    norm: &'a [u8],
    head: Weights<'a>,
    tied: bool,
    rope: Rope<'l>,
}

impl<'a, 'l> Model<'a, 'l> {
    /// Returns the number of layers and the number of pairs of a head: the lengths of the slices for [`Model::new`].
    /// O(metadata).
    ///
    /// # Errors
    /// Errors in the metadata.
    pub fn lengths(file: &Reader<'_>) -> Result<(usize, usize), ModelError> {
        let config = Config::read(file)?;
        Ok((config.layers, config.head / 2))
    }

    /// Reads a model's description and finds its tensors. `layers` and `steps` have at least the
    /// [lengths](Model::lengths), and any content.
    ///
    /// O(metadata + tensors), one pass over the scales of blocks, and some hundred products per pair of a head. No
    /// tensor is copied.
    ///
    /// # Errors
    /// The first error found, with its key or tensor; [`ModelError::Layers`] and [`ModelError::Room`] for slices that
    /// are too short.
    // A separate stack frame; otherwise a program's main loop would keep all of it.
    #[inline(never)]
    pub fn new(
        file: &Reader<'a>,
        layers: &'l mut [DecoderLayer<'a>],
        steps: &'l mut [u64],
    ) -> Result<Self, ModelError> {
        let mut config = Config::read(file)?;
        if !config.fits() {
            return Err(ModelError::TooLarge);
        }
        let (max, found) = (layers.len(), config.layers);
        let layers = layers
            .get_mut(..found)
            .ok_or(ModelError::Layers { found, max })?;
        layers.fill(DecoderLayer::EMPTY);
        let outside = tensors::place(file, &mut config, layers)?;
        let (needed, found) = (config.head / 2, steps.len());
        let steps = steps.get_mut(..needed).ok_or(ModelError::Room {
            memory: "a rotation's steps",
            needed,
            found,
        })?;
        Rope::fill(
            config.rope_base,
            config.rope_factor,
            outside.rope_factors,
            steps,
        )?;
        Self::from_parts(config, layers, outside, steps)
    }

    fn from_parts(
        config: Config,
        layers: &'l [DecoderLayer<'a>],
        outside: Outside<'a>,
        steps: &'l [u64],
    ) -> Result<Self, ModelError> {
        let missing = |tensor| ModelError::Tensor {
            tensor,
            expected: "there",
        };
        let embedding = outside.embedding.ok_or(missing("token_embd.weight"))?;
        let is_bitnet = config.architecture == Architecture::BitNet;
        if is_bitnet && outside.head.is_some() {
            return Err(ModelError::Tensor {
                tensor: "output.weight",
                expected: "absent: the head of this architecture is its embedding",
            });
        }
        let head = outside.head.unwrap_or(embedding);
        if head.rows() != config.vocabulary {
            return Err(ModelError::Tensor {
                tensor: "output.weight",
                expected: "of as many rows as token_embd.weight",
            });
        }
        for (index, layer) in layers.iter().enumerate() {
            complete(layer, is_bitnet).map_err(|tensor| ModelError::LayerTensor {
                layer: index,
                tensor,
                expected: "there",
            })?;
        }
        let norm = outside.norm.ok_or(missing("output_norm.weight"))?;
        Ok(Self::of(
            config,
            layers,
            (embedding, norm, outside.head),
            steps,
        ))
    }

    /// Returns the model of these layers, embedding, gains before the head, and head if it is not the embedding.
    pub(super) fn of(
        config: Config,
        layers: &'l [DecoderLayer<'a>],
        (embedding, norm, head): (Weights<'a>, &'a [u8], Option<Weights<'a>>),
        steps: &'l [u64],
    ) -> Self {
        Self {
            config,
            layers,
            embedding,
            norm,
            head: head.unwrap_or(embedding),
            tied: head.is_none(),
            rope: Rope {
                steps,
                neighbours: config.architecture == Architecture::Llama,
            },
        }
    }

    /// Returns the model's shape.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the model with another gate, for a file that is known to specify a wrong one or none.
    pub const fn with_gate(mut self, gate: Gate) -> Self {
        self.config.gate = gate;
        self
    }

    /// Returns the layers.
    pub const fn layers(&self) -> &'l [DecoderLayer<'a>] {
        self.layers
    }

    /// Returns the embedding, with one row per token.
    pub const fn embedding(&self) -> &Weights<'a> {
        &self.embedding
    }

    /// Returns the gains of the norm before the head, f32, little-endian.
    pub const fn norm(&self) -> &'a [u8] {
        self.norm
    }

    /// Returns the matrix to logits: the embedding if the file has no other.
    pub const fn head(&self) -> &Weights<'a> {
        &self.head
    }

    /// Returns the conversion of positions to angles.
    pub const fn rope(&self) -> &Rope<'l> {
        &self.rope
    }

    /// Returns the number of bytes of all weights.
    pub fn bytes(&self) -> usize {
        let embedding = if self.tied { 0 } else { self.embedding.bytes() };
        self.all_weights().fold(embedding, |sum, weights| {
            sum.saturating_add(weights.bytes())
        })
    }
}

/// Fails with the first tensor that a layer lacks.
fn complete(layer: &DecoderLayer<'_>, sub_norms: bool) -> Result<(), &'static str> {
    let norms = [
        (layer.attention_norm, true, "attn_norm.weight"),
        (layer.feed_forward_norm, true, "ffn_norm.weight"),
        (layer.attention_sub_norm, sub_norms, "attn_sub_norm.weight"),
        (
            layer.feed_forward_sub_norm,
            sub_norms,
            "ffn_sub_norm.weight",
        ),
    ];
    for (gains, needed, name) in norms {
        if needed && gains.is_empty() {
            return Err(name);
        }
    }
    let names = [
        "attn_q.weight",
        "attn_k.weight",
        "attn_v.weight",
        "attn_output.weight",
        "ffn_gate.weight",
        "ffn_up.weight",
        "ffn_down.weight",
    ];
    for (weights, name) in layer.weights().into_iter().zip(names) {
        if weights.values == Values::None {
            return Err(name);
        }
    }
    Ok(())
}
