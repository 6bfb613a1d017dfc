//! Moments of gradients, in the forms that a run can have.

use rayon::prelude::*;
use tercet_core::train::{FACTORED_COLUMNS, LEAN_BLOCK, Tensor, factor_mean, factored};

use super::latent::Step;

/// Scales of a block's first and second moments.
pub(super) type Scales = [f32; 2];

/// First moments, in the form of the weights.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum First {
    /// As they are.
    Full(Vec<f32>),
    /// Codes, and the scales of each block: of these, and of second moments that are codes.
    Lean(Vec<i8>, Vec<Scales>),
}

/// Second moments.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Second {
    Full(Vec<f32>),
    Lean(Vec<u8>),
    Factored(Factors),
}

/// Moments of gradients.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moments {
    pub(super) first: First,
    pub(super) second: Second,
}

/// Factors of the rows and of the columns of tensors, one tensor after another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Factors {
    pub(super) values: Vec<f32>,
    /// The first weight of each tensor, and its first factor.
    places: Vec<(usize, usize)>,
}

/// A tensor's second moments, for a step.
pub(super) enum TensorSecond<'s> {
    Full(&'s mut [f32]),
    Lean(&'s mut [u8]),
    /// Of the new step.
    Factored(TensorFactors<'s>),
}

/// A tensor's factors after a step.
pub(super) struct TensorFactors<'f> {
    rows: &'f [f32],
    columns: &'f [f32],
    mean: f32,
}

/// How moments are kept.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) lean: bool,
    pub(super) factored: bool,
}

impl Moments {
    /// Returns moments of 0.
    pub(super) fn new(tensors: &[Tensor], form: Form) -> Self {
        let values = tensors.iter().map(Tensor::len).sum();
        Self {
            first: match form.lean {
                false => First::Full(vec![0.0; values]),
                true => First::Lean(vec![0; values], vec![[0.0; 2]; values.div_ceil(LEAN_BLOCK)]),
            },
            second: match form {
                Form { factored: true, .. } => Second::Factored(Factors::new(tensors)),
                Form { lean: true, .. } => Second::Lean(vec![0; values]),
                _ => Second::Full(vec![0.0; values]),
            },
        }
    }

    /// Returns the bytes of those of tensors.
    pub(super) fn bytes(tensors: &[Tensor], form: Form) -> usize {
        let values = tensors.iter().map(Tensor::len);
        let values = values.fold(0, usize::saturating_add);
        let float = size_of::<f32>();
        let first = match form.lean {
            false => values.saturating_mul(float),
            true => {
                let blocks = values.div_ceil(LEAN_BLOCK);
                values.saturating_add(blocks.saturating_mul(size_of::<Scales>()))
            }
        };
        let second = match form {
            Form { factored: true, .. } => {
                let places = tensors.len().saturating_mul(size_of::<(usize, usize)>());
                let factors = tensors.iter().map(factors);
                let factors = factors.fold(0, usize::saturating_add);
                factors.saturating_mul(float).saturating_add(places)
            }
            Form { lean: true, .. } => values,
            _ => values.saturating_mul(float),
        };
        first.saturating_add(second)
    }
}

impl Second {
    /// Returns a tensor's second moments; factors are updated for a step with these sums of gradients.
    pub(super) fn of(
        &mut self,
        tensor: &Tensor,
        step: &Step,
        sums: (&[i64], f32),
    ) -> TensorSecond<'_> {
        match self {
            Self::Full(all) => TensorSecond::Full(tensor.of_mut(all)),
            Self::Lean(all) => TensorSecond::Lean(tensor.of_mut(all)),
            Self::Factored(factors) => TensorSecond::Factored(factors.update(tensor, step, sums)),
        }
    }
}

/// Returns the number of a tensor's factors.
const fn factors(tensor: &Tensor) -> usize {
    tensor.rows.saturating_add(tensor.cols)
}

impl Factors {
    fn new(tensors: &[Tensor]) -> Self {
        let mut next = 0;
        let places = tensors.iter().map(|tensor| {
            let place = (tensor.first, next);
            next += factors(tensor);
            place
        });
        let places = places.collect();
        Self {
            values: vec![0.0; next],
            places,
        }
    }

    /// Returns the same tensors' factors with other values, as many.
    pub(super) fn with(&self, values: Vec<f32>) -> Self {
        Self {
            values,
            places: self.places.clone(),
        }
    }

    /// Updates a tensor's factors from its sums of gradients, by the threads of the current pool.
    fn update(
        &mut self,
        tensor: &Tensor,
        step: &Step,
        (sums, unit): (&[i64], f32),
    ) -> TensorFactors<'_> {
        let place = self.places.iter().find(|(first, _)| *first == tensor.first);
        let first = place.map_or(self.values.len(), |&(_, first)| first);
        let all = &mut self.values[first..][..factors(tensor)];
        let (rows, columns) = all.split_at_mut(tensor.rows);
        let (adamw, update) = (&step.adamw, &step.update);
        rows.par_iter_mut()
            .zip(sums.par_chunks(tensor.cols))
            .for_each(|(row, sums)| adamw.row_factor(update, (sums, unit), row));
        columns
            .par_chunks_mut(FACTORED_COLUMNS)
            .enumerate()
            .for_each(|(piece, columns)| {
                let place = (tensor.cols, piece * FACTORED_COLUMNS);
                adamw.column_factors(update, (sums, unit), place, columns);
            });
        let (rows, columns) = (&*rows, &*columns);
        let mean = factor_mean(rows);
        TensorFactors {
            rows,
            columns,
            mean,
        }
    }
}

impl TensorFactors<'_> {
    /// Returns the second moments of a block of the tensor's weights. A row has whole blocks, except that of a vector.
    pub(super) fn block(&self, index: usize) -> [f32; LEAN_BLOCK] {
        let place = index * LEAN_BLOCK;
        let (row, column) = (place / self.columns.len(), place % self.columns.len());
        let mut moments = [0.0; LEAN_BLOCK];
        let columns = &self.columns[column..];
        factored(self.rows[row], self.mean, columns, &mut moments);
        moments
    }
}
