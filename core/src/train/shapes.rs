//! The trained tensors, and the place of each among the values of all.

use crate::model::Config;

/// A tensor of a `bitnet` model; those of a layer are in the order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Parameter {
    /// Embedding with one row per token, which is also the head.
    Embedding,
    /// Gains of the norm before attention.
    AttentionNorm,
    /// Matrix to queries.
    Query,
    /// Matrix to keys.
    Key,
    /// Matrix to values.
    Value,
    /// Gains of the norm after attention.
    AttentionSubNorm,
    /// Matrix from attention to the residual.
    Output,
    /// Gains of the norm before the feed-forward network.
    FeedForwardNorm,
    /// Matrix to the input of the gate's activation.
    Gate,
    /// Matrix to the gate's factor.
    Up,
    /// Gains of the norm after the gate.
    FeedForwardSubNorm,
    /// Matrix from the gated activation to the residual.
    Down,
    /// Gains of the norm before the head.
    OutputNorm,
}

impl Parameter {
    /// The tensors of a layer, in a file's order.
    pub const LAYER: [Self; 11] = [
        Self::AttentionNorm,
        Self::Query,
        Self::Key,
        Self::Value,
        Self::AttentionSubNorm,
        Self::Output,
        Self::FeedForwardNorm,
        Self::Gate,
        Self::Up,
        Self::FeedForwardSubNorm,
        Self::Down,
    ];

    /// Returns its name in a file, after `blk.N.` for a layer's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedding => "token_embd.weight",
            Self::AttentionNorm => "attn_norm.weight",
            Self::Query => "attn_q.weight",
            Self::Key => "attn_k.weight",
            Self::Value => "attn_v.weight",
            Self::AttentionSubNorm => "attn_sub_norm.weight",
            Self::Output => "attn_output.weight",
            Self::FeedForwardNorm => "ffn_norm.weight",
            Self::Gate => "ffn_gate.weight",
            Self::Up => "ffn_up.weight",
            Self::FeedForwardSubNorm => "ffn_sub_norm.weight",
            Self::Down => "ffn_down.weight",
            Self::OutputNorm => "output_norm.weight",
        }
    }

    /// Returns true if it is a vector of gains.
    pub const fn is_gains(self) -> bool {
        matches!(
            self,
            Self::AttentionNorm
                | Self::AttentionSubNorm
                | Self::FeedForwardNorm
                | Self::FeedForwardSubNorm
                | Self::OutputNorm
        )
    }

    /// Returns true if its weights are ternary.
    pub const fn is_ternary(self) -> bool {
        !self.is_gains() && !matches!(self, Self::Embedding)
    }

    /// Returns the numbers of rows and columns; a vector is a row.
    const fn shape(self, config: &Config) -> (usize, usize) {
        let (width, hidden) = (config.width, config.hidden);
        let (queries, keys) = (config.query_width(), config.kv_width());
        match self {
            Self::Embedding => (config.vocabulary, width),
            Self::AttentionNorm | Self::FeedForwardNorm | Self::OutputNorm => (1, width),
            Self::Query => (queries, width),
            Self::Key | Self::Value => (keys, width),
            Self::AttentionSubNorm => (1, queries),
            Self::Output => (width, queries),
            Self::Gate | Self::Up => (hidden, width),
            Self::FeedForwardSubNorm => (1, hidden),
            Self::Down => (width, hidden),
        }
    }
}

/// A tensor and the place of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tensor {
    /// The tensor's part of the model.
    pub part: Parameter,
    /// Its layer; 0 for a tensor outside the layers.
    pub layer: usize,
    /// Number of rows, which are outputs.
    pub rows: usize,
    /// Number of columns, which are inputs.
    pub cols: usize,
    /// Index of its first value among those of all tensors.
    pub first: usize,
}

impl Tensor {
    /// Returns the number of its values.
    pub const fn len(&self) -> usize {
        self.rows.saturating_mul(self.cols)
    }

    /// Returns true if it has no values.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns its part of a slice that has one element per value of all tensors.
    pub fn of<'s, T>(&self, all: &'s [T]) -> &'s [T] {
        let rest = all.get(self.first..);
        rest.and_then(|rest| rest.get(..self.len()))
            .unwrap_or_default()
    }

    /// Like [`Tensor::of`], mutably.
    pub fn of_mut<'s, T>(&self, all: &'s mut [T]) -> &'s mut [T] {
        let rest = all.get_mut(self.first..);
        rest.and_then(|rest| rest.get_mut(..self.len()))
            .unwrap_or_default()
    }
}

/// The tensors of a model's shape, one after another in a file's order: embedding, layers, the last norm.
#[derive(Clone, Copy, Debug)]
pub struct Shapes<'a> {
    config: &'a Config,
}

impl<'a> Shapes<'a> {
    /// Creates the shapes of a `bitnet` model.
    pub const fn new(config: &'a Config) -> Self {
        Self { config }
    }

    /// Returns the number of tensors.
    pub const fn count(&self) -> usize {
        self.config
            .layers
            .saturating_mul(Parameter::LAYER.len())
            .saturating_add(2)
    }

    /// Returns the number of values of all tensors; `usize::MAX` if it does not fit.
    pub fn values(&self) -> usize {
        let last = self.tensor(self.config.layers, Parameter::OutputNorm);
        last.first.saturating_add(last.len())
    }

    /// Returns a tensor; `layer` is only used for those of a layer. O(1).
    pub fn tensor(&self, layer: usize, part: Parameter) -> Tensor {
        let (rows, cols) = part.shape(self.config);
        let len = |part: Parameter| {
            let (rows, cols) = part.shape(self.config);
            rows.saturating_mul(cols)
        };
        let own = |until: Option<Parameter>| {
            let before = Parameter::LAYER
                .iter()
                .take_while(|&&part| Some(part) != until);
            before.fold(0usize, |sum, &part| sum.saturating_add(len(part)))
        };
        let layers = |layers: usize| {
            len(Parameter::Embedding).saturating_add(own(None).saturating_mul(layers))
        };
        let (layer, first) = match part {
            Parameter::Embedding => (0, 0),
            Parameter::OutputNorm => (0, layers(self.config.layers)),
            _ => (layer, layers(layer).saturating_add(own(Some(part)))),
        };
        Tensor {
            part,
            layer,
            rows,
            cols,
            first,
        }
    }

    /// Returns all tensors, in order.
    pub fn iter(&self) -> impl Iterator<Item = Tensor> + use<'a> {
        let shapes = *self;
        let layers = (0..self.config.layers)
            .flat_map(move |layer| Parameter::LAYER.map(|part| shapes.tensor(layer, part)));
        let first = core::iter::once(self.tensor(0, Parameter::Embedding));
        first
            .chain(layers)
            .chain([self.tensor(0, Parameter::OutputNorm)])
    }

    /// Returns the index of a tensor among all.
    pub fn number(&self, layer: usize, part: Parameter) -> usize {
        let own = Parameter::LAYER.iter().position(|&other| other == part);
        match part {
            Parameter::Embedding => 0,
            Parameter::OutputNorm => self.count().saturating_sub(1),
            _ => layer
                .saturating_mul(Parameter::LAYER.len())
                .saturating_add(own.unwrap_or(0))
                .saturating_add(1),
        }
    }
}
