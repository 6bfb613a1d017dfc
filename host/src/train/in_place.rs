//! Updates of tensors during the backward pass, with the sums of two tensors in place of all.

use std::time::{Duration, Instant};

use tercet_core::model::Config;
use tercet_core::train::{GradientSums, Parameter, Shapes, Tensor, squares};

use super::adapters::Adapters;
use super::latent::{Step, Weights};
use super::moments::Moments;
use super::state::unit_of;

/// A step that updates each tensor as soon as its gradients are complete. Its sums are those of the embedding, which
/// grow during the whole pass, and of one other tensor at a time.
pub(super) struct InPlace<'s> {
    pub(super) step: Step,
    pub(super) targets: u64,
    /// What is trained in place of the model's tensors; it is updated after the pass.
    pub(super) adapters: Option<&'s mut Adapters>,
    pub(super) weights: &'s mut Weights,
    pub(super) moments: &'s mut Moments,
    /// As many as [`InPlace::needs`] says, all 0 except those in use.
    pub(super) sums: Vec<i64>,
    /// Number of values of the embedding.
    pub(super) embedding: usize,
    /// The place of each tensor among all, and its sum of squares.
    pub(super) squares: Vec<(usize, f32)>,
    /// The time of the updates.
    pub(super) spent: Duration,
}

impl InPlace<'_> {
    /// Returns the number of sums for a model. O(layers).
    pub(super) fn needs(config: &Config) -> usize {
        let shapes = Shapes::new(config);
        let others = shapes
            .iter()
            .filter(|tensor| tensor.part != Parameter::Embedding);
        let most = others.map(|tensor| tensor.len()).max().unwrap_or(0);
        let embedding = shapes.tensor(0, Parameter::Embedding);
        embedding.len().saturating_add(most)
    }

    /// Ends the pass.
    pub(super) fn end(mut self) -> Updated {
        // In the order of the tensors, not of the pass.
        self.squares.sort_unstable_by_key(|&(first, _)| first);
        let squares = self.squares.iter();
        let total = squares.fold(0.0, |sum, &(_, own)| sum + f64::from(own));
        Updated {
            step: self.step,
            norm: total.sqrt(),
            tensors: self.squares.len(),
            sums: self.sums,
            spent: self.spent,
        }
    }
}

/// What is left of updates during a pass.
pub(super) struct Updated {
    pub(super) step: Step,
    /// The norm of the gradients.
    pub(super) norm: f64,
    /// Number of updated tensors.
    pub(super) tensors: usize,
    /// The memory of the sums.
    pub(super) sums: Vec<i64>,
    pub(super) spent: Duration,
}

impl GradientSums for InPlace<'_> {
    fn of(&mut self, tensor: &Tensor) -> &mut [i64] {
        let first = match tensor.part {
            Parameter::Embedding => 0,
            _ => self.embedding,
        };
        let own = self.sums.get_mut(first..);
        own.and_then(|own| own.get_mut(..tensor.len()))
            .unwrap_or_default()
    }

    fn complete(&mut self, tensor: &Tensor) {
        let start = Instant::now();
        let first = match tensor.part {
            Parameter::Embedding => 0,
            _ => self.embedding,
        };
        let sums = &mut self.sums[first..][..tensor.len()];
        if let Some(adapters) = &mut self.adapters {
            adapters.project(tensor, sums, self.weights.floats());
        } else {
            let unit = unit_of(tensor, self.targets);
            self.squares.push((tensor.first, squares(sums, unit)));
            self.step
                .take(tensor, (sums, unit), (self.weights, self.moments));
        }
        sums.fill(0);
        self.spent += start.elapsed();
    }
}
