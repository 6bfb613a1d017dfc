//! Memory of a training step.

use super::attention::ScratchLengths;
use super::{Activations, GROUP, Shapes, Tensor};
use crate::engine::TrainEngine;
use crate::linear::{self, Layout, Matrix};
use crate::model::{self, Config, Kept, Model, ModelError, Pattern, Tape, cut, enough};

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

/// Lengths of a step's vectors.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    layers: usize,
    activations: Activations,
    /// Number of layers whose inputs are kept as floats at the same time.
    inputs: usize,
    /// Values of the residual of all rows.
    input: usize,
    queries: usize,
    hidden: usize,
    /// Number of layers whose tapes are kept as floats at the same time.
    tapes: usize,
    /// Number of layers that are kept in fewer bits at the same time.
    packed: usize,
    /// Gradients of the input of any matrix.
    gradients: usize,
    /// Those that are added to others, and those of queries.
    others: usize,
    logits: usize,
    rows: usize,
    terms: usize,
    codes: usize,
    exponents: usize,
    partial: usize,
    attention: ScratchLengths,
}

impl Lengths {
    pub(super) fn of(
        config: &Config,
        (length, rows): (usize, usize),
        (recompute, activations): (bool, Activations),
    ) -> Self {
        let is_packed = activations != Activations::F32;
        let widest = config.widest().max(config.kv_width());
        let all = rows.saturating_mul(widest);
        let group = length.min(GROUP);
        let logits = group.saturating_mul(config.vocabulary);
        let sequences = rows.checked_div(length).unwrap_or(0);
        let groups = sequences.saturating_mul(length.div_ceil(GROUP));
        let attention = ScratchLengths::of(length, config.head);
        Self {
            layers: config.layers,
            activations,
            // A layer that is computed again is computed from the input itself.
            inputs: match is_packed && !recompute {
                true => 1,
                false => config.layers,
            },
            input: rows.saturating_mul(config.width),
            queries: rows.saturating_mul(config.query_width()),
            hidden: rows.saturating_mul(config.hidden),
            tapes: match is_packed || recompute {
                true => 1,
                false => config.layers,
            },
            packed: match (is_packed, recompute) {
                (false, _) => 0,
                (true, true) => 1,
                (true, false) => config.layers,
            },
            gradients: all,
            others: rows.saturating_mul(config.width.max(config.query_width())),
            logits,
            rows,
            terms: widest,
            codes: all.max(logits.saturating_mul(2)),
            exponents: groups.saturating_mul(widest).max(config.vocabulary),
            partial: widest,
            attention: ScratchLengths {
                // Sums of the head's product, for both planes.
                longs: attention.longs.max(group.saturating_mul(16)),
                ..attention
            },
        }
    }

    /// Returns the length of one layer's tape.
    const fn tape(&self) -> usize {
        let rows = self.queries.saturating_add(self.hidden).saturating_mul(2);
        rows.saturating_add(self.input)
    }

    /// Returns the lengths of the vectors of a layer's input and tape.
    const fn vectors(&self) -> [usize; 6] {
        [
            self.input,
            self.queries,
            self.queries,
            self.input,
            self.hidden,
            self.hidden,
        ]
    }

    /// Returns the bytes of a layer in fewer bits.
    fn layer_bytes(&self) -> usize {
        let bytes = |values| self.activations.bytes(values, self.rows);
        self.vectors()
            .into_iter()
            .map(bytes)
            .fold(0, usize::saturating_add)
    }

    fn floats(&self) -> usize {
        [
            self.input.saturating_mul(self.inputs),
            self.tape().saturating_mul(self.tapes),
            self.input,
            self.gradients,
            self.others,
            self.logits,
            self.rows,
            self.terms,
            self.attention.floats,
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }
}

impl Needs {
    /// Returns the memory that steps of `rows` rows need on an engine, for sequences of `length` rows each. With
    /// `recompute`, layers' forward passes are computed twice, and only their inputs are kept, as floats; otherwise
    /// `activations` says how inputs and values are kept. O(layers).
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
        let mut needs = model::Needs::of(engine, model, Pattern::FULL, context, rows)?;
        let shapes = Shapes::new(config);
        for tensor in shapes.iter().filter(|tensor| !tensor.part.is_gains()) {
            let layer = transposed.layer(&shapes, &tensor)?;
            needs.words = needs.words.max(engine.product_scratch_len(layer.weights()));
        }
        let lengths = Lengths::of(config, (length, rows), (recompute, activations));
        let attention = &lengths.attention;
        let found = Self {
            model: needs,
            floats: lengths.floats(),
            kept: lengths.layer_bytes().saturating_mul(lengths.packed),
            bytes: lengths
                .codes
                .saturating_mul(2)
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

/// Stored values of a layer's forward pass.
pub(super) struct LayerTape<'t> {
    pub(super) queries: &'t mut [f32],
    pub(super) attended: &'t mut [f32],
    pub(super) middle: &'t mut [f32],
    pub(super) gate: &'t mut [f32],
    pub(super) up: &'t mut [f32],
}

impl Tape for LayerTape<'_> {
    fn keep(&mut self, which: Kept, values: &[f32]) {
        let to = match which {
            Kept::Queries => &mut *self.queries,
            Kept::Attended => &mut *self.attended,
            Kept::Middle => &mut *self.middle,
            Kept::Gate => &mut *self.gate,
            Kept::Up => &mut *self.up,
        };
        for (to, &value) in to.iter_mut().zip(values) {
            *to = value;
        }
    }
}

/// The slices of a [`Memory`], divided, without those of the forward pass.
pub(super) struct BackwardMemory<'w> {
    lengths: Lengths,
    inputs: &'w mut [f32],
    tapes: &'w mut [f32],
    kept: &'w mut [u8],
    /// Gradients of the residual.
    pub(super) dx: &'w mut [f32],
    pub(super) work: BackwardBuffers<'w>,
}

/// Memory that the steps of a backward pass share.
pub(super) struct BackwardBuffers<'w> {
    pub(super) a: &'w mut [f32],
    pub(super) b: &'w mut [f32],
    pub(super) logits: &'w mut [f32],
    /// Powers of two of rows of codes.
    pub(super) powers: &'w mut [f32],
    pub(super) terms: &'w mut [f32],
    pub(super) codes: &'w mut [i8],
    pub(super) group_codes: &'w mut [i8],
    pub(super) exponents: &'w mut [i32],
    pub(super) partial: &'w mut [i32],
    pub(super) attention: super::attention::Scratch<'w>,
}

impl<'w> BackwardMemory<'w> {
    pub(super) fn cut(
        lengths: Lengths,
        (floats, kept): (&'w mut [f32], &'w mut [u8]),
        bytes: &'w mut [i8],
        ints: &'w mut [i32],
        longs: &'w mut [i64],
    ) -> Self {
        let (mut floats, mut bytes, mut ints, mut longs) = (floats, bytes, ints, longs);
        let attention = &lengths.attention;
        Self {
            lengths,
            inputs: cut(&mut floats, lengths.input.saturating_mul(lengths.inputs)),
            tapes: cut(&mut floats, lengths.tape().saturating_mul(lengths.tapes)),
            kept,
            dx: cut(&mut floats, lengths.input),
            work: BackwardBuffers {
                a: cut(&mut floats, lengths.gradients),
                b: cut(&mut floats, lengths.others),
                logits: cut(&mut floats, lengths.logits),
                powers: cut(&mut floats, lengths.rows),
                terms: cut(&mut floats, lengths.terms),
                codes: cut(&mut bytes, lengths.codes),
                group_codes: cut(&mut bytes, lengths.codes),
                exponents: cut(&mut ints, lengths.exponents),
                partial: cut(&mut ints, lengths.partial),
                attention: super::attention::Scratch {
                    floats: cut(&mut floats, attention.floats),
                    bytes: cut(&mut bytes, attention.bytes),
                    ints: cut(&mut ints, attention.ints),
                    longs: cut(&mut longs, attention.longs),
                },
            },
        }
    }

    /// Returns a layer's input, its tape, the gradients of the residual, and the memory that the steps share.
    pub(super) fn layer(
        &mut self,
        layer: usize,
    ) -> (
        &mut [f32],
        LayerTape<'_>,
        &mut [f32],
        &mut BackwardBuffers<'w>,
    ) {
        let lengths = &self.lengths;
        let place = if lengths.inputs > 1 { layer } else { 0 };
        let input = place.wrapping_mul(lengths.input);
        let input = self.inputs.get_mut(input..).unwrap_or_default();
        let place = if lengths.tapes > 1 { layer } else { 0 };
        let mut rest = self
            .tapes
            .get_mut(place.wrapping_mul(lengths.tape())..)
            .unwrap_or_default();
        let tape = LayerTape {
            queries: cut(&mut rest, lengths.queries),
            attended: cut(&mut rest, lengths.queries),
            middle: cut(&mut rest, lengths.input),
            gate: cut(&mut rest, lengths.hidden),
            up: cut(&mut rest, lengths.hidden),
        };
        let input = input.get_mut(..lengths.input).unwrap_or_default();
        (input, tape, self.dx, &mut self.work)
    }

    /// Keeps a layer's input and tape in fewer bits, so that the next one may use their memory.
    pub(super) fn pack(&mut self, layer: usize) {
        self.each_vector(layer, |activations, rows, values, bytes| {
            activations.pack(values, rows, bytes);
        });
    }

    /// Restores a layer's input and tape.
    pub(super) fn unpack(&mut self, layer: usize) {
        self.each_vector(layer, |activations, rows, values, bytes| {
            activations.unpack(bytes, rows, values);
        });
    }

    fn each_vector(
        &mut self,
        layer: usize,
        each: impl Fn(Activations, usize, &mut [f32], &mut [u8]),
    ) {
        let lengths = self.lengths;
        if lengths.packed == 0 {
            return;
        }
        let place = if lengths.packed > 1 { layer } else { 0 };
        let kept = core::mem::take(&mut self.kept);
        let first = place.wrapping_mul(lengths.layer_bytes());
        let mut bytes = kept.get_mut(first..).unwrap_or_default();
        let (input, tape, ..) = self.layer(layer);
        let vectors = [
            input,
            tape.queries,
            tape.attended,
            tape.middle,
            tape.gate,
            tape.up,
        ];
        for values in vectors {
            let len = lengths.activations.bytes(values.len(), lengths.rows);
            each(
                lengths.activations,
                lengths.rows,
                values,
                cut(&mut bytes, len),
            );
        }
        self.kept = kept;
    }

    /// Returns true if the backward pass computes layers again.
    pub(super) const fn computes_again(&self) -> bool {
        let lengths = &self.lengths;
        lengths.tapes < lengths.layers && lengths.packed < lengths.layers
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
