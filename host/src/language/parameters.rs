//! The hyper-parameters of a model, as named in a GGUF file.

use serde::Serialize;
use tercet_core::gguf::Value;
use tercet_core::model::{self, Config, Gate};

use crate::file::gguf::Pair;

/// How a model computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Architecture {
    /// Norms also before the output and down projections, RoPE pairs half a head apart, the embedding as the head.
    Bitnet,
    /// The same with squared ReLU instead of SiLU. llama.cpp does not support it, and refuses it because of this name.
    #[serde(rename = "bitnet-b1.58")]
    BitnetSquaredRelu,
    /// Llama: RoPE pairs of neighbours; a separate head, biases and frequency factors are optional.
    Llama,
}

impl Architecture {
    /// Returns `general.architecture`, which is also the prefix of the keys of the parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bitnet => "bitnet",
            Self::BitnetSquaredRelu => "bitnet-b1.58",
            Self::Llama => "llama",
        }
    }

    /// True if it has norms before the output and down projections, and ternary matrices.
    pub(crate) const fn is_bitnet(self) -> bool {
        matches!(self, Self::Bitnet | Self::BitnetSquaredRelu)
    }
}

/// The hyper-parameters, with the names of GGUF's keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parameters {
    /// How the model computes.
    pub architecture: Architecture,
    /// Maximum number of positions of a sequence.
    pub context_length: u32,
    /// Values per token between layers.
    pub embedding_length: u32,
    /// Layers.
    pub block_count: u32,
    /// Values between the two halves of a feed-forward layer.
    pub feed_forward_length: u32,
    /// Number of query heads.
    pub head_count: u32,
    /// Number of key and value heads; each serves `head_count / head_count_kv` query heads.
    pub head_count_kv: u32,
    /// Values per head, all of which RoPE rotates.
    pub head_length: u32,
    /// Number of tokens.
    pub vocab_size: u32,
    /// Added to the mean square in a norm.
    pub rms_epsilon: f32,
    /// The base of RoPE.
    pub rope_base: f32,
    /// Divisor of positions; `None` for 1, for which no key is written.
    pub rope_factor: Option<f32>,
}

impl Parameters {
    /// Returns the parameters of a model that was read.
    pub fn of(config: &Config) -> Self {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            architecture: match (config.architecture, config.gate) {
                (model::Architecture::Llama, _) => Architecture::Llama,
                (model::Architecture::BitNet, Gate::SquaredRelu) => Architecture::BitnetSquaredRelu,
                (model::Architecture::BitNet, _) => Architecture::Bitnet,
            },
            context_length: config.context,
            embedding_length: count(config.width),
            block_count: count(config.layers),
            feed_forward_length: count(config.hidden),
            head_count: count(config.heads),
            head_count_kv: count(config.kv_heads),
            head_length: count(config.head),
            vocab_size: count(config.vocabulary),
            rms_epsilon: config.eps,
            rope_base: config.rope_base,
            rope_factor: (config.rope_factor != 1.0).then_some(config.rope_factor),
        }
    }

    /// Returns the number of values of all query heads.
    pub const fn query_length(&self) -> u64 {
        self.head_count as u64 * self.head_length as u64
    }

    /// Returns the number of values of all key heads.
    pub const fn key_length(&self) -> u64 {
        self.head_count_kv as u64 * self.head_length as u64
    }

    /// Returns in one line why no program can compute with these parameters.
    pub(crate) fn refusal(&self) -> Option<String> {
        let counts = [
            ("context_length", self.context_length),
            ("embedding_length", self.embedding_length),
            ("block_count", self.block_count),
            ("feed_forward_length", self.feed_forward_length),
            ("head_count", self.head_count),
            ("head_count_kv", self.head_count_kv),
            ("head_length", self.head_length),
            ("vocab_size", self.vocab_size),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Some(format!("{name} is 0"));
        }
        let factor = self.rope_factor.unwrap_or(1.0);
        let positive = |x: f32| x > 0.0 && x.is_finite();
        let floats = [
            ("rms_epsilon", self.rms_epsilon),
            ("rope_base", self.rope_base),
            ("rope_factor", factor),
        ];
        if let Some((name, x)) = floats.into_iter().find(|(_, x)| !positive(*x)) {
            return Some(format!("{name} is {x}"));
        }
        let (heads, kv) = (self.head_count, self.head_count_kv);
        if !heads.is_multiple_of(kv) {
            return Some(format!(
                "{heads} heads do not divide among {kv} heads of keys"
            ));
        }
        if !self.head_length.is_multiple_of(2) {
            let odd = self.head_length;
            return Some(format!(
                "a head of {odd} values has no pairs for RoPE to rotate"
            ));
        }
        let (width, queries) = (u64::from(self.embedding_length), self.query_length());
        // Its sub-norm has the embedding's width.
        (self.architecture.is_bitnet() && width != queries)
            .then(|| format!("the heads of a bitnet have {width} values in all, not {queries}"))
    }

    /// Returns the keys, without the file's type.
    pub(crate) fn entries(&self) -> Vec<Pair<'static>> {
        let name = self.architecture.name();
        let u32s = [
            ("context_length", self.context_length),
            ("embedding_length", self.embedding_length),
            ("block_count", self.block_count),
            ("feed_forward_length", self.feed_forward_length),
            ("attention.head_count", self.head_count),
            ("attention.head_count_kv", self.head_count_kv),
            ("attention.key_length", self.head_length),
            ("attention.value_length", self.head_length),
            ("rope.dimension_count", self.head_length),
            ("vocab_size", self.vocab_size),
        ];
        let f32s = [
            ("attention.layer_norm_rms_epsilon", self.rms_epsilon),
            ("rope.freq_base", self.rope_base),
        ];
        let key = |key: &str| format!("{name}.{key}");
        let mut entries = vec![("general.architecture".to_owned(), Value::String(name))];
        entries.extend(u32s.map(|(name, value)| (key(name), Value::U32(value))));
        entries.extend(f32s.map(|(name, value)| (key(name), Value::F32(value))));
        if let Some(factor) = self.rope_factor {
            entries.push((key("rope.scaling.type"), Value::String("linear")));
            entries.push((key("rope.scaling.factor"), Value::F32(factor)));
        }
        if self.architecture == Architecture::BitnetSquaredRelu {
            entries.push((key("hidden_activation"), Value::String("relu2")));
        }
        entries
    }
}
