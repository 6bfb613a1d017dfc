//! Trains a small model for a few steps and fails unless its file has the digest that it has on every machine: a
//! vocabulary that is made of the text, two stages of the learning rate, halved by evaluations, and an export in the
//! other type.
//!
//! With a folder (`gpu/models`) it begins the training of the models there in its place, and fails unless the
//! vocabularies and the first steps' costs are those that are told in it: whole runs take half an hour each.
//!
//! `TERCET_BACKEND=avx2 cargo run -p tercet-host --features train --example trained`

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tercet_core::block::Format;
use tercet_core::conformance::Digest;
use tercet_core::train::Fall;
use tercet_host::language::tokenizer::{Encoding, Tokenizer};
use tercet_host::language::{LanguageFile, Parameters, Vocabulary};
use tercet_host::parallel::Threads;
use tercet_host::train::{
    Batches, Corpus, Preset, Tokens, TrainOptions, Trainer, Watch, vocabulary,
};

const TEXT: &[u8] = b"Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and \
    nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of the world. It is \
    a way I have of driving off the spleen and regulating the circulation.";

/// A bundled model: its size, tokens, steps of its run, and how many are taken here.
const BUNDLED: [(Preset, u32, u64, usize); 2] =
    [(Preset::Nano, 512, 4000, 2), (Preset::Tiny, 1024, 1000, 1)];

/// What the file's bytes come to, and what the text that was held out costs by each evaluation.
const FILE: u64 = 0x32b6_a707_875c_ea33;
const COSTS: [i64; 4] = [
    846_033_279_501,
    3_064_213_174_781,
    2_635_921_878_097,
    2_214_564_264_829,
];

fn main() -> ExitCode {
    if let Some(folder) = std::env::args().nth(1) {
        for bundled in BUNDLED {
            if let Err(error) = begin(Path::new(&folder), bundled) {
                eprintln!("{}: {error}", bundled.0.name());
                return ExitCode::FAILURE;
            }
        }
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok((file, costs)) if (file, &costs[..]) == (FILE, &COSTS) => {
            println!("trained {file:016x}");
            ExitCode::SUCCESS
        }
        Ok((file, costs)) => {
            eprintln!(
                "the file has {file:016x}, not {FILE:016x}; evaluations {costs:?}, not {COSTS:?}"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(u64, Vec<i64>), tercet_host::Error> {
    let vocabulary = vocabulary(TEXT, 280);
    // As bytes, whose tokens are the first: to merge them is a tokenizer's work.
    let tokens = |text: &[u8]| text.iter().map(|&byte| byte.into()).collect::<Vec<u32>>();
    let parameters = Parameters {
        context_length: 16,
        block_count: 1,
        feed_forward_length: 256,
        ..Preset::Nano.parameters(vocabulary.tokens.len() as u32)
    };
    let options = TrainOptions {
        steps: 4,
        batch: 3,
        fall: Fall::TwoStage,
        warmup: 1,
        // Too high for each step to make it better.
        rate: 0.1,
        watch: Watch {
            every: 1,
            plateau: Some(1),
            patience: Some(9),
        },
        micro: 2,
        ..TrainOptions::new(parameters)
    };
    let (train, held_out) = TEXT.split_at(TEXT.len() - 40);
    let train = Tokens::InMemory(tokens(train));
    let begin = vocabulary.bos;
    let corpus = Corpus::new(
        train,
        tokens(held_out),
        options.context(),
        begin,
        options.seed,
    )?;
    let corpus = Arc::new(corpus);
    let batches = Batches::new(&corpus, options.batch, 0);
    let engines = vec![Threads::alone(); 2];
    let mut trainer = Trainer::new(engines, &options, vocabulary)?;
    let mut costs = Vec::new();
    while !trainer.is_over() {
        trainer.step(&batches)?;
        let cost = trainer.evaluate(Threads::alone, &corpus, &|_| 1)?;
        trainer.watch(&cost);
        costs.push(cost.sum);
    }
    let mut digest = Digest::new();
    digest.bytes(&trainer.export(Format::Tq1_0)?);
    Ok((digest.value(), costs))
}

/// Begins a model's run by `tercet train shakespeare.txt`, and compares.
fn begin(
    folder: &Path,
    (preset, most, steps, taken): (Preset, u32, u64, usize),
) -> Result<(), Box<dyn std::error::Error>> {
    let name = preset.name();
    let text = std::fs::read(folder.join("shakespeare.txt"))?;
    let told = std::fs::read_to_string(folder.join(format!("{name}.jsonl")))?;
    let file = LanguageFile::open(&folder.join(format!("{name}.gguf")))?;
    // A twentieth of the text is held out.
    let (train, held_out) = text.split_at(text.len() - text.len() / 20);
    let vocabulary = vocabulary(train, most);
    if vocabulary != Vocabulary::read(&file.reader()?)? {
        return Err("its file has another vocabulary than the text makes".into());
    }
    let reader = file.reader()?;
    let tokenizer = Tokenizer::read(&reader, file.bytes(), None)?;
    let encode = |text| {
        let encoding = Encoding {
            ends: false,
            ..Encoding::default()
        };
        tokenizer.encode(text, encoding)
    };
    let options = TrainOptions {
        steps,
        warmup: steps / 20,
        ..TrainOptions::new(preset.parameters(vocabulary.tokens.len() as u32))
    };
    let (begin, context) = (vocabulary.bos, options.context());
    let (train, held_out) = (Tokens::InMemory(encode(train)?), encode(held_out)?);
    let corpus = Arc::new(Corpus::new(train, held_out, context, begin, options.seed)?);
    let batches = Batches::new(&corpus, options.batch, 0);
    let mut trainer = Trainer::new(vec![Threads::alone(); 2], &options, vocabulary)?;
    for _ in 0..taken {
        let report = trainer.step(&batches)?;
        let line = format!("{{\"step\":{},\"loss\":{},", report.step, report.loss);
        if !told.contains(&line) {
            return Err(format!("{name}.jsonl does not tell {line}").into());
        }
    }
    println!("{name} begins as it is told");
    Ok(())
}
