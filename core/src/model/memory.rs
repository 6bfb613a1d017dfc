//! Memory that a step works in.

use super::cache::PAGE;
use super::weights::{Values, Weights};
use super::work::StepBuffers;
use super::{Config, DecoderLayer, Model, ModelError, Pattern, Sequence, Stage};
use crate::engine::LinearEngine;
use crate::engine::{GROUP, PART};
use crate::linear::network::LayerSize;

/// Place of a step's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Index of its sequence.
    pub sequence: usize,
    /// Its position in the sequence.
    pub position: u32,
    /// Layer and step at which one of its values first was not finite.
    pub fault: Option<(usize, Stage)>,
}

/// Memory that steps of a model need: the length of each slice of [`Memory`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Needs {
    /// Length of [`Memory::places`].
    pub places: usize,
    /// Length of [`Memory::floats`].
    pub floats: usize,
    /// Length of [`Memory::bytes`].
    pub bytes: usize,
    /// Length of [`Memory::halves`].
    pub halves: usize,
    /// Length of [`Memory::longs`]. [`Needs::least_longs`] are enough too, but products are then computed in smaller
    /// parts.
    pub longs: usize,
    /// Smallest length of [`Memory::longs`].
    pub least_longs: usize,
    /// Length of [`Memory::words`].
    pub words: usize,
}

/// The largest number of positions that sequences attend to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    /// Number of scores of a head.
    scores: usize,
    /// True if there are sinks.
    sinks: bool,
}

impl Span {
    /// Returns the span of a pattern, for that many positions if it is not a ring.
    pub(crate) const fn new(pattern: Pattern, context: u32) -> Self {
        Self {
            scores: Sequence::attended_pages(pattern, context).saturating_mul(PAGE as usize),
            sinks: pattern.sinks > 0,
        }
    }

    /// Returns a span that covers both.
    pub(super) fn merge(self, other: Self) -> Self {
        Self {
            scores: self.scores.max(other.scores),
            sinks: self.sinks | other.sinks,
        }
    }
}

/// Lengths of a pass's vectors.
#[derive(Clone, Copy)]
struct Lengths {
    row: usize,
    queries: usize,
    keys: usize,
    hidden: usize,
    input: usize,
    gains: usize,
    scales: usize,
    query_scales: usize,
    angles: usize,
    scores: usize,
}

impl Lengths {
    fn of(model: &Model<'_, '_>, span: Span, rows: usize) -> Self {
        let takes_floats = model.all_weights().any(Weights::takes_floats);
        Self::of_config(model.config(), takes_floats, span, rows)
    }

    const fn of_config(config: &Config, takes_floats: bool, span: Span, rows: usize) -> Self {
        let sets = 1 + span.sinks as usize;
        Self {
            row: rows.saturating_mul(config.width),
            queries: rows.saturating_mul(config.query_width()),
            keys: rows.saturating_mul(config.kv_width()),
            hidden: rows.saturating_mul(config.hidden),
            input: rows.saturating_mul(if takes_floats { config.widest() } else { 0 }),
            gains: config.widest(),
            scales: rows,
            query_scales: rows.saturating_mul(config.heads).saturating_mul(sets),
            angles: rows.saturating_mul(config.head).saturating_mul(sets),
            scores: span.scores,
        }
    }

    /// Returns the length of [`Parts`]: queries, keys and values, or gate and up, or the vector that is added to
    /// residuals.
    const fn parts(&self) -> usize {
        let heads = self.queries.saturating_add(self.keys.saturating_mul(2));
        most(most(heads, self.hidden.saturating_mul(2)), self.row)
    }

    const fn total(&self) -> usize {
        let parts = [
            self.row,
            self.parts(),
            self.input,
            self.gains,
            self.scales,
            self.query_scales,
            self.angles,
            self.scores,
        ];
        let (mut total, mut at) = (0usize, 0);
        while at < parts.len() {
            total = total.saturating_add(parts[at]);
            at += 1;
        }
        total
    }
}

/// The vectors of a pass, one row of each per row of the pass.
pub(crate) struct Vectors<'w> {
    /// Residuals.
    pub(crate) x: &'w mut [f32],
    /// Intermediate vectors of a layer.
    pub(crate) parts: Parts<'w>,
    /// Cosines and sines.
    pub(crate) angles: &'w mut [f32],
}

/// The vectors of half a layer, which share memory with those of the other half.
pub(crate) struct Parts<'w> {
    room: &'w mut [f32],
    row: usize,
    queries: usize,
    keys: usize,
    hidden: usize,
}

/// The vectors of attention.
pub(crate) struct Heads<'v> {
    /// Queries, and the result of attention.
    pub(crate) queries: &'v mut [f32],
    pub(crate) keys: &'v mut [f32],
    pub(crate) values: &'v mut [f32],
}

/// The vectors of the feed-forward network.
pub(crate) struct Gates<'v> {
    pub(crate) gate: &'v mut [f32],
    pub(crate) up: &'v mut [f32],
}

impl Parts<'_> {
    pub(crate) fn heads(&mut self) -> Heads<'_> {
        let mut rest = &mut *self.room;
        Heads {
            queries: cut(&mut rest, self.queries),
            keys: cut(&mut rest, self.keys),
            values: cut(&mut rest, self.keys),
        }
    }

    pub(crate) fn gates(&mut self) -> Gates<'_> {
        let mut rest = &mut *self.room;
        Gates {
            gate: cut(&mut rest, self.hidden),
            up: cut(&mut rest, self.hidden),
        }
    }

    /// Returns the vector that is added to residuals. Its inputs must have been quantized before.
    pub(crate) fn sum(&mut self) -> &mut [f32] {
        self.room.get_mut(..self.row).unwrap_or_default()
    }
}

/// Removes `len` elements from the front and returns them.
pub(crate) fn cut<'w, T>(rest: &mut &'w mut [T], len: usize) -> &'w mut [T] {
    let all = core::mem::take(rest);
    let (first, second) = all.split_at_mut(len.min(all.len()));
    *rest = second;
    first
}

impl<'w> Vectors<'w> {
    /// Divides memory of sufficient length into the vectors of `rows` rows and the memory of norms and products.
    pub(crate) fn cut(
        model: &Model<'_, '_>,
        span: Span,
        rows: usize,
        memory: &'w mut Memory<'_>,
    ) -> (&'w mut [Place], Self, StepBuffers<'w>) {
        let lengths = Lengths::of(model, span, rows);
        let mut rest = &mut *memory.floats;
        let vectors = Self {
            x: cut(&mut rest, lengths.row),
            parts: Parts {
                room: cut(&mut rest, lengths.parts()),
                row: lengths.row,
                queries: lengths.queries,
                keys: lengths.keys,
                hidden: lengths.hidden,
            },
            angles: cut(&mut rest, lengths.angles),
        };
        let work = StepBuffers {
            input: cut(&mut rest, lengths.input),
            gains: cut(&mut rest, lengths.gains),
            scales: cut(&mut rest, lengths.scales),
            query_scales: cut(&mut rest, lengths.query_scales),
            scores: cut(&mut rest, lengths.scores),
            bytes: memory.bytes,
            halves: memory.halves,
            longs: memory.longs,
            words: memory.words,
        };
        let places = memory.places.get_mut(..rows).unwrap_or_default();
        (places, vectors, work)
    }
}

impl Needs {
    /// Returns the memory that steps of at most `rows` rows need on an engine, for sequences with that pattern and at
    /// most `context` positions (unless it is a ring). O(layers).
    ///
    /// # Errors
    /// [`ModelError::TooLarge`].
    pub fn of<E: LinearEngine>(
        engine: &E,
        model: &Model<'_, '_>,
        pattern: Pattern,
        context: u32,
        rows: usize,
    ) -> Result<Self, ModelError> {
        Self::of_span(engine, model, Span::new(pattern, context), rows)
    }

    pub(super) fn of_span<E: LinearEngine>(
        engine: &E,
        model: &Model<'_, '_>,
        span: Span,
        rows: usize,
    ) -> Result<Self, ModelError> {
        let (mut words, mut outputs) = (0, 0);
        for weights in model.all_weights() {
            if let Values::Blocks(layer) = &weights.values {
                words = words.max(engine.product_scratch_len(layer.weights()));
                outputs = outputs.max(layer.weights().rows());
            }
        }
        let lengths = Lengths::of(model, span, rows);
        let needs = Self::of_parts(model.config(), &lengths, (outputs, words), span, rows);
        match needs.is_too_large() {
            true => Err(ModelError::TooLarge),
            false => Ok(needs),
        }
    }

    /// Like [`Needs::of`], for a model whose file is not read yet: for statics. `matrices` are all matrices of
    /// products, including the head, none of them of floats. The words are those that kernels of the target processor
    /// use. A size that does not fit an address is `usize::MAX`.
    ///
    /// ```
    /// use tercet_core::block::Format;
    /// use tercet_core::linear::{Layout, network::LayerSize};
    /// use tercet_core::model::{Architecture, CacheType, Config, Gate, Needs, Pattern};
    ///
    /// const CONFIG: Config = Config {
    ///     architecture: Architecture::BitNet, gate: Gate::Silu, layers: 2, width: 256, hidden: 512, heads: 4, kv_heads: 2, head: 64,
    ///     context: 128, vocabulary: 512, eps: 1e-5, rope_base: 10_000.0, rope_factor: 1.0, cache: CacheType::Int8, pattern: Pattern::FULL,
    /// };
    /// const MATRICES: [LayerSize; 2] = [
    ///     LayerSize::new(Layout::Block(Format::Tq1_0), 512, 256),
    ///     LayerSize::new(Layout::Block(Format::Q8_0), 512, 256),
    /// ];
    /// const NEEDS: Needs = Needs::of_sizes(&CONFIG, &MATRICES, Pattern::FULL, CONFIG.context, 1);
    /// static FLOATS: [f32; NEEDS.floats] = [0.0; NEEDS.floats];
    /// assert_eq!(FLOATS.len(), 1989);
    /// ```
    pub const fn of_sizes(
        config: &Config,
        matrices: &[LayerSize],
        pattern: Pattern,
        context: u32,
        rows: usize,
    ) -> Self {
        let (mut outputs, mut at) = (0, 0);
        while at < matrices.len() {
            outputs = most(outputs, matrices[at].rows);
            at += 1;
        }
        let span = Span::new(pattern, context);
        let lengths = Lengths::of_config(config, false, span, rows);
        let words = LayerSize::fast_scratch_len(matrices);
        Self::of_parts(config, &lengths, (outputs, words), span, rows)
    }

    const fn of_parts(
        config: &Config,
        lengths: &Lengths,
        (outputs, words): (usize, usize),
        span: Span,
        rows: usize,
    ) -> Self {
        let (sets, wide) = (1 + span.sinks as usize, config.wide() as usize);
        let inputs = rows.saturating_mul(config.widest());
        let queries = rows
            .saturating_mul(config.query_width())
            .saturating_mul(sets);
        let groups = if outputs < PART {
            outputs.next_multiple_of(GROUP)
        } else {
            PART
        };
        // The sums of both planes of activations; matrices of floats have none.
        let least = if outputs == 0 { 0 } else { 2 * GROUP * wide };
        let longs = groups.saturating_mul(2 * wide).saturating_mul(rows);
        Self {
            places: rows,
            floats: lengths.total(),
            bytes: inputs.saturating_mul(1 + wide),
            halves: most(queries, inputs.saturating_mul(wide)),
            longs: most(longs, config.head),
            least_longs: most(rows.saturating_mul(least), config.head),
            words,
        }
    }

    const fn is_too_large(&self) -> bool {
        const NONE: usize = usize::MAX;
        self.floats == NONE
            || self.bytes == NONE
            || self.halves == NONE
            || self.longs == NONE
            || self.words == NONE
    }

    /// Returns the total size in bytes.
    pub const fn total_bytes(&self) -> usize {
        let parts = [
            (self.places, size_of::<Place>()),
            (self.floats, 4),
            (self.bytes, 1),
            (self.halves, 2),
            (self.longs, 8),
            (self.words, 4),
        ];
        let (mut total, mut at) = (0usize, 0);
        while at < parts.len() {
            total = total.saturating_add(parts[at].0.saturating_mul(parts[at].1));
            at += 1;
        }
        total
    }
}

/// Memory of a step: the caller's slices with any content, of at least the lengths in [`Needs`].
#[derive(Debug)]
pub struct Memory<'w> {
    /// Places of the rows.
    pub places: &'w mut [Place],
    /// Residuals, activations, scores.
    pub floats: &'w mut [f32],
    /// Codes of activations.
    pub bytes: &'w mut [i8],
    /// Codes of queries, and of 16-bit activations.
    pub halves: &'w mut [i16],
    /// Sums.
    pub longs: &'w mut [i64],
    /// Scratch of products.
    pub words: &'w mut [u32],
}

impl Memory<'_> {
    /// Fails if there is less memory than a step needs.
    pub(crate) const fn check(&self, needs: &Needs) -> Result<(), ModelError> {
        let parts = [
            ("places", needs.places, self.places.len()),
            ("floats", needs.floats, self.floats.len()),
            ("bytes", needs.bytes, self.bytes.len()),
            ("halves", needs.halves, self.halves.len()),
            ("longs", needs.least_longs, self.longs.len()),
            ("words", needs.words, self.words.len()),
        ];
        enough(&parts)
    }
}

const fn most(a: usize, b: usize) -> usize {
    if a < b { b } else { a }
}

/// Fails for the first slice that is too short. Each part is a slice's name, the needed length and the length given.
pub(crate) const fn enough(parts: &[(&'static str, usize, usize)]) -> Result<(), ModelError> {
    let mut at = 0;
    while at < parts.len() {
        let (memory, needed, found) = parts[at];
        if found < needed {
            return Err(ModelError::Room {
                memory,
                needed,
                found,
            });
        }
        at += 1;
    }
    Ok(())
}

impl<'a> Model<'a, '_> {
    /// Returns every matrix that a step multiplies by.
    pub(crate) fn all_weights(&self) -> impl Iterator<Item = &Weights<'a>> {
        let layers = self.layers().iter().flat_map(DecoderLayer::weights);
        layers.chain([self.head()])
    }
}

impl Config {
    /// Returns true if the sizes of the matrices fit this machine's address range.
    pub(super) const fn fits(&self) -> bool {
        self.query_width() < usize::MAX && self.kv_width() < usize::MAX
    }
}
