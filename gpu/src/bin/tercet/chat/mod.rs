//! `tercet chat`: a conversation with a language model, with its own template.

mod lines;
mod saved;
mod talk;

use std::fs;
use std::path::PathBuf;

use tercet_host::Error;
use tercet_host::language::chat::{Prompts, TEMPLATE_KEY, Template};
use tercet_host::language::{self, Generation, LanguageFile, RunOptions, View};

use crate::drafting::{Drafting, Drafts};
use crate::engine;
use crate::failure::Failure;
use crate::language::{Running, job, name, shares};
use crate::sampling::Sampling;
use lines::Lines;
use saved::{Files, Options};
use talk::{Talk, Totals};

const EXAMPLES: &str = "\
Examples:
  tercet chat SmolLM2-135M-Instruct.gguf                                     each line is a message
  tercet chat model.gguf --system \"Answer in one sentence.\" --temp 0.7 --seed 3
  tercet chat model.gguf -p \"What is a comet?\" -n 200                        one answer
  tercet chat model.gguf --save talk.json --with-cache                       saves each answer
  tercet chat model.gguf --resume talk.json --save talk.json --with-cache    continues at once
  tercet chat model.gguf --json < questions.txt > answers.jsonl              a line of JSON per line

The model's own chat template (Jinja, under the key tokenizer.chat_template of its file) turns the conversation into \
a prompt. Control tokens of the template are read as tokens; those inside messages are read as plain text. Tokens of \
the prompt that the cache already holds are not processed again. This never changes an answer: as with generate, \
answers depend only on the model file, the messages and the options listed above --backend.

If the messages and N more tokens are longer than the context, the oldest questions and their answers are left out, \
and a line on stderr says so. The system message stays. With a --window but no --stride nothing is left out.

An interrupt (Ctrl-C) during an answer ends the answer, and its text so far stays part of the conversation. A second \
one, or one while no answer is being written, ends the command, as Ctrl-D does.

A session (--save) holds the messages, the options listed above --template and the digest of the model file. Options \
given with --resume override the saved ones. --with-cache writes the cache to FILE.cache next to the session, in \
safetensors format.

JSON (--json), an object a line for each answer: text, tokens[], end (token, length, context or interrupt), digest \
(of the logits, as of generate), prompt_tokens, cached_tokens (of them, in the cache before), dropped_messages, \
prompt_seconds, prompt_tokens_per_second (not cached), decode_seconds, decode_tokens_per_second, drafted_tokens and \
accepted_tokens (proposed by --lookup or --draft and taken in, and of these drawn).";

/// Tokens of an answer if neither the command nor the session gives a number.
const TOKENS: usize = 512;

/// Talk with a language model, the same on every machine
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A GGUF file with a model of the architecture bitnet or llama
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Answer this message and end, instead of reading lines of standard input
    #[arg(short, long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Start of the conversation: how the model is to answer
    #[arg(long, value_name = "TEXT", conflicts_with = "resume")]
    system: Option<String>,
    /// Maximum number of tokens of an answer [default: 512]
    #[arg(short = 'n', long, value_name = "N", value_parser = tokens)]
    tokens: Option<usize>,
    /// Maximum number of tokens of the conversation [default: the model's context]
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..))]
    context: Option<u32>,
    #[command(flatten)]
    sampling: Sampling,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    drafting: Drafting,
    /// A file with the template, in Jinja [default: the model's own]
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Write the session to a file after each answer, whole or not at all
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Continue from a session's file
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Also keep the cache of keys and values, beside the file of --save, and read the one beside that of --resume
    #[arg(long)]
    with_cache: bool,
    /// Overwrite files of another session
    #[arg(long, requires = "save")]
    force: bool,
    #[command(flatten)]
    pub(super) engine: engine::Named,
    /// Report each answer as a line of JSON
    #[arg(long)]
    json: bool,
}

fn tokens(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("an answer has at least one token".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("it is not a number of tokens".to_owned()),
    }
}

impl Arguments {
    /// Returns the requested template.
    fn template(&self) -> Result<Option<String>, Failure> {
        let read = |path: &PathBuf| {
            fs::read_to_string(path).map_err(|error| Failure::io(path, "read", &error))
        };
        self.template.as_ref().map(read).transpose()
    }

    /// Refuses `--with-cache` without a file.
    fn check(&self) -> Result<(), Failure> {
        match (self.with_cache, &self.save, &self.resume) {
            (true, None, None) => Err(Failure::usage("--with-cache needs --save or --resume")),
            _ => Ok(()),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.check()?;
    let mut engine = arguments.engine.open()?;
    let file = LanguageFile::open(&arguments.model)?;
    let mut view = View::of(&file)?;
    let model = view.model(&file)?;
    let tokenizer = file.tokenizer()?;
    let files = Files {
        save: arguments.save.as_deref(),
        resume: arguments.resume.as_deref(),
        with_cache: arguments.with_cache,
        force: arguments.force,
    };
    let asked = Options {
        tokens: arguments.tokens,
        context: arguments.context,
        sampling: arguments.sampling,
        running: arguments.running,
    };
    let system = arguments.system.as_deref();
    let begun = files.begin(&file, system, asked, arguments.template()?)?;
    let Options {
        tokens,
        context,
        sampling,
        running,
    } = begun.options;
    let model = running.model(model);
    let template = match &begun.template {
        Some(source) => {
            let path = arguments.template.as_ref().or(arguments.resume.as_ref());
            Template::new(source, path.unwrap_or(&arguments.model))?
        }
        None => Template::of(&file)?.ok_or_else(|| {
            Failure::new(format_args!(
                "{}: it has no template for chats (key {TEMPLATE_KEY}); --template names a file with one",
                name(&arguments.model)
            ))
        })?,
    };
    let trained = model.config().context;
    let positions = context.unwrap_or(trained);
    if positions > trained {
        return Err(Failure::usage(format_args!(
            "--context {positions} is more than the {trained} positions that the model was trained for"
        )));
    }
    let ring = running.pattern(&model)?.is_ring();
    let draft_file = arguments.drafting.file(&tokenizer)?;
    let mut draft_view = draft_file.as_ref().map(View::of).transpose()?;
    let draft_model = match (&mut draft_view, &draft_file) {
        (Some(view), Some(file)) => Some(view.model(file)?),
        _ => None,
    };
    let drafts = Drafts::new(
        &arguments.drafting,
        draft_file.as_ref().zip(draft_model.as_ref()),
        (!ring).then_some(positions),
        (sampling.sampler(), sampling.recent()),
    );
    let options = running.options(&model, positions, &engine)?;
    let options = RunOptions {
        beside: drafts.bytes()?,
        ..options
    };
    let ends = tokenizer.ends();
    let mut talk = Talk {
        prompts: Prompts::new(&template, &tokenizer),
        history: begun.history,
        lines: Lines::new(arguments.prompt.clone()),
        saved: begun.saved,
        how: Generation {
            sampler: sampling.sampler(),
            recent: sampling.recent(),
            tokens: tokens.unwrap_or(TOKENS),
            ends: &ends,
        },
        context: if ring { usize::MAX } else { positions as usize },
        json: arguments.json,
        pending: None,
        told: 0,
        totals: Totals::default(),
        lost: None,
    };
    // For one answer: the number of answers is not known.
    let products = job(&model, 1, talk.how.tokens, "tokens");
    let scratch = options.fits(&tercet_core::scalar::Scalar, &file, &model)?;
    let job = products.with_scratch(
        scratch
            .cache
            .saturating_add(scratch.steps)
            .saturating_add(options.beside),
    );
    let done = engine.run(job, |engine| {
        language::run(engine, &file, &model, &options, |decoder| {
            drafts.with(|drafter| talk.go_on(decoder, drafter))
        })
    });
    let by = match done {
        Ok(((), by)) => by,
        // The error concerns a message or the template, not the command line.
        Err(Error::Options { reason }) => {
            let model = name(&arguments.model);
            return Err(Failure::new(format_args!("{model}: {reason}")));
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(failure) = talk.lost {
        return Err(failure);
    }
    if !arguments.json {
        let note = by.note.clone().or_else(|| shares(&model, &by.engine));
        let words = engine::words(&by.engine, note.as_deref());
        let line = talk.totals.line();
        if !line.is_empty() {
            eprintln!("{line}by {words}");
        }
    }
    Ok(())
}
