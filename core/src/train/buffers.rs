//! The parts of a step's memory.

use super::attention::{Scratch, ScratchLengths};
use super::{Activations, GROUP};
use crate::model::{Config, Kept, Tape, cut};

/// Groups of rows that the head takes at a time: each sum of its matrix's gradients is then read and written once for all
/// of them. Where memory counts most it is one.
const HEAD_GROUPS: usize = 4;

/// Lengths of a step's vectors. Layers that are computed again are so one sequence at a time: most vectors have one
/// row per row of such a part, which is the whole batch otherwise.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    layers: usize,
    activations: Activations,
    /// Rows of a part.
    pub(super) rows: usize,
    pub(super) parts: usize,
    /// Number of residuals that are kept as floats at the same time.
    inputs: usize,
    /// Values of the residual of all rows.
    input: usize,
    /// Values of the residual of a part.
    row_inputs: usize,
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
    /// Rows whose logits are computed at a time.
    head_rows: usize,
    logits: usize,
    terms: usize,
    /// Codes of the gradients of a matrix's outputs, by groups of rows.
    pub(super) codes: usize,
    /// The same by rows; for the head in two planes.
    pub(super) planes: usize,
    pub(super) exponents: usize,
    pub(super) partial: usize,
    pub(super) attention: ScratchLengths,
}

impl Lengths {
    pub(super) fn of(
        config: &Config,
        (length, all): (usize, usize),
        (recompute, activations): (bool, Activations),
    ) -> Self {
        let is_packed = activations != Activations::F32;
        let rows = if recompute { length.min(all) } else { all };
        let widest = config.widest().max(config.kv_width());
        let gradients = rows.saturating_mul(widest);
        let head_rows = length.min(if recompute {
            GROUP
        } else {
            HEAD_GROUPS * GROUP
        });
        let logits = head_rows.saturating_mul(config.vocabulary);
        let sequences = rows.checked_div(length).unwrap_or(0);
        let groups = sequences.saturating_mul(length.div_ceil(GROUP));
        let head_groups = head_rows.div_ceil(GROUP);
        let attention = ScratchLengths::of(length, config.head);
        Self {
            layers: config.layers,
            activations,
            rows,
            parts: all.checked_div(rows).unwrap_or(1),
            inputs: match (recompute, is_packed) {
                // Layers are computed again from the inputs themselves. The last residual is the head's input.
                (true, _) => config.layers.saturating_add(1),
                (false, true) => 1,
                (false, false) => config.layers,
            },
            input: all.saturating_mul(config.width),
            row_inputs: rows.saturating_mul(config.width),
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
            gradients,
            head_rows,
            others: rows.saturating_mul(config.width.max(config.query_width())),
            logits,
            terms: widest,
            codes: gradients.max(logits),
            planes: gradients.max(logits.saturating_mul(2)),
            exponents: groups
                .saturating_mul(widest)
                .max(head_groups.saturating_mul(config.vocabulary)),
            partial: widest,
            attention: ScratchLengths {
                // Sums of the head's product, for both planes.
                longs: attention.longs.max(head_rows.saturating_mul(16)),
                ..attention
            },
        }
    }

    /// Returns the sequences of a part.
    pub(super) fn sequences<'s, T>(&self, all: &'s [T], part: usize) -> &'s [T] {
        // A part is the whole batch or a sequence.
        if self.parts > 1 {
            all.get(part..).unwrap_or_default()
        } else {
            all
        }
    }

    /// Returns the length of one layer's tape.
    const fn tape(&self) -> usize {
        let rows = self.queries.saturating_add(self.hidden).saturating_mul(2);
        rows.saturating_add(self.row_inputs)
    }

    /// Returns the lengths of the vectors of a layer's input and tape.
    const fn vectors(&self) -> [usize; 6] {
        [
            self.row_inputs,
            self.queries,
            self.queries,
            self.row_inputs,
            self.hidden,
            self.hidden,
        ]
    }

    /// Returns the bytes of the layers in fewer bits.
    pub(super) fn kept(&self) -> usize {
        self.layer_bytes().saturating_mul(self.packed)
    }

    /// Returns the bytes of a layer in fewer bits.
    fn layer_bytes(&self) -> usize {
        let bytes = |values| self.activations.bytes(values, self.rows);
        self.vectors()
            .into_iter()
            .map(bytes)
            .fold(0, usize::saturating_add)
    }

    /// Returns the number of floats.
    pub(super) fn floats(&self) -> usize {
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

/// The slices of a [`Memory`](super::Memory), divided, without those of the forward pass.
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
    /// Rows whose logits there is memory for.
    pub(super) head_rows: usize,
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
    pub(super) attention: Scratch<'w>,
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
                head_rows: lengths.head_rows,
                a: cut(&mut floats, lengths.gradients),
                b: cut(&mut floats, lengths.others),
                logits: cut(&mut floats, lengths.logits),
                powers: cut(&mut floats, lengths.rows),
                terms: cut(&mut floats, lengths.terms),
                codes: cut(&mut bytes, lengths.planes),
                group_codes: cut(&mut bytes, lengths.codes),
                exponents: cut(&mut ints, lengths.exponents),
                partial: cut(&mut ints, lengths.partial),
                attention: Scratch {
                    floats: cut(&mut floats, attention.floats),
                    bytes: cut(&mut bytes, attention.bytes),
                    ints: cut(&mut ints, attention.ints),
                    longs: cut(&mut longs, attention.longs),
                },
            },
        }
    }

    /// Returns what the head needs: the last residuals of all rows if layers are computed again, the gradients of the
    /// residual, and the memory that the steps share.
    pub(super) fn head(&mut self) -> (Option<&[f32]>, &mut [f32], &mut BackwardBuffers<'w>) {
        let last = self.lengths.input.wrapping_mul(self.lengths.layers);
        let again = self.computes_again();
        let x = again.then(|| self.inputs.get(last..).unwrap_or_default());
        (x, self.dx, &mut self.work)
    }

    /// Returns a layer's input, its tape, the gradients of the residual, all of a part of the batch, and the memory
    /// that the steps share. The last residual is the input of the layer after the last.
    pub(super) fn layer(
        &mut self,
        layer: usize,
        part: usize,
    ) -> (
        &mut [f32],
        LayerTape<'_>,
        &mut [f32],
        &mut BackwardBuffers<'w>,
    ) {
        let lengths = &self.lengths;
        let place = if lengths.inputs > 1 { layer } else { 0 };
        let first = part.wrapping_mul(lengths.row_inputs);
        let input = place.wrapping_mul(lengths.input).wrapping_add(first);
        let input = self.inputs.get_mut(input..).unwrap_or_default();
        let dx = self.dx.get_mut(first..).unwrap_or_default();
        let place = if lengths.tapes > 1 { layer } else { 0 };
        let mut rest = self
            .tapes
            .get_mut(place.wrapping_mul(lengths.tape())..)
            .unwrap_or_default();
        let tape = LayerTape {
            queries: cut(&mut rest, lengths.queries),
            attended: cut(&mut rest, lengths.queries),
            middle: cut(&mut rest, lengths.row_inputs),
            gate: cut(&mut rest, lengths.hidden),
            up: cut(&mut rest, lengths.hidden),
        };
        let input = input.get_mut(..lengths.row_inputs).unwrap_or_default();
        let dx = dx.get_mut(..lengths.row_inputs).unwrap_or_default();
        (input, tape, dx, &mut self.work)
    }

    /// Keeps a layer's input and tape in fewer bits, so that the next one may use their memory.
    pub(super) fn pack(&mut self, layer: usize, part: usize) {
        self.each_vector((layer, part), |activations, rows, values, bytes| {
            activations.pack(values, rows, bytes);
        });
    }

    /// Restores a layer's input and tape.
    pub(super) fn unpack(&mut self, layer: usize, part: usize) {
        self.each_vector((layer, part), |activations, rows, values, bytes| {
            activations.unpack(bytes, rows, values);
        });
    }

    fn each_vector(
        &mut self,
        (layer, part): (usize, usize),
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
        let (input, tape, ..) = self.layer(layer, part);
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
        self.lengths.inputs > self.lengths.layers
    }
}
