//! `tercet generate --prompts`: many texts at once.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use tercet_core::model::{CacheType, Pattern};
use tercet_host::language::tokenizer::{Encoding, Specials, Tokenizer};
use tercet_host::language::{self, Generated, Generation, LanguageFile, RunOptions, Usage, View};

use super::Arguments;
use crate::failure::Failure;
use crate::language::{after_prompt, name, rate, shares};
use crate::progress::Steps;
use crate::{engine, format, output};

/// A finished text.
#[derive(Debug, Serialize)]
struct Written {
    line: usize,
    prompt_tokens: usize,
    tokens: Vec<u32>,
    text: String,
    end: &'static str,
    digest: String,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    texts: &'a [Written],
    batch: usize,
    steps: usize,
    rows: usize,
    cache: &'static str,
    window: Option<u32>,
    engine: &'a str,
    engine_note: Option<String>,
    seconds: f64,
    tokens_per_second: Option<f64>,
    memory: Usage,
}

/// A line of the file, with its number from 1 on.
struct Prompt {
    line: usize,
    bytes: Vec<u8>,
    tokens: Vec<u32>,
}

fn prompts(
    arguments: &Arguments,
    path: &Path,
    tokenizer: &Tokenizer,
    room: usize,
) -> Result<Vec<Prompt>, Failure> {
    let all = std::fs::read(path).map_err(|error| Failure::io(path, "read", &error))?;
    let encoding = Encoding {
        special: arguments.special,
        ..Encoding::default()
    };
    let mut prompts = Vec::new();
    for (index, line) in all.split(|&byte| byte == b'\n').enumerate() {
        let bytes = line.strip_suffix(b"\r").unwrap_or(line);
        if bytes.is_empty() {
            continue;
        }
        let line = index + 1;
        let tokens = tokenizer.encode(bytes, encoding).map_err(Failure::new)?;
        if tokens.is_empty() || tokens.len() > room {
            return Err(Failure::new(format_args!(
                "{}: line {line} has {}, and the model takes 1 to {room}",
                name(path),
                format::counted(tokens.len() as u64, "token")
            )));
        }
        let bytes = bytes.to_vec();
        prompts.push(Prompt {
            line,
            bytes,
            tokens,
        });
    }
    match prompts.is_empty() {
        true => Err(Failure::new(format_args!(
            "{}: no line has a prompt",
            name(path)
        ))),
        false => Ok(prompts),
    }
}

/// Decodes a text, without the prompt's part.
fn decoded(tokenizer: &Tokenizer, prompt: &[u32], generated: &Generated) -> String {
    let mut stream = tokenizer.stream(Specials::Hidden);
    for &token in prompt {
        stream.push(token).unwrap_or_default();
    }
    let kept = generated.tokens.len() - usize::from(generated.ended);
    let pieces = generated.tokens[..kept].iter();
    let mut text: String = pieces
        .map(|&token| stream.push(token).unwrap_or_default())
        .collect();
    text.push_str(&stream.finish());
    text
}

pub(super) fn run(arguments: &Arguments, path: &Path) -> Result<(), Failure> {
    let mut engine = arguments.engine.open()?;
    let file = LanguageFile::open(&arguments.model)?;
    let mut view = View::of(&file)?;
    let model = arguments.running.model(view.model(&file)?);
    let tokenizer = file.tokenizer()?;
    let pattern = arguments.running.pattern(&model)?;
    let room = match pattern.is_ring() {
        true => usize::MAX,
        false => model.config().context as usize,
    };
    let prompts = prompts(arguments, path, &tokenizer, room)?;
    let longest = prompts.iter().map(|prompt| prompt.tokens.len()).max();
    let positions = (longest.unwrap_or(0))
        .saturating_add(arguments.tokens.saturating_sub(1))
        .min(room);
    let context = u32::try_from(positions).unwrap_or(u32::MAX);
    let options = arguments.running.options(&model, context, &engine)?;
    // A step has a row for each text.
    let chunk = match engine.is_edge() {
        true => 1,
        false => options.chunk.max(arguments.batch.into()),
    };
    let sequences = usize::from(arguments.batch)
        .min(prompts.len())
        .min(chunk as usize);
    let options = RunOptions {
        sequences,
        chunk,
        ..options
    };
    let ends = tokenizer.ends();
    let how = Generation {
        sampler: arguments.sampling.sampler(),
        recent: arguments.sampling.recent(),
        tokens: arguments.tokens,
        ends: &ends,
    };
    let tokens: Vec<Vec<u32>> = prompts.iter().map(|prompt| prompt.tokens.clone()).collect();
    let known: usize = tokens.iter().map(Vec::len).sum();
    let scratch = options.fits(&tercet_core::scalar::Scalar, &file, &model)?;
    // As if every text had its full length.
    let drawn = (arguments.tokens.saturating_sub(1)).saturating_mul(prompts.len());
    let steps = drawn.div_ceil(sequences.max(1));
    let job = after_prompt(&model, (known, chunk), sequences, steps)
        .with_scratch(scratch.cache.saturating_add(scratch.steps));
    let bar = stderr()
        .is_terminal()
        .then(|| Steps::new(prompts.len() as u64));
    let plain = !(arguments.json || arguments.digest);
    // Finished texts that wait for one before them. If another engine takes over, it begins again, with the same texts.
    let mut finished: BTreeMap<usize, Written> = BTreeMap::new();
    let (mut shown, mut lost, mut usage) = (0, None, None);
    let start = Instant::now();
    let (counts, by) = engine.run(job, |engine| {
        usage = Some(options.usage(engine, &file, &model)?);
        let (mut steps, mut rows) = (0, 0);
        language::run(engine, &file, &model, &options, |decoder| {
            let mut told = |count: usize| {
                steps += 1;
                rows += count;
            };
            let mut each = |number: usize, generated: Generated| {
                let prompt = &prompts[number];
                finished.entry(number).or_insert_with(|| Written {
                    line: prompt.line,
                    prompt_tokens: prompt.tokens.len(),
                    text: decoded(&tokenizer, &prompt.tokens, &generated),
                    end: match (generated.ended, generated.tokens.len() == arguments.tokens) {
                        (true, _) => "token",
                        (false, true) => "length",
                        (false, false) => "context",
                    },
                    digest: format!("{:016x}", generated.digest),
                    tokens: generated.tokens,
                });
                if let Some(bar) = &bar {
                    bar.reach(finished.len() as u64, "texts");
                }
                while let Some(next) = finished.get(&shown).filter(|_| plain) {
                    let whole = [&prompts[shown].bytes[..], next.text.as_bytes(), b"\n\n"];
                    if let Err(failure) = output::bytes(&whole.concat()) {
                        lost = Some(failure);
                        return Ok(false);
                    }
                    shown += 1;
                }
                Ok(true)
            };
            language::generate_batch(decoder, &tokens, &how, &mut told, &mut each)
        })
        .map(|((), by)| ((steps, rows), by))
    })?;
    drop(bar);
    if let Some(failure) = lost {
        return Err(failure);
    }
    let seconds = start.elapsed().as_secs_f64();
    let texts: Vec<Written> = finished.into_values().collect();
    let drawn: usize = texts.iter().map(|text| text.tokens.len()).sum();
    let window = Some(pattern.window).filter(|&window| window != Pattern::FULL.window);
    let report = Report {
        texts: &texts,
        batch: sequences,
        steps: counts.0,
        rows: counts.1,
        cache: CacheType::name(options.cache.unwrap_or(model.config().cache)),
        window,
        engine: &by.engine,
        engine_note: by.note.clone().or_else(|| shares(&model, &by.engine)),
        seconds,
        tokens_per_second: rate(drawn, seconds),
        memory: usage.unwrap_or(scratch),
    };
    if arguments.json {
        return output::json(&report);
    }
    if arguments.digest {
        let digests = texts.iter().map(|text| format!("{}\n", text.digest));
        return output::text(&digests.collect::<String>());
    }
    eprint!("{}", people(&report, known, drawn));
    Ok(())
}

fn people(report: &Report<'_>, known: usize, drawn: usize) -> String {
    let memory = &report.memory;
    format!(
        "{}, {} at once: {} of prompts, {} drawn in {} steps{}\n\
         memory: {} of weights, {} of cache ({}), {} of steps\nby {}\n",
        format::counted(report.texts.len() as u64, "text"),
        report.batch,
        format::counted(known as u64, "token"),
        drawn,
        report.steps,
        report.tokens_per_second.map_or_else(String::new, |rate| {
            format!(", {} per second", format::significant(rate))
        }),
        format::bytes(memory.weights as u64),
        format::bytes(memory.cache as u64),
        report.cache,
        format::bytes(memory.steps as u64),
        engine::words(report.engine, report.engine_note.as_deref()),
    )
}
