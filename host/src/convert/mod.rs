//! Converts whole models.
//!
//! # File formats
//! The extension of the output determines its format.
//!
//! - `.gguf` holds the block formats (`tq1_0` to `q5_1`: [`Format::ENCODED`](tercet_core::block::Format)) and `i2_s`,
//!   each tensor under its own name. All keys of a GGUF input are copied, including tokenizer and architecture; `general.file_type`
//!   is set to the target if GGUF has a number for it. For other inputs the file has `general.architecture = "tercet"`:
//!   a container of tensors that every GGUF reader opens, not a model that llama.cpp runs.
//! - `.safetensors` holds `int8`, `ternary`, `bitnet-hf` and `palette:1` to `palette:8`. A tensor `X` (usually
//!   `….weight`) becomes
//!   - `X`: int8 codes of the tensor's shape, or for `bitnet-hf` a `uint8` tensor of a quarter of the rows;
//!   - `X_scale`: `f32`; `[1]` for one per tensor, `[rows, 1]` per row, `[rows, columns / N]` per block of N;
//!   - `X_zero_point`: int8, with the scale's shape, for affine int8.
//!
//!   A value is `(code − zero point) · scale`. For `palette:B` it becomes
//!   - `X`: `uint8` with the tensor's shape except for the last dimension: a row's indices of B bits each, the first in
//!     the lowest bits of the first byte, with rows padded to whole bytes;
//!   - `X_palette`: int8 `[groups, 2^B]`, the codebooks; row r (all but the last dimension count as rows) is in group r
//!     / ⌈rows / groups⌉;
//!   - `X_palette_scale`: `f32` `[groups]`;
//!   - `X_palette_shape`: `int64`, the tensor's shape.
//!
//!   A value is `codebook[index] · scale`, rounded once to `f32`. `X_palette` with its scales is itself an int8 tensor
//!   of the possible values.
//! - `.npy` holds one array, and so one restored tensor; codes with their scales do not fit and are refused.
//!
//! # Converted tensors
//! Floats of two dimensions or more are converted; the rest is copied byte for byte. If rows are not a multiple of a
//! block, the fallbacks are those of llama.cpp: Q4_0, or f16 if that does not fit either. The report says so.
//!
//! **Language models.** In a GGUF file with the architecture `llama` or `bitnet` (`bitnet-b1.58`, `bitnet-25`), block
//! formats apply to the matrices of the layers; the embedding and a separate head become Q8_0 with one scale per row.
//! Matrices of a bitnet have one scale each in a ternary format: values that are −s, 0 and s keep s, others use the
//! mean magnitude. If a block of 256 does not divide their rows, they become Q2_0. (With a requested rule there is a
//! scale per block, as everywhere.)
//!
//! `i2_s` is for these files only, and for bitnet.cpp on x86. Matrices get one `f32` scale by the same rule, in a `llama`
//! too. Ternary blocks with one scale per tensor are repacked: same codes, same scale. The embedding and a separate head
//! become f16, as bitnet.cpp's own quantizer makes them, unless they are quantized already. Matrices that bitnet.cpp
//! would misread are refused: rows that do not divide by 128, and a number of rows that does not divide by 4.

mod auto;
mod check;
mod codec;
mod codes;
mod encode;
mod group_plans;
mod i2_s;
pub(crate) mod importance;
mod imported;
mod language;
mod measure;
mod one_scale;
mod options;
mod packed;
mod palette;
mod plan;
mod report;
mod runs;
mod select;
mod span;
mod stats;
mod steps;
mod stream;
mod weighted;
mod writer;

use std::path::Path;
use std::time::Instant;

pub(crate) use check::container;
pub(crate) use imported::{Import, TensorResult, codec, imported};
pub use options::{DequantizeOptions, FloatType, Per, QuantizeOptions, Scheme, Target};
pub(crate) use plan::Action;
pub use report::{AutoReport, Beside, Report, TensorReport};
pub(crate) use runs::Coder;

use crate::engine::FlowEngine;
use crate::file::gguf::About;
use crate::file::output::Output;
use crate::simd::Backend;
use crate::{Error, Progress, TensorFile};
use plan::Conversion;
use report::Outcome;
use span::Done;
use steps::ConversionSteps;
use steps::chunked::ChunkedSteps;
use steps::tiled::TiledSteps;
use stream::{Copied, stream};
use tercet_core::block::bitnet_hf::WeightScale;
use tercet_core::quant::adaptive::Adaptive;
use writer::{OutputLayout, Writer};

/// Quantizes a model into the file `out` on an engine; the extension determines the format. The file is the same on
/// every engine, byte for byte.
///
/// `out` appears complete or not at all. The engine does the steps over the values. The threads of the current rayon
/// pool read chunks, write them, measure the loss, and do all work that is no step of an engine: plain floats, and the
/// choice of a codebook from its counts. They also process chunks that the engine has no room for.
/// [`TensorReport::engine`] names the engine of a tensor, and [`Report::engine_note`] says why the engine did not do
/// everything. If the engine is the pool itself ([`FlowEngine::is_pool`]), each thread takes a tile from reading to
/// measuring, so that it stays in the thread's cache.
///
/// Memory does not grow with the size of the tensors: two chunks are in memory at a time, below 64 MiB for up to 64
/// threads. Engines other than the pool encode whole groups of palettes, so for the longest group its values, if they
/// are not already `f32` (4 bytes each), importances (4 bytes each) and indices are in memory. Less than 128 MiB of the
/// mapped input are in the process's page table at a time (on Unix), so a model may be larger than memory. While a
/// chunk is computed, the one before it is written, and the system reads ahead.
///
/// A scale of a whole tensor needs all of its values before the first code. So int8 and ternary tensors with groups
/// above 65,536 values are read twice (with [`ScaleRule::LeastSquares`](tercet_core::quant::ScaleRule) and the rules
/// `Twn` and `Optimal` once more for each sum or count), and palettes with such groups and `bitnet-hf` three times.
/// Block formats and shorter groups are read once; `auto` also reads a tensor once for each format.
///
/// # Errors
/// [`Error::Options`] and [`Error::Unsupported`] for incompatible options, and for `bitnet-hf` on another engine than
/// the pool; [`Error::OutputExists`] and [`Error::OutputIsInput`]; [`Error::Tensor`] for a value that is not finite,
/// with its index; [`Error::Io`]; [`Error::Engine`] if the engine fails.
pub fn quantize<E: FlowEngine>(
    engine: &mut E,
    model: &TensorFile,
    options: &QuantizeOptions,
    out: &Path,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    if engine.is_pool() {
        return by(&mut TiledSteps, model, options, out, progress);
    }
    if options.target == Target::BitnetHf {
        let (name, target) = (engine.name(), options.target);
        return Err(Error::options(format!(
            "{name} cannot make {target}; all threads of the processor make it"
        )));
    }
    by(
        &mut ChunkedSteps::new(engine),
        model,
        options,
        out,
        progress,
    )
}

/// Returns the number of values that [`quantize`] converts to codes: those of tensors that are neither copied nor
/// become plain floats. It reads no value.
///
/// # Errors
/// [`Error::Options`] and [`Error::Tensor`] as from [`quantize`] for incompatible options and shapes.
pub fn coded_values(model: &TensorFile, options: &QuantizeOptions) -> Result<u64, Error> {
    check::together(options)?;
    let plan = plan::plan(model, options)?;
    Ok(plan
        .iter()
        .map(Conversion::coded_values)
        .fold(0, u64::saturating_add))
}

/// Returns the bytes of the table that [`Target::Auto`] chooses from on a machine with addresses of 32 bits
/// ([`Adaptive::bytes`]). It reads no value.
///
/// # Errors
/// Those of [`coded_values`].
pub fn auto_bytes(model: &TensorFile, options: &QuantizeOptions) -> Result<usize, Error> {
    check::together(options)?;
    let plan = plan::plan(model, options)?;
    let tensors = plan.iter().filter(|step| step.is_quantizing()).count();
    Ok(Adaptive::bytes(tensors, auto::CHOICES.len()))
}

/// Quantizes with these steps.
fn by(
    steps: &mut dyn ConversionSteps,
    model: &TensorFile,
    options: &QuantizeOptions,
    out: &Path,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let started = Instant::now();
    let container = check::check(options, out)?;
    let output = Output::create(out, model.files(), options.force)?;
    let mut plan = plan::plan(model, options)?;
    let importance = options
        .importance
        .as_ref()
        .map(TensorFile::open)
        .transpose()?;
    if let Some(importance) = &importance {
        importance::check(importance, &plan)?;
    }
    let auto = options.target == Target::Auto;
    let open = plan.iter().filter(|step| auto && step.is_quantizing());
    let palettes = |step: &&Conversion<'_>| matches!(step.action, Action::Palette(_));
    let bytes = |step: &Conversion<'_>| step.source.tensor.bytes.len() as u64;
    let extra = open.map(|step| bytes(step) * auto::PASSES).sum::<u64>()
        + (plan.iter().filter(palettes))
            .map(|step| bytes(step) * palette::PASSES)
            .sum::<u64>();
    progress.start(model.tensor_bytes() + extra);
    let chosen = match options.target {
        Target::Auto => auto::choose(
            steps,
            model,
            options,
            importance.as_ref(),
            &mut plan,
            progress,
        )?,
        _ => None,
    };
    let job = ConversionSettings {
        about: About {
            file_type: check::file_type(options.target),
            entries: None,
        },
        weight_scale: options.weight_scale,
        importance,
        started,
    };
    let report = run(steps, model, container, output, &plan, &job, progress)?;
    Ok(Report {
        auto: chosen,
        ..report
    })
}

/// Restores the quantized tensors of a model to floats in the file `out` on an engine; the extension determines the
/// format. The file is the same on every engine, byte for byte.
///
/// Other tensors are copied; the scales and zero points of restored ones are left out. The engine restores GGUF blocks,
/// int8 and ternary codes and palettes. The processor's threads narrow the values to types other than `f32`, write
/// them, and restore packed two-bit codes, for which no engine has a step. They also process chunks that the engine has
/// no room for. [`TensorReport::engine`] names the engine of a tensor, and [`Report::engine_note`] says why the engine
/// did not do everything. If the engine is the pool itself ([`FlowEngine::is_pool`]), its threads restore tile by tile.
///
/// Memory and atomicity are those of [`quantize`]; if an engine's values are narrowed, a third chunk is in memory.
///
/// # Errors
/// Those of [`quantize`]; [`Error::Tensor`] also for damaged blocks and scales, and for values that `options.dtype`
/// cannot hold.
pub fn dequantize<E: FlowEngine>(
    engine: &mut E,
    model: &TensorFile,
    options: &DequantizeOptions,
    out: &Path,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    if engine.is_pool() {
        restore(&mut TiledSteps, model, options, out, progress)
    } else {
        restore(
            &mut ChunkedSteps::new(engine),
            model,
            options,
            out,
            progress,
        )
    }
}

/// Restores with these steps.
fn restore(
    steps: &mut dyn ConversionSteps,
    model: &TensorFile,
    options: &DequantizeOptions,
    out: &Path,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let started = Instant::now();
    let container = check::container(out)?;
    let output = Output::create(out, model.files(), options.force)?;
    let plan = plan::restoring(model, options)?;
    progress.start(
        plan.iter()
            .map(|step| step.source.tensor.bytes.len() as u64)
            .sum(),
    );
    let job = ConversionSettings {
        about: About {
            file_type: Some(options.dtype.file_type()),
            entries: None,
        },
        weight_scale: WeightScale::default(),
        importance: None,
        started,
    };
    run(steps, model, container, output, &plan, &job, progress)
}

/// The settings of a whole conversion.
struct ConversionSettings<'a> {
    about: About<'a>,
    /// The meaning of the written `weight_scale`.
    weight_scale: WeightScale,
    /// The importances of palettes.
    importance: Option<TensorFile>,
    started: Instant,
}

/// Carries out a plan.
fn run(
    steps: &mut dyn ConversionSteps,
    model: &TensorFile,
    container: crate::Container,
    output: Output,
    plan: &[Conversion<'_>],
    job: &ConversionSettings<'_>,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let parts: Vec<_> = plan.iter().map(Conversion::parts).collect();
    let all = parts.concat();
    let layout = OutputLayout::new(container, &output, &all)?;
    let mut writer = Writer::new(model, container, output, job.about, &layout)?;
    let mut tensors = Vec::with_capacity(plan.len());
    let mut first_part = 0;
    for (step, parts) in plan.iter().zip(&parts) {
        progress.tensor(step.source.tensor.name);
        let outcome = convert(steps, step, &mut writer, first_part, job, progress)?;
        let bytes = parts.iter().map(|part| part.bytes).sum();
        tensors.push(report::tensor(step, bytes, outcome));
        first_part += parts.len();
    }
    let bytes_after = writer.finish()?;
    let report = report::whole(model, tensors, bytes_after, job.started.elapsed());
    Ok(Report {
        engine: steps.name(),
        engine_note: steps.note(),
        ..report
    })
}

fn convert(
    steps: &mut dyn ConversionSteps,
    step: &Conversion<'_>,
    writer: &mut Writer<'_>,
    first_part: usize,
    job: &ConversionSettings<'_>,
    progress: &dyn Progress,
) -> Result<Outcome, Error> {
    let source = &step.source;
    let mut sink = |part: usize, bytes: &[u8]| writer.write(first_part + part, bytes);
    let sink = &mut sink;
    let done = match step.action {
        Action::Copy => {
            stream(source, &mut Copied(source), progress, sink)?;
            Done::default()
        }
        // There is nothing to stream or to measure.
        _ if source.values() == 0 => Done::default(),
        Action::Stream(codec) => encode::encode(steps, source, codec, progress, sink)?,
        Action::Codes { method, groups, .. } => {
            codes::quantize(steps, source, method, groups, progress, sink)?
        }
        Action::Ternary { dtype, kept } => one_scale::ternary(source, dtype, kept, progress, sink)?,
        Action::ByteRows => one_scale::rows(source, progress, sink)?,
        Action::I2S => i2_s::encode(source, progress, sink)?,
        Action::Packed => {
            let packed = packed::pack(source, progress, sink)?;
            let stored = job.weight_scale.stored(packed.s);
            sink(1, &stored.to_le_bytes())?;
            Done {
                measures: packed.measures,
                ..Done::default()
            }
        }
        Action::Palette(layout) => {
            let importance = job.importance.as_ref();
            let done = palette::quantize(steps, source, layout, importance, progress, sink)?;
            let shape = source.shape().into_iter();
            let shape: Vec<u8> = shape.flat_map(|dim| (dim as i64).to_le_bytes()).collect();
            sink(3, &shape)?;
            done
        }
    };
    let worked = steps.worked();
    let engine = match step.action {
        Action::Copy => None,
        // No step of an engine.
        Action::Ternary { .. } | Action::ByteRows | Action::I2S => {
            Some(Backend::default().to_string())
        }
        _ => Some(worked).filter(|_| source.values() > 0),
    };
    let beside = match step.action {
        Action::Palette(_) => palette::beside(steps, source, progress),
        _ => Vec::new(),
    };
    source.release();
    Ok(Outcome {
        engine,
        flushed: done.flushed,
        measures: done.measures,
        beside,
    })
}
