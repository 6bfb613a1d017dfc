//! Low-rank adapters: matrices that change a model's, and are trained in their place.

use rayon::prelude::*;
use tercet_core::model::Config;
use tercet_core::number::{Lanes, counter};
use tercet_core::train::{Shapes, Tensor};

use super::latent::Weights;

/// The random stream for the first values.
const VALUES: u32 = 6;

/// A matrix of a model, and the two that change it: it is W + B · A, with `rank` rows of A and as many columns of B.
#[derive(Debug)]
struct Pair {
    matrix: Tensor,
    a: Tensor,
    b: Tensor,
}

/// The adapters of all matrices (E. Hu et al., *LoRA*, 2021), of which a run trains the values; the model's own weights
/// remain as they are.
///
/// Each element of W + B · A is computed as W, to which the products fl(b · a) of the rank's columns are added in order.
#[derive(Debug)]
pub(super) struct Adapters {
    base: Weights,
    pairs: Vec<Pair>,
    /// Sums of gradients of all values, in the units of those of matrices.
    pub(super) sums: Vec<i64>,
}

/// Returns the adapters of a model, one after another in the file's order, and their number of values.
fn pairs(config: &Config, rank: usize) -> (Vec<Pair>, usize) {
    let (mut pairs, mut first) = (Vec::new(), 0);
    for matrix in Shapes::new(config).iter() {
        if !matrix.part.is_ternary() {
            continue;
        }
        let [a, b] = [(rank, matrix.cols), (matrix.rows, rank)].map(|(rows, cols)| {
            let tensor = Tensor {
                rows,
                cols,
                first,
                ..matrix
            };
            first = first.saturating_add(tensor.len());
            tensor
        });
        pairs.push(Pair { matrix, a, b });
    }
    (pairs, first)
}

impl Adapters {
    /// Returns the trained tensors for a rank, in order. O(layers).
    pub(super) fn shapes(config: &Config, rank: usize) -> Vec<Tensor> {
        let pairs = pairs(config, rank).0;
        pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect()
    }

    /// Returns adapters that change nothing yet, and their values: B is 0, and A has uniform draws of the seed with a
    /// root mean square of 1 / √rank, so that a step of B changes a weight by about the learning rate.
    pub(super) fn new(base: Weights, config: &Config, rank: usize, seed: u64) -> (Self, Vec<f32>) {
        let (pairs, count) = pairs(config, rank);
        let mut values = vec![0.0; count];
        let most = (3.0 / rank as f32).sqrt();
        for Pair { a, .. } in &pairs {
            for (place, value) in (a.first as u64..).zip(a.of_mut(&mut values)) {
                // From −1 to 1 in steps of 2⁻²³.
                let draw = (counter(seed, VALUES, place)[0] >> 8) as i32 - (1 << 23);
                *value = draw as f32 * (1.0 / (1 << 23) as f32) * most;
            }
        }
        let sums = vec![0; count];
        (Self { base, pairs, sums }, values)
    }

    /// Returns the trained tensors, in order.
    pub(super) fn tensors(&self) -> Vec<Tensor> {
        let pairs = self.pairs.iter();
        pairs.flat_map(|pair| [pair.a, pair.b]).collect()
    }

    /// Writes a tensor's weights into `scratch` with the change by the adapters' values.
    pub(super) fn merged<'s>(
        &self,
        tensor: &Tensor,
        values: &[f32],
        scratch: &'s mut Vec<f32>,
    ) -> &'s [f32] {
        self.base.copy(tensor, scratch);
        if let Some(Pair { a, b, .. }) = self.pairs.iter().find(|pair| pair.matrix == *tensor) {
            let rows = scratch.par_chunks_mut(tensor.cols);
            rows.zip(b.of(values).par_chunks(b.cols))
                .for_each(|(row, b)| {
                    for (b, a) in b.iter().zip(a.of(values).chunks_exact(a.cols)) {
                        for (weight, a) in row.iter_mut().zip(a) {
                            *weight += b * a;
                        }
                    }
                });
        }
        scratch
    }

    /// Replaces an adapter's sums of gradients by those that follow from its matrix's; for other tensors does nothing.
    ///
    /// The sums G become f32. Those of B are G · Aᵀ, in f64 and in the order of [`Lanes`]; those of A are Bᵀ · G, in f32
    /// and in the order of the rows. Both are rounded towards 0 to integers. O(rank · values).
    pub(super) fn project(&mut self, tensor: &Tensor, gradients: &[i64], values: &[f32]) {
        let pair = self.pairs.iter().find(|pair| pair.matrix == *tensor);
        if let Some(pair) = pair {
            // A and B are neighbours.
            let sums = &mut self.sums[pair.a.first..][..pair.a.len() + pair.b.len()];
            pair.project(gradients, values, sums.split_at_mut(pair.a.len()));
        }
    }

    /// Does [`Adapters::project`] for all tensors, by the threads of the current pool.
    pub(super) fn project_all(&mut self, gradients: &[i64], values: &[f32]) {
        let mut rest = &mut self.sums[..];
        let mut parts = Vec::with_capacity(self.pairs.len());
        for pair in &self.pairs {
            let (a, after) = rest.split_at_mut(pair.a.len());
            let (b, after) = after.split_at_mut(pair.b.len());
            rest = after;
            parts.push((pair, (a, b)));
        }
        parts
            .into_par_iter()
            .for_each(|(pair, sums)| pair.project(pair.matrix.of(gradients), values, sums));
    }
}

impl Pair {
    fn project(&self, gradients: &[i64], values: &[f32], (a, b): (&mut [i64], &mut [i64])) {
        let (cols, rank) = (self.a.cols, self.b.cols);
        let mut row = vec![0.0; cols];
        let mut sums = vec![0.0; a.len()];
        let mut terms = vec![0.0f64; cols];
        let of_b = self.b.of(values).chunks_exact(rank);
        let rows = gradients.chunks_exact(cols).zip(of_b);
        for ((gradients, of_b), b) in rows.zip(b.chunks_exact_mut(rank)) {
            for (g, &sum) in row.iter_mut().zip(gradients) {
                *g = sum as f32;
            }
            let of_a = self.a.of(values).chunks_exact(cols);
            for ((of_a, &of_b), (b, sums)) in of_a
                .zip(of_b)
                .zip(b.iter_mut().zip(sums.chunks_exact_mut(cols)))
            {
                for (term, (g, a)) in terms.iter_mut().zip(row.iter().zip(of_a)) {
                    *term = f64::from(*g) * f64::from(*a);
                }
                let mut lanes = Lanes::<f64>::new();
                lanes.terms(&terms);
                *b = lanes.total() as i64;
                for (sum, g) in sums.iter_mut().zip(&row) {
                    *sum += of_b * g;
                }
            }
        }
        for (a, sum) in a.iter_mut().zip(sums) {
            *a = sum as i64;
        }
    }
}
