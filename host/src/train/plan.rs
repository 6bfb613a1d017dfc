//! The memory of a run, computed before it.

use std::path::Path;

use serde::Serialize;
use tercet_core::block::Format;
use tercet_core::model::{Config, Model, ModelError};
use tercet_core::train::{Shapes, Transposed};

use super::batches::Batches;
use super::corpus::Corpus;
use super::image::{Image, NAME, with_model};
use super::in_place::Places;
use super::options::TrainOptions;
use super::state::State;
use super::teacher;
use super::worker::Room;
use crate::Error;
use crate::language::{LanguageFile, RunOptions, Vocabulary};
use crate::parallel::Threads;

/// The memory of a run in bytes, computed by the sizes with which it is allocated. Nothing of a model's size is
/// allocated for it except the zeros of a file.
///
/// It contains the trainer, the tokens and the batches; not the program, the texts or the making of a vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryPlan {
    /// Sequences per step.
    pub batch: usize,
    /// Sequences that a worker processes at a time.
    pub micro: usize,
    /// Number of workers.
    pub workers: usize,
    /// Weights, as floats or in 16 bits.
    pub weights: usize,
    /// Adapters, and their sums of gradients; 0 for runs without.
    pub adapters: usize,
    /// Trained weights of the best evaluation; 0 for runs without [`Watch::patience`](super::Watch::patience).
    pub best: usize,
    /// First and second moments of the gradients.
    pub moments: usize,
    /// Codes of all matrices by columns, and their scales.
    pub transposed: usize,
    /// The model's file.
    pub file: usize,
    /// Tokens in memory.
    pub tokens: usize,
    /// Batches in use and read in advance.
    pub batches: usize,
    /// Sums of gradients of one worker: of all tensors, or of a few if it updates them during the pass.
    pub sums: usize,
    /// Values kept for the backward pass, keys and values, and scratch, of one worker; without those in a file.
    pub activations: usize,
    /// Activations of one worker that are in a file instead; 0 for runs that do not offload.
    pub offloaded: usize,
    /// A teacher's probabilities for one worker's part of a batch; 0 for runs without a teacher.
    pub probabilities: usize,
    /// In addition, during a step: a teacher's keys and values, and its scratch, of one worker. Its file is mapped and
    /// not counted.
    pub teacher: usize,
    /// In addition, while the model is written: a second file, and the codes of a tensor.
    pub writing: usize,
    /// In addition, during an evaluation: a second file, and the memory of each thread.
    pub evaluation: usize,
    /// In addition, while a checkpoint is written; 0 for runs without.
    pub checkpoint: usize,
}

/// What a plan needs to know of a run besides its options.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRun<'a> {
    /// Number of workers; at most so many for [`MemoryPlan::largest`].
    pub workers: usize,
    /// Whether it writes checkpoints.
    pub saves: bool,
    /// Whether it calls [`Trainer::offload`](super::Trainer::offload).
    pub offloads: bool,
    /// The model that it calls [`Trainer::learn_from`](super::Trainer::learn_from) with.
    pub teacher: Option<&'a LanguageFile>,
}

impl PlannedRun<'_> {
    /// Returns a run on so many workers, without checkpoints, offloading or a teacher.
    pub const fn on(workers: usize) -> Self {
        Self {
            workers,
            saves: false,
            offloads: false,
            teacher: None,
        }
    }
}

impl MemoryPlan {
    /// Returns the plan of a run with this engine, on the current rayon pool. O(layers + bytes of the file).
    ///
    /// # Errors
    /// [`Error::Options`] for options that contradict each other, and for no workers; [`Error::Unsupported`] for sizes
    /// that do not fit this machine's addresses; those of [`Trainer::learn_from`](super::Trainer::learn_from) for its
    /// teacher.
    pub fn of(
        engine: Threads,
        options: &TrainOptions,
        vocabulary: &Vocabulary,
        corpus: &Corpus,
        run: &PlannedRun<'_>,
    ) -> Result<Self, Error> {
        Planner::new(options, vocabulary, run)?.plan(engine, options, corpus, run)
    }

    /// Returns the plan with the largest batch whose total is within `budget` bytes, for batches of `parts` parts
    /// ([`TrainOptions::micro`] is the size of a part). The batch and the part of `options` are not used.
    /// O((layers + bytes of the file) · log(batch)).
    ///
    /// # Errors
    /// [`Error::Options`] if not even parts of one sequence fit, with what they need; those of [`MemoryPlan::of`].
    pub fn largest(
        engine: Threads,
        options: &TrainOptions,
        vocabulary: &Vocabulary,
        corpus: &Corpus,
        run: &PlannedRun<'_>,
        (parts, budget): (usize, u64),
    ) -> Result<Self, Error> {
        let of = |micro: usize| TrainOptions {
            micro,
            batch: micro.saturating_mul(parts),
            ..*options
        };
        let planner = Planner::new(&of(1), vocabulary, run)?;
        let run = PlannedRun {
            workers: run.workers.min(parts),
            ..*run
        };
        let plan = |micro: usize| planner.plan(engine, &of(micro), corpus, &run);
        let least = plan(1)?;
        if least.total() as u64 > budget {
            return Err(Error::options(format!(
                "a sequence at a time on each of {} workers needs {} bytes, but the budget is {budget}: fewer \
                 workers, a shorter context or layers computed twice need less",
                run.workers,
                least.total(),
            )));
        }
        // Memory grows with the size of a part: the first fits, the last does not, or is not trained.
        let (mut first, mut last, mut found) = (1, 1 << 14, least);
        while last - first > 1 {
            let middle = usize::midpoint(first, last);
            let options = of(middle);
            let fits = match options.refusal() {
                None => Some(plan(middle)?).filter(|plan| plan.total() as u64 <= budget),
                Some(_) => None,
            };
            match fits {
                Some(plan) => (first, found) = (middle, plan),
                None => last = middle,
            }
        }
        Ok(found)
    }

    /// Returns the bytes that the run keeps from its first step on.
    pub const fn kept(&self) -> usize {
        let parts = [
            self.weights,
            self.adapters,
            self.best,
            self.moments,
            self.transposed,
            self.file,
            self.tokens,
            self.batches,
            self.workers.saturating_mul(self.sums),
            self.workers.saturating_mul(self.activations),
            self.workers.saturating_mul(self.probabilities),
        ];
        let (mut all, mut part) = (0usize, 0);
        while part < parts.len() {
            all = all.saturating_add(parts[part]);
            part += 1;
        }
        all
    }

    /// Returns the most bytes that the run takes at a time: what it keeps, and the largest of the additions, which
    /// follow one another.
    pub fn total(&self) -> usize {
        let teaching = self.workers.saturating_mul(self.teacher);
        let added = self.writing.max(self.evaluation).max(self.checkpoint);
        let added = added.max(teaching);
        self.kept().saturating_add(added)
    }
}

/// A model of zeros, by which memory is planned.
struct Planner {
    file: LanguageFile,
    config: Config,
    transposed: Vec<u8>,
    scales: Vec<f32>,
    rows: Vec<f32>,
}

impl Planner {
    fn new(
        options: &TrainOptions,
        vocabulary: &Vocabulary,
        run: &PlannedRun<'_>,
    ) -> Result<Self, Error> {
        if let Some(reason) = options.refusal() {
            return Err(Error::options(reason));
        }
        if let Some(file) = run.teacher {
            teacher::check(file, (options, vocabulary))?;
        }
        let image = Image::new(options, vocabulary.clone(), Format::Tq2_0)?.into_bytes();
        let config = with_model(&image, |model| Ok(*model.config()))?;
        let shapes = Shapes::new(&config);
        Ok(Self {
            file: LanguageFile::made(Path::new(NAME), image),
            config,
            // Zeros that are never written take no memory.
            transposed: vec![0; shapes.values()],
            scales: vec![0.0; shapes.count()],
            rows: vec![0.0; config.vocabulary],
        })
    }

    fn plan(
        &self,
        engine: Threads,
        options: &TrainOptions,
        corpus: &Corpus,
        run: &PlannedRun<'_>,
    ) -> Result<MemoryPlan, Error> {
        if run.workers == 0 {
            return Err(Error::options("a run has a worker at least"));
        }
        with_model(self.file.bytes(), |model| {
            self.with(model, engine, options, corpus, run)
        })
    }

    fn with(
        &self,
        model: &Model<'_, '_>,
        engine: Threads,
        options: &TrainOptions,
        corpus: &Corpus,
        run: &PlannedRun<'_>,
    ) -> Result<MemoryPlan, Error> {
        let refuse = |error: ModelError| Error::unsupported(NAME.as_ref(), error);
        let (length, micro) = (options.context(), options.micro.min(options.batch));
        let transposed = Transposed {
            codes: &self.transposed,
            scales: &self.scales,
            rows: &self.rows,
        };
        let shape = (length, micro);
        let kept = (options.recompute, options.activations);
        let room = Room::of(&engine, (model, &transposed), shape, kept);
        let room = room.map_err(refuse)?;
        let shapes = Shapes::new(&self.config);
        let columns = shapes.iter().filter(|tensor| !tensor.part.is_gains());
        let columns = columns.map(|tensor| tensor.cols).max().unwrap_or(0);
        let together = if options.recompute { 1 } else { micro };
        let scratch = engine.gradient_scratch(length, together, columns);
        let state = State::bytes(&self.config, options);
        let best = options.watch.patience.map_or(0, |_| state.trained);
        let file = self.file.bytes().len();
        let usage = RunOptions::default().usage(&engine, &self.file, model)?;
        let windows = corpus.pieces(rayon::current_num_threads()).len();
        let own = usage.cache.saturating_add(usage.steps);
        let (probabilities, teacher) = match run.teacher {
            Some(file) => teacher::bytes(file, (length, micro))?,
            None => (0, 0),
        };
        let offloaded = if run.offloads { room.offloaded() } else { 0 };
        let sums = match options.is_in_place(run.workers) {
            true => Places::of(&self.config, options.recompute).needs,
            false => shapes.values(),
        };
        Ok(MemoryPlan {
            batch: options.batch,
            micro,
            workers: run.workers,
            weights: state.weights,
            adapters: state.adapters,
            best,
            moments: state.moments,
            transposed: state.transposed,
            file,
            tokens: corpus.bytes(),
            batches: Batches::bytes(options.batch, length),
            sums: sums.saturating_mul(size_of::<i64>()),
            activations: (room.bytes() - offloaded).saturating_add(scratch),
            offloaded,
            probabilities,
            teacher,
            writing: file.saturating_add(State::encode_bytes(&self.config, Format::Tq2_0, options)),
            evaluation: match windows {
                0 => 0,
                windows => file.saturating_add(windows.saturating_mul(own)),
            },
            checkpoint: match run.saves {
                true => {
                    let moments = state.moments;
                    state.trained.saturating_add(best).saturating_add(moments)
                }
                false => 0,
            },
        })
    }
}
