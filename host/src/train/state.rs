//! Weights as floats, the state of the optimizer, and the codes of the weights.

use half::f16;
use rayon::prelude::*;
use tercet_core::block::Format;
use tercet_core::model::Config;
use tercet_core::number::counter;
use tercet_core::quant::ternary::Rule;
use tercet_core::train::{
    AdamW, GAIN_UNIT, Parameter, Shapes, Tensor, Transposed, Update, WEIGHT_FLOOR, row_codes,
    squares, transpose, unit,
};

use super::image::{Image, NAME};
use super::latent::{Moments, Step, Weights};
use super::rule;
use super::watch::Watched;
use crate::Error;

/// The random stream for the first weights.
const WEIGHTS: u32 = 3;
/// The root mean square of the first weights.
const DEVIATION: f32 = 0.02;

/// All data that a run changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) weights: Weights,
    pub(super) moments: Moments,
    /// β₁ and β₂ to the power of the steps done.
    pub(super) powers: [f64; 2],
    pub(super) steps: u64,
    pub(super) watched: Watched,
    /// Codes of matrices by columns, as bytes.
    transposed: Vec<u8>,
    scales: Vec<f32>,
    rows: Vec<f32>,
}

impl State {
    /// Returns the first weights of a seed: uniform draws that depend only on their place; gains are 1.
    pub(super) fn new(config: &Config, seed: u64, lean: bool) -> Self {
        let shapes = Shapes::new(config);
        let mut weights = vec![1.0; shapes.values()];
        for tensor in shapes.iter().filter(|tensor| !tensor.part.is_gains()) {
            let places = (tensor.first as u64..).zip(tensor.of_mut(&mut weights));
            for (place, weight) in places {
                // From −1 to 1 in steps of 2⁻²³, times √3 · the deviation.
                let draw = (counter(seed, WEIGHTS, place)[0] >> 8) as i32 - (1 << 23);
                *weight = draw as f32 * (1.0 / (1 << 23) as f32) * (1.732_050_8 * DEVIATION);
            }
        }
        Self::of(config, weights, lean)
    }

    /// Returns a state with existing first weights: a value for each of the model's.
    pub(super) fn of(config: &Config, weights: Vec<f32>, lean: bool) -> Self {
        let (shapes, values) = (Shapes::new(config), weights.len());
        Self {
            weights: Weights::new(weights, lean),
            moments: Moments::new(values, lean),
            powers: [1.0; 2],
            steps: 0,
            watched: Watched::default(),
            transposed: vec![0; values],
            scales: vec![0.0; shapes.count()],
            rows: vec![0.0; config.vocabulary],
        }
    }

    /// Returns the bytes of a state's weights, moments, and codes by columns with their scales. O(layers).
    pub(super) fn bytes(config: &Config, lean: bool) -> [usize; 3] {
        let (shapes, float) = (Shapes::new(config), size_of::<f32>());
        let values = shapes.values();
        let scales = shapes.count().saturating_add(config.vocabulary);
        [
            Weights::bytes(values, lean),
            Moments::bytes(values, lean),
            values.saturating_add(scales.saturating_mul(float)),
        ]
    }

    /// Returns the bytes that [`State::encode`] takes in addition: the codes of a tensor, its part of the file, and its
    /// weights as floats if the state is `lean`. O(layers).
    pub(super) fn encode_bytes(config: &Config, format: Format, lean: bool) -> usize {
        let (mut codes, mut part, mut most) = (0, 0, 0);
        for tensor in Shapes::new(config).iter() {
            let len = tensor.len();
            let blocks = |format: Format| format.encoded_len(len).unwrap_or(usize::MAX);
            let floats = len.saturating_mul(size_of::<f32>());
            let (own, written) = match tensor.part {
                gains if gains.is_gains() => (0, floats),
                Parameter::Embedding => (len, blocks(Format::Q8_0)),
                // Blocks are made from floats; a share of zeros is found among as many patterns before.
                _ => (len, blocks(format).saturating_add(floats)),
            };
            (codes, part) = (codes.max(own), part.max(written));
            most = floats.max(most);
        }
        let floats = if lean { most } else { 0 };
        codes.saturating_add(part).saturating_add(floats)
    }

    /// Returns the codes for gradients of inputs.
    pub(super) fn transposed(&self) -> Transposed<'_> {
        Transposed {
            codes: &self.transposed,
            scales: &self.scales,
            rows: &self.rows,
        }
    }

    /// Computes the codes of all weights, for gradients and for the file.
    pub(super) fn encode(
        &mut self,
        config: &Config,
        (rule, zeros): (Rule, Option<f32>),
        image: &mut Image,
    ) -> Result<(), Error> {
        let shapes = Shapes::new(config);
        let (mut codes, mut floats) = (Vec::new(), Vec::new());
        for (number, tensor) in shapes.iter().enumerate() {
            let weights = self.weights.of(&tensor, &mut floats);
            if tensor.part.is_gains() {
                image.floats(number, weights);
                continue;
            }
            codes.resize(tensor.len(), 0);
            if tensor.part == Parameter::Embedding {
                let rows = weights.chunks_exact(tensor.cols);
                let mut scales = vec![f16::ZERO; tensor.rows];
                for ((row, codes), scale) in rows
                    .zip(codes.chunks_exact_mut(tensor.cols))
                    .zip(&mut scales)
                {
                    *scale = row_codes(row, codes).ok_or_else(|| {
                        self.refused(&tensor, "a weight is not finite or too large")
                    })?;
                }
                for (row, scale) in self.rows.iter_mut().zip(&scales) {
                    *row = scale.to_f32();
                }
                image.rows(number, tensor.cols, &codes, &scales);
            } else {
                let scale = rule::sparse(rule, zeros, weights, &mut codes).ok_or_else(|| {
                    self.refused(&tensor, "its scale is below 2^-14, or not finite")
                })?;
                self.scales[number] = scale.to_f32();
                image.ternary(number, &codes, scale);
            }
            transpose(&codes, tensor.cols, tensor.of_mut(&mut self.transposed));
        }
        Ok(())
    }

    /// Returns the error of a tensor whose weights have no codes.
    fn refused(&self, tensor: &Tensor, reason: &str) -> Error {
        let name = name(tensor.layer, tensor.part);
        Error::tensor(
            NAME.as_ref(),
            &name,
            format!("after step {}: {reason}", self.steps),
        )
    }

    /// Updates all weights from sums of gradients of so many targets, and returns the norm of the gradients.
    pub(super) fn update(
        &mut self,
        config: &Config,
        (adamw, seed): (&AdamW, u64),
        rate: f32,
        (sums, targets): (&[i64], u64),
    ) -> f64 {
        let shapes = Shapes::new(config);
        let unit_of = |tensor: &Tensor| {
            unit(
                if tensor.part.is_gains() {
                    GAIN_UNIT
                } else {
                    WEIGHT_FLOOR
                },
                targets,
            )
        };
        let tensors: Vec<Tensor> = shapes.iter().collect();
        let squares: Vec<f32> = tensors
            .par_iter()
            .map(|tensor| squares(tensor.of(sums), unit_of(tensor)))
            .collect();
        let total: f64 = squares.iter().fold(0.0, |sum, &own| sum + f64::from(own));
        self.powers[0] *= f64::from(adamw.beta1);
        self.powers[1] *= f64::from(adamw.beta2);
        let update = Update {
            rate,
            clip: adamw.clip(total),
            powers: self.powers,
        };
        let step = Step {
            adamw,
            update: &update,
            seed,
            step: self.steps,
        };
        for tensor in &tensors {
            let own = (tensor.of(sums), unit_of(tensor));
            step.take(tensor, own, (&mut self.weights, &mut self.moments));
        }
        self.steps += 1;
        total.sqrt()
    }
}

/// Returns a tensor's name in the file.
pub(super) fn name(layer: usize, part: Parameter) -> String {
    match part {
        Parameter::Embedding | Parameter::OutputNorm => part.name().to_owned(),
        _ => format!("blk.{layer}.{}", part.name()),
    }
}
