//! The run.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tercet_core::conformance::Digest;
use tercet_core::gguf::Reader;
use tercet_host::file::output::Output;
use tercet_host::language::tokenizer::{Encoding, Specials, Tokenizer};
use tercet_host::language::{LanguageFile, Vocabulary};
use tercet_host::parallel::Threads;
use tercet_host::train::{Batches, Corpus, Preset, TrainOptions, Trainer, vocabulary};

use super::Arguments;
use super::texts::Texts;
use super::told::{Begun, Done, Told};
use crate::failure::Failure;
use crate::interrupt::Answering;

/// Steps that are measured for --minutes, after one that is not.
const MEASURED: u64 = 3;
/// The file in the folder of --checkpoint.
const CHECKPOINT: &str = "checkpoint.safetensors";

/// The files in the folder of --report.
const HELD_OUT: &str = "held-out.txt";
const REPORT: &str = "report.html";

/// What a run is made of.
struct Material {
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
    corpus: Arc<Corpus>,
    held_out: Vec<u32>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Refused before the work, not after it.
    let output = Output::create(&arguments.output, [], arguments.force)?;
    let checkpoint = arguments
        .checkpoint
        .as_deref()
        .map(|folder| folder.join(CHECKPOINT));
    if let Some(path) = &checkpoint
        && path.exists()
        && !arguments.resume
        && !arguments.force
    {
        return Err(Failure::new(format_args!(
            "{}: exists already (--resume goes on with it, --force overwrites)",
            path.display()
        )));
    }
    if let Some(folder) = &arguments.report
        && !arguments.resume
        && !arguments.force
    {
        let written = [HELD_OUT, REPORT].map(|name| folder.join(name));
        if let Some(path) = written.iter().find(|path| path.exists()) {
            return Err(Failure::new(format_args!(
                "{}: exists already (--force overwrites)",
                path.display()
            )));
        }
    }
    for folder in [&arguments.checkpoint, &arguments.report]
        .into_iter()
        .flatten()
    {
        fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;
    }
    let texts = Texts::read(&arguments.data, arguments.hold)?;
    if let Some(folder) = &arguments.report {
        let mut output = Output::create(&folder.join(HELD_OUT), [], true)?;
        output.write(&texts.held_out)?;
        output.finish()?;
    }
    let material = Material::new(arguments, &texts)?;
    drop(texts);
    let steps = match (arguments.steps, arguments.minutes) {
        (Some(steps), _) => steps,
        (None, Some(minutes)) => measure(arguments, &material, minutes)?,
        (None, None) => 1000,
    };
    let options = arguments.options(steps, material.tokens());
    let mut trainer = material.trainer(&options)?;
    if arguments.resume {
        let path = checkpoint.as_deref().unwrap_or(Path::new(CHECKPOINT));
        trainer.resume(path, &material.corpus)?;
    }
    // Without a folder to save it in, an interrupt ends the run at once.
    let answering = checkpoint.is_some().then(Answering::begin);
    let mut told = Told::new(arguments.json, steps, trainer.steps());
    told.begun(&Begun {
        begun: trainer.steps(),
        parameters: options.parameters,
        tokens: material.corpus.tokens().len(),
        held_out_tokens: material.held_out.len(),
        steps,
        batch: options.batch,
    })?;
    let every = arguments.every.unwrap_or(steps.div_ceil(10));
    let last = arguments.stop_after.unwrap_or(steps).min(steps);
    let batches = Batches::new(&material.corpus, options.batch, trainer.steps());
    let save = |trainer: &Trainer<Threads>| match &checkpoint {
        Some(path) => trainer.save(path, &material.corpus).map(|_| ()),
        None => Ok(()),
    };
    while trainer.steps() < last {
        let report = trainer.step(&batches)?;
        told.step(&report)?;
        let is_over = answering.as_ref().is_some_and(Answering::is_over);
        let is_last = report.step == last;
        if report.step.is_multiple_of(every) || is_last || is_over {
            save(&trainer)?;
        }
        if is_over {
            drop(told);
            return Err(Failure::interrupted(format_args!(
                "interrupted after step {}; the same command with --resume{} goes on",
                report.step,
                match arguments.minutes {
                    Some(_) => format!(", and --steps {steps} in place of --minutes,"),
                    None => String::new(),
                }
            )));
        }
        if report.step.is_multiple_of(every) || is_last {
            let cost = material.evaluate(&trainer)?;
            told.evaluated(report.step, &cost)?;
        }
    }
    drop(answering);
    if let Some(folder) = &arguments.report {
        let line = format!(
            "{} model, {} of {steps} steps",
            arguments.preset.name(),
            trainer.steps()
        );
        told.report(&folder.join(REPORT), line)?;
    }
    let mut done = Done {
        done: trainer.steps(),
        file: None,
        bytes: 0,
        digest: None,
        seconds: told.seconds(),
    };
    if trainer.steps() == steps {
        let file = trainer.export(arguments.to)?;
        let mut digest = Digest::new();
        digest.bytes(&file);
        let mut output = output;
        output.write(&file)?;
        done.bytes = output.finish()?;
        done.file = Some(arguments.output.display().to_string());
        done.digest = Some(format!("{:016x}", digest.value()));
    }
    told.done(&done)
}

/// Steps that a time allows, by how long some take.
fn measure(arguments: &Arguments, material: &Material, minutes: f64) -> Result<u64, Failure> {
    let options = arguments.options(1000, material.tokens());
    let mut trainer = material.trainer(&options)?;
    let batches = Batches::new(&material.corpus, options.batch, 0);
    trainer.step(&batches)?;
    let start = Instant::now();
    for _ in 0..MEASURED {
        trainer.step(&batches)?;
    }
    let step = start.elapsed().as_secs_f64() / MEASURED as f64;
    let start = Instant::now();
    material.evaluate(&trainer)?;
    // Ten evaluations come on top.
    let left = minutes * 60.0 - 10.0 * start.elapsed().as_secs_f64();
    let steps = ((left / step) as u64).max(1);
    eprintln!("--steps {steps}: a step takes {:.3} s here", step);
    Ok(steps)
}

impl Material {
    fn new(arguments: &Arguments, texts: &Texts) -> Result<Self, Failure> {
        let vocabulary = match &arguments.tokenizer {
            Some(path) => {
                let file = LanguageFile::open(path)?;
                Vocabulary::read(&file.reader()?)
                    .map_err(|reason| Failure::new(format_args!("{}: {reason}", path.display())))?
            }
            None => {
                let most = arguments.vocabulary.unwrap_or(match arguments.preset {
                    Preset::Nano => 512,
                    Preset::Tiny => 1024,
                    Preset::Small => 4096,
                    _ => 16_384,
                });
                vocabulary(&texts.train.concat(), most)
            }
        };
        let options = arguments.options(1, vocabulary.tokens.len() as u32);
        let header = Trainer::<Threads>::header(&options, &vocabulary)?;
        let reader = Reader::new(&header).map_err(Failure::new)?;
        let tokenizer = Tokenizer::read(&reader, &header, None).map_err(Failure::new)?;
        let encode = |text: &[u8]| {
            let encoding = Encoding {
                ends: false,
                ..Encoding::default()
            };
            tokenizer.encode(text, encoding).map_err(Failure::new)
        };
        let mut tokens = Vec::new();
        for text in &texts.train {
            tokens.extend(encode(text)?);
            if texts.train.len() > 1 {
                tokens.extend(vocabulary.eos);
            }
        }
        let held_out = encode(&texts.held_out)?;
        let begin = vocabulary.bos.filter(|_| vocabulary.add_bos);
        let corpus = Corpus::new(tokens, options.context(), begin, options.seed)?;
        Ok(Self {
            vocabulary,
            tokenizer,
            corpus: Arc::new(corpus),
            held_out,
        })
    }

    /// Tokens of the vocabulary.
    fn tokens(&self) -> u32 {
        self.vocabulary.tokens.len() as u32
    }

    fn trainer(&self, options: &TrainOptions) -> Result<Trainer<Threads>, Failure> {
        let parts = options.batch.div_ceil(options.micro);
        let workers = rayon::current_num_threads().min(parts);
        let engines = vec![Threads::alone(); workers];
        Ok(Trainer::new(engines, options, self.vocabulary.clone())?)
    }

    fn evaluate(&self, trainer: &Trainer<Threads>) -> Result<tercet_host::language::Cost, Failure> {
        let pieces = *self.tokenizer.view().pieces();
        let bytes = |token| {
            pieces
                .piece(token, Specials::Shown)
                .map_or(0, Iterator::count)
        };
        let begin = self.vocabulary.bos.filter(|_| self.vocabulary.add_bos);
        Ok(trainer.evaluate(Threads::alone, &self.held_out, begin, &bytes)?)
    }
}
