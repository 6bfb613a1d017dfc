//! The tensors that are trained, and where each lies among the values of all.

use crate::model::Config;

/// A tensor of a `bitnet` model; those of a layer in the order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Part {
    /// A row for each token, which is the head too.
    Embedding,
    /// Gains of the norm before attention.
    AttentionNorm,
    /// To queries.
    Query,
    /// To keys.
    Key,
    /// To values.
    Value,
    /// Gains of the norm after attention.
    AttentionSubNorm,
    /// From attention to the residual.
    Output,
    /// Gains of the norm before the feed-forward network.
    FeedForwardNorm,
    /// To what is activated.
    Gate,
    /// To what that is multiplied by.
    Up,
    /// Gains of the norm after the gate.
    FeedForwardSubNorm,
    /// From there to the residual.
    Down,
    /// Gains of the norm before the head.
    OutputNorm,
}

impl Part {
    /// Those of a layer, in a file's order.
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

    /// Its name in a file, behind `blk.N.` for a layer's.
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

    /// Whether it is a vector of gains.
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

    /// Whether its weights are ternary.
    pub const fn is_ternary(self) -> bool {
        !self.is_gains() && !matches!(self, Self::Embedding)
    }

    /// Rows and columns; a vector is a row.
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

/// A tensor and where its values lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tensor {
    /// Which it is.
    pub part: Part,
    /// Its layer; 0 for one that is of none.
    pub layer: usize,
    /// Rows, which are outputs.
    pub rows: usize,
    /// Columns, which are inputs.
    pub cols: usize,
    /// The place of its first value among those of all tensors.
    pub first: usize,
}

impl Tensor {
    /// Its values.
    pub const fn len(&self) -> usize {
        self.rows.saturating_mul(self.cols)
    }

    /// True for none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its part of a slice that has an element for each value of all tensors.
    pub fn of<'s, T>(&self, all: &'s [T]) -> &'s [T] {
        let rest = all.get(self.first..);
        rest.and_then(|rest| rest.get(..self.len()))
            .unwrap_or_default()
    }

    /// As [`Tensor::of`].
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
    /// Those of a `bitnet` model.
    pub const fn new(config: &'a Config) -> Self {
        Self { config }
    }

    /// How many tensors.
    pub const fn count(&self) -> usize {
        self.config
            .layers
            .saturating_mul(Part::LAYER.len())
            .saturating_add(2)
    }

    /// Values of all tensors; `usize::MAX` if there are more.
    pub fn values(&self) -> usize {
        let last = self.tensor(self.config.layers, Part::OutputNorm);
        last.first.saturating_add(last.len())
    }

    /// A tensor; `layer` counts for those of a layer alone. O(1).
    pub fn tensor(&self, layer: usize, part: Part) -> Tensor {
        let (rows, cols) = part.shape(self.config);
        let len = |part: Part| {
            let (rows, cols) = part.shape(self.config);
            rows.saturating_mul(cols)
        };
        let own = |until: Option<Part>| {
            let before = Part::LAYER.iter().take_while(|&&part| Some(part) != until);
            before.fold(0usize, |sum, &part| sum.saturating_add(len(part)))
        };
        let layers =
            |layers: usize| len(Part::Embedding).saturating_add(own(None).saturating_mul(layers));
        let (layer, first) = match part {
            Part::Embedding => (0, 0),
            Part::OutputNorm => (0, layers(self.config.layers)),
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

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = Tensor> + use<'a> {
        let shapes = *self;
        let layers = (0..self.config.layers)
            .flat_map(move |layer| Part::LAYER.map(|part| shapes.tensor(layer, part)));
        let first = core::iter::once(self.tensor(0, Part::Embedding));
        first
            .chain(layers)
            .chain([self.tensor(0, Part::OutputNorm)])
    }

    /// The number of a tensor among all.
    pub fn number(&self, layer: usize, part: Part) -> usize {
        let own = Part::LAYER.iter().position(|&other| other == part);
        match part {
            Part::Embedding => 0,
            Part::OutputNorm => self.count().saturating_sub(1),
            _ => layer
                .saturating_mul(Part::LAYER.len())
                .saturating_add(own.unwrap_or(0))
                .saturating_add(1),
        }
    }
}
