//! From a float model to an integer network, layer by layer.

use rayon::prelude::*;
use serde::Serialize;
use tercet_core::linear::network::LayerSize;
use tercet_core::linear::{
    self, I8Sym, Layer, LinearError, MAX_BIAS_SHIFT, Requantize, Rescale, Table,
};
use tercet_core::quant::calibrate::{Scheme, calibrate};
use tercet_core::quant::{Grid, HOST_BITS, Histogram};

use super::encode::Weights;
use super::file::{Finished, Output, words, write};
use super::{BuildOptions, LayerOptions, MAX_LAYERS, NetworkFile};
use crate::points::{Points, Values};
use crate::source::Source;
use crate::{Error, Model, Progress, names};

/// A network as a file in memory, and what it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Built {
    /// The GGUF file.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// What 1 in the input stands for.
    pub input_scale: f32,
    /// The layers, first to last.
    pub layers: Vec<LayerReport>,
    /// Bits a weight, scales included, over all layers.
    pub bits_per_weight: f64,
    /// Bytes of activations that a run needs.
    pub activations: usize,
    /// Bytes of scratch that a run needs.
    pub scratch: usize,
}

/// What a layer became.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LayerReport {
    /// Its name in the model.
    pub name: String,
    /// The layout of its weights.
    pub layout: &'static str,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub cols: usize,
    /// Bytes of weights and scales.
    pub bytes: usize,
    /// Left shift of the bias.
    pub bias_shift: u8,
    /// Whether outputs below 0 become 0.
    pub relu: bool,
    /// What 1 in its outputs stands for; `None` for the last layer.
    pub output_scale: Option<f32>,
}

/// Builds a network from the named layers of a model: `NAME.weight` of rows × columns, and `NAME.bias` where it is there.
///
/// `recorded` holds inputs as the network will see them, a point each. Every layer's activations are calibrated on what the integer
/// layers before it make of them, so that their errors count too. Biases and multipliers are exact quotients in f64, rounded once,
/// half to even: bias = `b / (unit · 2^shift)` with the least shift that fits 32 bits, multiplier and shift those of
/// [`Requantize::from_scale`] for `unit / output scale`; unit = scale of the weights · scale of the inputs, with 2⁻²⁴ for the former
/// in blocks. Memory: the network twice, its activations for all of `recorded`.
///
/// # Errors
/// [`Error::Options`] for no layers, more than [`MAX_LAYERS`], a ReLU on the last, or an input scale that is not positive;
/// [`Error::NoSuchTensor`]; [`Error::Tensor`] for a matrix that is none, does not follow the layer before, does not fit its layout, or
/// whose scales leave the range of multipliers; [`Error::Unsupported`] where `recorded` has another number of values.
pub fn build(
    model: &Model,
    options: &BuildOptions,
    recorded: &Points,
    progress: &dyn Progress,
) -> Result<Built, Error> {
    let count = options.layers.len();
    if !(1..=MAX_LAYERS).contains(&count) {
        return Err(Error::options(format!(
            "{count} layers; 1 to {MAX_LAYERS} are taken"
        )));
    }
    if let Some(last) = options.layers.last().filter(|last| last.relu) {
        let reason = format!(
            "`{}` is the last layer: its sums are the logits, without a ReLU",
            last.name
        );
        return Err(Error::options(reason));
    }
    let input_scale = input_scale(options, recorded)?;
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
                    "points of {} values, where `{}` takes {}",
                    x.len, matrix.weight.tensor.name, matrix.cols
                )));
            }
            let reason = format!(
                "rows of {}, where the layer before gives {}",
                matrix.cols, x.len
            );
            return Err(matrix.refuse(reason));
        }
        let (done, outputs) = one(layer, matrix, options, &x, index + 1 == count)?;
        finished.push(done);
        x = outputs;
        progress.advance(matrix.weight.tensor.bytes.len() as u64);
    }
    let bytes = write(input_scale, &finished).map_err(Error::options)?;
    report(options, input_scale, &finished, bytes)
}

/// Bytes, sizes and names put together.
fn report(
    options: &BuildOptions,
    input_scale: f32,
    finished: &[Finished],
    bytes: Vec<u8>,
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
    // What was written is a network to its reader too.
    let file = NetworkFile::from_bytes("the network", bytes)?;
    Ok(Built {
        bytes: file.into_bytes(),
        input_scale,
        bits_per_weight: stored as f64 * 8.0 / weights as f64,
        activations: LayerSize::activations_len(&sizes),
        scratch: 4 * LayerSize::scratch_len(&sizes),
        layers,
    })
}

/// int8 activations of all points, one after the other.
struct Activations {
    codes: Vec<i8>,
    len: usize,
    scale: f32,
}

impl Activations {
    fn of(points: &Points, scale: f32) -> Self {
        let grid = symmetric(scale);
        Self {
            codes: points.to_f32().iter().map(|&x| grid.code(x)).collect(),
            len: points.dims(),
            scale,
        }
    }

    /// Applies a layer to every point, on all threads.
    fn map<T: Copy + Default + Send>(
        &self,
        layer: &Layer<'_>,
        apply: impl Fn(I8Sym<'_>, &mut [T], &mut [u32]) -> Result<(), LinearError> + Sync,
    ) -> Result<Vec<T>, LinearError> {
        let rows = layer.weights().rows();
        let points = self.codes.len() / self.len.max(1);
        let mut out = vec![T::default(); rows * points];
        out.par_chunks_mut(rows)
            .zip(self.codes.par_chunks(self.len))
            .try_for_each_init(
                || vec![0; layer.weights().scratch_len()],
                |scratch, (out, x)| apply(I8Sym::new(x)?, out, scratch),
            )?;
        Ok(out)
    }
}

const fn symmetric(scale: f32) -> Grid {
    Grid {
        scale,
        zero_point: 0,
        low: -127,
        high: 127,
    }
}

fn input_scale(options: &BuildOptions, recorded: &Points) -> Result<f32, Error> {
    match (options.input_scale, recorded.values()) {
        (Some(scale), _) if scale > 0.0 && scale.is_finite() => Ok(scale),
        (Some(scale), _) => Err(Error::options(format!(
            "an input scale of {scale}; it must be a positive number"
        ))),
        (None, Values::I8 { grid, .. }) if grid.zero_point == 0 && grid.scale > 0.0 => {
            Ok(grid.scale)
        }
        _ => scale_of(&recorded.to_f32(), options),
    }
}

/// The scale of a symmetric int8 grid for these values; 1 where all are 0.
fn scale_of(values: &[f32], options: &BuildOptions) -> Result<f32, Error> {
    let mut counts = vec![0; Histogram::<HOST_BITS>::BUCKETS];
    let mut histogram = Histogram::<HOST_BITS>::new(&mut counts).map_err(Error::options)?;
    histogram.push(values).map_err(Error::options)?;
    let found = calibrate(&histogram, options.method.core()?, Scheme::Symmetric);
    match found.map_err(Error::options)?.grid.scale {
        0.0 => Ok(1.0),
        scale => Ok(scale),
    }
}

/// A layer's tensors.
struct Matrix<'a> {
    weight: Source<'a>,
    rows: usize,
    cols: usize,
    bias: Option<Source<'a>>,
}

impl Matrix<'_> {
    fn refuse(&self, reason: impl ToString) -> Error {
        Error::tensor(self.weight.path, self.weight.tensor.name, reason)
    }
}

fn matrix<'a>(model: &'a Model, layer: &LayerOptions) -> Result<Matrix<'a>, Error> {
    let name = format!("{}.weight", layer.name);
    let tensor = model.get(&name).ok_or_else(|| Error::NoSuchTensor {
        path: model.path().to_path_buf(),
        close: names::closest(&name, model.tensors().map(|tensor| tensor.name)),
        tensor: name,
    })?;
    let weight = Source::new(model, tensor)?;
    let refuse =
        |source: &Source<'_>, reason: &str| Error::tensor(model.path(), source.tensor.name, reason);
    if !weight.is_readable() {
        return Err(refuse(&weight, "its type is not read"));
    }
    let &[rows, cols] = weight.shape().as_slice() else {
        return Err(refuse(&weight, "it is not a matrix"));
    };
    let bias = match model.get(&format!("{}.bias", layer.name)) {
        None => None,
        Some(tensor) => {
            let bias = Source::new(model, tensor)?;
            if !bias.is_readable() || bias.values() != rows {
                return Err(refuse(
                    &bias,
                    "it is not one number for each row of the weights",
                ));
            }
            Some(bias)
        }
    };
    Ok(Matrix {
        weight,
        rows,
        cols,
        bias,
    })
}

/// All values of a tensor, which must be finite.
fn floats(source: &Source<'_>) -> Result<Vec<f32>, Error> {
    let mut values = vec![0.0; source.values()];
    source.read(0, &mut values)?;
    match values.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(Error::not_finite(source.path, source.tensor.name, index)),
        None => Ok(values),
    }
}

/// Makes one layer, and what it makes of `x`; nothing of the last.
fn one(
    options: &LayerOptions,
    matrix: &Matrix<'_>,
    all: &BuildOptions,
    x: &Activations,
    last: bool,
) -> Result<(Finished, Activations), Error> {
    let size = (matrix.rows, matrix.cols);
    let layout = options.to.unwrap_or(all.to);
    let values = floats(&matrix.weight)?;
    let weights = Weights::encode(&values, size, layout, all);
    let mut weights = weights.map_err(|reason| matrix.refuse(reason))?;
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
        false => hidden(options.relu, &mut done, &units, all, x).map_err(|fault| match fault {
            Fault::Linear(error) => matrix.refuse(error),
            Fault::Host(error) => error,
        })?,
    };
    let scale = done.output.as_ref().map_or(1.0, |output| output.scale);
    let len = matrix.rows;
    let codes = outputs;
    Ok((done, Activations { codes, len, scale }))
}

enum Fault {
    Linear(LinearError),
    Host(Error),
}

impl From<LinearError> for Fault {
    fn from(error: LinearError) -> Self {
        Self::Linear(error)
    }
}

/// Calibrates the outputs of a hidden layer; gives them as int8.
fn hidden(
    relu: bool,
    done: &mut Finished,
    units: &[f64],
    options: &BuildOptions,
    x: &Activations,
) -> Result<Vec<i8>, Fault> {
    let (scales, bias) = (done.weights.scale_bytes(), words(&done.bias));
    let mut layer = Layer::new(done.weights.view(&scales)?);
    if !bias.is_empty() {
        layer = layer.with_bias(Table::Bytes(&bias), done.bias_shift)?;
    }
    let mut values = x.map(&layer, |codes, out: &mut [f32], scratch| {
        linear::matvec(&layer, codes, x.scale, out, scratch)
    })?;
    if relu {
        values.iter_mut().for_each(|value| *value = value.max(0.0));
    }
    let scale = scale_of(&values, options).map_err(Fault::Host)?;
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
    let outputs = x.map(&layer, |codes, out: &mut [i8], scratch| {
        linear::dense(&layer, &table, codes, out, scratch)
    })?;
    let same = rescale.windows(2).all(|pair| pair[0] == pair[1]);
    done.output = Some(Output {
        relu,
        scale,
        rescale: if same { rescale[..1].to_vec() } else { rescale },
    });
    Ok(outputs)
}

/// A row of zeros, and so of scale 0, still has a bias, which counts in that scale: it gets one in which the bias is 2¹⁶.
fn give_empty_rows_a_scale(weights: &mut Weights, bias: &[f32], x_scale: f32) {
    let one = weights.scales.len() == 1;
    let largest = bias.iter().fold(0f32, |max, b| max.max(b.abs()));
    for (row, scale) in weights.scales.iter_mut().enumerate() {
        if *scale == 0.0 {
            let bias = if one {
                largest
            } else {
                bias.get(row).map_or(0.0, |b| b.abs())
            };
            let needed = (f64::from(bias) / f64::from(x_scale) / 65_536.0) as f32;
            *scale = if needed.is_normal() { needed } else { 1.0 };
        }
    }
}

/// Biases in units of the sums, with the least shift that brings all into 32 bits; `None` where none does.
fn integers(bias: &[f32], units: &[f64]) -> Option<(Vec<i32>, u8)> {
    (0..=MAX_BIAS_SHIFT).find_map(|shift| {
        let scaled = bias.iter().zip(units).map(|(&bias, unit)| {
            let value = f64::from(bias) / (unit * f64::from(1u32 << shift));
            let value = value.round_ties_even();
            (value.abs() <= f64::from(i32::MAX)).then_some(value as i32)
        });
        Some((scaled.collect::<Option<Vec<i32>>>()?, shift))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biases_round_half_to_even_and_shift_as_little_as_they_can() {
        assert_eq!(
            integers(&[1.25, -1.25, 0.75], &[0.5; 3]),
            Some((vec![2, -2, 2], 0))
        );
        assert_eq!(
            integers(&[2147483648.0, 2.0], &[1.0; 2]),
            Some((vec![1 << 30, 1], 1))
        );
        assert_eq!(integers(&[1e30], &[1e-9]), None);
        assert_eq!(integers(&[], &[]), Some((vec![], 0)));
    }
}
