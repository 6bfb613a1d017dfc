//! A run, step by step.

use std::path::Path;

use tercet_core::block::Format;
use tercet_core::conformance::Digest;
use tercet_core::engine::TrainEngine;
use tercet_core::gguf::Reader;
use tercet_core::train::Shapes;

use super::checkpoint;
use super::corpus::Corpus;
use super::from::{self, Origin};
use super::heads::KeptHeads;
use super::image::{Image, NAME, with_model};
use super::latent::Weights;
use super::options::TrainOptions;
use super::profile::Stages;
use super::prune::Pruned;
use super::state::State;
use super::teacher::Teacher;
use super::watch::Verdict;
use super::worker::Worker;
use crate::Error;
use crate::engine::{EngineError, FlowEngine};
use crate::language::{Cost, LanguageFile, Vocabulary};

/// A model in training; see [`crate::train`].
#[derive(Debug)]
pub struct Trainer<E> {
    pub(super) options: TrainOptions,
    pub(super) workers: Vec<Worker<E>>,
    vocabulary: Vocabulary,
    pub(super) image: Image,
    pub(super) state: State,
    pub(super) stages: Stages,
    /// The model it began with, unless its weights came from the seed.
    from: Option<Origin>,
    pub(super) teacher: Option<Teacher>,
    /// True if a step failed between the updates of two tensors.
    pub(super) torn: bool,
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
    /// A GGUF file of a `llama` becomes the `bitnet` with the parameters of [`converted`](super::converted), rounded to
    /// ternary weights. Rows of queries and keys change their places, because the architectures rotate other pairs. The
    /// gains of the norms that a `llama` lacks are the root of the mean square of their inputs in the file of
    /// `importance`, which is needed then, plus epsilon.
    ///
    /// With a file of `importance`, as [`Inputs::write`](crate::language::Inputs::write) and llama-imatrix write it, the
    /// model has more channels in its feed-forward network than the options: the most important ones of each layer are
    /// kept, by the mean square of the channel times the squares of its weights in the matrix down. Or its heads are
    /// those that [`TrainOptions::heads`] keeps.
    ///
    /// # Errors
    /// Those of [`Trainer::new`]; [`Error::Tensor`] for a tensor that is missing, of another shape or of an unsupported
    /// type; with `importance` also [`Error::NoSuchTensor`] and [`Error::Tensor`] of that file, and [`Error::Options`]
    /// for a model that has no more channels or heads than are kept. For a `llama` also [`Error::Options`] without
    /// `importance`, and [`Error::Tensor`] for a tensor that a `bitnet` lacks.
    pub fn from_model(
        engines: Vec<E>,
        options: &TrainOptions,
        vocabulary: Vocabulary,
        model: &crate::TensorFile,
        importance: Option<&crate::TensorFile>,
    ) -> Result<Self, Error> {
        Self::begin(engines, options, vocabulary, Some((model, importance)))
    }

    /// Returns which channels were removed from the model that the run began with; `None` if none were.
    pub const fn pruned(&self) -> Option<&Pruned> {
        match &self.from {
            Some(origin) => origin.pruned.as_ref(),
            None => None,
        }
    }

    /// Returns which heads were kept of the model that the run began with; `None` if all were.
    pub const fn kept_heads(&self) -> Option<&KeptHeads> {
        match &self.from {
            Some(origin) => origin.heads.as_ref(),
            None => None,
        }
    }

    /// True if the model that the run began with is a `llama`.
    pub const fn is_converted(&self) -> bool {
        matches!(
            self.from,
            Some(Origin {
                converted: true,
                ..
            })
        )
    }

    /// Returns the number of values that the run trains: the model's weights, or those of its adapters
    /// ([`TrainOptions::adapters`]).
    pub const fn trained(&self) -> usize {
        self.state.weights.len()
    }

    fn begin(
        engines: Vec<E>,
        options: &TrainOptions,
        vocabulary: Vocabulary,
        model: Option<(&crate::TensorFile, Option<&crate::TensorFile>)>,
    ) -> Result<Self, Error> {
        if let Some(reason) = options.refusal() {
            return Err(Error::options(reason));
        }
        if engines.is_empty() {
            return Err(Error::options("a run has a worker at least"));
        }
        if options.heads.is_some() && model.is_none() {
            return Err(Error::options(
                "a run keeps heads of the model that it begins with, but begins with none",
            ));
        }
        if options.adapters.is_some() && model.is_none() {
            return Err(Error::options(
                "adapters change a model, so a run of them begins with one",
            ));
        }
        let image = Image::new(options, vocabulary.clone(), Format::Tq2_0)?;
        let config = with_model(image.bytes(), |model| Ok(*model.config()))?;
        let (state, from) = match model {
            None => (State::new(&config, options), None),
            Some((model, importance)) => {
                let values = Shapes::new(&config).values();
                let mut weights = Weights::with_capacity(values, options.lean);
                let take = &mut |values: &[f32]| weights.push(values);
                let origin = from::weights(model, importance, options, take)?;
                (State::of(&config, weights, options), Some(origin))
            }
        };
        let mut trainer = Self {
            options: *options,
            workers: engines.into_iter().map(Worker::new).collect(),
            vocabulary,
            image,
            state,
            stages: Stages::default(),
            from,
            teacher: None,
            torn: false,
        };
        trainer.encode()?;
        Ok(trainer)
    }

    /// Distils a teacher into the model from now on: beside the text's next token, each step learns the probabilities
    /// that the teacher gives all tokens, as [`SoftTargets`](tercet_core::train::SoftTargets) says. The teacher is any
    /// model that can be run, with the same tokens, and a context of at least one sequence. Reported costs remain those
    /// of the text.
    ///
    /// `temperature` is above 0: more than 1 brings out what the teacher takes for less likely. `share` is the
    /// teacher's of the cost, from 0 to 1. Each worker runs the teacher on its sequences, so that a step takes one more
    /// forward pass, of the teacher, and a float per token of a sequence and of the vocabulary.
    ///
    /// # Errors
    /// [`Error::Options`] for another temperature or share; [`Error::Unsupported`] for a teacher with other tokens or
    /// a shorter context; those of opening a model.
    pub fn learn_from(
        &mut self,
        teacher: LanguageFile,
        temperature: f32,
        share: f32,
    ) -> Result<(), Error> {
        let own = (&self.options, &self.vocabulary);
        self.teacher = Some(Teacher::new(teacher, own, temperature, share)?);
        Ok(())
    }

    /// Keeps the values that layers need for the backward pass in a mapped file in a folder, one for each worker, from the
    /// next step on: the system has as much of it in memory as there is room, and writes the rest. It changes no bit.
    /// The files take the plan's [`MemoryPlan::offloaded`](super::MemoryPlan), and are removed with the run.
    pub fn offload(&mut self, folder: &Path) {
        for worker in &mut self.workers {
            worker.offload(folder);
        }
    }

    /// Keeps the teacher's logits in a file, where this run and later ones find them: sequences with logits there are
    /// not asked about again. It changes no bit, and logits serve any temperature and share. A sequence takes four
    /// bytes per token and token of the vocabulary ([`Trainer::answers`]). The epochs of a whole text begin at different
    /// tokens, so that their sequences differ; those of a part of it ([`Corpus::select`]) repeat.
    ///
    /// # Errors
    /// [`Error::Options`] without a teacher ([`Trainer::learn_from`]); [`Error::Io`]; [`Error::BadFile`] for a file of
    /// another kind; [`Error::Unsupported`] for one of another teacher or of sequences of another length, and for one
    /// that another process uses.
    pub fn keep_answers(&mut self, path: &Path) -> Result<(), Error> {
        let length = self.options.context();
        let none = || Error::options("a run without a teacher has no answers to keep");
        let teacher = self.teacher.as_mut().ok_or_else(none)?;
        teacher.keep_answers(path, length)
    }

    /// Returns the number of sequences whose logits are in the file of [`Trainer::keep_answers`], and the bytes of each.
    pub fn answers(&self) -> Option<(u64, u64)> {
        let answers = self.teacher.as_ref()?.answers.as_ref()?;
        Some((answers.count(), answers.bytes()))
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
    /// [`Error::Tensor`] if rows do not divide into blocks of that type; [`Error::Options`] after a step that failed and
    /// ended the run.
    pub fn export(&mut self, format: Format) -> Result<Vec<u8>, Error> {
        self.whole()?;
        let mut image = Image::new(&self.options, self.vocabulary.clone(), format)?;
        let config = with_model(self.image.bytes(), |model| Ok(*model.config()))?;
        let best = self.state.watched.best.as_mut();
        let mut best = best.and_then(|best| best.weights.take());
        let mut swap = |state: &mut State| {
            if let Some(best) = &mut best {
                std::mem::swap(&mut state.weights, best);
            }
        };
        swap(&mut self.state);
        let rule = (self.options.rule, self.options.zeros);
        let encoded = self.state.encode(&config, rule, &mut image);
        swap(&mut self.state);
        if best.is_some() {
            if let Some(kept) = &mut self.state.watched.best {
                kept.weights = best;
            }
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
        let rule = (self.options.rule, self.options.zeros);
        self.state.encode(&config, rule, &mut self.image)
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
            .map_or_else(|| "the seed".into(), |from| format!("{:016x}", from.digest));
        origin.push(("first weights", from));
        let teacher = self.teacher.as_ref();
        origin.push((
            "teacher",
            teacher.map_or_else(|| "none".into(), Teacher::identity),
        ));
        Ok(origin)
    }

    /// Writes all data that the run needs to continue, completely or not at all, and replaces an existing file; returns
    /// the file's size.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Options`] after a step that failed and ended the run.
    pub fn save(&self, path: &Path, corpus: &Corpus) -> Result<u64, Error> {
        self.whole()?;
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
        self.torn = false;
        self.encode()
    }

    /// Returns the cost of the held-out text for the current model, as `tercet perplexity` reports it for its file and
    /// that text: [`Corpus::cost`] of the file.
    ///
    /// # Errors
    /// Those of [`Corpus::cost`].
    pub fn evaluate<F: FlowEngine>(
        &self,
        engine: impl Fn() -> F + Sync,
        corpus: &Corpus,
        bytes: &(dyn Fn(u32) -> usize + Sync),
    ) -> Result<Cost, Error> {
        let file = LanguageFile::made(NAME.as_ref(), self.file().to_vec());
        corpus.cost(&file, engine, bytes)
    }
}
