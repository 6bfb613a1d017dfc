//! Updates of tensors during the backward pass, with the sums of a few tensors in place of all.

use std::time::{Duration, Instant};

use tercet_core::model::Config;
use tercet_core::train::{GradientSums, Parameter, Shapes, Tensor, squares};

use super::adapters::Adapters;
use super::latent::{Step, Weights};
use super::moments::Moments;
use super::state::unit_of;

/// A step that updates each tensor as soon as its gradients are complete. Its sums are those of the embedding, which
/// grow during the whole pass, and of one other tensor at a time, or of one layer if layers are computed twice.
pub(super) struct InPlace<'s> {
    pub(super) step: Step,
    pub(super) targets: u64,
    /// What is trained in place of the model's tensors; it is updated after the pass.
    pub(super) adapters: Option<&'s mut Adapters>,
    pub(super) weights: &'s mut Weights,
    pub(super) moments: &'s mut Moments,
    /// As many as the places need, all 0 except those in use.
    pub(super) sums: Vec<i64>,
    pub(super) places: Places,
    /// The place of each tensor among all, and its sum of squares.
    pub(super) squares: Vec<(usize, f32)>,
    /// The time of the updates.
    pub(super) spent: Duration,
}

/// Where the sums of each tensor are: those of the embedding first.
#[derive(Clone, Copy)]
pub(super) struct Places {
    embedding: usize,
    /// Number of values after which the same sums are used again: those of a layer, or 1 for those of each tensor.
    cycle: usize,
    /// Number of sums.
    pub(super) needs: usize,
}

impl Places {
    /// Returns the places for a model. O(layers).
    pub(super) fn of(config: &Config, recompute: bool) -> Self {
        let shapes = Shapes::new(config);
        let embedding = shapes.tensor(0, Parameter::Embedding).len();
        let layer = shapes.tensor(1, Parameter::AttentionNorm).first - embedding;
        let mut places = Self {
            embedding,
            cycle: if recompute { layer } else { 1 },
            needs: 0,
        };
        let ends = shapes
            .iter()
            .map(|tensor| places.first(&tensor).saturating_add(tensor.len()));
        places.needs = ends.max().unwrap_or(0);
        places
    }

    /// Returns the index of a tensor's first sum.
    const fn first(&self, tensor: &Tensor) -> usize {
        match tensor.first.checked_sub(self.embedding) {
            Some(after) => self.embedding + after % self.cycle,
            None => 0,
        }
    }
}

impl InPlace<'_> {
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
        let own = self.sums.get_mut(self.places.first(tensor)..);
        own.and_then(|own| own.get_mut(..tensor.len()))
            .unwrap_or_default()
    }

    fn complete(&mut self, tensor: &Tensor) {
        let start = Instant::now();
        let sums = &mut self.sums[self.places.first(tensor)..][..tensor.len()];
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
