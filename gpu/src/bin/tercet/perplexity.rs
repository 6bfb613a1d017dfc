//! `tercet perplexity`: measures how well a language model predicts a text.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use tercet_core::model::CacheType;
use tercet_host::file::output::Output;
use tercet_host::language::tokenizer::Encoding;
use tercet_host::language::{self, Cost, LanguageFile, View, Windows};

use crate::engine::CommandEngine;
use crate::failure::Failure;
use crate::language::{Running, job, name, shares};
use crate::progress::Steps;
use crate::{engine, format, output};

const EXAMPLES: &str = "\
Examples:
  tercet perplexity model.gguf book.txt
  tercet perplexity model.gguf book.txt --context 512 --llama-cpp    what llama-perplexity prints
  tercet perplexity model.gguf --tokens ids.txt --json
  tercet perplexity model.gguf book.txt --record inputs.gguf         records the sizes of inputs

The tokens of the text are cut into windows of the context's length. Each window begins with the beginning-of-text \
token, if the vocabulary has one, and with an empty cache. Every token after the first of its window is scored once. \
Its cost is an integer number of units of 2^-32 nats, so the sum is the same on every machine, in any order.

A step processes 64 tokens. With --profile edge it processes one, in the memory that a microcontroller would need.

--llama-cpp is only for comparisons with llama-perplexity and scores as it does: the second half of each whole \
window, whose first token is replaced by the beginning-of-text token.

--record writes the sum of the squares of every input of every matrix to a GGUF file in the format of llama-imatrix. \
`tercet quantize --to auto --importance` reads it.

JSON (--json): tokens (of the text), count (that were scored), bytes (that they stand for), sum (of costs, in units \
of 2^-32 nats), mean (nats a token), perplexity, bits_per_byte, context, llama_cpp, cache, engine, engine_note, \
recorded (null or the number of matrices), seconds.";

/// Measure how well a language model predicts a text
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A GGUF file with a model of the architecture bitnet or llama
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The text; bytes that are not UTF-8 become what llama.cpp makes of them
    #[arg(value_name = "FILE", required_unless_present = "tokens")]
    file: Option<PathBuf>,
    /// Read tokens from a file instead of a text: decimal numbers with anything else between them
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    tokens: Option<PathBuf>,
    /// Tokens per window [default: the model's context]
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(2..))]
    context: Option<u32>,
    /// Score as llama-perplexity does
    #[arg(long)]
    llama_cpp: bool,
    /// Write the sums of squares of each matrix' inputs to a GGUF file
    #[arg(long, value_name = "OUT")]
    record: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(long, requires = "record")]
    force: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    pub(super) engine: engine::Named,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    tokens: usize,
    count: u64,
    bytes: u64,
    sum: i64,
    mean: f64,
    perplexity: f64,
    bits_per_byte: f64,
    context: u32,
    llama_cpp: bool,
    cache: &'static str,
    engine: &'a str,
    engine_note: Option<String>,
    recorded: Option<usize>,
    seconds: f64,
}

/// Returns the numbers in a text.
fn numbers(path: &Path, tokens: u32) -> Result<Vec<u32>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io(path, "read", &error))?;
    let words = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty());
    words
        .map(|word| match word.parse() {
            Ok(token) if token < tokens => Ok(token),
            _ => Err(Failure::new(format_args!(
                "{}: there is no token {word}; the model has {tokens} tokens",
                name(path)
            ))),
        })
        .collect()
}

/// The input to score.
#[derive(Clone, Copy)]
enum Text<'a> {
    /// The text of a file.
    Of(&'a Path),
    /// The tokens that a file lists.
    Tokens(&'a Path),
}

/// Options of the scoring.
struct How<'a> {
    running: &'a Running,
    /// Tokens per window; `None` for the model's context.
    context: Option<u32>,
    llama_cpp: bool,
    /// Target of the matrices' inputs, if any, and true if an existing file may be replaced.
    record: Option<(&'a Path, bool)>,
}

/// The result of scoring.
pub(crate) struct Scored {
    /// Tokens of the text.
    pub(crate) tokens: usize,
    pub(crate) cost: Cost,
    pub(crate) context: u32,
    cache: CacheType,
    engine: String,
    engine_note: Option<String>,
    /// Matrices whose inputs were recorded.
    recorded: Option<usize>,
}

/// Scores a text as `tercet perplexity MODEL FILE` does.
pub(crate) fn of_text(
    engine: &mut CommandEngine,
    model: &Path,
    text: &Path,
) -> Result<Scored, Failure> {
    let how = How {
        running: &Running::default(),
        context: None,
        llama_cpp: false,
        record: None,
    };
    score(engine, model, Text::Of(text), &how)
}

/// The scores of a text before and after a change of a model.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Perplexities {
    tokens: usize,
    count: u64,
    context: u32,
    before: Figures,
    after: Figures,
}

/// The figures of one score.
#[derive(Clone, Copy, Serialize)]
struct Figures {
    sum: i64,
    mean: f64,
    perplexity: f64,
    bits_per_byte: f64,
}

impl Perplexities {
    /// Returns the figures of a text of so many tokens, in windows of `context`.
    pub(crate) fn new((tokens, context): (usize, u32), before: &Cost, after: &Cost) -> Self {
        let figures = |cost: &Cost| Figures {
            sum: cost.sum,
            mean: cost.mean(),
            perplexity: cost.perplexity(),
            bits_per_byte: cost.bits_per_byte(),
        };
        Self {
            tokens,
            count: before.count,
            context,
            before: figures(before),
            after: figures(after),
        }
    }

    pub(crate) fn people(&self) -> String {
        format!(
            "perplexity {:.4} -> {:.4} over {} in windows of {}\n",
            self.before.perplexity,
            self.after.perplexity,
            format::counted(self.count, "token"),
            self.context
        )
    }
}

fn score(
    engine: &mut CommandEngine,
    path: &Path,
    text: Text<'_>,
    how: &How<'_>,
) -> Result<Scored, Failure> {
    let file = LanguageFile::open(path)?;
    let mut view = View::of(&file)?;
    let model = how.running.model(view.model(&file)?);
    let tokenizer = file.tokenizer()?;
    let vocabulary = tokenizer.vocabulary();
    let (source, tokens) = match text {
        Text::Of(path) => {
            let text = std::fs::read(path).map_err(|error| Failure::io(path, "read", &error))?;
            // llama-perplexity has the token that begins texts once, at the start.
            let encoding = Encoding {
                ends: how.llama_cpp,
                ..Encoding::default()
            };
            let tokens = tokenizer.encode(&text, encoding).map_err(Failure::new)?;
            (path, tokens)
        }
        Text::Tokens(path) => (path, numbers(path, vocabulary.tokens())?),
    };
    let context = how.context.unwrap_or(model.config().context);
    if context > model.config().context {
        return Err(Failure::usage(format_args!(
            "--context {context} is more than the {} positions that the model was trained for",
            model.config().context
        )));
    }
    let windows = Windows {
        context: context as usize,
        begin: vocabulary.bos().filter(|_| vocabulary.adds_bos()),
        second_half: how.llama_cpp,
    };
    if windows.scored(tokens.len()) == 0 {
        return Err(Failure::new(format_args!(
            "{}: {} are too few for windows of {context}; give a longer text or a smaller --context",
            name(source),
            format::counted(tokens.len() as u64, "token")
        )));
    }
    // Refuse before the work, not after it.
    let output = how
        .record
        .map(|(out, force)| Output::create(out, [path, source], force))
        .transpose()?;
    let options = how.running.options(&model, context, engine)?;
    let bytes = |token| tokenizer.bytes(token);
    let scratch = options.fits(&tercet_core::scalar::Scalar, &file, &model)?;
    let chunk = options.chunk as usize;
    let job = job(&model, chunk, tokens.len().div_ceil(chunk), "chunks")
        .with_scratch(scratch.cache.saturating_add(scratch.steps));
    let bar = stderr()
        .is_terminal()
        .then(|| Steps::new(tokens.len() as u64));
    let ((cost, inputs), by) = engine.run(job, |engine| {
        let mut done = 0;
        language::run(engine, &file, &model, &options, |decoder| {
            let mut progress = |count: usize| {
                done += count as u64;
                if let Some(bar) = &bar {
                    bar.reach(done, "tokens");
                }
            };
            if output.is_some() {
                decoder.record()?;
            }
            let cost = language::perplexity(decoder, &tokens, &windows, &bytes, &mut progress)?;
            Ok((cost, decoder.recorded().cloned()))
        })
    })?;
    let recorded = match (output, &inputs) {
        (Some(output), Some(inputs)) => {
            let count = u32::try_from(windows.count(tokens.len())).unwrap_or(u32::MAX);
            // Only the name: a file should not contain folders.
            let text = source.file_name().unwrap_or_default().to_string_lossy();
            inputs.write(output, &text, (count, context))?;
            Some(inputs.matrices().filter(|(_, rows, _)| *rows > 0).count())
        }
        _ => None,
    };
    let note = by.note.or_else(|| shares(&model, &by.engine));
    Ok(Scored {
        tokens: tokens.len(),
        cost,
        context,
        cache: options.cache.unwrap_or(model.config().cache),
        engine: by.engine,
        engine_note: note,
        recorded,
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let mut engine = arguments.engine.open()?;
    let text = match (&arguments.file, &arguments.tokens) {
        (Some(path), _) => Text::Of(path),
        (None, Some(path)) => Text::Tokens(path),
        (None, None) => return Err(Failure::usage("give a FILE with text, or --tokens")),
    };
    let how = How {
        running: &arguments.running,
        context: arguments.context,
        llama_cpp: arguments.llama_cpp,
        record: (arguments.record.as_deref()).map(|out| (out, arguments.force)),
    };
    let scored = score(&mut engine, &arguments.model, text, &how)?;
    let cost = scored.cost;
    let report = Report {
        tokens: scored.tokens,
        count: cost.count,
        bytes: cost.bytes,
        sum: cost.sum,
        mean: cost.mean(),
        perplexity: cost.perplexity(),
        bits_per_byte: cost.bits_per_byte(),
        context: scored.context,
        llama_cpp: arguments.llama_cpp,
        cache: CacheType::name(scored.cache),
        engine: &scored.engine,
        engine_note: scored.engine_note,
        recorded: scored.recorded,
        seconds: start.elapsed().as_secs_f64(),
    };
    if arguments.json {
        return output::json(&report);
    }
    output::text(&people(&report))?;
    if let (Some(count), Some(out)) = (report.recorded, &arguments.record) {
        let tensors = format::counted(count as u64, "tensor");
        output::text(&format!("inputs of {tensors} in {}\n", name(out)))?;
    }
    Ok(())
}

fn people(report: &Report<'_>) -> String {
    format!(
        "sum {} of 2^-32 nats over {}\nmean {:.6} nats per token, perplexity {:.4}, {:.4} bits per byte\n\
         {} in windows of {}, cache {}, {} s by {}\n",
        report.sum,
        format::counted(report.count, "token"),
        report.mean,
        report.perplexity,
        report.bits_per_byte,
        format::counted(report.tokens as u64, "token"),
        report.context,
        report.cache,
        format::significant(report.seconds),
        engine::words(report.engine, report.engine_note.as_deref()),
    )
}
