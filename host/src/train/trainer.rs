//! A run, step by step.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use tercet_core::engine::TrainEngine;
use tercet_core::gguf::Reader;
use tercet_core::model::{Layer, Model, NLL_UNIT};
use tercet_core::train::{Batch, Fault, Schedule};

use super::corpus::Corpus;
use super::image::{Image, NAME};
use super::options::TrainOptions;
use super::state::State;
use super::worker::{Worker, values};
use crate::Error;
use crate::engine::EngineError;
use crate::language::Vocabulary;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Its number, from 1.
    pub step: u64,
    /// What its targets cost, in units of 2⁻³² nats: a sum of integers.
    pub loss: i64,
    /// Targets.
    pub targets: u64,
    /// The learning rate.
    pub rate: f32,
    /// The norm of the gradients, before it was cut.
    pub norm: f64,
}

impl StepReport {
    /// Nats a target.
    pub fn mean(&self) -> f64 {
        self.loss as f64 / NLL_UNIT as f64 / self.targets as f64
    }
}

/// A model in training; see [`crate::train`].
#[derive(Debug)]
pub struct Trainer<E> {
    options: TrainOptions,
    workers: Vec<Worker<E>>,
    image: Image,
    state: State,
}

impl<E: TrainEngine<Failure: Into<EngineError>> + Send> Trainer<E> {
    /// Begins a run with the weights of the seed. Each engine is a worker, which takes some of a step's sequences at a time; it runs on a thread of the
    /// rayon pool that a step is called in.
    ///
    /// # Errors
    /// [`Error::Options`] for options that contradict each other, and for no engines.
    pub fn new(
        engines: Vec<E>,
        options: &TrainOptions,
        vocabulary: Vocabulary,
    ) -> Result<Self, Error> {
        if let Some(reason) = options.refusal() {
            return Err(Error::options(reason));
        }
        if engines.is_empty() {
            return Err(Error::options("a run has a worker at least"));
        }
        let mut image = Image::new(options, vocabulary)?;
        let state = with_model(image.bytes(), |model| {
            Ok(State::new(model.config(), options.seed))
        });
        let mut trainer = Self {
            options: *options,
            workers: engines.into_iter().map(Worker::new).collect(),
            state: state?,
            image: Image::new(options, Vocabulary::bytes())?,
        };
        std::mem::swap(&mut trainer.image, &mut image);
        trainer.encode()?;
        Ok(trainer)
    }

    /// Steps done.
    pub const fn steps(&self) -> u64 {
        self.state.steps
    }

    /// The model's file as it is now.
    pub fn file(&self) -> &[u8] {
        self.image.bytes()
    }

    fn encode(&mut self) -> Result<(), Error> {
        let config = with_model(self.image.bytes(), |model| Ok(*model.config()))?;
        self.state.encode(&config, &mut self.image)
    }

    /// Takes the next batch: its gradients, and an update of all weights. If it fails, the weights are as before.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for numbers that are not finite or too large, with step, layer and tensor.
    pub fn step(&mut self, corpus: &Corpus) -> Result<StepReport, Error> {
        let options = &self.options;
        let (length, micro) = (options.context, options.micro.min(options.batch));
        let (state, workers) = (&self.state, &mut self.workers);
        let parts = options.batch.div_ceil(micro);
        let next = AtomicUsize::new(0);
        let fault: Mutex<Option<(usize, Fault)>> = Mutex::new(None);
        let config = with_model(self.image.bytes(), |model| {
            let transposed = state.transposed();
            let count = values(model);
            workers.par_iter_mut().try_for_each(|worker| {
                worker.begin(count);
                let mut inputs = vec![0; micro * length];
                let mut targets = inputs.clone();
                loop {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part >= parts {
                        return Ok(());
                    }
                    let own = part * micro..options.batch.min((part + 1) * micro);
                    let tokens = own.len() * length;
                    let windows = inputs.chunks_mut(length).zip(targets.chunks_mut(length));
                    for (window, (inputs, targets)) in own.zip(windows) {
                        let place = state.steps * options.batch as u64 + window as u64;
                        corpus.window(place, inputs, targets);
                    }
                    let batch = Batch {
                        tokens: &inputs[..tokens],
                        targets: &targets[..tokens],
                        length,
                        recompute: options.recompute,
                    };
                    if let Err(found) = worker.add(model, &transposed, &batch)? {
                        let mut first = fault.lock().expect("no holder panics");
                        // The first of the batch, whoever came upon it.
                        if first.is_none_or(|(earlier, _)| part < earlier) {
                            *first = Some((part, found));
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
            rate: options.rate,
            last: options.last,
            warmup: options.warmup.min(options.steps),
            steps: options.steps,
        };
        let rate = schedule.at(self.state.steps);
        let norm = self
            .state
            .update(&config, &options.adamw, rate, (&first.sums, targets));
        self.state.encode(&config, &mut self.image)?;
        Ok(StepReport {
            step: number,
            loss,
            targets,
            rate,
            norm,
        })
    }
}

/// The model of a file in memory.
fn with_model<T>(
    bytes: &[u8],
    work: impl FnOnce(&Model<'_, '_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let refuse = |error: tercet_core::model::ModelError| Error::unsupported(NAME.as_ref(), error);
    let reader = Reader::new(bytes).map_err(|error| Error::bad(NAME.as_ref(), "GGUF", error))?;
    let (layers, steps) = Model::lengths(&reader).map_err(refuse)?;
    let (mut layers, mut steps) = (vec![Layer::EMPTY; layers], vec![0; steps]);
    let model = Model::new(&reader, &mut layers, &mut steps).map_err(refuse)?;
    work(&model)
}
