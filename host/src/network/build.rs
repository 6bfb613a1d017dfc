//! Converts a float model to an integer network, layer by layer.

use serde::Serialize;
use tercet_core::engine::{LinearEngine, Refused};
use tercet_core::linear::network::LayerSize;
use tercet_core::linear::{Layer, LinearError, Requantize, Rescale, Table};

use super::activations::{Activations, input_scale, scale_of};
use super::bias::{give_empty_rows_a_scale, integers};
use super::encode::Weights;
use super::file::{Finished, Output, words, write};
use super::tensors::{Matrix, floats, matrix};
use super::{BATCH, BuildOptions, LayerOptions, MAX_LAYERS, NetworkFile};
use crate::engine::{EngineError, FlowEngine, WithFallback};
use crate::points::Points;
use crate::{Error, Progress, TensorFile};

/// A network as a file in memory, and its description.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Built {
    /// The GGUF file.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// The value of 1 in the input.
    pub input_scale: f32,
    /// The layers, first to last.
    pub layers: Vec<LayerReport>,
    /// Bits per weight, including scales, over all layers.
    pub bits_per_weight: f64,
    /// Bytes of activations that a run needs.
    pub activations: usize,
    /// Bytes of scratch that a run needs.
    pub scratch: usize,
    /// The requested engine for quantizing the weights and multiplying the layers: an instruction set of the processor,
    /// or [`FlowEngine::name`].
    pub engine: String,
    /// Why the processor did some of that engine's work; `None` if it did none.
    pub engine_note: Option<String>,
}

/// The result of a layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LayerReport {
    /// Its name in the model.
    pub name: String,
    /// The layout of its weights.
    pub layout: &'static str,
    /// Number of outputs.
    pub rows: usize,
    /// Number of inputs.
    pub cols: usize,
    /// Bytes of weights and scales.
    pub bytes: usize,
    /// Left shift of the bias.
    pub bias_shift: u8,
    /// True if outputs below 0 become 0.
    pub relu: bool,
    /// The value of 1 in its outputs; `None` for the last layer.
    pub output_scale: Option<f32>,
}

/// Builds a network from the named layers of a model: `NAME.weight` of rows × columns, and `NAME.bias` if it exists.
///
/// `recorded` has typical inputs of the network, one per point. Every layer's activations are calibrated on the outputs
/// of the integer layers before it, so that their errors count too. Biases and multipliers are exact quotients in f64,
/// rounded once, half to even: bias = `b / (unit · 2^shift)` with the least shift that fits 32 bits; multiplier and
/// shift are those of [`Requantize::from_scale`] for `unit / output scale`; unit = scale of the weights · scale of the
/// inputs, with 2⁻²⁴ for the former in blocks. Memory: the network twice, and its activations for all of `recorded`.
///
/// The engine quantizes the weights and multiplies the layers, [`BATCH`] recorded inputs at a time; the bytes are the
/// same on every engine. The processor reads, packs and calibrates, and does the work that the engine has no room for.
///
/// # Errors
/// [`Error::Options`] for no layers, more than [`MAX_LAYERS`], a ReLU on the last, or an input scale that is not
/// positive; [`Error::NoSuchTensor`]; [`Error::Tensor`] for a tensor that is no matrix, does not follow the layer
/// before, does not fit its layout, or has scales outside the range of multipliers; [`Error::Unsupported`] if
/// `recorded` has another number of values; [`Error::Engine`].
pub fn build<E: FlowEngine>(
    engine: &mut E,
    model: &TensorFile,
    options: &BuildOptions,
    recorded: &Points,
    progress: &dyn Progress,
) -> Result<Built, Error> {
    let count = options.layers.len();
    if !(1..=MAX_LAYERS).contains(&count) {
        return Err(Error::options(format!(
            "there are {count} layers; a network has 1 to {MAX_LAYERS}"
        )));
    }
    if let Some(last) = options.layers.last().filter(|last| last.relu) {
        let reason = format!(
            "`{}` is the last layer: its sums are the logits, without a ReLU",
            last.name
        );
        return Err(Error::options(reason));
    }
    let mut shared = WithFallback::new(engine);
    let input_scale = input_scale(&mut shared, options, recorded)?;
    let mut x = Activations::of(recorded, input_scale);
    let matrices = options.layers.iter().map(|layer| matrix(model, layer));
    let matrices = matrices.collect::<Result<Vec<_>, _>>()?;
    progress.start(
        matrices
            .iter()
            .map(|matrix| matrix.weight.tensor.bytes.len() as u64)
            .sum(),
    );
    let mut finished: Vec<Finished> = Vec::new();
    for (index, (layer, matrix)) in options.layers.iter().zip(&matrices).enumerate() {
        progress.tensor(matrix.weight.tensor.name);
        if matrix.cols != x.len {
            if index == 0 {
                return Err(recorded.refuse(&format!(
                    "points have {} values, but `{}` takes {}",
                    x.len, matrix.weight.tensor.name, matrix.cols
                )));
            }
            let reason = format!(
                "rows have {} values, but the layer before gives {}",
                matrix.cols, x.len
            );
            return Err(matrix.refuse(reason));
        }
        let last = index + 1 == count;
        let (done, outputs) = one(&mut shared, layer, matrix, options, &x, last)?;
        finished.push(done);
        x = outputs;
        progress.advance(matrix.weight.tensor.bytes.len() as u64);
    }
    let bytes = write(input_scale, &finished).map_err(Error::options)?;
    report(
        options,
        input_scale,
        &finished,
        bytes,
        (shared.engine.name(), shared.note()),
    )
}

/// Combines bytes, sizes and names.
fn report(
    options: &BuildOptions,
    input_scale: f32,
    finished: &[Finished],
    bytes: Vec<u8>,
    (engine, engine_note): (String, Option<String>),
) -> Result<Built, Error> {
    let layers: Vec<LayerReport> = (options.layers.iter().zip(finished))
        .map(|(layer, done)| LayerReport {
            name: layer.name.clone(),
            layout: done.weights.layout.name(),
            rows: done.weights.rows,
            cols: done.weights.cols,
            bytes: done.weights.bytes.len() + 4 * done.weights.scales.len(),
            bias_shift: done.bias_shift,
            relu: layer.relu,
            output_scale: done.output.as_ref().map(|output| output.scale),
        })
        .collect();
    let sizes: Vec<LayerSize> = finished
        .iter()
        .map(|done| LayerSize::new(done.weights.layout, done.weights.rows, done.weights.cols))
        .collect();
    let weights: usize = layers.iter().map(|layer| layer.rows * layer.cols).sum();
    let stored: usize = layers.iter().map(|layer| layer.bytes).sum();
    // The written bytes must also be a network for its reader.
    let file = NetworkFile::from_bytes("the network", bytes)?;
    Ok(Built {
        bytes: file.into_bytes(),
        input_scale,
        bits_per_weight: stored as f64 * 8.0 / weights as f64,
        activations: LayerSize::activations_len(&sizes),
        scratch: 4 * LayerSize::scratch_len(&sizes),
        layers,
        engine,
        engine_note,
    })
}

/// Makes one layer, and its outputs for `x`; no outputs for the last layer.
fn one<E: FlowEngine>(
    shared: &mut WithFallback<'_, E>,
    options: &LayerOptions,
    matrix: &Matrix<'_>,
    all: &BuildOptions,
    x: &Activations,
    last: bool,
) -> Result<(Finished, Activations), Error> {
    let size = (matrix.rows, matrix.cols);
    let layout = options.to.unwrap_or(all.to);
    let values = floats(&matrix.weight)?;
    let weights = Weights::encode(shared, &values, size, layout, all);
    let mut weights = weights.map_err(|fault| match fault {
        EngineError::Refused(Refused::Linear(error @ LinearError::Partial { .. })) => {
            matrix.refuse(format!("{error} in {}", layout.name()))
        }
        fault => shared.error(fault, |refusal| matrix.refuse(refusal)),
    })?;
    let bias = match &matrix.bias {
        Some(source) => floats(source)?,
        None => Vec::new(),
    };
    give_empty_rows_a_scale(&mut weights, &bias, x.scale);
    let units: Vec<f64> = (0..matrix.rows)
        .map(|row| weights.unit(row) * f64::from(x.scale))
        .collect();
    let (bias, bias_shift) = integers(&bias, &units)
        .ok_or_else(|| matrix.refuse("its bias is too large for its weights' scale"))?;
    let mut done = Finished {
        weights,
        bias,
        bias_shift,
        output: None,
    };
    let outputs = match last {
        true => Vec::new(),
        false => {
            let outputs = hidden(shared, options.relu, &mut done, &units, all, x);
            outputs.map_err(|refusal| match refusal {
                Refusal::EngineError(fault) => {
                    shared.error(fault, |refusal| matrix.refuse(refusal))
                }
                Refusal::Host(error) => error,
            })?
        }
    };
    let scale = done.output.as_ref().map_or(1.0, |output| output.scale);
    let len = matrix.rows;
    let codes = outputs;
    Ok((done, Activations { codes, len, scale }))
}

/// Why a layer has no outputs.
enum Refusal {
    /// A refusal or failure of an engine.
    EngineError(EngineError),
    /// A refusal of the calibration.
    Host(Error),
}

impl<F: Into<EngineError>> From<F> for Refusal {
    fn from(fault: F) -> Self {
        Self::EngineError(fault.into())
    }
}

/// Calibrates the outputs of a hidden layer, and returns them as int8.
fn hidden<E: FlowEngine>(
    shared: &mut WithFallback<'_, E>,
    relu: bool,
    done: &mut Finished,
    units: &[f64],
    options: &BuildOptions,
    x: &Activations,
) -> Result<Vec<i8>, Refusal> {
    let (scales, bias) = (done.weights.scale_bytes(), words(&done.bias));
    let mut layer = Layer::new(done.weights.view(&scales)?);
    if !bias.is_empty() {
        layer = layer.with_bias(Table::Bytes(&bias), done.bias_shift)?;
    }
    let mut scratch = vec![0; shared.engine.product_scratch_len(layer.weights())];
    let x_scales = [x.scale; BATCH];
    let mut values = x.map(&layer, |codes, out: &mut [f32]| {
        let x_scales = &x_scales[..codes.len() / x.len];
        let engine = &mut *shared.engine;
        let done = engine.matmat(&layer, codes, x_scales, out, &mut scratch);
        shared.or_threads(done, |threads| {
            Ok(threads.matmat(&layer, codes, x_scales, out, &mut scratch)?)
        })
    })?;
    if relu {
        values.iter_mut().for_each(|value| *value = value.max(0.0));
    }
    let scale = scale_of(shared, &values, options).map_err(Refusal::Host)?;
    let rescale = units
        .iter()
        .map(|unit| Requantize::from_scale(unit / f64::from(scale)))
        .collect::<Result<Vec<_>, _>>()?;
    let multipliers: Vec<i32> = rescale.iter().map(|rescale| rescale.multiplier()).collect();
    let shifts: Vec<u8> = rescale.iter().map(|rescale| rescale.shift()).collect();
    let mut table = Rescale::rows(Table::Words(&multipliers), &shifts)?;
    if relu {
        table = table.with_relu();
    }
    let outputs = x.map(&layer, |codes, out: &mut [i8]| {
        let engine = &mut *shared.engine;
        let done = engine.dense_many(&layer, &table, codes, out, &mut scratch);
        shared.or_threads(done, |threads| {
            Ok(threads.dense_many(&layer, &table, codes, out, &mut scratch)?)
        })
    })?;
    let same = rescale.windows(2).all(|pair| pair[0] == pair[1]);
    done.output = Some(Output {
        relu,
        scale,
        rescale: if same { rescale[..1].to_vec() } else { rescale },
    });
    Ok(outputs)
}
