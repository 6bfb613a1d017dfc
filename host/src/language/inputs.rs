//! Records how large the inputs of a model's matrices are on a text, in the form of llama-imatrix' GGUF files.

use tercet_core::engine::{LinearEngine, ModelEngine, Output as Coded, QuantizeEngine};
use tercet_core::gguf::{Array, TensorSpec, TensorType, Value};
use tercet_core::linear::{I8Sym, Layer, Matrix, Rescale};
use tercet_core::model::attention::Attention;
use tercet_core::model::{FloatMatrix, Gate, Model, Values, Weights};
use tercet_core::number::Element;
use tercet_core::quant::Groups;
use tercet_core::quant::activations::{Activations, Norm};

use super::file::LanguageFile;
use crate::file::gguf;
use crate::file::output::Output;
use crate::{Error, Result};

/// Suffix of a matrix' name for the sums of squares of its inputs, as in llama.cpp.
pub(crate) const SUMS: &str = ".in_sum2";
/// Suffix of a matrix' name for the number of summed rows of activations.
pub(crate) const COUNTS: &str = ".counts";

/// For every matrix of a model, the sum of squares of each of its inputs, over all rows of activations that it was
/// multiplied with: [`Decoder::record`](super::Decoder::record).
///
/// [`QuantizeOptions::importance`](crate::QuantizeOptions) accepts a file of them: then weights with large inputs are
/// quantized more accurately.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    matrices: Vec<Input>,
}

/// The inputs of a matrix.
#[derive(Clone, Debug, PartialEq)]
struct Input {
    name: String,
    /// Address of its weights, by which engines identify it.
    at: usize,
    rows: u64,
    sums: Vec<f64>,
}

impl Inputs {
    /// Returns empty sums for the matrices of a file's model: those of its layers, and the head.
    pub(super) fn of(file: &LanguageFile, model: &Model<'_, '_>) -> Result<Self> {
        let reader = file.reader()?;
        let layers = model.layers().iter().flat_map(|layer| layer.weights());
        let mut matrices: Vec<Input> = Vec::new();
        for weights in layers.chain([model.head()]) {
            let Some(at) = place(weights) else { continue };
            let mut tensors = reader.tensors();
            let Some(tensor) = tensors.find(|tensor| tensor.data.as_ptr().addr() == at) else {
                continue;
            };
            matrices.push(Input {
                name: tensor.name.to_owned(),
                at,
                rows: 0,
                sums: vec![0.0; weights.cols()],
            });
        }
        Ok(Self { matrices })
    }

    /// Returns the names of matrices with the rows and the sums of each, in the order of layers, the head last.
    pub fn matrices(&self) -> impl Iterator<Item = (&str, u64, &[f64])> {
        let matrices = self.matrices.iter();
        matrices.map(|matrix| (matrix.name.as_str(), matrix.rows, matrix.sums.as_slice()))
    }

    /// Adds rows of activations, each value being `value` of its place.
    fn add(&mut self, weights: &[u8], rows: usize, value: impl Fn(usize, usize) -> f64) {
        let at = weights.as_ptr().addr();
        let Some(found) = self.matrices.iter_mut().find(|matrix| matrix.at == at) else {
            return;
        };
        found.rows += rows as u64;
        let cols = found.sums.len();
        for row in 0..rows {
            for (col, sum) in found.sums.iter_mut().enumerate() {
                let value = value(row, row * cols + col);
                *sum += value * value;
            }
        }
    }

    /// Writes them as llama-imatrix does: a GGUF file with `NAME.in_sum2` and `NAME.counts`, each f32, for every
    /// multiplied matrix. The file names `text` as the source, and `windows` parts of it with `context` tokens each.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if no matrix was multiplied; [`Error::OutputExists`] and [`Error::Io`].
    pub fn write(&self, output: Output, text: &str, (windows, context): (u32, u32)) -> Result<u64> {
        let path = output.path().to_path_buf();
        let path = path.as_path();
        let multiplied: Vec<&Input> = self
            .matrices
            .iter()
            .filter(|input| input.rows > 0)
            .collect();
        if multiplied.is_empty() {
            return Err(Error::unsupported(path, "no matrix was multiplied"));
        }
        let names: Vec<[String; 2]> = multiplied
            .iter()
            .map(|input| [SUMS, COUNTS].map(|end| format!("{}{end}", input.name)))
            .collect();
        let mut specs = Vec::new();
        for (input, [sums, counts]) in multiplied.iter().zip(&names) {
            for (name, dims) in [(sums, input.sums.len() as u64), (counts, 1)] {
                let spec = TensorSpec::new(name, &[dims, 1], TensorType::F32);
                specs.push(spec.map_err(|error| Error::tensor(path, name, error))?);
            }
        }
        let texts = [text];
        let entries = [
            ("general.type", Value::String("imatrix")),
            ("imatrix.datasets", Value::Array(Array::from(&texts[..]))),
            ("imatrix.chunk_count", Value::U32(windows)),
            ("imatrix.chunk_size", Value::U32(context)),
        ]
        .map(|(key, value)| (key.to_owned(), value));
        let mut file = gguf::Writer::described(output, &entries, None, &specs)?;
        for (number, input) in multiplied.iter().enumerate() {
            let sums: Vec<u8> = input
                .sums
                .iter()
                .flat_map(|&sum| (sum as f32).to_le_bytes())
                .collect();
            file.write(2 * number, &sums)?;
            file.write(2 * number + 1, &(input.rows as f32).to_le_bytes())?;
        }
        file.finish()
    }
}

/// Returns the address of a matrix' weights, if there is one.
fn place(weights: &Weights<'_>) -> Option<usize> {
    match &weights.values {
        Values::None => None,
        Values::Blocks(layer) => Some(layer.weights().bytes().as_ptr().addr()),
        Values::Floats(matrix) => Some(matrix.bytes().as_ptr().addr()),
    }
}

/// An engine that adds the values that it multiplies matrices with to [`Inputs`]: the values of the codes, if codes are
/// multiplied.
#[derive(Debug)]
pub(super) struct Recorder<'r, E> {
    pub(super) engine: &'r mut E,
    pub(super) inputs: &'r mut Inputs,
}

impl<E: QuantizeEngine> QuantizeEngine for Recorder<'_, E> {
    type Error = E::Error;
    type Tensor<'a, T: Element>
        = E::Tensor<'a, T>
    where
        Self: 'a;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Coded<'a>,
    ) -> Result<Self::Tensor<'a, T>, Self::Error> {
        self.engine.tensor(values, groups, out)
    }

    fn norm_quantize(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), Self::Error> {
        self.engine.norm_quantize(x, norm, out, scales)
    }
}

impl<E: LinearEngine> LinearEngine for Recorder<'_, E> {
    type Error = E::Error;

    fn product_scratch_len(&self, weights: &Matrix<'_>) -> usize {
        self.engine.product_scratch_len(weights)
    }

    fn sums(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        self.engine.sums(layer, x, out, scratch)
    }

    fn matvec(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        self.engine.matvec(layer, x, x_scale, out, scratch)
    }

    fn dense(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        self.engine.dense(layer, rescale, x, out, scratch)
    }

    fn matmat(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        self.engine.matmat(layer, x, x_scales, out, scratch)?;
        let codes = x.get();
        self.inputs
            .add(layer.weights().bytes(), x_scales.len(), |row, at| {
                f64::from(codes[at]) * f64::from(x_scales[row])
            });
        Ok(())
    }
}

impl<E: ModelEngine> ModelEngine for Recorder<'_, E> {
    type Failure = E::Failure;

    fn multiply_floats(
        &mut self,
        weights: &FloatMatrix<'_>,
        x: &[f32],
        out: &mut [f32],
    ) -> Result<(), Self::Failure> {
        self.engine.multiply_floats(weights, x, out)?;
        let rows = x.len() / weights.cols();
        self.inputs.add(weights.bytes(), rows, |_, at| x[at].into());
        Ok(())
    }

    fn matmat_wide(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        room: (&mut [i64], &mut [u32]),
    ) -> Result<(), Self::Failure> {
        self.engine.matmat_wide(layer, x, x_scales, out, room)?;
        let (high, low) = x.get().split_at(x.len() / 2);
        self.inputs
            .add(layer.weights().bytes(), x_scales.len(), |row, at| {
                let code = 255 * i32::from(high[at]) + i32::from(low[at]);
                f64::from(code) * f64::from(x_scales[row])
            });
        Ok(())
    }

    fn attend(
        &mut self,
        attention: &Attention<'_, '_>,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) -> Result<(), Self::Failure> {
        self.engine.attend(attention, scores, sums, out)
    }

    fn gate(&mut self, gate: Gate, x: &mut [f32], up: &[f32]) -> Result<(), Self::Failure> {
        self.engine.gate(gate, x, up)
    }
}
