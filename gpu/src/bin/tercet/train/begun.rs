//! What a run says when it begins.

use serde::Serialize;
use tercet_host::language::{Architecture, Cost, Parameters};
use tercet_host::train::{KeptHeads, Pruned, Selected};

use crate::format;

/// The start of a run.
#[derive(Debug, Serialize)]
pub(super) struct Begun {
    pub(super) begun: u64,
    pub(super) parameters: Parameters,
    pub(super) tokens: usize,
    pub(super) held_out_tokens: usize,
    pub(super) steps: u64,
    pub(super) batch: usize,
    pub(super) rate: f32,
    pub(super) teacher: Option<String>,
    pub(super) teacher_cache: Option<TeacherCache>,
    pub(super) kept: Option<Selected>,
    pub(super) pruned: Option<Pruned>,
    pub(super) kept_heads: Option<KeptHeads>,
    pub(super) adapters: Option<Adapters>,
    pub(super) converted: Option<Converted>,
}

/// What of a teacher's logits is known at first.
#[derive(Debug, Serialize)]
pub(super) struct TeacherCache {
    pub(super) sequences: u64,
    pub(super) bytes: u64,
}

/// What is trained in place of a model's weights.
#[derive(Debug, Serialize)]
pub(super) struct Adapters {
    pub(super) rank: usize,
    pub(super) values: usize,
}

/// The model of another architecture that a run began with, and its cost of the held-out text.
#[derive(Debug, Serialize)]
pub(super) struct Converted {
    architecture: Architecture,
    sum: i64,
    count: u64,
    bytes: u64,
    mean: f64,
    bits_per_byte: f64,
}

impl Converted {
    pub(super) fn of(cost: &Cost) -> Self {
        Self {
            architecture: Architecture::Llama,
            sum: cost.sum,
            count: cost.count,
            bytes: cost.bytes,
            mean: cost.mean(),
            bits_per_byte: cost.bits_per_byte(),
        }
    }
}

impl Begun {
    /// Returns all of it in lines for people.
    pub(super) fn lines(&self) -> String {
        let parameters = &self.parameters;
        format!(
            "width {}, feed-forward {}, {} layers, heads {}:{}, {} tokens, context {}\n{} to train on, {} held out; {} steps of {} x {}, a learning rate of {}{}\n{}{}{}{}{}",
            parameters.embedding_length,
            parameters.feed_forward_length,
            parameters.block_count,
            parameters.head_count,
            parameters.head_count_kv,
            parameters.vocab_size,
            parameters.context_length,
            format::counted(self.tokens as u64, "token"),
            format::counted(self.held_out_tokens as u64, "token"),
            self.steps,
            self.batch,
            parameters.context_length,
            self.rate,
            match &self.teacher {
                Some(path) => format!("; {path} teaches{}", known(self.teacher_cache.as_ref())),
                None => String::new(),
            },
            self.kept.as_ref().map_or_else(String::new, kept),
            self.pruned.as_ref().map_or_else(String::new, pruned),
            self.kept_heads.as_ref().map_or_else(String::new, heads),
            self.adapters.as_ref().map_or_else(String::new, adapters),
            self.converted.as_ref().map_or_else(String::new, converted),
        )
    }
}

/// Returns in a line which channels are kept.
fn pruned(pruned: &Pruned) -> String {
    format!(
        "keeps {} of {} channels per layer, with {:.1} % of the importance\n",
        pruned.kept,
        pruned.channels,
        100.0 * pruned.importance
    )
}

/// Returns in a line which heads are kept.
fn heads(kept: &KeptHeads) -> String {
    format!(
        "keeps {} of {} key heads per layer, with {:.1} % of the importance\n",
        kept.kept,
        kept.heads,
        100.0 * kept.importance
    )
}

/// Returns what of a teacher's logits is known.
fn known(cache: Option<&TeacherCache>) -> String {
    let Some(cache) = cache else {
        return String::new();
    };
    let sequences = format::counted(cache.sequences, "sequence");
    let each = format::bytes(cache.bytes);
    format!(", its logits of {sequences} known, {each} each")
}

/// Returns in a line what adapters train.
fn adapters(adapters: &Adapters) -> String {
    let values = format::counted(adapters.values as u64, "value");
    format!("trains adapters of rank {}: {values}\n", adapters.rank)
}

/// Returns in a line what a model was before it was converted.
fn converted(converted: &Converted) -> String {
    format!(
        "converted from a {}; before, held out {:.4} bits per byte, perplexity {}\n",
        converted.architecture.name(),
        converted.bits_per_byte,
        format::significant(converted.mean.exp())
    )
}

/// Returns in a line what of the text is kept.
fn kept(selected: &Selected) -> String {
    let pieces = format::counted(selected.windows, "piece");
    let clusters = &selected.clusters;
    let from = match (clusters.first(), clusters.last()) {
        (Some(least), Some(most)) => format!(
            ": {} to {} from each of {} of {} to {} pieces",
            least.kept,
            most.kept,
            format::counted(clusters.len() as u64, "cluster"),
            least.windows,
            most.windows,
        ),
        _ => String::new(),
    };
    format!(
        "trains on {} of {pieces} of the text{from}\n",
        selected.kept
    )
}
