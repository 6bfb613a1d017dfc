//! The inputs of a run: a vocabulary, the model's size, tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::conformance::Digest;
use tercet_core::engine::TrainEngine;
use tercet_core::gguf::Reader;
use tercet_host::TensorFile;
use tercet_host::engine::EngineError;
use tercet_host::language::tokenizer::{Encoding, Specials, Tokenizer};
use tercet_host::language::{Architecture, Cost, LanguageFile, Parameters, View, Vocabulary};
use tercet_host::parallel::Threads;
use tercet_host::train::{
    Corpus, MemoryPlan, PlannedRun, Preset, Selected, Selection, TokenFile, TokenWriter, Tokens,
    TrainOptions, Trainer, converted, vocabulary,
};

use super::Arguments;
use super::texts::Texts;
use crate::advice::quoted;
use crate::failure::Failure;

/// The file of tokens in the folder of --checkpoint.
const TOKENS: &str = "tokens.bin";

/// An engine of a trainer.
pub(super) trait Worker: TrainEngine<Failure: Into<EngineError>> + Send {}

impl<E: TrainEngine<Failure: Into<EngineError>> + Send> Worker for E {}

/// All inputs of a run.
pub(super) struct Material {
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
    /// The model to start with.
    from: Option<TensorFile>,
    importance: Option<TensorFile>,
    offload: Option<PathBuf>,
    teacher: Option<PathBuf>,
    pub(super) parameters: Parameters,
    pub(super) corpus: Arc<Corpus>,
    /// What of the text was kept to train on.
    pub(super) kept: Option<Selected>,
}

impl Material {
    pub(super) fn new(arguments: &Arguments, texts: &Texts) -> Result<Self, Failure> {
        let named = arguments.from.as_ref().or(arguments.tokenizer.as_ref());
        let named = named.or(arguments.teacher.as_ref());
        let file = named.map(|path| LanguageFile::open(path)).transpose()?;
        let of_model = match (&file, &arguments.from) {
            (Some(file), Some(_)) => Some(of_model(file, arguments)?),
            _ => None,
        };
        let vocabulary = match &file {
            Some(file) => {
                let path = file.path().display();
                Vocabulary::read(&file.reader()?)
                    .map_err(|reason| Failure::new(format_args!("{path}: {reason}")))?
            }
            None => {
                let most = arguments.vocabulary.unwrap_or(match arguments.preset() {
                    Preset::Micro | Preset::Nano => 512,
                    Preset::Tiny => 1024,
                    Preset::Small => 4096,
                    _ => 16_384,
                });
                vocabulary(&texts.train.concat(), most)
            }
        };
        let parameters = of_model.unwrap_or_else(|| {
            let tokens = vocabulary.tokens.len() as u32;
            arguments.preset().parameters(tokens)
        });
        let options = arguments.options(1, parameters);
        let header = Trainer::<Threads>::header(&options, &vocabulary)?;
        let reader = Reader::new(&header).map_err(Failure::new)?;
        let tokenizer = Tokenizer::read(&reader, &header, None).map_err(Failure::new)?;
        let folder = arguments.checkpoint.as_ref();
        let (tokens, held_out) = match folder.filter(|_| !arguments.asks()) {
            Some(folder) => {
                let known = arguments.resume;
                mapped(&folder.join(TOKENS), known, &tokenizer, (texts, &header))?
            }
            None => {
                let mut tokens = Vec::new();
                encode(&tokenizer, texts, &mut |some| {
                    tokens.extend(some);
                    Ok(())
                })?;
                (Tokens::InMemory(tokens), held_out(&tokenizer, texts)?)
            }
        };
        let begin = vocabulary.bos.filter(|_| vocabulary.add_bos);
        let corpus = Corpus::new(tokens, held_out, options.context(), begin, options.seed)?;
        let (corpus, kept) = match arguments.keep {
            None => (corpus, None),
            Some(share) => {
                let selection = Selection {
                    share,
                    clusters: arguments.clusters.map(|clusters| clusters as usize),
                    seed: options.seed,
                };
                let (corpus, selected) = corpus.select(&selection)?;
                (corpus, Some(selected))
            }
        };
        Ok(Self {
            vocabulary,
            tokenizer,
            from: arguments.from.as_ref().map(TensorFile::open).transpose()?,
            importance: arguments
                .importance
                .as_ref()
                .map(TensorFile::open)
                .transpose()?,
            offload: arguments.offload.clone(),
            teacher: arguments.teacher.clone(),
            parameters,
            corpus: Arc::new(corpus),
            kept,
        })
    }

    /// Begins a run, whose workers have the given engine on one thread.
    pub(super) fn trainer<E: Worker>(
        &self,
        arguments: &Arguments,
        options: &TrainOptions,
        engine: fn(Threads) -> E,
    ) -> Result<Trainer<E>, Failure> {
        let engines = (0..workers(options)).map(|_| engine(Threads::alone()));
        let engines = engines.collect();
        let vocabulary = self.vocabulary.clone();
        let mut trainer = match &self.from {
            Some(model) => {
                let importance = self.importance.as_ref();
                Trainer::from_model(engines, options, vocabulary, model, importance)?
            }
            None => Trainer::new(engines, options, vocabulary)?,
        };
        if let Some(folder) = &self.offload {
            trainer.offload(folder);
        }
        if let Some(path) = &arguments.teacher {
            let teacher = LanguageFile::open(path)?;
            trainer.learn_from(teacher, arguments.temperature, arguments.teacher_share)?;
            if let Some(path) = &arguments.teacher_cache {
                trainer.keep_answers(path)?;
            }
        }
        Ok(trainer)
    }

    /// Returns the memory of a run.
    pub(super) fn plan(&self, options: &TrainOptions, saves: bool) -> Result<MemoryPlan, Failure> {
        let teacher = self.teacher()?;
        let run = self.planned(workers(options), saves, teacher.as_ref());
        let (engine, corpus) = (Threads::alone(), &self.corpus);
        let plan = MemoryPlan::of(engine, options, &self.vocabulary, corpus, &run)?;
        Ok(self.without_mapped(plan, saves))
    }

    fn teacher(&self) -> Result<Option<LanguageFile>, Failure> {
        let path = self.teacher.as_ref();
        Ok(path.map(|path| LanguageFile::open(path)).transpose()?)
    }

    fn planned<'a>(
        &self,
        workers: usize,
        saves: bool,
        teacher: Option<&'a LanguageFile>,
    ) -> PlannedRun<'a> {
        PlannedRun {
            workers,
            saves,
            offloads: self.offload.is_some(),
            teacher,
        }
    }

    /// Returns the memory of the run with the largest batch of so many parts that fits `budget` bytes.
    pub(super) fn largest(
        &self,
        options: &TrainOptions,
        (parts, saves): (usize, bool),
        budget: u64,
    ) -> Result<MemoryPlan, Failure> {
        let teacher = self.teacher()?;
        let run = self.planned(rayon::current_num_threads(), saves, teacher.as_ref());
        let budget = budget.saturating_add(self.mapped(saves) as u64);
        let (engine, corpus) = (Threads::alone(), &self.corpus);
        let most = (parts, budget);
        let plan = MemoryPlan::largest(engine, options, &self.vocabulary, corpus, &run, most)?;
        Ok(self.without_mapped(plan, saves))
    }

    /// Returns the bytes of tokens that a run with a folder maps, but this one has in memory.
    fn mapped(&self, saves: bool) -> usize {
        match saves {
            true => self.corpus.tokens() * size_of::<u32>(),
            false => 0,
        }
    }

    fn without_mapped(&self, plan: MemoryPlan, saves: bool) -> MemoryPlan {
        MemoryPlan {
            tokens: plan.tokens.saturating_sub(self.mapped(saves)),
            ..plan
        }
    }

    /// Evaluates the held-out text.
    pub(super) fn evaluate<E: Worker>(&self, trainer: &Trainer<E>) -> Result<Cost, Failure> {
        Ok(trainer.evaluate(Threads::alone, &self.corpus, &|token| self.bytes(token))?)
    }

    /// Evaluates the held-out text with another model that has the same tokens.
    pub(super) fn evaluate_file(&self, path: &Path) -> Result<Cost, Failure> {
        let file = LanguageFile::open(path)?;
        Ok((self.corpus).cost(&file, Threads::alone, &|token| self.bytes(token))?)
    }

    /// Returns the number of bytes of a token.
    fn bytes(&self, token: u32) -> usize {
        let pieces = *self.tokenizer.view().pieces();
        pieces
            .piece(token, Specials::Shown)
            .map_or(0, Iterator::count)
    }
}

/// Returns the parameters of the model that a run makes of --from.
fn of_model(file: &LanguageFile, arguments: &Arguments) -> Result<Parameters, Failure> {
    let mut view = View::of(file)?;
    let own = Parameters::of(view.model(file)?.config());
    let path = quoted(&file.path().display().to_string());
    if own.architecture == Architecture::Llama {
        let parameters = converted(file, arguments.channels)?;
        // The memory of a run does not depend on it.
        let needs = !arguments.plan && arguments.find_batch.is_none();
        return match &arguments.importance {
            None if needs => Err(Failure::usage(format_args!(
                "{path} is a llama, which becomes a bitnet with the sizes of its inputs: --importance FILE, which \
                 `tercet perplexity {path} TEXT --record FILE` writes"
            ))),
            _ => Ok(parameters),
        };
    }
    let prunes = arguments.channels.is_some() || arguments.heads.is_some();
    if arguments.importance.is_some() && !prunes {
        return Err(Failure::usage(format_args!(
            "--importance is for --channels, --heads or a llama, and {path} is a {}",
            own.architecture.name()
        )));
    }
    Ok(Parameters {
        feed_forward_length: arguments.channels.unwrap_or(own.feed_forward_length),
        ..own
    })
}

/// Returns the number of workers of a run: a thread for each part of a batch, if there are as many.
fn workers(options: &TrainOptions) -> usize {
    let parts = options.batch.div_ceil(options.micro);
    rayon::current_num_threads().min(parts)
}

/// Returns the tokens of a text, without those of its beginning and end.
fn tokens_of(tokenizer: &Tokenizer, text: &[u8]) -> Result<Vec<u32>, Failure> {
    let encoding = Encoding {
        ends: false,
        ..Encoding::default()
    };
    tokenizer.encode(text, encoding).map_err(Failure::new)
}

/// Returns the tokens to train on, text by text; if there are several texts, each has an end token.
fn encode(
    tokenizer: &Tokenizer,
    texts: &Texts,
    take: &mut dyn FnMut(&[u32]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let end = tokenizer
        .vocabulary()
        .eos()
        .filter(|_| texts.train.len() > 1);
    for text in &texts.train {
        take(&tokens_of(tokenizer, text)?)?;
        take(end.as_slice())?;
    }
    Ok(())
}

fn held_out(tokenizer: &Tokenizer, texts: &Texts) -> Result<Vec<u32>, Failure> {
    tokens_of(tokenizer, &texts.held_out)
}

/// Returns tokens in a file: the existing ones, if they may be used and belong to these texts and this vocabulary
/// (stated in the model's header), or new ones.
fn mapped(
    path: &Path,
    known: bool,
    tokenizer: &Tokenizer,
    (texts, header): (&Texts, &[u8]),
) -> Result<(Tokens, Vec<u32>), Failure> {
    let mut digest = Digest::new();
    let all = texts
        .train
        .iter()
        .chain([&texts.held_out])
        .map(Vec::as_slice);
    for bytes in all.chain([header]) {
        digest.bytes(&(bytes.len() as u64).to_le_bytes());
        digest.bytes(bytes);
    }
    let made_of = digest.value();
    let found = match known {
        true => TokenFile::open(path, made_of)?,
        false => None,
    };
    let file = match found {
        Some(file) => file,
        None => {
            let mut writer = TokenWriter::create(path, made_of, &held_out(tokenizer, texts)?)?;
            encode(tokenizer, texts, &mut |tokens| Ok(writer.extend(tokens)?))?;
            writer.finish()?;
            let written = TokenFile::open(path, made_of)?;
            written.ok_or_else(|| {
                Failure::new(format_args!(
                    "{}: another program changed it during the run; start again",
                    path.display()
                ))
            })?
        }
    };
    let held_out = file.held_out();
    Ok((Tokens::Mapped(file), held_out))
}
