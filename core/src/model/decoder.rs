//! The driver: it passes rows of tokens through the layers of a model. Written once for all engines.

use super::memory::{Span, Vectors};
use super::pass::Pass;
use super::weights::Weights;
use super::{Cache, Memory, Model, ModelError, ModelParts, Needs, Place, Sequence};
use crate::engine::ModelEngine;

/// An input token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Row {
    /// The token.
    pub token: u32,
    /// Index of its sequence.
    pub sequence: usize,
    /// True if the caller needs its logits.
    pub logits: bool,
}

/// Passes rows through a model. Each row is the next position of its sequence. Rows of many sequences, of prompts and
/// of single tokens, may be mixed; the results do not depend on that.
///
/// `logits` gets one row of vocabulary length per row that asks for it, in their order. The content of `memory` does
/// not matter. If something of a row is not finite, its sequence ends, and no other. The function then calls `report`
/// with a [`ModelError::NotFinite`] for each sequence that ended: its lowest position, then layer, then step. The
/// logits of that row are unspecified.
///
/// O(rows · (weights + attended positions · heads · values of a head)).
///
/// # Errors
/// Before any computation: [`ModelError::LeftOut`], [`ModelError::Room`], [`ModelError::Token`], [`ModelError::NoSequence`],
/// [`ModelError::Ended`], [`ModelError::Context`], [`ModelError::Chunk`], [`ModelError::CacheFull`]. Otherwise those
/// of the engine. After any error the sequences are unchanged, except that they may hold more pages.
pub fn decode<E: ModelEngine>(
    engine: &mut E,
    model: &Model<'_, '_>,
    (cache, sequences): (&mut Cache<'_>, &mut [Sequence<'_>]),
    rows: &[Row],
    memory: &mut Memory<'_>,
    logits: &mut [f32],
    report: &mut dyn FnMut(ModelError),
) -> Result<(), E::Failure> {
    let mut progress = Progress::default();
    let mut done = false;
    while !done {
        let caches = (&mut *cache, &mut *sequences);
        done = decode_piece(
            engine,
            model,
            caches,
            rows,
            memory,
            logits,
            report,
            &mut progress,
        )?;
    }
    Ok(())
}

/// Progress of [`decode_piece`] in a step: at its beginning, which is the default, or after a number of pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress(pub(super) usize);

/// Does the next piece of [`decode`]: rows of the embedding, one layer, or logits. So a machine with one thread can
/// do other work in between. Returns true if this was the last piece.
///
/// Until the last piece, all arguments and their contents must stay the same. After it, and after an error,
/// `progress` is at the beginning of another step.
#[allow(
    clippy::too_many_arguments,
    reason = "those of decode, and where it stands"
)]
pub fn decode_piece<E: ModelEngine>(
    engine: &mut E,
    model: &Model<'_, '_>,
    (cache, sequences): (&mut Cache<'_>, &mut [Sequence<'_>]),
    rows: &[Row],
    memory: &mut Memory<'_>,
    logits: &mut [f32],
    report: &mut dyn FnMut(ModelError),
    progress: &mut Progress,
) -> Result<bool, E::Failure> {
    let Progress(piece) = core::mem::take(progress);
    let span = sequences.iter().fold(Span::default(), |span, sequence| {
        span.merge(sequence.span())
    });
    let asked = rows.iter().filter(|row| row.logits).count();
    let needed = asked.saturating_mul(model.config().vocabulary);
    let found = logits.len();
    let logits = logits.get_mut(..needed).ok_or(ModelError::Room {
        memory: "logits",
        needed,
        found,
    })?;
    if piece == 0 {
        let floats = model.all_weights().any(Weights::takes_floats);
        ModelParts::of(model.config(), cache.shape().kind, floats).check(E::PARTS)?;
        memory.check(&Needs::of_span(engine, model, span, rows.len())?)?;
        let places = memory.places.get_mut(..rows.len()).unwrap_or_default();
        place(model, cache, sequences, rows, places)?;
    }
    let (places, mut vectors, work) = Vectors::cut(model, span, rows.len(), memory);
    let mut step = Pass {
        engine,
        model,
        places,
        work,
    };
    let layer = piece
        .checked_sub(1)
        .map(|index| (index, model.layers().get(index)));
    match layer {
        None => {
            step.embed(rows.iter().map(|row| row.token), vectors.x)?;
            step.angles(sequences, vectors.angles);
        }
        Some((index, Some(layer))) => {
            step.layer((index, layer), (cache, sequences), &mut vectors, &mut ())?;
        }
        Some((_, None)) => {
            step.head(rows, vectors.x, logits)?;
            finish(sequences, step.places, report);
            return Ok(true);
        }
    }
    *progress = Progress(piece.saturating_add(1));
    Ok(false)
}

/// Sets each row's position, and takes space for it in the cache.
#[inline(never)]
fn place(
    model: &Model<'_, '_>,
    cache: &mut Cache<'_>,
    sequences: &mut [Sequence<'_>],
    rows: &[Row],
    places: &mut [Place],
) -> Result<(), ModelError> {
    for (index, row) in rows.iter().enumerate() {
        if row.token as usize >= model.config().vocabulary {
            return Err(ModelError::Token {
                row: index,
                token: row.token,
            });
        }
        let sequence = row.sequence;
        let before = rows.get(..index).unwrap_or_default().iter();
        let before = before.filter(|other| other.sequence == sequence).count();
        let found = sequences.get_mut(sequence);
        let found = found.ok_or(ModelError::NoSequence { row: index })?;
        if found.ended {
            return Err(ModelError::Ended { sequence });
        }
        let position = found.len().saturating_add(before as u32);
        found.extend(sequence, position, cache)?;
        if let Some(place) = places.get_mut(index) {
            *place = Place {
                sequence,
                position,
                fault: None,
            };
        }
    }
    Ok(())
}

/// Advances the sequences, or ends them.
fn finish(sequences: &mut [Sequence<'_>], places: &[Place], report: &mut dyn FnMut(ModelError)) {
    for place in places {
        let Some(sequence) = sequences.get_mut(place.sequence) else {
            continue;
        };
        sequence.advance(place.position.saturating_add(1));
        // Rows of a sequence come in order of position, so the first is the lowest.
        if let (Some((layer, step)), false) = (place.fault, sequence.ended) {
            sequence.ended = true;
            report(ModelError::NotFinite {
                sequence: place.sequence,
                layer,
                step,
                position: place.position,
            });
        }
    }
}
