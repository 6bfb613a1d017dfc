//! Trains a small ternary language model of a text in integers, writes its GGUF file, and lets it continue a prompt.
//!
//! `cargo run --release -p tercet-host --features train --example 09_train`

use std::sync::Arc;

use tercet_host::LanguageModel;
use tercet_host::language::{Parameters, Vocabulary};
use tercet_host::parallel::Threads;
use tercet_host::train::{
    Batches, Corpus, MemoryPlan, PlannedRun, Preset, Profiled, Tokens, TrainOptions, Trainer,
};

const TEXT: &[u8] = include_bytes!("../../gpu/models/shakespeare.txt");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One token per byte; the bundled models have vocabularies of 512 and 1,024 tokens.
    let vocabulary = Vocabulary::bytes();
    let tokens = TEXT.iter().map(|&byte| byte.into()).collect();
    let parameters = Parameters {
        context_length: 64,
        block_count: 1,
        ..Preset::Nano.parameters(vocabulary.tokens.len() as u32)
    };
    let options = TrainOptions {
        steps: 8,
        ..TrainOptions::new(parameters)
    };
    let corpus = Arc::new(Corpus::new(
        Tokens::InMemory(tokens),
        vec![],
        options.context(),
        None,
        options.seed,
    )?);
    let batches = Batches::new(&corpus, options.batch, 0);

    // Two workers share each batch. Their number does not show in the file. The memory is known before the run.
    let (engine, workers) = (Threads::alone(), 2);
    let run = PlannedRun::on(workers);
    let plan = MemoryPlan::of(engine, &options, &vocabulary, &corpus, &run)?;
    println!("{} bytes of memory", plan.total());
    let engines = vec![Profiled::new(engine); workers];
    let mut trainer = Trainer::new(engines, &options, vocabulary)?;
    while trainer.steps() < options.steps {
        let step = trainer.step(&batches)?;
        println!("step {}: {:.4} nats per byte", trainer.steps(), step.mean());
    }
    for share in &trainer.profile().shares {
        println!("{:5.1} % {}", 100.0 * share.share, share.operation.name());
    }

    let path = std::env::temp_dir().join(format!("tercet-09-{}.gguf", std::process::id()));
    std::fs::write(&path, trainer.file())?;
    println!("{} bytes", trainer.file().len());
    let model = LanguageModel::open(&path)?;
    let written = model.prompt("ROMEO:").tokens(20).generate()?;
    println!("{:?}", written.text);
    std::fs::remove_file(&path).ok();
    Ok(())
}
