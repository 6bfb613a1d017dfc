//! `tercet quantize`: converts a model to another format, and reports the loss.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use tercet_core::block::bitnet_hf::WeightScale;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::TensorFile;
use tercet_host::convert::{
    AutoReport, Per, QuantizeOptions, Report, Scheme, Target, coded_values,
};

use crate::engine::{self, CUDA};
use crate::failure::Failure;
use crate::perplexity::{Perplexities, of_text};
use crate::progress::Bar;
use crate::reading::weight_scale;
use crate::table::{Align, Table};
use crate::words::{grid, words};
use crate::{format, output};

const EXAMPLES: &str = "\
Examples:
  tercet quantize model.safetensors -o model.gguf --to tq2_0
  tercet quantize model.safetensors -o model.gguf --to tq1_0 --rule optimal --exclude '*embed*'
  tercet quantize model.safetensors -o small.gguf --to auto --bits 3.5
  tercet quantize model.gguf -o small.gguf --to auto --bits 3.5 --importance inputs.gguf
  tercet quantize model.safetensors -o int8.safetensors --to int8 --per row --grid affine
  tercet quantize model.safetensors -o small.safetensors --to palette:4 --per rows:64
  tercet quantize model.safetensors -o small.safetensors --to palette:3 --importance squares.safetensors
  tercet quantize weights.npy -o weights.gguf --to q4_0 --json
  tercet quantize model.safetensors -o model.gguf --to tq2_0 --backend cuda
  tercet quantize trained.gguf -o bitnet.gguf --to i2_s                          for bitnet.cpp
  tercet quantize llama.gguf -o llama-q4.gguf --to q4_0 --perplexity book.txt    with its perplexity

GGUF formats (OUT ends in .gguf): tq1_0, tq2_0, q2_0, q4_0, q4_1, q5_0, q5_1, q8_0, i2_s, auto. q4_k and q6_k can be read \
(tercet dequantize) but not written.

Safetensors formats (OUT ends in .safetensors): int8 and ternary (one byte per code), bitnet-hf (four codes per \
byte), palette:1 to palette:8 (indices of that many bits into int8 codebooks with the least possible squared error).

auto chooses a format for each tensor (tq1_0, tq2_0, q2_0, q4_0, q8_0 or f16) so that the total squared error is \
smallest within --bits. It reports how much of that error another choice could save at most. With --importance FILE \
(from tercet perplexity --record), it adds up the relative squared errors of the products of the matrices \
instead, estimated from the mean square of each weight's inputs. If FILE says nothing about an embedding or a head, \
all its weights count alike.

If the rows of a tensor do not divide into blocks of the format, the tensor gets a fallback type, as in llama.cpp, \
and the report says so. For a palette, the report also shows the errors that the same tensor would have in q4_0 and \
q8_0. Tensors of fewer than two dimensions are copied unless --include names them.

From a GGUF file of a language model (llama, bitnet), the command makes one that runs. Metadata, vocabulary, norms \
and biases are kept. The format is for the matrices of the layers; the embedding and a separate head become q8_0 \
with one scale per row. In ternary formats each matrix of a bitnet gets one scale unless --rule says otherwise: s, \
if all values are -s, 0 and s, else their mean magnitude. --perplexity scores a text with the model before and \
after, as tercet perplexity does.

i2_s makes such a file for bitnet.cpp on x86 processors (the layout x86-128). Each matrix gets one scale by the same \
rule. Matrices in ternary blocks with one scale, as tercet train writes them, keep their codes and their scale. The \
embedding and a separate head become f16 unless they are quantized already. Matrices that bitnet.cpp would misread \
are refused. tercet and llama.cpp do not run the file.

With --backend cuda the device quantizes and encodes, and the processor reads, writes and measures. The file is the \
same, byte for byte. The processor takes over what does not fit in device memory, and the report says so. Only the \
processor makes bitnet-hf and i2_s.

JSON (--json): tensors[] (name, shape, from, to, engine (null where copied), bits_per_weight, relative_error, \
sqnr_db, flushed, beside[] (format, bits_per_weight, relative_error), note), bytes_before, bytes_after, \
bits_per_weight, engine, engine_note (null, or why the processor did some of its work), auto (null or bits, \
squared_error, gap, weighed), seconds, megabytes_per_second; with --perplexity also perplexity (tokens, count, \
context, before and after, each with sum, mean, perplexity, bits_per_byte).";

/// Quantize a model: safetensors, npy or GGUF in, GGUF or safetensors out
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A safetensors, npy or GGUF file, or the index of a sharded safetensors model
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write; whole or not at all
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The format of the quantized tensors
    #[arg(long, value_name = "FORMAT", value_parser = target())]
    to: Target,
    /// Which values become ±1 in ternary formats [default: absmax (ggml's) in GGUF, optimal for auto, absmean
    /// elsewhere]
    #[arg(long, value_name = "RULE", value_parser = rule())]
    rule: Option<Rule>,
    /// Source of a ternary scale: the rule, or least squares over the values that became ±1
    #[arg(long, value_name = "SCALE", value_parser = scale(), default_value = "rule")]
    scale: ScaleRule,
    /// Which values share a scale in int8 and ternary (tensor, row or block:N), and in a palette (tensor, row or
    /// rows:N) [default: tensor; int8: row]
    #[arg(long, value_name = "GROUP")]
    per: Option<Per>,
    /// Codes of int8: symmetric, or affine with a zero point (ONNX)
    #[arg(long, value_name = "GRID", value_parser = grid(), default_value = "symmetric")]
    grid: Scheme,
    /// Weight of each value's squared error. For palettes a file with a tensor of the same name and shape for each,
    /// none negative; for auto a file of tercet perplexity --record or llama-imatrix
    #[arg(long, value_name = "FILE")]
    importance: Option<PathBuf>,
    /// Bits per weight that auto may use, over all tensors that it chooses for
    #[arg(long, value_name = "BITS", required_if_eq("to", "auto"))]
    bits: Option<f64>,
    /// Meaning of the weight_scale that bitnet-hf writes: it divides or multiplies; loaders differ
    #[arg(long, value_name = "MEANING", value_parser = weight_scale(), default_value = "divisor")]
    weight_scale: WeightScale,
    /// Quantize only tensors with a matching name; may be repeated
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// Copy tensors with a matching name unchanged; may be repeated
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Score this text with the language model before and after
    #[arg(long, value_name = "FILE")]
    perplexity: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(crate) engine: engine::Named,
    #[command(flatten)]
    devices: engine::Several,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

fn target() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.map(Target::name)).try_map(|name| name.parse::<Target>())
}

pub(crate) fn rule() -> impl TypedValueParser<Value = Rule> {
    words(&[
        ("absmax", Rule::AbsMax),
        ("absmean", Rule::AbsMean),
        ("twn", Rule::Twn),
        ("optimal", Rule::Optimal),
    ])
}

pub(crate) fn scale() -> impl TypedValueParser<Value = ScaleRule> {
    words(&[("rule", ScaleRule::Rule), ("ls", ScaleRule::LeastSquares)])
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = QuantizeOptions {
        rule: arguments.rule,
        scale: arguments.scale,
        per: arguments.per,
        grid: arguments.grid,
        importance: arguments.importance.clone(),
        bits: arguments.bits,
        include: arguments.include.clone(),
        exclude: arguments.exclude.clone(),
        weight_scale: arguments.weight_scale,
        force: arguments.force,
        ..QuantizeOptions::new(arguments.to)
    };
    if arguments.perplexity.is_some() && arguments.to == Target::I2S {
        return Err(Failure::usage(
            "--perplexity: tercet does not run i2_s, only bitnet.cpp does; leave it out",
        ));
    }
    let mut engine = arguments.engine.open_on(arguments.devices)?;
    let model = TensorFile::open(&arguments.input)?;
    if engine.is_device() && matches!(coded_values(&model, &options), Ok(0)) {
        return Err(Failure::usage(format_args!(
            "--backend {CUDA}: {} has no tensor that this quantizes; leave out --backend, or name an instruction set",
            model.path().display()
        )));
    }
    // Before anything is written, so that a text that cannot be scored costs nothing.
    let text = arguments.perplexity.as_deref();
    let before = text.map(|text| of_text(&mut engine, &arguments.input, text));
    let before = before.transpose()?;
    let conversion = engine.quantize(&model, &options, &arguments.output, &Bar::new())?;
    let perplexity = match (text, before) {
        (Some(text), Some(before)) => {
            let after = of_text(&mut engine, &arguments.output, text)?;
            Some(Perplexities::new(
                (before.tokens, before.context),
                &before.cost,
                &after.cost,
            ))
        }
        _ => None,
    };
    if arguments.json {
        return output::json(&Whole {
            conversion: &conversion,
            perplexity,
        });
    }
    let scored = perplexity.map_or_else(String::new, |scored| scored.people());
    output::text(&format!("{}{scored}", people(&conversion)))
}

/// The report in JSON.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    conversion: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    perplexity: Option<Perplexities>,
}

fn people(report: &Report) -> String {
    use Align::{Left, Right};
    // Columns for the formats that palettes are compared with, if there are any.
    let beside: &[(&str, &str)] = match report.tensors.iter().any(|t| !t.beside.is_empty()) {
        true => &[("q4_0", "in q4_0"), ("q8_0", "in q8_0")],
        false => &[],
    };
    let mut columns = vec![
        ("tensor", Left),
        ("shape", Left),
        ("from", Left),
        ("to", Left),
        ("bits/weight", Right),
        ("rel. error", Right),
        ("SQNR dB", Right),
    ];
    columns.extend(beside.iter().map(|(_, head)| (*head, Right)));
    columns.push(("note", Left));
    let mut table = Table::new(&columns);
    for tensor in &report.tensors {
        let mut row = vec![
            tensor.name.clone(),
            format::shape(&tensor.shape),
            tensor.from.clone(),
            tensor.to.clone(),
            format!("{:.4}", tensor.bits_per_weight),
            tensor
                .relative_error
                .map_or_else(String::new, format::significant),
            tensor
                .sqnr_db
                .map_or_else(String::new, |db| format!("{db:.2}")),
        ];
        row.extend(beside.iter().map(|(format, _)| {
            let found = tensor.beside.iter().find(|other| other.format == *format);
            found.map_or_else(String::new, |other| {
                format::significant(other.relative_error)
            })
        }));
        row.push(tensor.note.clone().unwrap_or_default());
        table.row(row);
    }
    let note = report.engine_note.as_ref();
    let note = note.map_or_else(String::new, |note| {
        format!("the processor did part of the work: {note}\n")
    });
    let quantized = match report.bits_per_weight {
        0.0 => "nothing quantized, see the notes".to_owned(),
        bits => format!("{bits:.4} bits/weight where quantized"),
    };
    format!(
        "{}\n{note}{}{} -> {} ({quantized}), {:.2} s, {:.0} MB/s\n",
        table.render(),
        report.auto.as_ref().map_or_else(String::new, guarantee),
        format::bytes(report.bytes_before),
        format::bytes(report.bytes_after),
        report.seconds,
        report.megabytes_per_second,
    )
}

/// Describes in one line how far `auto` may be from the best choice.
fn guarantee(auto: &AutoReport) -> String {
    // Rounded up, so that the statement holds.
    let percent = match auto.gap {
        0.0 => 0.0,
        gap => (gap / auto.squared_error * 1e4).ceil() / 100.0,
    };
    format!(
        "auto: {} {}; another choice of formats within {} bits/weight saves at most {percent} % of it\n",
        match auto.weighed {
            true => "relative squared error of products",
            false => "squared error",
        },
        format::significant(auto.squared_error),
        auto.bits,
    )
}
