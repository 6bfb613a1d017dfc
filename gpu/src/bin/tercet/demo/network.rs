//! The bundled classifier, run in two ways: with floats throughout, or with int8 activations and integer dot products.

use tercet_core::block::{self, Format};
use tercet_core::linear::{self, I8Sym, LinearError, Matrix};
use tercet_core::number::round;
use tercet_core::palette::{self, IndexMatrix, Palette};

use crate::failure::Failure;

/// A weight matrix, row-major, as a quantized file stores it.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// Plain floats: of the classifier as trained, and of a matrix that a format could not represent.
    Float(Vec<f32>),
    /// Blocks of a GGUF type, whole blocks per row.
    Blocks(Format, Vec<u8>),
    /// One code per weight, as the bytes of an `i8`, and one scale for all of them or one per row.
    Codes(Vec<u8>, Vec<f32>),
    /// Indices into codebooks.
    Palette(Paletted),
}

/// A matrix of indices with its codebooks and scales.
#[derive(Clone, Debug)]
pub(crate) struct Paletted {
    pub(crate) layout: IndexMatrix,
    pub(crate) indices: Vec<u8>,
    pub(crate) codebooks: Vec<i8>,
    pub(crate) scales: Vec<f32>,
}

impl Paletted {
    pub(crate) fn view(&self) -> Palette<'_> {
        Palette {
            layout: self.layout,
            indices: &self.indices,
            codebooks: &self.codebooks,
            scales: &self.scales,
        }
    }
}

/// A layer: `weights · x + bias`.
#[derive(Clone, Debug)]
pub(crate) struct Layer<W> {
    /// `bias.len()` rows.
    pub(crate) weights: W,
    /// One per row.
    pub(crate) bias: Vec<f32>,
}

/// Two layers with a ReLU between them; its weights are [`Stored`] or plain floats.
#[derive(Clone, Debug)]
pub(crate) struct Network<W> {
    /// 256 features to 64.
    pub(crate) hidden: Layer<W>,
    /// 64 to ten scores.
    pub(crate) head: Layer<W>,
}

impl Network<Vec<f32>> {
    /// Returns the digit with the highest score, all in f32; of equal scores, the lowest digit.
    pub(crate) fn read(&self, features: &[i8]) -> u8 {
        let x: Vec<f32> = features.iter().map(|&v| f32::from(v)).collect();
        highest(&self.head.apply(&relu(self.hidden.apply(&x))))
    }
}

impl Layer<Vec<f32>> {
    fn apply(&self, x: &[f32]) -> Vec<f32> {
        let rows = self.weights.chunks_exact(x.len());
        rows.zip(&self.bias)
            .map(|(row, bias)| dot(row, x) + bias)
            .collect()
    }
}

impl Network<Stored> {
    /// Returns the digit with the highest score, with int8 activations and integer dot products.
    ///
    /// The features are already integers: their scale is 1. The hidden activations get one scale per image.
    ///
    /// # Errors
    /// Those of [`block::dot`] and [`palette::matvec`].
    pub(crate) fn read(&self, features: &[i8]) -> Result<u8, Failure> {
        let (codes, scale) = quantize(&relu(self.hidden.apply(features, 1.0)?));
        Ok(highest(&self.head.apply(&codes, scale)?))
    }
}

impl Layer<Stored> {
    fn apply(&self, x: &[i8], x_scale: f32) -> Result<Vec<f32>, Failure> {
        let rows = self.bias.len();
        let mut y = vec![0.0; rows];
        match &self.weights {
            Stored::Blocks(format, bytes) => {
                let len = (bytes.len() / rows).max(1);
                for (y, row) in y.iter_mut().zip(bytes.chunks_exact(len)) {
                    *y = block::dot(*format, row, x, x_scale).map_err(Failure::new)?;
                }
            }
            Stored::Palette(weights) => {
                palette::matvec(&weights.view(), x, x_scale, &mut y).map_err(Failure::new)?;
            }
            Stored::Codes(codes, scales) => {
                let sums = sums(codes, x, rows).map_err(Failure::new)?;
                for (row, (y, sum)) in y.iter_mut().zip(sums).enumerate() {
                    let scale = if scales.len() == 1 {
                        scales[0]
                    } else {
                        scales[row]
                    };
                    // |sum| is at most 256 · 127 · 127 < 2²⁴, exact in f32.
                    *y = sum as f32 * scale * x_scale;
                }
            }
            Stored::Float(weights) => {
                let x: Vec<f32> = x.iter().map(|&x| f32::from(x)).collect();
                for (y, row) in y.iter_mut().zip(weights.chunks_exact(x.len())) {
                    *y = dot(row, &x) * x_scale;
                }
            }
        }
        for (y, bias) in y.iter_mut().zip(&self.bias) {
            *y += bias;
        }
        Ok(y)
    }
}

/// Returns the integer products of rows of codes with activations.
fn sums(codes: &[u8], x: &[i8], rows: usize) -> Result<Vec<i64>, LinearError> {
    let weights = Matrix::new(linear::Layout::Int8, rows, x.len(), codes)?;
    let (mut out, mut scratch) = (vec![0; rows], vec![0; weights.scratch_len()]);
    let x = I8Sym::new(x)?;
    linear::sums(&linear::Layer::new(weights), x, &mut out, &mut scratch)?;
    Ok(out)
}

/// Adds up in order; four at a time, because iterators are slow in builds without optimization.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((fours_a, rest_a), (fours_b, rest_b)) = (a.as_chunks(), b.as_chunks());
    let mut sum = 0.0;
    for (&[a0, a1, a2, a3], &[b0, b1, b2, b3]) in fours_a.iter().zip(fours_b) {
        sum = sum + a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3;
    }
    rest_a
        .iter()
        .zip(rest_b)
        .fold(sum, |sum, (a, b)| sum + a * b)
}

fn relu(values: Vec<f32>) -> Vec<f32> {
    values.into_iter().map(|v| v.max(0.0)).collect()
}

/// Quantizes to symmetric int8: the scale is the largest magnitude / 127.
fn quantize(values: &[f32]) -> (Vec<i8>, f32) {
    let scale = values.iter().fold(0f32, |max, v| max.max(v.abs())) / 127.0;
    if scale == 0.0 {
        return (vec![0; values.len()], 0.0);
    }
    let code = |v: &f32| round::half_even(v / scale).clamp(-127.0, 127.0) as i8;
    (values.iter().map(code).collect(), scale)
}

fn highest(scores: &[f32]) -> u8 {
    let mut best = 0;
    for (digit, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = digit;
        }
    }
    best as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree_where_nothing_is_rounded() {
        // Two features, two hidden units, ten scores; every product and scale is a power of two.
        let hidden = Layer {
            weights: Stored::Codes(vec![1, 0xFF, 0, 1], vec![0.5]),
            bias: vec![0.0, 0.0],
        };
        let mut codes = vec![0; 20];
        codes[2 * 3] = 1;
        codes[2 * 7 + 1] = 1;
        let head = Layer {
            weights: Stored::Codes(codes.clone(), vec![2.0; 10]),
            bias: vec![0.0; 10],
        };
        let stored = Network { hidden, head };
        let floats = Network {
            hidden: Layer {
                weights: vec![0.5, -0.5, 0.0, 0.5],
                bias: vec![0.0; 2],
            },
            head: Layer {
                weights: codes.iter().map(|&c| f32::from(c) * 2.0).collect(),
                bias: vec![0.0; 10],
            },
        };
        for (features, digit) in [([16, 2], 3), ([3, 16], 7), ([0, 0], 0), ([-5, -5], 0)] {
            assert_eq!(stored.read(&features).unwrap(), digit);
            assert_eq!(floats.read(&features), digit);
        }
    }

    #[test]
    fn activations_reach_127_and_round_half_to_even() {
        assert_eq!(
            quantize(&[254.0, 1.0, 3.0, 0.0, -254.0]),
            (vec![127, 0, 2, 0, -127], 2.0)
        );
        assert_eq!(quantize(&[0.0, 0.0]), (vec![0, 0], 0.0));
    }
}
