//! Where the time of steps goes, measured in the run itself.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::profiled::Profiled;
use super::trainer::Trainer;

/// A part of a step's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepOperation {
    /// Ternary matrices times activations.
    Products,
    /// Matrices by columns times gradients.
    InputGradients,
    /// Gradients times activations, added over tokens.
    MatrixGradients,
    /// The three products of the embedding as head.
    Head,
    /// The cost of the targets, and the gradients of the logits.
    Loss,
    /// Attention.
    Attention,
    /// Gradients of queries, keys and values.
    AttentionGradients,
    /// Norms, and the codes of activations.
    Norms,
    /// Gradients of norms.
    NormGradients,
    /// The codes of gradients.
    Codes,
    /// Gates and their gradients.
    Gates,
    /// The rest of the passes: looking up embeddings, rotations, storing keys and values, copies.
    Rest,
    /// The teacher's passes, and its probabilities.
    Teacher,
    /// Workers without work.
    Waiting,
    /// Waiting for the next batch.
    Data,
    /// Adding the workers' sums.
    Merge,
    /// The optimizer.
    Update,
    /// The codes of all weights, and the file.
    Encode,
}

/// Number of operations that an engine is asked for.
pub(super) const MEASURED: usize = StepOperation::Rest as usize;

impl StepOperation {
    /// The operations that an engine is asked for, in order.
    const ENGINE: [Self; MEASURED] = [
        Self::Products,
        Self::InputGradients,
        Self::MatrixGradients,
        Self::Head,
        Self::Loss,
        Self::Attention,
        Self::AttentionGradients,
        Self::Norms,
        Self::NormGradients,
        Self::Codes,
        Self::Gates,
    ];

    /// Returns its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Products => "products",
            Self::InputGradients => "gradients of inputs",
            Self::MatrixGradients => "gradients of matrices",
            Self::Head => "products of the head",
            Self::Loss => "loss",
            Self::Attention => "attention",
            Self::AttentionGradients => "gradients of attention",
            Self::Norms => "norms and codes of activations",
            Self::NormGradients => "gradients of norms",
            Self::Codes => "codes of gradients",
            Self::Gates => "gates and their gradients",
            Self::Rest => "other work of the passes",
            Self::Teacher => "the teacher",
            Self::Waiting => "workers without work",
            Self::Data => "reading the batch",
            Self::Merge => "adding the workers' sums",
            Self::Update => "update of the weights",
            Self::Encode => "encoding of the file",
        }
    }
}

/// Time and work of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) time: Duration,
    pub(super) calls: u64,
    pub(super) multiply_adds: u64,
}

/// Times of the stages of steps, as the thread that takes them sees them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stages {
    pub(super) steps: u64,
    pub(super) data: Duration,
    pub(super) passes: Duration,
    pub(super) merge: Duration,
    pub(super) update: Duration,
    pub(super) encode: Duration,
}

/// Adds the time since `start` to a stage, and returns the end.
pub(super) fn until_now(start: Instant, stage: &mut Duration) -> Instant {
    let now = Instant::now();
    *stage += now - start;
    now
}

/// Where the time of a trainer's steps went. The seconds of the shares add up to those of the steps: time of workers
/// counts divided by their number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Number of steps.
    pub steps: u64,
    /// Number of workers.
    pub workers: usize,
    /// Seconds of all steps, without evaluations and checkpoints.
    pub seconds: f64,
    /// Operations, the most time-consuming first; without those that took no time.
    pub shares: Vec<StepShare>,
}

/// The time of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepShare {
    /// The operation.
    pub operation: StepOperation,
    /// Its seconds of the steps.
    pub seconds: f64,
    /// The same as a part of all, 0 to 1.
    pub share: f64,
    /// Calls of the workers' engines; 0 if it is not theirs.
    pub calls: u64,
    /// Multiply-adds of products; 0 for other operations.
    pub multiply_adds: u64,
}

impl StepShare {
    /// Returns how many times as fast steps would be with this operation twice as fast (Amdahl's law).
    pub fn gain(&self) -> f64 {
        1.0 / (1.0 - self.share / 2.0)
    }
}

impl Profile {
    /// Returns the operation whose acceleration would help most: the largest share, except that of workers without
    /// work.
    pub fn most(&self) -> Option<&StepShare> {
        let mut shares = self.shares.iter();
        shares.find(|share| share.operation != StepOperation::Waiting)
    }
}

impl<E> Trainer<Profiled<E>> {
    /// Returns where the time of all steps so far went. O(workers).
    pub fn profile(&self) -> Profile {
        let (stages, count) = (&self.stages, self.workers.len());
        let mut measured = [Spent::default(); MEASURED];
        let (mut busy, mut teaching) = (Duration::ZERO, Duration::ZERO);
        for worker in &self.workers {
            busy += worker.busy;
            teaching += worker.teaching;
            for (all, own) in measured.iter_mut().zip(worker.engine().spent()) {
                all.time += own.time;
                all.calls += own.calls;
                all.multiply_adds += own.multiply_adds;
            }
        }
        let shared = |time: Duration| time.as_secs_f64() / count.max(1) as f64;
        let within: Duration = measured.iter().map(|spent| spent.time).sum();
        let threads = stages.passes * u32::try_from(count).unwrap_or(u32::MAX);
        let alone = [
            (StepOperation::Rest, shared(busy.saturating_sub(within))),
            (StepOperation::Teacher, shared(teaching)),
            (
                StepOperation::Waiting,
                shared(threads.saturating_sub(busy + teaching)),
            ),
            (StepOperation::Data, stages.data.as_secs_f64()),
            (StepOperation::Merge, stages.merge.as_secs_f64()),
            (StepOperation::Update, stages.update.as_secs_f64()),
            (StepOperation::Encode, stages.encode.as_secs_f64()),
        ];
        let seconds = [
            stages.data,
            stages.passes,
            stages.merge,
            stages.update,
            stages.encode,
        ];
        let seconds = seconds.iter().sum::<Duration>().as_secs_f64();
        let share = |operation, own: f64, spent: Spent| StepShare {
            operation,
            seconds: own,
            share: own / seconds,
            calls: spent.calls,
            multiply_adds: spent.multiply_adds,
        };
        let engine = StepOperation::ENGINE.into_iter().zip(measured);
        let engine = engine.map(|(operation, spent)| share(operation, shared(spent.time), spent));
        let alone = alone.map(|(operation, own)| share(operation, own, Spent::default()));
        let mut shares: Vec<StepShare> = engine.chain(alone).collect();
        shares.retain(|share| share.seconds > 0.0);
        shares.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Profile {
            steps: stages.steps,
            workers: count,
            seconds,
            shares,
        }
    }
}
