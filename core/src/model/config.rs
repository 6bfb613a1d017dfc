//! Reads a model's shape from its file.

use super::cache::CacheType;
use super::{Gate, ModelError};
use crate::gguf::{Reader, Value};

/// An architecture: the operations, and their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Architecture {
    /// `bitnet`, also `bitnet-b1.58` and `bitnet-25`: norms after attention and after the gate, rotation of pairs
    /// from both halves, 8-bit activations.
    BitNet,
    /// `llama`: neither of these norms, rotation of neighbours, 16-bit activations.
    Llama,
}

/// The positions that a position attends to: a number of sinks at the start, those in a window that ends at the
/// position, and every `stride`-th before it. A position always attends to itself.
///
/// Position p attends to t ≤ p if t < sinks, or p − t < window, or stride > 0 and (p − t) mod stride = 0 (Child and
/// others, 2019). Sinks are those of Xiao and others, *Efficient streaming language models with attention
/// sinks*, 2023. From position window + sinks on, they are scored by a query rotated to position window + sinks − 1,
/// so that their distance stays within the range that the model was trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pattern {
    /// Number of positions in the window, which ends at the position itself; at least 1.
    pub window: u32,
    /// Number of positions at the start that every position attends to.
    pub sinks: u32,
    /// Distance between the attended positions before the window; 0 for none.
    pub stride: u32,
}

impl Pattern {
    /// Every position.
    pub const FULL: Self = Self {
        window: u32::MAX,
        sinks: 0,
        stride: 0,
    };

    /// Returns true if position `p` attends to `t`, which is not after `p`.
    #[inline]
    pub const fn attends(&self, p: u32, t: u32) -> bool {
        let back = p.wrapping_sub(t);
        t < self.sinks
            || back < self.window
            || back == 0
            || matches!(back.checked_rem(self.stride), Some(0))
    }

    /// Returns true if old positions are dropped, so that memory does not grow: there is a window and no stride.
    pub const fn is_ring(&self) -> bool {
        self.window != u32::MAX && self.stride == 0
    }

    /// Returns the position to which position `p`'s queries of sinks are rotated; `None` if they are not rotated
    /// separately.
    #[inline]
    pub const fn sink_position(&self, p: u32) -> Option<u32> {
        match self.window.checked_add(self.sinks) {
            Some(end) if self.sinks > 0 && p >= end => Some(end.saturating_sub(1)),
            _ => None,
        }
    }
}

/// The shape of a model, from its file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    /// Operations and their order.
    pub architecture: Architecture,
    /// Activation between gate and up.
    pub gate: Gate,
    /// Number of layers.
    pub layers: usize,
    /// Number of values of the residual.
    pub width: usize,
    /// Number of values between up and down.
    pub hidden: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Number of key and value heads; divides the number of query heads.
    pub kv_heads: usize,
    /// Number of values per head: even, at most [`MAX_HEAD`](super::attention::MAX_HEAD).
    pub head: usize,
    /// Number of positions that the model was trained for.
    pub context: u32,
    /// Number of tokens in the vocabulary.
    pub vocabulary: usize,
    /// Number that norms add to the mean of squares.
    pub eps: f32,
    /// Base of the rotation's frequencies.
    pub rope_base: f32,
    /// Divisor of the frequencies.
    pub rope_factor: f32,
    /// Default format of keys and values.
    pub cache: CacheType,
    /// Default pattern of attended positions.
    pub pattern: Pattern,
}

impl Config {
    /// Returns true if activations have 16 bits, not 8.
    pub const fn wide(&self) -> bool {
        matches!(self.architecture, Architecture::Llama)
    }

    /// Returns the number of values of all query heads.
    pub const fn query_width(&self) -> usize {
        self.heads.saturating_mul(self.head)
    }

    /// Returns the number of values of all key heads.
    pub const fn kv_width(&self) -> usize {
        self.kv_heads.saturating_mul(self.head)
    }

    /// Returns the largest of the widths.
    pub(crate) const fn widest(&self) -> usize {
        let (width, queries) = (self.width, self.query_width());
        let most = if width < self.hidden {
            self.hidden
        } else {
            width
        };
        if most < queries { queries } else { most }
    }

    /// Reads the metadata. The vocabulary size comes from the embedding and is still 0. O(metadata).
    pub(super) fn read(file: &Reader<'_>) -> Result<Self, ModelError> {
        let name = file
            .get("general.architecture")
            .and_then(|value| value.as_str());
        let name = name.ok_or(ModelError::Architecture)?;
        let (architecture, gate) = match name {
            "llama" => (Architecture::Llama, Gate::Silu),
            "bitnet" => (Architecture::BitNet, Gate::Silu),
            "bitnet-b1.58" | "bitnet-25" => (Architecture::BitNet, Gate::SquaredRelu),
            _ => return Err(ModelError::Architecture),
        };
        let tensors = file.tensors().len();
        let mut keys = Keys::default();
        for (key, value) in file.metadata() {
            let own = key.strip_prefix(name).and_then(|key| key.strip_prefix('.'));
            keys.take(own.unwrap_or(key), own.is_some(), value)?;
        }
        let config = keys.config(architecture, gate)?;
        // Each layer has tensors, so the memory for layers is no larger than the file.
        match config.layers <= tensors {
            true => Ok(config),
            false => Err(ModelError::Key {
                key: "block_count",
                expected: "at most the number of tensors",
            }),
        }
    }
}

const COUNT: &str = "an integer below 2^31";

/// Returns the value as a count, if it is one.
fn count_of(value: Value<'_>) -> Option<usize> {
    let count = value.as_u64()?;
    let small = count <= u64::from(u32::MAX >> 1);
    small.then(|| usize::try_from(count).ok())?
}

/// Keys with a count.
#[derive(Clone, Copy)]
enum Count {
    Layers,
    Width,
    Hidden,
    Heads,
    KvHeads,
    KeyLength,
    ValueLength,
    Rotated,
    Context,
    Window,
    Experts,
}

/// Their names, in the same order.
const COUNTS: [&str; 11] = [
    "block_count",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "rope.dimension_count",
    "context_length",
    "attention.sliding_window",
    "expert_count",
];

/// Keys with a float.
#[derive(Clone, Copy)]
enum Float {
    Eps,
    Base,
    Factor,
    /// The factor from the key of older files.
    OldFactor,
    AttentionFactor,
}

/// Their names, in the same order.
const FLOATS: [&str; 5] = [
    "attention.layer_norm_rms_epsilon",
    "rope.freq_base",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
];

/// Returns the place of a key, and its name as a constant.
fn place_of(key: &str, names: &[&'static str]) -> Option<(usize, &'static str)> {
    let mut names = names.iter().copied().enumerate();
    names.find(|&(_, name)| name == key)
}

/// Values of the keys as they are read.
#[derive(Default)]
struct Keys {
    counts: [Option<usize>; COUNTS.len()],
    floats: [Option<f32>; FLOATS.len()],
    /// True if the factor is used.
    scaled: Option<bool>,
    gate: Option<Gate>,
    cache: Option<CacheType>,
    sinks: Option<usize>,
    stride: Option<usize>,
}

impl Keys {
    fn count(&self, which: Count) -> Option<usize> {
        self.counts.get(which as usize).copied().flatten()
    }

    fn float(&self, which: Float) -> Option<f32> {
        self.floats.get(which as usize).copied().flatten()
    }

    /// Returns a count that a model must have.
    fn positive(&self, which: Count) -> Result<usize, ModelError> {
        let count = self.count(which).filter(|&count| count > 0);
        count.ok_or(ModelError::Key {
            key: COUNTS.get(which as usize).copied().unwrap_or_default(),
            expected: "an integer of at least 1",
        })
    }

    /// Reads a key, the architecture's own or another. If a key occurs twice, the first counts.
    fn take(&mut self, key: &str, own: bool, value: Value<'_>) -> Result<(), ModelError> {
        if !own {
            return self.take_tercet(key, value);
        }
        let bad = |key, expected| Err(ModelError::Key { key, expected });
        if let Some((at, name)) = place_of(key, &COUNTS) {
            let Some(count) = count_of(value) else {
                return bad(name, COUNT);
            };
            if at == Count::Experts as usize && count > 0 {
                return bad(name, "0: models of experts are not run");
            }
            if let Some(slot) = self.counts.get_mut(at) {
                slot.get_or_insert(count);
            }
            return Ok(());
        }
        if let Some((at, name)) = place_of(key, &FLOATS) {
            let Value::F32(value) = value else {
                return bad(name, "an f32");
            };
            if let Some(slot) = self.floats.get_mut(at) {
                slot.get_or_insert(value);
            }
            return Ok(());
        }
        match (key, value.as_str()) {
            ("rope.scaling.type", Some(scaling @ ("none" | "linear"))) => {
                self.scaled.get_or_insert(scaling == "linear");
                Ok(())
            }
            ("rope.scaling.type", _) => bad(
                "rope.scaling.type",
                "`none` or `linear`; yarn, longrope and others are not computed",
            ),
            ("hidden_activation", Some("relu2")) => {
                self.gate.get_or_insert(Gate::SquaredRelu);
                Ok(())
            }
            ("hidden_activation", Some("silu")) => {
                self.gate.get_or_insert(Gate::Silu);
                Ok(())
            }
            ("hidden_activation", _) => bad("hidden_activation", "`silu` or `relu2`"),
            _ => Ok(()),
        }
    }

    /// Reads one of Tercet's own keys.
    fn take_tercet(&mut self, key: &str, value: Value<'_>) -> Result<(), ModelError> {
        if key == "tercet.cache" {
            let kind = value.as_str().and_then(CacheType::from_name);
            let kind = kind.ok_or(ModelError::OwnKey {
                key: "tercet.cache",
                expected: "`int8`, `int16-8`, `int16` or `fp8`",
            })?;
            self.cache.get_or_insert(kind);
            return Ok(());
        }
        let counts: [(&'static str, &mut Option<usize>); 2] = [
            ("tercet.attention.sinks", &mut self.sinks),
            ("tercet.attention.stride", &mut self.stride),
        ];
        for (name, slot) in counts {
            if key == name {
                slot.get_or_insert(count_of(value).ok_or(ModelError::OwnKey {
                    key: name,
                    expected: COUNT,
                })?);
            }
        }
        Ok(())
    }

    fn config(&self, architecture: Architecture, gate: Gate) -> Result<Config, ModelError> {
        let width = self.positive(Count::Width)?;
        let heads = self.positive(Count::Heads)?;
        let kv_heads = match self.count(Count::KvHeads) {
            None => heads,
            Some(_) => self.positive(Count::KvHeads)?,
        };
        // At least 1; stated here for the compiler.
        if !heads.is_multiple_of(kv_heads.max(1)) {
            return Err(ModelError::Key {
                key: "attention.head_count_kv",
                expected: "a divisor of attention.head_count",
            });
        }
        let key_length = self.count(Count::KeyLength);
        let head = key_length.unwrap_or(width / heads.max(1));
        for (which, key) in [
            (Count::ValueLength, "attention.value_length"),
            (Count::Rotated, "rope.dimension_count"),
        ] {
            if self.count(which).is_some_and(|found| found != head) {
                return Err(ModelError::Key {
                    key,
                    expected: "the length of a head",
                });
            }
        }
        if head == 0 || !head.is_multiple_of(2) || head > super::attention::MAX_HEAD {
            return Err(ModelError::Key {
                key: "attention.key_length",
                expected: "even and at most 512",
            });
        }
        if key_length.is_none() && heads.checked_mul(head) != Some(width) {
            return Err(ModelError::Key {
                key: "attention.head_count",
                expected: "a divisor of embedding_length",
            });
        }
        let eps = self
            .float(Float::Eps)
            .filter(|eps| *eps >= 0.0 && eps.is_finite());
        let positive = |found: Option<f32>, otherwise: f32, key| {
            let found = found.unwrap_or(otherwise);
            match found >= 1.0 && found.is_finite() {
                true => Ok(found),
                false => Err(ModelError::Key {
                    key,
                    expected: "finite and at least 1",
                }),
            }
        };
        let attention_factor = self.float(Float::AttentionFactor);
        if attention_factor.is_some_and(|factor| factor != 1.0) {
            return Err(ModelError::Key {
                key: "rope.scaling.attn_factor",
                expected: "1; scores are not scaled",
            });
        }
        // As in llama.cpp: without a type, scaling is linear, and a factor of 0 means none.
        let factor = self.float(Float::Factor).or(self.float(Float::OldFactor));
        let factor = factor.filter(|&factor| factor != 0.0 && self.scaled != Some(false));
        let small = |found: usize| u32::try_from(found).map_err(|_| ModelError::TooLarge);
        let context = small(self.positive(Count::Context)?)?;
        let sinks = small(self.sinks.unwrap_or(0))?;
        let window = match self.count(Count::Window) {
            None | Some(0) => u32::MAX,
            Some(window) => small(window)?,
        };
        // A window longer than the context drops nothing within it.
        let window = if window > context { u32::MAX } else { window };
        if window != u32::MAX && window.saturating_add(sinks) > context {
            return Err(ModelError::OwnKey {
                key: "tercet.attention.sinks",
                expected: "within the context, together with the window",
            });
        }
        Ok(Config {
            architecture,
            gate: self.gate.unwrap_or(gate),
            layers: self.positive(Count::Layers)?,
            width,
            hidden: self.positive(Count::Hidden)?,
            heads,
            kv_heads,
            head,
            context,
            vocabulary: 0,
            eps: eps.ok_or(ModelError::Key {
                key: "attention.layer_norm_rms_epsilon",
                expected: "a finite f32 of at least 0",
            })?,
            rope_base: positive(self.float(Float::Base), 10_000.0, "rope.freq_base")?,
            rope_factor: positive(factor, 1.0, "rope.scaling.factor")?,
            cache: self.cache.unwrap_or(match architecture {
                Architecture::BitNet => CacheType::Int8,
                Architecture::Llama => CacheType::Int16Int8,
            }),
            pattern: Pattern {
                window,
                sinks,
                stride: small(self.stride.unwrap_or(0))?,
            },
        })
    }
}
