//! The driver: rows of tokens through the layers of a model, written once for all engines.

use super::memory::{Span, Vectors};
use super::pass::Pass;
use super::{Cache, Memory, Model, ModelError, Needs, Place, Sequence};
use crate::engine::ModelEngine;

/// A token to take in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Row {
    /// The token.
    pub token: u32,
    /// The index of its sequence.
    pub sequence: usize,
    /// Whether its logits are asked for.
    pub logits: bool,
}

/// Takes rows through a model: each is the next position of its sequence. Rows of many sequences, of prompts and of
/// single tokens, may come mixed; what comes of them does not depend on that.
///
/// `logits` gets a row of the vocabulary for each row that asks for it, in their order. What `memory` holds does not
/// matter. A row of which something is not finite ends its sequence and no other: `report` is called with a
/// [`ModelError::NotFinite`] for each sequence that ended, of its lowest position, then layer, then step; its logits
/// are left open.
///
/// O(rows · (weights + attended positions · heads · values of a head)).
///
/// # Errors
/// [`ModelError::Room`], [`ModelError::Token`], [`ModelError::NoSequence`], [`ModelError::Ended`],
/// [`ModelError::Context`], [`ModelError::Chunk`], [`ModelError::CacheFull`], before anything is computed; the engine's
/// own. After any of them the sequences are as they were, but may hold more pages.
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

/// How far a step of [`decode_piece`] is: at its beginning, which is the default, or behind so many pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress(pub(super) usize);

/// The next piece of what [`decode`] does, so that a machine with one thread stays free for other work: rows of the embedding, a layer, or logits. Says
/// whether that was the last. Until then all that is given must be what it was, its contents too; afterwards, and after an error, `progress` is at the
/// beginning of another step.
///
/// # Errors
/// Those of [`decode`].
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

/// Gives each row its position, and makes room for it in the cache.
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

/// Lets the sequences go on, or ends them.
fn finish(sequences: &mut [Sequence<'_>], places: &[Place], report: &mut dyn FnMut(ModelError)) {
    for place in places {
        let Some(sequence) = sequences.get_mut(place.sequence) else {
            continue;
        };
        sequence.advance(place.position.saturating_add(1));
        // Rows of a sequence come by rising position, so the first is the lowest.
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
