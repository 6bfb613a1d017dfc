//! Passes rows through one layer. Written once for running a model and for training it.

use super::memory::{Gates, Heads, Vectors};
use super::pass::Pass;
use super::{Cache, DecoderLayer, Sequence, Stage};
use crate::engine::ModelEngine;

/// Values of a layer's forward pass that the backward pass needs: one row per row of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Queries before they are rotated.
    Queries,
    /// Result of attention.
    Attended,
    /// The residual between attention and the feed-forward network.
    Middle,
    /// Input of the gate's activation.
    Gate,
    /// Its factor.
    Up,
}

/// Receives and stores these values.
pub(crate) trait Tape {
    fn keep(&mut self, which: Kept, values: &[f32]);
}

/// Stores nothing: for a model that only runs.
impl Tape for () {
    fn keep(&mut self, _: Kept, _: &[f32]) {}
}

impl<E: ModelEngine> Pass<'_, '_, '_, '_, E> {
    /// Passes the residuals of all rows through a layer, in place.
    pub(crate) fn layer<T: Tape>(
        &mut self,
        (index, layer): (usize, &DecoderLayer<'_>),
        caches: (&mut Cache<'_>, &[Sequence<'_>]),
        vectors: &mut Vectors<'_>,
        tape: &mut T,
    ) -> Result<(), E::Failure> {
        self.until_gate((index, layer), caches, vectors, tape)?;
        let Gates { gate, up } = vectors.parts.gates();
        self.engine.gate(self.model.config().gate, gate, up)?;
        let norm = (layer.feed_forward_sub_norm, index, Stage::Gate);
        self.norm(norm, gate, &[&layer.down])?;
        let y = vectors.parts.sum();
        self.product(&layer.down, y)?;
        add(vectors.x, y);
        Ok(())
    }

    /// Passes the residuals of all rows through a layer until the gate's input and its factor, and with that until all
    /// that a tape keeps. The residuals are then those between attention and the feed-forward network.
    pub(crate) fn until_gate<T: Tape>(
        &mut self,
        (index, layer): (usize, &DecoderLayer<'_>),
        (cache, sequences): (&mut Cache<'_>, &[Sequence<'_>]),
        vectors: &mut Vectors<'_>,
        tape: &mut T,
    ) -> Result<(), E::Failure> {
        // Attention.
        let norm = (layer.attention_norm, index, Stage::AttentionNorm);
        let inputs = [&layer.query, &layer.key, &layer.value];
        self.norm(norm, vectors.x, &inputs)?;
        let Heads {
            queries,
            keys,
            values,
        } = vectors.parts.heads();
        self.products([
            (&layer.query, &mut *queries),
            (&layer.key, &mut *keys),
            (&layer.value, &mut *values),
        ])?;
        tape.keep(Kept::Queries, queries);
        self.keep((cache, sequences), index, (keys, values, vectors.angles));
        self.ask(sequences, index, (queries, vectors.angles));
        self.attend((cache, sequences), index, queries)?;
        tape.keep(Kept::Attended, queries);
        let norm = (layer.attention_sub_norm, index, Stage::Attention);
        self.norm(norm, queries, &[&layer.output])?;
        let y = vectors.parts.sum();
        self.product(&layer.output, y)?;
        add(vectors.x, y);
        tape.keep(Kept::Middle, vectors.x);
        // The feed-forward network.
        let norm = (layer.feed_forward_norm, index, Stage::FeedForwardNorm);
        self.norm(norm, vectors.x, &[&layer.gate, &layer.up])?;
        let Gates { gate, up } = vectors.parts.gates();
        self.products([(&layer.gate, &mut *gate), (&layer.up, &mut *up)])?;
        tape.keep(Kept::Gate, gate);
        tape.keep(Kept::Up, up);
        Ok(())
    }
}

/// Adds rows, element by element.
pub(crate) fn add(x: &mut [f32], y: &[f32]) {
    for (x, &y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

/// Copies as many elements as both have.
pub(crate) fn copy(to: &mut [f32], from: &[f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = from;
    }
}
