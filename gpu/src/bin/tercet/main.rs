//! The `tercet` command: quantizes, imports, prunes, inspects, compares and calibrates models; clusters and searches points;
//! builds and runs integer networks; trains and runs language models; times operations, tunes the choice of engines,
//! and verifies their bits.
//!
//! Each subcommand has one file. `tercet-host` does the computation; this crate has the messages, tables and exit
//! codes: 0 for success, 1 for a failure with one line on stderr, 2 for wrong usage, 130 when interrupted.

mod advice;
mod assign;
mod bench;
mod bottlenecks;
mod calibrate;
mod chat;
mod clustering;
mod compare;
mod completions;
mod demo;
mod dequantize;
mod drafting;
mod edge;
mod elbow;
mod engine;
mod failure;
mod format;
mod generate;
mod gpus;
mod groups;
mod import;
mod info;
mod inspect;
mod interrupt;
mod kmeans;
mod language;
mod metrics;
mod network;
mod output;
mod perplexity;
mod profile;
mod progress;
mod prune;
mod quantize;
mod reading;
mod restoring;
mod sampling;
mod search;
mod table;
mod tokenize;
mod trace;
mod train;
mod tune;
mod verify;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};
use tercet_host::simd::Backend;

use failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tercet demo                                                  every format on real data
  tercet inspect model.safetensors                             the tensors of a file
  tercet quantize model.safetensors -o model.gguf --to tq2_0   ternary blocks, byte for byte as ggml's
  tercet compare model.safetensors model.gguf                  the error of each tensor
  tercet import llama2.data -o model.gguf                      a model that llama.cpp runs
  tercet kmeans images.npy -k 10 --report clusters.html        clusters, with charts
  tercet search embeddings.npy queries.npy -k 10               the nearest rows, exactly
  tercet generate stories15M.gguf -p \"Once upon a time\"        the same text on every machine
  tercet train book.txt -o book.gguf                           a ternary model, trained on a text
  tercet chat SmolLM2.gguf                                     a conversation
  tercet bench --quick                                         how fast this machine is
  tercet info                                                  processor, instruction sets, GPUs
  tercet tune                                                  which engine is the fastest here
  tercet verify                                                whether all engines give the same bits

Exit status: 0 success, 1 failure (one line on stderr, no half-written file), 2 wrong usage, 130 interrupted.";

/// Low-bit models: ternary, int4 and int8 files that other programs open.
#[derive(Debug, Parser)]
#[command(name = "tercet", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Number of threads, for `bench` also several as 1,2,4; results do not depend on it [default: RAYON_NUM_THREADS,
    /// else one per core]
    #[arg(long, global = true, display_order = 900, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    threads: Vec<u16>,
    /// Write a timeline of the processor's threads and of devices to a new JSON file; ui.perfetto.dev shows it
    #[arg(long, global = true, display_order = 901, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write counters (calls, times, bytes, by operation and engine; a device's kernels, copies and memory) to a new
    /// file, as Prometheus text
    #[arg(long, global = true, display_order = 902, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Report on stderr where the time goes, by operation, engine and what limits them, and the one change that would
    /// help most; each second on a terminal, and at the end
    #[arg(long, global = true, display_order = 903, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", require_equals = true)]
    bottlenecks: Option<bottlenecks::Form>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Quantize(quantize::Arguments),
    Dequantize(dequantize::Arguments),
    Import(import::Arguments),
    Prune(prune::Arguments),
    Inspect(inspect::Arguments),
    Compare(compare::Arguments),
    Calibrate(calibrate::Arguments),
    Kmeans(kmeans::Arguments),
    Assign(assign::Arguments),
    Elbow(elbow::Arguments),
    Search(search::Arguments),
    Network(network::Arguments),
    Generate(Box<generate::Arguments>),
    Chat(Box<chat::Arguments>),
    Perplexity(perplexity::Arguments),
    Tokenize(tokenize::Arguments),
    Train(Box<train::Arguments>),
    Bench(bench::Arguments),
    Info(info::Arguments),
    Tune(tune::Arguments),
    Verify(verify::Arguments),
    Demo(demo::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    /// Returns the requested engine, for commands that let it be chosen.
    fn engine(&self) -> Option<&engine::Named> {
        match self {
            Self::Quantize(arguments) => Some(&arguments.engine),
            Self::Calibrate(arguments) => Some(&arguments.engine),
            Self::Dequantize(arguments) => Some(&arguments.engine),
            Self::Inspect(arguments) => Some(&arguments.engine),
            Self::Compare(arguments) => Some(&arguments.engine),
            Self::Kmeans(arguments) => Some(&arguments.engine),
            Self::Assign(arguments) => Some(&arguments.engine),
            Self::Elbow(arguments) => Some(&arguments.engine),
            Self::Search(arguments) => Some(&arguments.engine),
            Self::Demo(arguments) => Some(&arguments.engine),
            Self::Network(arguments) => Some(arguments.engine()),
            Self::Generate(arguments) => Some(&arguments.engine),
            Self::Chat(arguments) => Some(&arguments.engine),
            Self::Perplexity(arguments) => Some(&arguments.engine),
            _ => None,
        }
    }
}

fn main() -> ExitCode {
    let matches = groups::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    interrupt::handle()?;
    let alone = match &cli.command {
        Command::Train(arguments) => arguments.settle().map(|()| None)?,
        command => (command.engine()).map_or(Ok(None), engine::Named::settle)?,
    };
    // Report a wrong name before any work.
    Backend::chosen()?;
    if cli.threads.len() > 1 && !matches!(cli.command, Command::Bench(_)) {
        return Err(Failure::usage(
            "--threads takes one number here; only `tercet bench` takes several",
        ));
    }
    let threads = cli.threads.iter().max().copied();
    if let Some(profile) = alone
        && threads.is_some_and(|threads| threads > 1)
    {
        return Err(Failure::usage(format_args!(
            "the profile {} uses one thread; leave out --threads",
            profile.name()
        )));
    }
    if let Some(threads) = threads.or(alone.map(|_| 1)) {
        // Before any work, so that the pool does not exist yet. A single thread is this one, and none is started.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads));
        let pool = match alone {
            Some(_) => pool.use_current_thread(),
            None => pool,
        };
        pool.build_global()
            .map_err(|error| Failure::new(format!("cannot start {threads} threads: {error}")))?;
    }
    let trace = cli.trace.as_deref().map(trace::Trace::start).transpose()?;
    let metrics = cli.metrics.as_deref();
    let metrics = metrics.map(metrics::Metrics::start).transpose()?;
    let reports = cli
        .bottlenecks
        .map(bottlenecks::Reports::start)
        .transpose()?;
    let done = work(cli.command, &cli.threads);
    // Also for work that failed.
    if let Some(reports) = reports {
        reports.finish();
    }
    done?;
    metrics.map_or(Ok(()), metrics::Metrics::write)?;
    trace.map_or(Ok(()), trace::Trace::write)
}

fn work(command: Command, threads: &[u16]) -> Result<(), Failure> {
    match command {
        Command::Quantize(arguments) => quantize::run(&arguments),
        Command::Dequantize(arguments) => dequantize::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Prune(arguments) => prune::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Kmeans(arguments) => kmeans::run(&arguments),
        Command::Assign(arguments) => assign::run(&arguments),
        Command::Elbow(arguments) => elbow::run(&arguments),
        Command::Search(arguments) => search::run(&arguments),
        Command::Network(arguments) => network::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Chat(arguments) => chat::run(&arguments),
        Command::Perplexity(arguments) => perplexity::run(&arguments),
        Command::Tokenize(arguments) => tokenize::run(&arguments),
        Command::Train(arguments) => train::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments, threads),
        Command::Info(arguments) => info::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
