//! A run, step by step.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use tercet_core::block::Format;
use tercet_core::conformance::Digest;
use tercet_core::engine::TrainEngine;
use tercet_core::gguf::Reader;
use tercet_core::model::{Layer, Model, NLL_UNIT};
use tercet_core::train::{Batch, Fault, Schedule};

use super::batches::Batches;
use super::checkpoint;
use super::corpus::Corpus;
use super::image::{Image, NAME};
use super::options::TrainOptions;
use super::state::State;
use super::worker::{Worker, values};
use crate::Error;
use crate::engine::{EngineError, FlowEngine};
use crate::language::{Cost, LanguageFile, RunOptions, View, Vocabulary, Windows, perplexity, run};

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
    vocabulary: Vocabulary,
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
        let image = Image::new(options, vocabulary.clone(), Format::Tq2_0)?;
        let state = with_model(image.bytes(), |model| {
            Ok(State::new(model.config(), options.seed))
        })?;
        let mut trainer = Self {
            options: *options,
            workers: engines.into_iter().map(Worker::new).collect(),
            vocabulary,
            image,
            state,
        };
        trainer.encode()?;
        Ok(trainer)
    }

    /// A file of zeros with all that a run's file says about itself: its tokenizer, for one.
    ///
    /// # Errors
    /// [`Error::Options`] for a vocabulary that contradicts itself.
    pub fn header(options: &TrainOptions, vocabulary: &Vocabulary) -> Result<Vec<u8>, Error> {
        Ok(Image::new(options, vocabulary.clone(), Format::Tq2_0)?.into_bytes())
    }

    /// Steps done.
    pub const fn steps(&self) -> u64 {
        self.state.steps
    }

    /// The model's file as it is now.
    pub fn file(&self) -> &[u8] {
        self.image.bytes()
    }

    /// The model's file as it is now, with its matrices in another ternary type: the same model.
    ///
    /// # Errors
    /// [`Error::Tensor`] if rows do not divide into blocks of that type.
    pub fn export(&mut self, format: Format) -> Result<Vec<u8>, Error> {
        let mut image = Image::new(&self.options, self.vocabulary.clone(), format)?;
        let config = with_model(self.image.bytes(), |model| Ok(*model.config()))?;
        self.state.encode(&config, &mut image)?;
        Ok(image.into_bytes())
    }

    fn encode(&mut self) -> Result<(), Error> {
        let config = with_model(self.image.bytes(), |model| Ok(*model.config()))?;
        self.state.encode(&config, &mut self.image)
    }

    /// What a checkpoint is of: options, data, and the vocabulary with all else that the file says about itself.
    fn origin(&self, corpus: &Corpus) -> Result<Vec<(&'static str, String)>, Error> {
        let mut origin = self.options.identity();
        origin.push(("data", format!("{:016x}", corpus.digest())));
        let reader =
            Reader::new(self.file()).map_err(|error| Error::bad(NAME.as_ref(), "GGUF", error))?;
        let mut digest = Digest::new();
        digest.bytes(&self.file()[..self.file().len() - reader.data().len()]);
        origin.push(("model", format!("{:016x}", digest.value())));
        Ok(origin)
    }

    /// Writes all that the run needs to go on, in place of what is there, whole or not at all; returns the file's size.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: &Path, corpus: &Corpus) -> Result<u64, Error> {
        checkpoint::write(path, &self.state, &self.origin(corpus)?)
    }

    /// Goes on where a checkpoint was written: what follows has the bits of a run that was not interrupted. Engines, their number,
    /// [`TrainOptions::micro`] and [`TrainOptions::recompute`] may be others.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownFile`]; [`Error::BadFile`] for a torn or foreign file; [`Error::Unsupported`] for a run of other options, data or
    /// vocabulary, with what differs. The run is then as it was.
    pub fn resume(&mut self, path: &Path, corpus: &Corpus) -> Result<(), Error> {
        let origin = self.origin(corpus)?;
        checkpoint::read(path, &mut self.state, &origin)?;
        self.encode()
    }

    /// What a text costs by the model as it is now: what `tercet perplexity` says of its file and that text. `bytes` says what a token stands for.
    /// Its windows are shared out to the threads of the current rayon pool; the sum is one of integers.
    ///
    /// # Errors
    /// Those of [`perplexity`]; for no tokens too.
    pub fn evaluate<F: FlowEngine>(
        &self,
        engine: impl Fn() -> F + Sync,
        tokens: &[u32],
        begin: Option<u32>,
        bytes: &(dyn Fn(u32) -> usize + Sync),
    ) -> Result<Cost, Error> {
        let file = LanguageFile::made(NAME.as_ref(), self.file().to_vec());
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
            // Alone: steps of one model do not wake the threads that have windows of their own.
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

    /// Takes the next batch: its gradients, and an update of all weights. If gradients fail, the weights are as before.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for numbers that are not finite or too large, with step, layer and tensor; [`Error::Tensor`] for weights that have no codes
    /// after the update, which ends the run; [`Error::Options`] for batches of another size, or of
    /// another step than comes next.
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
                        // The first of the batch, whoever came upon it.
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
