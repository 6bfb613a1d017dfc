//! The driver: it passes a batch forwards and backwards through a model. Written once for all engines.

#[cfg(doc)]
use super::WEIGHT_FLOOR;
use super::backward::Backward;
use super::buffers::{BackwardMemory, Lengths};
use super::memory::{Transposed, check};
use super::{ATTENTION_GROUPS, Activations, GROUP, Memory, Needs, Shapes, SoftTargets, Tensor};
use crate::engine::TrainEngine;
use crate::model::{
    Architecture, Cache, CacheType, Model, ModelError, Pass, Pattern, Place, Sequence, Span, Stage,
    Vectors, copy, enough,
};

/// Tokens of sequences of the same length, and the token that follows each.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'b> {
    /// One sequence after another.
    pub tokens: &'b [u32],
    /// Tokens to predict, one per token.
    pub targets: &'b [u32],
    /// A teacher's probabilities to learn from too. The cost of a batch remains that of the targets.
    pub soft: Option<SoftTargets<'b>>,
    /// Number of tokens per sequence.
    pub length: usize,
    /// True to compute layers' forward passes twice, a sequence at a time and without their last product the second
    /// time, and keep only their inputs. The bits are the same.
    pub recompute: bool,
    /// How inputs and values of layers are kept. It changes the gradients.
    pub activations: Activations,
}

error_enum! {
    /// Reason why a step returned no gradients. Layers count from 0.
    pub enum Fault {
        /// A value of the forward pass was not finite.
        NotFinite {
            /// The layer.
            layer: usize,
            /// The step with that value.
            step: Stage,
            /// Lowest such position.
            position: u32,
        } => "layer {layer}, position {position}: {step} is not finite",
        /// The logits of a token were not finite.
        Logits {
            /// The token's index in the batch.
            row: usize,
        } => "the logits of token {row} of the batch are not finite",
        /// Gradients at a tensor are not finite or too large for their sums.
        Diverged {
            /// The layer; the number of layers for a tensor outside them.
            layer: usize,
            /// The tensor's name after `blk.N.`.
            tensor: &'static str,
        } => "the gradients at {tensor} (layer {layer}) are not finite or too large",
    }
}

/// The cost of a batch: the sum over all its targets, in units of [`NLL_UNIT`](crate::model::NLL_UNIT).
pub type Loss = i64;

/// Destination of a batch's gradients. A slice with one element per value of all tensors ([`Shapes::values`]) is one;
/// others may use a tensor's sums and give their memory to the next.
pub trait GradientSums {
    /// Returns a tensor's sums, one per weight; fewer if there is no memory for them.
    fn of(&mut self, tensor: &Tensor) -> &mut [i64];

    /// Called once per tensor, when the gradients of the whole batch are in its sums, and only while nothing has
    /// failed. The last norm is the first; the embedding, whose sums grow from the beginning, the last. Between them
    /// the sums of no two tensors are in use at the same time, or of no two layers with [`Batch::recompute`].
    fn complete(&mut self, _tensor: &Tensor) {}
}

impl GradientSums for [i64] {
    fn of(&mut self, tensor: &Tensor) -> &mut [i64] {
        let rest = self.get_mut(tensor.first..).unwrap_or_default();
        let length = tensor.len().min(rest.len());
        rest.get_mut(..length).unwrap_or_default()
    }
}

/// Adds the gradients of a batch's cost to `sums`. Returns the cost.
///
/// Units are 2 to the power of [`WEIGHT_FLOOR`] for matrices and the embedding, and of
/// [`GAIN_UNIT`](super::GAIN_UNIT) for gains. `sequences` has at least one per sequence of the batch; they are reset.
/// The cache has int8 keys and values. If the function returns a [`Fault`], the content of the sums is unspecified.
///
/// The sums of two batches add up to those of both together: the result does not depend on the division of a batch,
/// or on which thread or engine computes a part.
///
/// O(tokens · (weights + length · heads · values of a head)).
///
/// # Errors
/// [`ModelError::Room`]; [`ModelError::Token`]; [`ModelError::NoSequence`]; [`ModelError::Windowed`];
/// [`ModelError::Chunk`]; [`ModelError::CacheFull`]; [`ModelError::Context`], also for sequences for which sums of
/// attention could exceed 64 bits; [`ModelError::Architecture`] for a model that is not a `bitnet`; those of the
/// engine.
pub fn gradients<E: TrainEngine, S: GradientSums + ?Sized>(
    engine: &mut E,
    (model, transposed): (&Model<'_, '_>, &Transposed<'_>),
    batch: &Batch<'_>,
    (cache, sequences): (&mut Cache<'_>, &mut [Sequence<'_>]),
    memory: &mut Memory<'_>,
    sums: &mut S,
) -> Result<Result<Loss, Fault>, E::Failure> {
    let config = model.config();
    let (rows, length) = (batch.tokens.len(), batch.length);
    refuse((model, transposed), batch, cache, sums)?;
    let kept = (batch.recompute, batch.activations);
    let needs = Needs::of(engine, model, transposed, (length, rows), kept)?;
    check(memory, &needs)?;
    begin((rows, length), cache, sequences)?;
    let lengths = Lengths::of(config, (length, rows), kept);
    let span = Span::new(Pattern::FULL, length as u32);
    let (places, mut vectors, work) = Vectors::cut(model, span, lengths.rows, &mut memory.model);
    let mut room = BackwardMemory::cut(
        lengths,
        (memory.floats, memory.kept),
        memory.bytes,
        memory.ints,
        memory.longs,
    );
    let mut pass = Pass {
        engine,
        model,
        places,
        work,
    };
    take_places(pass.places, length);
    pass.angles(sequences, vectors.angles);
    let mut fault = None;
    for part in 0..lengths.parts {
        let first = part.wrapping_mul(lengths.rows);
        let sequences = lengths.sequences(sequences, part);
        take_places(pass.places, length);
        pass.embed(batch.tokens.iter().skip(first).copied(), vectors.x)?;
        for (index, layer) in model.layers().iter().enumerate() {
            let (input, mut tape, ..) = room.layer(index, part);
            copy(input, vectors.x);
            pass.layer((index, layer), (cache, sequences), &mut vectors, &mut tape)?;
            if !room.computes_again() {
                room.pack(index, part);
            }
        }
        if room.computes_again() {
            copy(room.layer(config.layers, part).0, vectors.x);
        }
        fault = forward_fault(fault, pass.places);
    }
    if let Some((position, layer, step)) = fault {
        return Ok(Err(Fault::NotFinite {
            layer,
            step,
            position,
        }));
    }
    let mut backward = Backward {
        pass,
        shapes: Shapes::new(config),
        transposed,
        length,
        sums,
        fault: None,
        checks: 0,
        is_last: true,
    };
    let (x, dx, work) = room.head();
    let cost = backward.head(batch, x.unwrap_or(vectors.x), dx, work)?;
    for (index, layer) in model.layers().iter().enumerate().rev() {
        if backward.fault.is_some() {
            break;
        }
        for part in 0..lengths.parts {
            (backward.checks, backward.is_last) = (0, part.wrapping_add(1) == lengths.parts);
            let sequences = lengths.sequences(sequences, part);
            if room.computes_again() {
                let (input, mut tape, ..) = room.layer(index, part);
                copy(vectors.x, input);
                backward.pass.until_gate(
                    (index, layer),
                    (cache, sequences),
                    &mut vectors,
                    &mut tape,
                )?;
                room.pack(index, part);
            }
            room.unpack(index, part);
            let (input, mut tape, dx, work) = room.layer(index, part);
            let caches = (&*cache, sequences);
            backward.layer(
                (index, layer),
                caches,
                (input, &mut tape),
                dx,
                (&mut vectors, work),
            )?;
        }
    }
    backward.look_up(batch.tokens, room.dx);
    Ok(match backward.fault {
        Some((_, fault)) => Err(fault),
        None => Ok(cost),
    })
}

/// Resets the sequences of a batch and takes all their pages.
fn begin(
    (rows, length): (usize, usize),
    cache: &mut Cache<'_>,
    sequences: &mut [Sequence<'_>],
) -> Result<(), ModelError> {
    for row in 0..rows {
        let (sequence, position) = place(row, length);
        let found = sequences.get_mut(sequence);
        let found = found.ok_or(ModelError::NoSequence { row })?;
        if *found.pattern() != Pattern::FULL {
            return Err(ModelError::Windowed { sequence });
        }
        if position == 0 {
            found.reset(cache);
        }
        found.extend(sequence, position, cache)?;
    }
    Ok(())
}

/// Returns the sequence and the position of a row.
const fn place(row: usize, length: usize) -> (usize, u32) {
    match (row.checked_div(length), row.checked_rem(length)) {
        (Some(sequence), Some(position)) => (sequence, position as u32),
        _ => (0, 0),
    }
}

/// Makes the places those of the rows of a part, without faults.
fn take_places(places: &mut [Place], length: usize) {
    for (row, to) in places.iter_mut().enumerate() {
        let (sequence, position) = place(row, length);
        *to = Place {
            sequence,
            position,
            fault: None,
        };
    }
}

/// Fails if the batch is invalid for this model, before any computation.
fn refuse(
    (model, transposed): (&Model<'_, '_>, &Transposed<'_>),
    batch: &Batch<'_>,
    cache: &Cache<'_>,
    sums: &mut (impl GradientSums + ?Sized),
) -> Result<(), ModelError> {
    let config = model.config();
    if config.architecture != Architecture::BitNet {
        return Err(ModelError::Architecture);
    }
    if cache.shape().kind != CacheType::Int8 {
        return Err(ModelError::OwnKey {
            key: "tercet.cache",
            expected: "int8",
        });
    }
    let shapes = Shapes::new(config);
    enough(&[
        ("scales of tensors", shapes.count(), transposed.scales.len()),
        (
            "scales of the embedding's rows",
            config.vocabulary,
            transposed.rows.len(),
        ),
        (
            "tokens of a sequence",
            usize::from(!batch.tokens.is_empty()),
            batch.length,
        ),
    ])?;
    let shared = config.heads.checked_div(config.kv_heads).unwrap_or(1);
    let most = (GROUP * ATTENTION_GROUPS).checked_div(shared).unwrap_or(0) / GROUP * GROUP;
    if batch.length > most {
        let positions = most as u32;
        return Err(ModelError::Context {
            sequence: 0,
            positions,
        });
    }
    for tensor in shapes.iter() {
        let found = sums.of(&tensor).len();
        enough(&[("sums of gradients", tensor.len(), found)])?;
    }
    let whole = batch.tokens.len().next_multiple_of(batch.length.max(1));
    enough(&[
        ("tokens of whole sequences", whole, batch.tokens.len()),
        ("targets", batch.tokens.len(), batch.targets.len()),
    ])?;
    if let Some(soft) = &batch.soft {
        let all = batch.tokens.len().saturating_mul(config.vocabulary);
        enough(&[("probabilities of a teacher", all, soft.len())])?;
    }
    let pairs = batch.tokens.iter().zip(batch.targets).enumerate();
    for (row, (&token, &target)) in pairs {
        let token = token.max(target);
        if token as usize >= config.vocabulary {
            return Err(ModelError::Token { row, token });
        }
    }
    Ok(())
}

/// A position, and the layer and the step with a value that is not finite there.
type NotFinite = (u32, usize, Stage);

/// Returns the fault with the lowest position, then layer, of those in the places and an earlier one.
fn forward_fault(earlier: Option<NotFinite>, places: &[Place]) -> Option<NotFinite> {
    let faults = places.iter().filter_map(|place| {
        let (layer, step) = place.fault?;
        Some((place.position, layer, step))
    });
    let all = earlier.into_iter().chain(faults);
    all.min_by_key(|&(position, layer, _)| (position, layer))
}
