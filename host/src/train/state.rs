//! Weights as floats, the state of the optimizer, and the codes of the weights.

use std::time::Duration;

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

use super::adapters::Adapters;
use super::image::{Image, NAME};
use super::in_place::{InPlace, Places, Updated};
use super::latent::{Step, Weights};
use super::moments::{Form, Moments};
use super::options::TrainOptions;
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
    /// The model's own weights in a run that trains adapters in their place.
    adapters: Option<Adapters>,
    /// The weights that are trained: the model's, or the values of its adapters.
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
    pub(super) fn new(config: &Config, options: &TrainOptions) -> Self {
        let shapes = Shapes::new(config);
        let mut weights = Weights::with_capacity(shapes.values(), options.lean);
        for tensor in shapes.iter() {
            let value = |place: usize| {
                if tensor.part.is_gains() {
                    return 1.0;
                }
                // From −1 to 1 in steps of 2⁻²³, times √3 · the deviation.
                let draw = counter(options.seed, WEIGHTS, place as u64)[0] >> 8;
                let draw = draw as i32 - (1 << 23);
                draw as f32 * (1.0 / (1 << 23) as f32) * (1.732_050_8 * DEVIATION)
            };
            let places = tensor.first..tensor.first + tensor.len();
            weights.push(&places.map(value).collect::<Vec<f32>>());
        }
        Self::of(config, weights, options)
    }

    /// Returns a state with existing first weights: a value for each of the model's, in the form of the options.
    pub(super) fn of(config: &Config, model: Weights, options: &TrainOptions) -> Self {
        let (shapes, values) = (Shapes::new(config), model.len());
        let (adapters, weights, moments) = match options.adapters {
            None => {
                let tensors: Vec<Tensor> = shapes.iter().collect();
                (None, model, Moments::new(&tensors, form(options)))
            }
            Some(rank) => {
                let (adapters, own) = Adapters::new(model, config, rank, options.seed);
                let moments = Moments::new(&adapters.tensors(), form(options));
                (Some(adapters), Weights::Full(own), moments)
            }
        };
        Self {
            adapters,
            weights,
            moments,
            powers: [1.0; 2],
            steps: 0,
            watched: Watched::default(),
            transposed: vec![0; values],
            scales: vec![0.0; shapes.count()],
            rows: vec![0.0; config.vocabulary],
        }
    }

    /// Returns the bytes of a state. O(layers).
    pub(super) fn bytes(config: &Config, options: &TrainOptions) -> StateBytes {
        let (shapes, float, lean) = (Shapes::new(config), size_of::<f32>(), options.lean);
        let values = shapes.values();
        let scales = shapes.count().saturating_add(config.vocabulary);
        let (weights, adapters) = (Weights::bytes(values, lean), options.adapters);
        let tensors = match adapters {
            None => shapes.iter().collect(),
            Some(rank) => Adapters::shapes(config, rank),
        };
        let adapters = adapters.map(|_| {
            tensors
                .iter()
                .map(Tensor::len)
                .fold(0, usize::saturating_add)
        });
        StateBytes {
            weights,
            adapters: adapters.map_or(0, |own| {
                let sums = own.saturating_mul(size_of::<i64>());
                Weights::bytes(own, false).saturating_add(sums)
            }),
            trained: adapters.map_or(weights, |own| Weights::bytes(own, false)),
            moments: Moments::bytes(&tensors, form(options)),
            transposed: values.saturating_add(scales.saturating_mul(float)),
        }
    }

    /// Returns the bytes that [`State::encode`] takes in addition: the codes of a tensor, its part of the file, and its
    /// weights as floats if they are computed. O(layers).
    pub(super) fn encode_bytes(config: &Config, format: Format, options: &TrainOptions) -> usize {
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
        let computed = options.lean || options.adapters.is_some();
        let floats = if computed { most } else { 0 };
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
            let weights = match &self.adapters {
                None => self.weights.of(&tensor, &mut floats),
                Some(adapters) => adapters.merged(&tensor, self.weights.floats(), &mut floats),
            };
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
        if let Some(adapters) = &mut self.adapters {
            adapters.project_all(sums, self.weights.floats());
            return self.adapt((adamw, seed), rate, targets);
        }
        let tensors: Vec<Tensor> = Shapes::new(config).iter().collect();
        self.take((adamw, seed), rate, (&tensors, sums, targets))
    }

    /// Updates the adapters from their own sums of gradients, and returns the norm of these.
    fn adapt(&mut self, rule: (&AdamW, u64), rate: f32, targets: u64) -> f64 {
        let own = self.adapters.as_mut().map(|adapters| {
            let tensors = adapters.tensors();
            (tensors, std::mem::take(&mut adapters.sums))
        });
        let (tensors, sums) = own.unwrap_or_default();
        let norm = self.take(rule, rate, (&tensors, &sums, targets));
        if let Some(adapters) = &mut self.adapters {
            adapters.sums = sums;
        }
        norm
    }

    /// Updates tensors from the sums of their gradients, and returns the norm of all.
    fn take(
        &mut self,
        (adamw, seed): (&AdamW, u64),
        rate: f32,
        (tensors, sums, targets): (&[Tensor], &[i64], u64),
    ) -> f64 {
        let squares: Vec<f32> = tensors
            .par_iter()
            .map(|tensor| squares(tensor.of(sums), unit_of(tensor, targets)))
            .collect();
        let total: f64 = squares.iter().fold(0.0, |sum, &own| sum + f64::from(own));
        let mut step = self.next((adamw, seed), rate);
        step.update.clip = adamw.clip(total);
        for tensor in tensors {
            let own = (tensor.of(sums), unit_of(tensor, targets));
            step.take(tensor, own, (&mut self.weights, &mut self.moments));
        }
        self.finish(&step);
        total.sqrt()
    }

    /// Begins to update each tensor as soon as its gradients are complete. Also returns the codes for gradients of
    /// inputs, which remain those of before. [`State::end`] ends the step.
    pub(super) fn in_place<'s>(
        &'s mut self,
        places: Places,
        (adamw, seed): (&AdamW, u64),
        rate: f32,
        (mut sums, targets): (Vec<i64>, u64),
    ) -> (Transposed<'s>, InPlace<'s>) {
        sums.clear();
        sums.resize(places.needs, 0);
        let step = self.next((adamw, seed), rate);
        let transposed = Transposed {
            codes: &self.transposed,
            scales: &self.scales,
            rows: &self.rows,
        };
        let in_place = InPlace {
            step,
            targets,
            adapters: self.adapters.as_mut(),
            weights: &mut self.weights,
            moments: &mut self.moments,
            sums,
            places,
            squares: Vec::new(),
            spent: Duration::ZERO,
        };
        (transposed, in_place)
    }

    /// Returns the next update, which limits no gradients.
    fn next(&self, (adamw, seed): (&AdamW, u64), rate: f32) -> Step {
        let powers = [
            self.powers[0] * f64::from(adamw.beta1),
            self.powers[1] * f64::from(adamw.beta2),
        ];
        Step {
            adamw: *adamw,
            update: Update {
                rate,
                clip: 1.0,
                powers,
            },
            seed,
            step: self.steps,
        }
    }

    /// Ends a step that [`State::in_place`] began, and returns the norm of the gradients of what is trained.
    pub(super) fn end(&mut self, updated: &Updated, targets: u64) -> f64 {
        let step = &updated.step;
        if self.adapters.is_some() {
            // All of their gradients are there now.
            return self.adapt((&step.adamw, step.seed), step.update.rate, targets);
        }
        self.finish(step);
        updated.norm
    }

    /// Ends a step whose tensors are all updated.
    const fn finish(&mut self, step: &Step) {
        self.powers = step.update.powers;
        self.steps += 1;
    }
}

/// The sizes of a state in bytes.
pub(super) struct StateBytes {
    /// The model's weights.
    pub(super) weights: usize,
    /// Adapters and their sums of gradients.
    pub(super) adapters: usize,
    /// What of these is trained.
    pub(super) trained: usize,
    pub(super) moments: usize,
    /// Codes by columns, with their scales.
    pub(super) transposed: usize,
}

/// Returns how a run keeps moments. Those of adapters are few.
const fn form(options: &TrainOptions) -> Form {
    Form {
        lean: options.lean && options.adapters.is_none(),
        factored: options.factored,
    }
}

/// Returns the value of a unit of a tensor's sums of so many targets.
pub(super) fn unit_of(tensor: &Tensor, targets: u64) -> f32 {
    let exponent = match tensor.part.is_gains() {
        true => GAIN_UNIT,
        false => WEIGHT_FLOOR,
    };
    unit(exponent, targets)
}

/// Returns a tensor's name in the file.
pub(super) fn name(layer: usize, part: Parameter) -> String {
    match part {
        Parameter::Embedding | Parameter::OutputNorm => part.name().to_owned(),
        _ => format!("blk.{layer}.{}", part.name()),
    }
}
