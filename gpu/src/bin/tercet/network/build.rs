//! `tercet network build`: converts a float model's dense layers to one integer network.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use tercet_core::linear::Layout;
use tercet_core::linear::network::LayerSize;
use tercet_core::quant::calibrate::RangeRule;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::file::output::Output;
use tercet_host::network::{BuildOptions, Built, LayerOptions, build};
use tercet_host::points::{Points, ReadOptions};
use tercet_host::{Error, Progress, TensorFile};

use crate::engine::CommandEngine;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::quantize::{rule, scale};
use crate::table::{Align, Table};
use crate::words::words;
use crate::{edge, engine, format, output};

const EXAMPLES: &str = "\
Examples:
  tercet demo        # writes the files of the next line
  tercet network build tercet-demo/digits-f32.safetensors --layer hidden:relu --layer head:int8 --to ternary_lanes \
--calibrate tercet-demo/digits-train.npy -o net.gguf
  tercet network build model.safetensors --layer fc1:relu --layer fc2:relu --layer out:q8_0 --to tq2_0 --calibrate \
inputs.csv --method mse -o net.gguf

A layer is the tensor NAME.weight, rows by columns, and NAME.bias if present. Its activations are calibrated on the \
outputs that the integer layers before it compute for the recorded inputs. int8 inputs keep their own scale. \
Layouts: int8, ternary_lanes and five_trits are for kernels of microcontrollers; GGUF's blocks (tq1_0 tq2_0 q2_0 \
q4_0 q8_0) are those of other programs.

With --backend cuda the device quantizes the weights and multiplies the layers, and the processor reads, packs and \
calibrates. The file is the same, byte for byte. The processor takes over what does not fit in device memory, and \
the report says so.

JSON (--json): file, bytes, input_scale, layers[] (name, layout, rows, cols, bytes, bias_shift, relu, output_scale), \
bits_per_weight, activations, scratch (bytes of RAM a run needs), engine, engine_note (null, or why the processor \
did some of its work), seconds.";

/// Quantize the dense layers of a model into one integer network (GGUF)
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A safetensors or GGUF file with the float weights
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// A layer's name in the model, then `:relu` if it has one, then `:LAYOUT` if not --to; once for each, first to
    /// last
    #[arg(long, value_name = "NAME[:relu][:LAYOUT]", required = true)]
    layer: Vec<LayerOptions>,
    /// Recorded inputs, one point each: FILE.npy, FILE.csv, FILE.safetensors:TENSOR
    #[arg(long, value_name = "DATA")]
    calibrate: String,
    /// How to store weights
    #[arg(long, value_name = "LAYOUT", value_parser = layout())]
    to: Layout,
    /// The file to write; whole or not at all
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Which values become ±1 in ternary layouts
    #[arg(long, value_name = "RULE", value_parser = rule(), default_value = "optimal")]
    rule: Rule,
    /// Source of a ternary scale: the rule, or least squares over the values that became ±1
    #[arg(long, value_name = "SCALE", value_parser = scale(), default_value = "rule")]
    scale: ScaleRule,
    /// One scale per matrix instead of one per row
    #[arg(long)]
    per_tensor: bool,
    /// How to choose the range of activations
    #[arg(long, value_name = "METHOD", value_parser = method(), default_value = "absmax")]
    method: RangeRule,
    /// The value of 1 in the input [default: the scale of int8 inputs; else as for activations]
    #[arg(long, value_name = "SCALE")]
    input_scale: Option<f32>,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(super) engine: engine::Named,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

fn layout() -> impl TypedValueParser<Value = Layout> {
    let layouts = Layout::ALL.into_iter();
    let names = layouts
        .filter(|layout| layout.can_encode())
        .map(Layout::name);
    PossibleValuesParser::new(names).try_map(|name| Layout::from_name(&name).ok_or("not a layout"))
}

fn method() -> impl TypedValueParser<Value = RangeRule> {
    words(&[
        ("absmax", RangeRule::AbsMax),
        ("p99.9", RangeRule::Percentile { ppm: 999_000 }),
        ("p99.99", RangeRule::Percentile { ppm: 999_900 }),
        ("mse", RangeRule::Mse),
        ("entropy", RangeRule::Entropy),
    ])
}

#[derive(Debug, Serialize)]
struct Summary<'a> {
    file: &'a Path,
    bytes: usize,
    #[serde(flatten)]
    built: &'a Built,
    seconds: f64,
}

/// Returns the sizes of the layers in the model. The build itself reports layers that are missing or have no matrices.
fn sizes(model: &TensorFile, options: &BuildOptions) -> Vec<LayerSize> {
    let layers = options.layers.iter().filter_map(|layer| {
        let weight = model.get(&format!("{}.weight", layer.name))?;
        let &[rows, cols] = weight.shape else {
            return None;
        };
        Some(LayerSize::new(layer.to.unwrap_or(options.to), rows, cols))
    });
    layers.collect()
}

/// Runs [`tercet_host::network::build()`] on the chosen engine.
pub(crate) fn built(
    engine: &mut CommandEngine,
    model: &TensorFile,
    options: &BuildOptions,
    recorded: &Points,
    progress: &dyn Progress,
) -> Result<Built, Error> {
    let sizes = sizes(model, options);
    // The last layer is not run. Each of the others is multiplied twice, for floats and for codes.
    let hidden = sizes.split_last().map_or(&[][..], |(_, hidden)| hidden);
    let job = super::job(&[hidden, hidden].concat(), recorded.rows());
    let job = job.with_scratch(edge::network_build(&sizes, options));
    engine.run(job, |engine| {
        build(engine, model, options, recorded, progress)
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let mut engine = arguments.engine.open()?;
    let model = TensorFile::open(&arguments.model)?;
    let recorded = Points::open(&arguments.calibrate, &ReadOptions::default())?;
    let mut options = BuildOptions::new(arguments.layer.clone(), arguments.to);
    options.rule = arguments.rule;
    options.scale = arguments.scale;
    options.per_tensor = arguments.per_tensor;
    options.range = arguments.method;
    options.input_scale = arguments.input_scale;
    if arguments.output.extension().is_none_or(|end| end != "gguf") {
        return Err(tercet_host::Error::Unsupported {
            path: arguments.output.clone(),
            reason: "the output must end in .gguf".into(),
        }
        .into());
    }
    // Before the work, so that files that cannot be written cost none.
    let inputs = model.files().chain([recorded.path()]);
    let mut out = Output::create(&arguments.output, inputs, arguments.force)?;
    let built = built(&mut engine, &model, &options, &recorded, &Bar::new())?;
    out.write(&built.bytes)?;
    out.finish()?;
    let summary = Summary {
        file: &arguments.output,
        bytes: built.bytes.len(),
        built: &built,
        seconds: start.elapsed().as_secs_f64(),
    };
    if arguments.json {
        return output::json(&summary);
    }
    output::text(&people(&summary))
}

fn people(summary: &Summary<'_>) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("layer", Left),
        ("layout", Left),
        ("rows", Right),
        ("cols", Right),
        ("bytes", Right),
        ("then", Left),
        ("output scale", Right),
    ]);
    for layer in &summary.built.layers {
        table.row([
            layer.name.clone(),
            layer.layout.to_owned(),
            layer.rows.to_string(),
            layer.cols.to_string(),
            layer.bytes.to_string(),
            if layer.relu { "relu" } else { "" }.to_owned(),
            layer
                .output_scale
                .map_or_else(String::new, |scale| format::significant(scale.into())),
        ]);
    }
    let note = summary.built.engine_note.as_ref();
    let note = note.map_or_else(String::new, |note| {
        format!("the processor did part of the work: {note}\n")
    });
    format!(
        "{}\n{note}input scale {}, {:.4} bits/weight\nRAM of a run: {} bytes of activations, {} of scratch\nwrote {} ({})\n",
        table.render(),
        summary.built.input_scale,
        summary.built.bits_per_weight,
        summary.built.activations,
        summary.built.scratch,
        summary.file.display(),
        format::bytes(summary.bytes as u64),
    )
}
