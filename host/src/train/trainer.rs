//! A run, step by step.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use tercet_core::block::Format;
use tercet_core::conformance::Digest;
use tercet_core::engine::TrainEngine;
use tercet_core::gguf::Reader;
use tercet_core::model::{DecoderLayer, Model, NLL_UNIT};
use tercet_core::train::{AdamW, Batch, Fault, Schedule};

use super::batches::Batches;
use super::checkpoint;
use super::corpus::Corpus;
use super::from;
use super::image::{Image, NAME};
use super::options::TrainOptions;
use super::state::State;
use super::watch::Verdict;
use super::worker::{Worker, values};
use crate::Error;
use crate::engine::{EngineError, FlowEngine};
use crate::language::{Cost, LanguageFile, RunOptions, View, Vocabulary, Windows, perplexity, run};

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Its number, from 1.
    pub step: u64,
    /// The cost of its targets, in units of 2⁻³² nats: a sum of integers.
    pub loss: i64,
    /// Number of targets.
    pub targets: u64,
    /// The learning rate.
    pub rate: f32,
    /// The norm of the gradients, before clipping.
    pub norm: f64,
}

impl StepReport {
    /// Returns nats per target.
    pub fn mean(&self) -> f64 {
        self.loss as f64 / NLL_UNIT as f64 / self.targets as f64
    }
}

/// A model in training; see [`crate::train`].
#[derive(Debug)]
pub struct Trainer<E> {
    options: TrainOptions,
    workers: Vec<Worker<E>>,
    vocabulary: Vocabulary,
    image: Image,
    state: State,
    /// A digest of the weights it began with, unless they came from the seed.
    from: Option<u64>,
}

impl<E: TrainEngine<Failure: Into<EngineError>> + Send> Trainer<E> {
    /// Begins a run with the weights of the seed. Each engine is a worker, which processes some of a step's sequences
    /// at a time. It runs on a thread of the rayon pool that a step is called in.
    ///
    /// # Errors
    /// [`Error::Options`] for options that contradict each other, and for no engines.
    pub fn new(
        engines: Vec<E>,
        options: &TrainOptions,
        vocabulary: Vocabulary,
    ) -> Result<Self, Error> {
        Self::begin(engines, options, vocabulary, None)
    }

    /// As [`Trainer::new`], with the weights of a model (fine-tuning), in any supported type: a ternary model begins as
    /// it is. Its shape must be that of the options.
    ///
    /// # Errors
    /// Those of [`Trainer::new`]; [`Error::Tensor`] for a tensor that is missing, of another shape or of an unsupported
    /// type.
    pub fn from_model(
        engines: Vec<E>,
        options: &TrainOptions,
        vocabulary: Vocabulary,
        model: &crate::TensorFile,
    ) -> Result<Self, Error> {
        Self::begin(engines, options, vocabulary, Some(model))
    }

    fn begin(
        engines: Vec<E>,
        options: &TrainOptions,
        vocabulary: Vocabulary,
        model: Option<&crate::TensorFile>,
    ) -> Result<Self, Error> {
        if let Some(reason) = options.refusal() {
            return Err(Error::options(reason));
        }
        if engines.is_empty() {
            return Err(Error::options("a run has a worker at least"));
        }
        let image = Image::new(options, vocabulary.clone(), Format::Tq2_0)?;
        let weights = model
            .map(|model| from::weights(model, options))
            .transpose()?;
        let from = weights.as_ref().map(|weights| {
            let mut digest = Digest::new();
            for weight in weights {
                digest.bytes(&weight.to_le_bytes());
            }
            digest.value()
        });
        let state = with_model(image.bytes(), |model| {
            let config = model.config();
            Ok(match weights {
                Some(weights) => State::of(config, weights),
                None => State::new(config, options.seed),
            })
        })?;
        let mut trainer = Self {
            options: *options,
            workers: engines.into_iter().map(Worker::new).collect(),
            vocabulary,
            image,
            state,
            from,
        };
        trainer.encode()?;
        Ok(trainer)
    }

    /// Returns a file of zeros with all metadata of a run's file, such as its tokenizer.
    ///
    /// # Errors
    /// [`Error::Options`] for options that contradict each other, and for a contradictory vocabulary.
    pub fn header(options: &TrainOptions, vocabulary: &Vocabulary) -> Result<Vec<u8>, Error> {
        if let Some(reason) = options.refusal() {
            return Err(Error::options(reason));
        }
        Ok(Image::new(options, vocabulary.clone(), Format::Tq2_0)?.into_bytes())
    }

    /// Returns the number of finished steps.
    pub const fn steps(&self) -> u64 {
        self.state.steps
    }

    /// Returns the model's current file.
    pub fn file(&self) -> &[u8] {
        self.image.bytes()
    }

    /// Returns the model's file, with its matrices in a ternary type: the current model, or for a run with
    /// [`Watch::patience`](super::Watch::patience) the model at the evaluation with the least cost.
    ///
    /// # Errors
    /// [`Error::Tensor`] if rows do not divide into blocks of that type.
    pub fn export(&mut self, format: Format) -> Result<Vec<u8>, Error> {
        let mut image = Image::new(&self.options, self.vocabulary.clone(), format)?;
        let config = with_model(self.image.bytes(), |model| Ok(*model.config()))?;
        let best = self.state.watched.best.take();
        let mut best = best.filter(|best| !best.weights.is_empty());
        let mut swap = |state: &mut State| {
            if let Some(best) = &mut best {
                std::mem::swap(&mut state.weights, &mut best.weights);
            }
        };
        swap(&mut self.state);
        let encoded = self.state.encode(&config, self.options.rule, &mut image);
        swap(&mut self.state);
        if best.is_some() {
            self.state.watched.best = best;
            // The codes that steps use.
            self.encode()?;
        }
        encoded?;
        Ok(image.into_bytes())
    }

    /// Records the cost of an evaluation that was due ([`Watch::is_due`](super::Watch::is_due)), and returns its effect
    /// on the run.
    pub fn watch(&mut self, cost: &Cost) -> Verdict {
        let state = &mut self.state;
        let (watch, step) = (&self.options.watch, state.steps);
        state.watched.take(watch, cost.sum, step, &state.weights)
    }

    /// True if all steps are done, or evaluations ended the run.
    pub fn is_over(&self) -> bool {
        self.steps() >= self.options.steps || self.state.watched.is_over(&self.options.watch)
    }

    /// Returns the step with the cheapest evaluation.
    pub fn best(&self) -> Option<u64> {
        self.state.watched.best.as_ref().map(|best| best.step)
    }

    fn encode(&mut self) -> Result<(), Error> {
        let config = with_model(self.image.bytes(), |model| Ok(*model.config()))?;
        self.state
            .encode(&config, self.options.rule, &mut self.image)
    }

    /// Returns the identity of a checkpoint: options, data, and the vocabulary with all other metadata of the file.
    fn origin(&self, corpus: &Corpus) -> Result<Vec<(&'static str, String)>, Error> {
        let mut origin = self.options.identity();
        origin.push(("data", format!("{:016x}", corpus.digest())));
        let reader =
            Reader::new(self.file()).map_err(|error| Error::bad(NAME.as_ref(), "GGUF", error))?;
        let mut digest = Digest::new();
        digest.bytes(&self.file()[..self.file().len() - reader.data().len()]);
        origin.push(("model", format!("{:016x}", digest.value())));
        let from = self
            .from
            .map_or_else(|| "the seed".into(), |from| format!("{from:016x}"));
        origin.push(("first weights", from));
        Ok(origin)
    }

    /// Writes all data that the run needs to continue, completely or not at all, and replaces an existing file; returns
    /// the file's size.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: &Path, corpus: &Corpus) -> Result<u64, Error> {
        checkpoint::write(path, &self.state, &self.origin(corpus)?)
    }

    /// Continues from a checkpoint: all later bits are those of an uninterrupted run. Engines, their number,
    /// [`TrainOptions::micro`] and [`TrainOptions::recompute`] may differ.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownFile`]; [`Error::BadFile`] for an incomplete or foreign file;
    /// [`Error::Unsupported`] for a run with other options, data or vocabulary, with the difference. The run is then
    /// unchanged.
    pub fn resume(&mut self, path: &Path, corpus: &Corpus) -> Result<(), Error> {
        let origin = self.origin(corpus)?;
        checkpoint::read(path, &mut self.state, &origin)?;
        self.encode()
    }

    /// Returns the cost of the held-out text for the current model, as `tercet perplexity` reports it for its file and
    /// that text. `bytes` returns the number of bytes of a token. The threads of the current rayon pool share the
    /// windows; the sum is one of integers.
    ///
    /// # Errors
    /// Those of [`perplexity`], also for no tokens.
    pub fn evaluate<F: FlowEngine>(
        &self,
        engine: impl Fn() -> F + Sync,
        corpus: &Corpus,
        bytes: &(dyn Fn(u32) -> usize + Sync),
    ) -> Result<Cost, Error> {
        let file = LanguageFile::made(NAME.as_ref(), self.file().to_vec());
        let (tokens, begin) = (corpus.held_out(), corpus.begin());
        let windows = Windows {
            context: self.options.context(),
            begin,
            second_half: false,
        };
        let own = windows.context - usize::from(begin.is_some());
        let parts = tokens
            .len()
            .div_ceil(own)
            .div_ceil(rayon::current_num_threads().max(1));
        let pieces: Vec<&[u32]> = tokens.chunks(own * parts.max(1)).collect();
        let costs = pieces.par_iter().map(|tokens| {
            let mut view = View::of(&file)?;
            let model = view.model(&file)?;
            // Alone: steps of one model do not wake the threads that have their own windows.
            let (cost, _) = run(
                &mut engine(),
                &file,
                &model,
                &RunOptions::default(),
                |decoder| perplexity(decoder, tokens, &windows, bytes, &mut |_| {}),
            )?;
            Ok(cost)
        });
        let costs: Vec<Cost> = costs.collect::<Result<_, Error>>()?;
        if costs.is_empty() {
            return Err(Error::options("there is no text to evaluate on"));
        }
        Ok(costs.iter().fold(Cost::default(), |all, own| Cost {
            sum: all.sum + own.sum,
            count: all.count + own.count,
            bytes: all.bytes + own.bytes,
        }))
    }

    /// Trains on the next batch: computes its gradients and updates all weights. If gradients fail, the weights are
    /// unchanged.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for numbers that are not finite or too large, with step, layer and tensor;
    /// [`Error::Tensor`] for weights that have no codes after the update, which ends the run; [`Error::Options`] for
    /// batches of another size, or of another step than the next one.
    pub fn step(&mut self, batches: &Batches) -> Result<StepReport, Error> {
        let options = &self.options;
        let (length, micro) = (options.context(), options.micro.min(options.batch));
        let tokens = batches.next();
        if batches.shape() != (options.batch, length) || tokens.step != self.state.steps {
            return Err(Error::options(
                "these batches are not those of the run's next step",
            ));
        }
        let (state, workers) = (&self.state, &mut self.workers);
        let pieces: Vec<(&[u32], &[u32])> = tokens
            .inputs
            .chunks(micro * length)
            .zip(tokens.targets.chunks(micro * length))
            .collect();
        let next = AtomicUsize::new(0);
        let fault: Mutex<Option<(usize, Fault)>> = Mutex::new(None);
        let config = with_model(self.image.bytes(), |model| {
            let transposed = state.transposed();
            let count = values(model);
            workers.par_iter_mut().try_for_each(|worker| {
                worker.begin(count);
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(tokens, targets)) = pieces.get(index) else {
                        return Ok(());
                    };
                    let batch = Batch {
                        tokens,
                        targets,
                        length,
                        recompute: options.recompute,
                    };
                    if let Err(found) = worker.add(model, &transposed, &batch)? {
                        let mut first = fault.lock().expect("no holder panics");
                        // The first of the batch, whichever worker found it.
                        if first.is_none_or(|(earlier, _)| index < earlier) {
                            *first = Some((index, found));
                        }
                    }
                }
            })?;
            Ok(*model.config())
        })?;
        let number = self.state.steps + 1;
        if let Some((_, fault)) = fault.into_inner().expect("no holder panics") {
            return Err(Error::unsupported(
                NAME.as_ref(),
                format!("step {number}: {fault}"),
            ));
        }
        let (first, others) = self.workers.split_first_mut().expect("there is one");
        let mut loss = first.loss;
        for other in others {
            loss += other.loss;
            let pieces = first.sums.par_chunks_mut(1 << 14);
            pieces
                .zip(other.sums.par_chunks(1 << 14))
                .for_each(|(sums, others)| {
                    for (sum, &other) in sums.iter_mut().zip(others) {
                        *sum += other;
                    }
                });
        }
        let targets = (options.batch * length) as u64;
        let schedule = Schedule {
            fall: options.fall,
            rate: options.rate,
            last: options.last,
            warmup: options.warmup.min(options.steps),
            steps: options.steps,
        };
        let rate = schedule.at(self.state.steps) * self.state.watched.factor();
        let adamw = match schedule.decays(self.state.steps) {
            true => options.adamw,
            false => AdamW {
                decay: 0.0,
                ..options.adamw
            },
        };
        let norm = self
            .state
            .update(&config, &adamw, rate, (&first.sums, targets));
        self.state
            .encode(&config, self.options.rule, &mut self.image)?;
        Ok(StepReport {
            step: number,
            loss,
            targets,
            rate,
            norm,
        })
    }
}

/// Calls a function with the model of a file in memory.
fn with_model<T>(
    bytes: &[u8],
    work: impl FnOnce(&Model<'_, '_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let refuse = |error: tercet_core::model::ModelError| Error::unsupported(NAME.as_ref(), error);
    let reader = Reader::new(bytes).map_err(|error| Error::bad(NAME.as_ref(), "GGUF", error))?;
    let (layers, steps) = Model::lengths(&reader).map_err(refuse)?;
    let (mut layers, mut steps) = (vec![DecoderLayer::EMPTY; layers], vec![0; steps]);
    let model = Model::new(&reader, &mut layers, &mut steps).map_err(refuse)?;
    work(&model)
}
