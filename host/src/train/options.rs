//! Options of a run.

use tercet_core::quant::ternary::Rule;
use tercet_core::train::{Activations, AdamW, Fall};

use super::watch::Watch;
use crate::language::{Architecture, Parameters};

/// Maximum number of positions of a sequence.
const MOST_CONTEXT: usize = 1024;

/// A size of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// 0.4 M ternary weights: for a microcontroller with 256 KiB of flash.
    Micro,
    /// 1.2 M: for one with 512 KiB.
    Nano,
    /// 3.1 M: for one with 2 MiB; a laptop trains it in minutes.
    Tiny,
    /// 24 M: for a laptop.
    Small,
    /// 190 M: for a GPU.
    Base,
}

impl Preset {
    /// Every size, the smallest first.
    pub const ALL: [Self; 5] = [Self::Micro, Self::Nano, Self::Tiny, Self::Small, Self::Base];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Micro => "micro",
            Self::Nano => "nano",
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Base => "base",
        }
    }

    /// Returns the size with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Returns the hyper-parameters for a vocabulary of so many tokens.
    pub const fn parameters(self, tokens: u32) -> Parameters {
        let (width, hidden, layers, heads, kv_heads, context) = match self {
            Self::Micro => (256, 256, 1, 4, 1, 128),
            Self::Nano => (256, 512, 2, 4, 2, 128),
            Self::Tiny => (256, 768, 4, 4, 2, 256),
            Self::Small => (512, 1536, 8, 8, 2, 512),
            Self::Base => (1024, 3072, 16, 16, 4, 1024),
        };
        Parameters {
            architecture: Architecture::Bitnet,
            context_length: context,
            embedding_length: width,
            block_count: layers,
            feed_forward_length: hidden,
            head_count: heads,
            head_count_kv: kv_heads,
            head_length: 64,
            vocab_size: tokens,
            rms_epsilon: 1e-5,
            rope_base: 10_000.0,
            rope_factor: None,
        }
    }
}

/// Options that, with the data, decide the bits of a run; except [`TrainOptions::micro`] and
/// [`TrainOptions::recompute`], which do not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainOptions {
    /// The model. Its context is the length of the training sequences, at most 1,024.
    pub parameters: Parameters,
    /// Steps of the whole run, for which the schedule of the learning rate is made.
    pub steps: u64,
    /// Sequences per step.
    pub batch: usize,
    /// The rule that chooses the weights that are ±1: [`Rule::AbsMean`] or [`Rule::Optimal`]. Their scale is the rule's
    /// own, in f16.
    pub rule: Rule,
    /// The share of each ternary matrix that is 0 at least, above 0 and below 1 (pruning): those of the smallest weights
    /// in each step, so that training moves what remains. `None` for what the rule gives, about a third.
    pub zeros: Option<f32>,
    /// `Some` to keep only so many key heads per layer, with the query heads that they serve, of the model with which the
    /// run begins: those with the largest importance. The weights of the others are 0, and stay so.
    pub heads: Option<usize>,
    /// Seed of the weights and the order of the data.
    pub seed: u64,
    /// How the learning rate falls from its maximum.
    pub fall: Fall,
    /// The highest learning rate.
    pub rate: f32,
    /// Steps until the highest learning rate.
    pub warmup: u64,
    /// The share of the highest rate that remains at the end.
    pub last: f32,
    /// How gradients become updates.
    pub adamw: AdamW,
    /// True for a state of 4.2 bytes per weight in place of 12: weights of 16 bits and moments of 8, rounded
    /// stochastically by the seed ([`AdamW::update_lean`]).
    pub lean: bool,
    /// True for second moments of the gradients as one factor per row and one per column of a tensor
    /// ([`factored`](tercet_core::train::factored())): 8 bytes per weight in place of 12, or 3.2 in place of 4.2.
    pub factored: bool,
    /// How inputs and values of layers are kept from the forward to the backward pass.
    pub activations: Activations,
    /// `Some` to train adapters of this rank in place of the model's weights: each ternary matrix is then that of the
    /// model with which the run begins ([`Trainer::from_model`](super::Trainer::from_model)) plus a product of two small
    /// ones, which alone are trained; embedding and gains stay. The file is that of the whole model, as without.
    pub adapters: Option<usize>,
    /// The effect of evaluations.
    pub watch: Watch,
    /// Sequences that a worker processes at a time; only memory and time depend on it.
    pub micro: usize,
    /// True if layers are computed twice, so that only their inputs are kept; only memory and time depend on it.
    pub recompute: bool,
}

impl TrainOptions {
    /// Returns the defaults for a model: 1,000 steps of 16 sequences.
    pub const fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            steps: 1000,
            batch: 16,
            rule: Rule::AbsMean,
            zeros: None,
            heads: None,
            seed: 1,
            fall: Fall::Cosine,
            rate: 2e-3,
            warmup: 50,
            last: 0.1,
            adamw: AdamW::DEFAULT,
            lean: false,
            factored: false,
            activations: Activations::F32,
            adapters: None,
            watch: Watch {
                every: 100,
                plateau: None,
                patience: None,
            },
            micro: 4,
            recompute: false,
        }
    }

    /// Returns the positions of a sequence.
    pub const fn context(&self) -> usize {
        self.parameters.context_length as usize
    }

    /// True if steps on so many workers update each tensor as soon as its gradients are complete, during the backward
    /// pass, so that sums of gradients are those of the embedding and of one other tensor, or of one layer with
    /// [`TrainOptions::recompute`]: if one worker processes the whole batch at a time, and no norm of all gradients is
    /// waited for ([`AdamW::clip`] is infinite, or the trained gradients are the few of adapters). The bits are the same.
    pub const fn is_in_place(&self, workers: usize) -> bool {
        let waits = self.adamw.clip.is_finite() && self.adapters.is_none();
        workers == 1 && self.micro >= self.batch && !waits
    }

    /// Returns the options that decide the bits, by name: a run is resumed with the same. The data in the model's file
    /// is compared with it.
    pub(super) fn identity(&self) -> Vec<(&'static str, String)> {
        // The shortest digits that identify a float.
        let float = |x: f32| format!("{x:?}");
        let AdamW {
            beta1,
            beta2,
            eps,
            decay,
            clip,
        } = self.adamw;
        let Watch {
            every,
            plateau,
            patience,
        } = self.watch;
        let choice = |is_chosen: bool| if is_chosen { "yes" } else { "none" }.to_owned();
        let count = |x: Option<u32>| x.map_or_else(|| "none".to_owned(), |x| x.to_string());
        // Evaluations without an effect may be made at other steps.
        let every = (plateau.is_some() || patience.is_some()).then(|| every.to_string());
        vec![
            ("every", every.unwrap_or_else(|| "any".to_owned())),
            ("plateau", count(plateau)),
            ("patience", count(patience)),
            ("steps", self.steps.to_string()),
            ("batch", self.batch.to_string()),
            ("rule", format!("{:?}", self.rule).to_lowercase()),
            ("seed", self.seed.to_string()),
            ("schedule", self.fall.name().to_owned()),
            ("rate", float(self.rate)),
            ("warmup", self.warmup.to_string()),
            ("last", float(self.last)),
            ("beta1", float(beta1)),
            ("beta2", float(beta2)),
            ("eps", float(eps)),
            ("decay", float(decay)),
            ("clip", float(clip)),
            // Older checkpoints do not name these, and have none.
            ("zeros", self.zeros.map_or_else(|| "none".to_owned(), float)),
            (
                "heads",
                self.heads
                    .map_or_else(|| "none".to_owned(), |kept| kept.to_string()),
            ),
            (
                "adapters",
                self.adapters
                    .map_or_else(|| "none".to_owned(), |rank| rank.to_string()),
            ),
            ("lean", choice(self.lean)),
            ("factored", choice(self.factored)),
            (
                "activations",
                match self.activations {
                    Activations::F32 => "none",
                    fewer => fewer.name(),
                }
                .to_owned(),
            ),
        ]
    }

    /// Returns in one line a contradiction among the options.
    pub(super) fn refusal(&self) -> Option<String> {
        if !self.parameters.architecture.is_bitnet() {
            let name = self.parameters.architecture.name();
            return Some(format!("a {name} cannot be trained; a bitnet can"));
        }
        let context = self.context();
        if !(2..=MOST_CONTEXT).contains(&context) {
            return Some(format!(
                "the context has {context} positions; it must have 2 to {MOST_CONTEXT}"
            ));
        }
        if !matches!(self.rule, Rule::AbsMean | Rule::Optimal) {
            return Some("the rule for ternary weights must be absmean or optimal".into());
        }
        if let Some(zeros) = self.zeros.filter(|zeros| !(*zeros > 0.0 && *zeros < 1.0)) {
            return Some(format!(
                "the share of zeros is {zeros}, but must be above 0 and below 1"
            ));
        }
        let most = self.parameters.embedding_length as usize;
        if let Some(rank) = self.adapters.filter(|rank| !(1..=most).contains(rank)) {
            return Some(format!(
                "the rank of adapters is {rank}, but must be from 1 to {most}"
            ));
        }
        if self.adapters.is_some() && self.heads.is_some() {
            return Some("adapters would change the weights of removed heads".into());
        }
        if self.adapters.is_some() && self.factored {
            return Some("adapters have few moments, and they are not factored".into());
        }
        if self.batch == 0 || self.micro == 0 || self.steps == 0 {
            return Some("steps, batch and sequences at a time must be at least 1".into());
        }
        if self.watch.every == 0 || [self.watch.plateau, self.watch.patience].contains(&Some(0)) {
            return Some(
                "evaluations to wait for, and steps between them, must be at least 1".into(),
            );
        }
        // Groups of 64 rows; sums of gradients have room for 2^13 of them.
        let groups = self.batch.saturating_mul(context.div_ceil(64));
        if groups > 1 << 13 {
            return Some(format!(
                "a step has {groups} groups of 64 tokens, but sums of gradients have room for {}",
                1 << 13
            ));
        }
        let positive = |x: f32| x > 0.0 && x.is_finite();
        (!positive(self.rate)).then(|| {
            format!(
                "the learning rate is {}, but must be a positive number",
                self.rate
            )
        })
    }
}
