//! Memory of a training step.

use super::buffers::Lengths;
use super::{Activations, Shapes, Tensor};
use crate::engine::TrainEngine;
use crate::linear::{self, Layout, Matrix};
use crate::model::{self, Model, ModelError, Pattern, enough};

/// The codes of all matrices with columns as rows, for gradients of inputs, and their scales.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<'a> {
    /// Codes as bytes, one per value of [`Shapes::values`]: for each matrix and the embedding the output of
    /// [`transpose`](super::transpose) for its codes. Those of gains do not matter.
    pub codes: &'a [u8],
    /// One scale per tensor ([`Shapes::count`]); only those of ternary matrices are used.
    pub scales: &'a [f32],
    /// One scale per row of the embedding.
    pub rows: &'a [f32],
}

impl<'a> Transposed<'a> {
    /// Returns a matrix as a layer whose outputs are the matrix's inputs. The embedding's has no scale.
    pub(super) fn layer(
        &self,
        shapes: &Shapes<'_>,
        tensor: &Tensor,
    ) -> Result<linear::Layer<'a>, ModelError> {
        let matrix = Matrix::new(
            Layout::Int8,
            tensor.cols,
            tensor.rows,
            tensor.of(self.codes),
        );
        let number = shapes.number(tensor.layer, tensor.part);
        let refused = |error| ModelError::Weights {
            tensor: number as u64,
            error,
        };
        let matrix = matrix.map_err(refused)?;
        let scale = self.scales.get(number).copied().unwrap_or(0.0);
        let matrix = match tensor.part.is_ternary() {
            true => matrix.with_scale(scale).map_err(refused)?,
            false => matrix,
        };
        Ok(linear::Layer::new(matrix))
    }
}

/// Memory that steps need: the length of each slice of [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Needs {
    /// Memory of the forward pass.
    pub model: model::Needs,
    /// Length of [`Memory::floats`].
    pub floats: usize,
    /// Length of [`Memory::kept`].
    pub kept: usize,
    /// Length of [`Memory::bytes`].
    pub bytes: usize,
    /// Length of [`Memory::ints`].
    pub ints: usize,
    /// Length of [`Memory::longs`].
    pub longs: usize,
}

/// The caller's slices with any content, of at least the lengths in [`Needs`].
#[derive(Debug)]
pub struct Memory<'w> {
    /// Memory of the forward pass.
    pub model: model::Memory<'w>,
    /// Values of layers for the backward pass, gradients, logits.
    pub floats: &'w mut [f32],
    /// Values of layers in fewer bits ([`Activations`]).
    pub kept: &'w mut [u8],
    /// Codes of gradients.
    pub bytes: &'w mut [i8],
    /// Exponents and partial sums.
    pub ints: &'w mut [i32],
    /// Sums of attention.
    pub longs: &'w mut [i64],
}

impl Needs {
    /// Returns the memory that steps of `rows` rows need on an engine, for sequences of `length` rows each. With
    /// `recompute`, layers' forward passes are computed twice, one sequence at a time, and only their inputs are kept,
    /// as floats; otherwise `activations` says how inputs and values are kept. O(layers).
    ///
    /// # Errors
    /// [`ModelError::TooLarge`]; [`ModelError::Weights`] for codes that are not the model's.
    pub fn of<E: TrainEngine>(
        engine: &E,
        model: &Model<'_, '_>,
        transposed: &Transposed<'_>,
        (length, rows): (usize, usize),
        (recompute, activations): (bool, Activations),
    ) -> Result<Self, ModelError> {
        let config = model.config();
        let context = u32::try_from(length).map_err(|_| ModelError::TooLarge)?;
        let lengths = Lengths::of(config, (length, rows), (recompute, activations));
        let mut needs = model::Needs::of(engine, model, Pattern::FULL, context, lengths.rows)?;
        let shapes = Shapes::new(config);
        for tensor in shapes.iter().filter(|tensor| !tensor.part.is_gains()) {
            let layer = transposed.layer(&shapes, &tensor)?;
            needs.words = needs.words.max(engine.product_scratch_len(layer.weights()));
        }
        let attention = &lengths.attention;
        let found = Self {
            model: needs,
            floats: lengths.floats(),
            kept: lengths.kept(),
            bytes: lengths
                .codes
                .saturating_add(lengths.planes)
                .saturating_add(attention.bytes),
            ints: lengths
                .exponents
                .saturating_add(lengths.partial)
                .saturating_add(attention.ints),
            longs: attention.longs,
        };
        let all = [
            found.floats,
            found.kept,
            found.bytes,
            found.ints,
            found.longs,
        ];
        match all.contains(&usize::MAX) {
            true => Err(ModelError::TooLarge),
            false => Ok(found),
        }
    }

    /// Returns the total size in bytes.
    pub const fn total_bytes(&self) -> usize {
        self.model
            .total_bytes()
            .saturating_add(self.floats.saturating_mul(4))
            .saturating_add(self.kept)
            .saturating_add(self.bytes)
            .saturating_add(self.ints.saturating_mul(4))
            .saturating_add(self.longs.saturating_mul(8))
    }
}

/// Fails if there is less memory than a step needs.
pub(super) const fn check(memory: &Memory<'_>, needs: &Needs) -> Result<(), ModelError> {
    let parts = [
        (
            "a training step's floats",
            needs.floats,
            memory.floats.len(),
        ),
        (
            "a training step's kept bytes",
            needs.kept,
            memory.kept.len(),
        ),
        ("a training step's bytes", needs.bytes, memory.bytes.len()),
        ("a training step's ints", needs.ints, memory.ints.len()),
        ("a training step's longs", needs.longs, memory.longs.len()),
    ];
    enough(&parts)
}
