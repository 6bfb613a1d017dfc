//! `tercet generate`: a language model continues a text, or many at once.

mod many;

use std::ffi::OsString;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;

use serde::Serialize;
use tercet_core::model::{CacheType, Pattern};
use tercet_host::language::tokenizer::{Encoding, Specials};
use tercet_host::language::{self, Generated, Generation, LanguageFile, RunOptions, Usage, View};

use crate::drafting::{Drafting, Drafts};
use crate::failure::Failure;
use crate::language::{Running, after_prompt, rate, shares};
use crate::progress::Steps;
use crate::sampling::Sampling;
use crate::{drafting, engine, format, output};

const EXAMPLES: &str = "\
Examples:
  tercet generate stories15M.gguf -p \"Once upon a time\"
  tercet generate model.gguf -p \"The moon\" -n 200 --temp 0.8 --top-k 40 --seed 7
  tercet generate model.gguf -p \"The moon\" --window 256 --sinks 4 -n 5000  any length, fixed memory
  tercet generate model.gguf -p \"The moon\" -n 500 --lookup                  same text, often faster
  tercet generate model.gguf -p \"The moon\" --digest                        the same on every machine
  tercet generate model.gguf --prompts questions.txt --batch 16 --json       many texts at once

The text depends only on the model file, the prompt and the options listed above --backend, not on threads, engines \
or machines. The command writes the prompt and then each token to standard output as soon as it is drawn, and \
reports speed and memory on stderr. At --temp 0 the token with the largest logit is chosen; of equal logits, the \
token with the lowest number.

A text ends at an end-of-text token, after N tokens, or when the model's context is full. With a --window but no \
--stride the context is never full.

The prompt is processed 64 tokens at a time. With --profile edge it is processed token by token, in the memory that \
a microcontroller would need.

--prompts FILE continues every line of a file, up to --batch of them in each step, which costs little more than \
one alone. Each text is what it would be alone. The command prints the texts in their order, each followed by an \
empty line; --digest prints a digest for each.

--digest prints 16 hexadecimal digits instead of the text: the 64-bit FNV-1a hash of the logits from which the \
tokens were drawn.

JSON (--json): prompt_tokens, tokens[], text (of tokens), end (token, length or context), digest, cache, window \
(null or positions), engine (who multiplied), engine_note, prompt_seconds, prompt_tokens_per_second, decode_seconds, \
decode_tokens_per_second, drafted_tokens and accepted_tokens (proposed by --lookup or --draft and taken in, and of \
these drawn), memory (bytes of weights, cache and steps). With --prompts: texts[] (line, prompt_tokens, tokens[], \
text, end, digest), batch, steps, rows (evaluated in all steps), cache, window, engine, engine_note, seconds, \
tokens_per_second (drawn), memory.";

/// Continue a text with a language model, the same on every machine
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A GGUF file with a model of the architecture bitnet or llama
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The text to continue; control tokens in it are plain text, and bytes that are not UTF-8 become what llama.cpp
    /// makes of them
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    prompt: OsString,
    /// Continue every line of a file that is not empty, many at once
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "lookup", "draft"])]
    prompts: Option<PathBuf>,
    /// With --prompts: maximum number of texts in a step
    #[arg(long, value_name = "N", requires = "prompts", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    batch: u16,
    /// Maximum number of tokens to add
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128)]
    tokens: usize,
    #[command(flatten)]
    sampling: Sampling,
    /// Read control tokens in the prompt as tokens
    #[arg(long)]
    special: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    drafting: Drafting,
    /// Print the digest of the logits instead of the text
    #[arg(long, conflicts_with = "json")]
    digest: bool,
    #[command(flatten)]
    pub(super) engine: engine::Named,
    /// Report as JSON, with the text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    prompt_tokens: usize,
    tokens: &'a [u32],
    text: String,
    end: &'static str,
    digest: String,
    cache: &'static str,
    window: Option<u32>,
    engine: &'a str,
    engine_note: Option<String>,
    prompt_seconds: f64,
    prompt_tokens_per_second: Option<f64>,
    decode_seconds: f64,
    decode_tokens_per_second: Option<f64>,
    drafted_tokens: usize,
    accepted_tokens: usize,
    memory: Usage,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.prompts {
        Some(prompts) => many::run(arguments, prompts),
        None => one(arguments),
    }
}

fn one(arguments: &Arguments) -> Result<(), Failure> {
    let mut engine = arguments.engine.open()?;
    let file = LanguageFile::open(&arguments.model)?;
    let mut view = View::of(&file)?;
    let model = arguments.running.model(view.model(&file)?);
    let tokenizer = file.tokenizer()?;
    let encoding = Encoding {
        special: arguments.special,
        ..Encoding::default()
    };
    let written = arguments.prompt.as_encoded_bytes();
    let prompt = tokenizer.encode(written, encoding).map_err(Failure::new)?;
    if prompt.is_empty() {
        return Err(Failure::usage(
            "the prompt is empty and the model has no beginning-of-text token; give a prompt with -p",
        ));
    }
    let pattern = arguments.running.pattern(&model)?;
    let context = model.config().context;
    let room = match pattern.is_ring() {
        true => usize::MAX,
        false => (context as usize)
            .saturating_sub(prompt.len())
            .saturating_add(1),
    };
    if !pattern.is_ring() && prompt.len() > context as usize {
        return Err(Failure::new(format_args!(
            "the prompt has {} tokens, the model's context {context}; \
             a --window without a --stride allows prompts of any length",
            prompt.len()
        )));
    }
    let tokens = arguments.tokens.min(room);
    // The last token is not evaluated.
    let positions = prompt.len().saturating_add(tokens.saturating_sub(1));
    let options = arguments.running.options(
        &model,
        u32::try_from(positions).unwrap_or(u32::MAX),
        &engine,
    )?;
    let ends = tokenizer.ends();
    let draft_file = arguments.drafting.file(&tokenizer)?;
    let mut draft_view = draft_file.as_ref().map(View::of).transpose()?;
    let draft_model = match (&mut draft_view, &draft_file) {
        (Some(view), Some(file)) => Some(view.model(file)?),
        _ => None,
    };
    let drafts = Drafts::new(
        &arguments.drafting,
        draft_file.as_ref().zip(draft_model.as_ref()),
        (!pattern.is_ring()).then_some(u32::try_from(positions).unwrap_or(u32::MAX)),
        (arguments.sampling.sampler(), arguments.sampling.recent()),
    );
    let options = RunOptions {
        beside: drafts.bytes()?,
        ..options
    };
    let how = Generation {
        sampler: arguments.sampling.sampler(),
        recent: arguments.sampling.recent(),
        tokens,
        ends: &ends,
    };
    let streams = !(arguments.json || arguments.digest);
    let mut stream = tokenizer.stream(Specials::Hidden);
    for &token in &prompt {
        // So that text dropped at the start of a first token is dropped from the prompt instead.
        stream.push(token).map_err(Failure::new)?;
    }
    let mut text = String::new();
    // If another engine takes over, it begins again, with the same tokens.
    let mut told = 0;
    let mut usage = None;
    let mut lost = None;
    let mut begun = !streams;
    let bar =
        (stderr().is_terminal() && prompt.len() > 256).then(|| Steps::new(prompt.len() as u64));
    // Drafts take fewer steps, but nobody knows how many.
    let products = after_prompt(
        &model,
        (prompt.len(), options.chunk),
        1,
        tokens.saturating_sub(1),
    );
    let scratch = options.fits(&tercet_core::scalar::Scalar, &file, &model)?;
    let job = products.with_scratch(
        scratch
            .cache
            .saturating_add(scratch.steps)
            .saturating_add(options.beside),
    );
    let (generated, by) = engine.run(job, |engine| {
        usage = Some(options.usage(engine, &file, &model)?);
        let mut number = 0;
        language::run(engine, &file, &model, &options, |decoder| {
            // Not before all memory is allocated.
            if !std::mem::replace(&mut begun, true)
                && let Err(failure) = output::bytes(written)
            {
                lost = Some(failure);
                return Ok(None);
            }
            let mut each = |token| {
                number += 1;
                if number <= told {
                    return Ok(true);
                }
                told = number;
                let piece = match ends.contains(&token) {
                    true => String::new(),
                    false => stream.push(token).unwrap_or_default(),
                };
                text.push_str(&piece);
                if streams && let Err(failure) = output::text(&piece) {
                    lost = Some(failure);
                    return Ok(false);
                }
                Ok(true)
            };
            let mut progress = |done: usize| {
                if let Some(bar) = &bar {
                    bar.reach(done as u64, "prompt");
                }
            };
            drafts.with(|drafter| {
                language::generate(decoder, &prompt, &how, drafter, &mut progress, &mut each)
                    .map(Some)
            })
        })
    })?;
    drop(bar);
    let generated = match (lost, generated) {
        (None, Some(generated)) => generated,
        (Some(failure), _) => return Err(failure),
        // There is none, and no failure.
        (None, None) => return Ok(()),
    };
    let usage = usage.unwrap_or(scratch);
    let end = match (generated.ended, generated.tokens.len() == arguments.tokens) {
        (true, _) => "token",
        (false, true) => "length",
        (false, false) => "context",
    };
    let rest = stream.finish();
    text.push_str(&rest);
    let decoded = generated.tokens.len().saturating_sub(1);
    let cache = options.cache.unwrap_or(model.config().cache);
    let note = by.note.clone().or_else(|| shares(&model, &by.engine));
    let report = Report {
        prompt_tokens: prompt.len(),
        tokens: &generated.tokens,
        text,
        end,
        digest: format!("{:016x}", generated.digest),
        cache: CacheType::name(cache),
        window: Some(pattern.window).filter(|&window| window != Pattern::FULL.window),
        engine: &by.engine,
        engine_note: note,
        prompt_seconds: generated.prompt.as_secs_f64(),
        prompt_tokens_per_second: rate(prompt.len(), generated.prompt.as_secs_f64()),
        decode_seconds: generated.decode.as_secs_f64(),
        decode_tokens_per_second: rate(decoded, generated.decode.as_secs_f64()),
        drafted_tokens: generated.drafted,
        accepted_tokens: generated.accepted,
        memory: usage,
    };
    if arguments.json {
        return output::json(&report);
    }
    if arguments.digest {
        return output::text(&format!("{}\n", report.digest));
    }
    output::text(&format!("{rest}\n"))?;
    eprint!("{}", people(&report, &generated));
    Ok(())
}

fn people(report: &Report<'_>, generated: &Generated) -> String {
    let speed = |rate: Option<f64>| {
        rate.map_or_else(String::new, |rate| {
            format!(", {} per second", format::significant(rate))
        })
    };
    let memory = &report.memory;
    format!(
        "prompt: {}{}\ntext: {}{}; ended by {}{}\n\
         memory: {} of weights, {} of cache ({}), {} of steps\nby {}, digest of logits {}\n",
        format::counted(report.prompt_tokens as u64, "token"),
        speed(report.prompt_tokens_per_second),
        format::counted(generated.tokens.len() as u64, "token"),
        speed(report.decode_tokens_per_second),
        report.end,
        drafting::words(generated.drafted, generated.accepted),
        format::bytes(memory.weights as u64),
        format::bytes(memory.cache as u64),
        report.cache,
        format::bytes(memory.steps as u64),
        engine::words(report.engine, report.engine_note.as_deref()),
        report.digest,
    )
}
