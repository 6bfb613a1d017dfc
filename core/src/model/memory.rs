//! The memory that a step works in.

use super::cache::PAGE;
use super::weights::{Values, Weights};
use super::work::Work;
use super::{Config, Layer, Model, ModelError, Pattern, Sequence, Step};
use crate::engine::LinearEngine;
use crate::engine::{GROUP, PART};
use crate::linear::network::LayerSize;

/// Where a row of a step stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The index of its sequence.
    pub sequence: usize,
    /// Its position there.
    pub position: u32,
    /// Where something of it was first not finite: the layer and the step.
    pub fault: Option<(usize, Step)>,
}

/// How much memory steps of a model take: elements of each slice of [`Memory`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Needs {
    /// Of [`Memory::places`].
    pub places: usize,
    /// Of [`Memory::floats`].
    pub floats: usize,
    /// Of [`Memory::bytes`].
    pub bytes: usize,
    /// Of [`Memory::halves`].
    pub halves: usize,
    /// Of [`Memory::longs`]; [`Needs::least_longs`] do too, where products are then made in smaller parts.
    pub longs: usize,
    /// The least of [`Memory::longs`].
    pub least_longs: usize,
    /// Of [`Memory::words`].
    pub words: usize,
}

/// What sequences attend to at most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    /// Scores of a head.
    scores: usize,
    /// Whether there are sinks.
    sinks: bool,
}

impl Span {
    /// Of a pattern, and without a ring so many positions.
    pub(crate) const fn new(pattern: Pattern, context: u32) -> Self {
        Self {
            scores: Sequence::pages(pattern, context, 1).saturating_mul(PAGE as usize),
            sinks: pattern.sinks > 0,
        }
    }

    /// Of either.
    pub(super) fn merge(self, other: Self) -> Self {
        Self {
            scores: self.scores.max(other.scores),
            sinks: self.sinks | other.sinks,
        }
    }
}

/// The lengths of a pass's vectors.
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

    /// Of [`Parts`]: queries, keys and values, or gate and up, or what is added to residuals.
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

/// The vectors of a pass, a row of each for each row.
pub(crate) struct Vectors<'w> {
    /// Residuals.
    pub(crate) x: &'w mut [f32],
    /// What a layer makes on the way.
    pub(crate) parts: Parts<'w>,
    /// Cosines and sines.
    pub(crate) angles: &'w mut [f32],
}

/// The vectors of half a layer, which lie where those of the other half do.
pub(crate) struct Parts<'w> {
    room: &'w mut [f32],
    row: usize,
    queries: usize,
    keys: usize,
    hidden: usize,
}

/// Those of attention.
pub(crate) struct Heads<'v> {
    /// Queries, and what attention gives.
    pub(crate) queries: &'v mut [f32],
    pub(crate) keys: &'v mut [f32],
    pub(crate) values: &'v mut [f32],
}

/// Those of the feed-forward network.
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

    /// What is added to residuals, once all that it is made of has been quantized.
    pub(crate) fn sum(&mut self) -> &mut [f32] {
        self.room.get_mut(..self.row).unwrap_or_default()
    }
}

/// Takes so many elements off the front.
pub(crate) fn cut<'w, T>(rest: &mut &'w mut [T], len: usize) -> &'w mut [T] {
    let all = core::mem::take(rest);
    let (first, second) = all.split_at_mut(len.min(all.len()));
    *rest = second;
    first
}

impl<'w> Vectors<'w> {
    /// Cuts memory, which has enough, into the vectors of `rows` rows and what norms and products work in.
    pub(crate) fn cut(
        model: &Model<'_, '_>,
        span: Span,
        rows: usize,
        memory: &'w mut Memory<'_>,
    ) -> (&'w mut [Place], Self, Work<'w>) {
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
        let work = Work {
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
    /// What steps of at most `rows` rows take on an engine, of sequences with that pattern and, without a ring,
    /// `context` positions at most. O(layers).
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

    /// As [`Needs::of`], of a model that no file is read of yet: for statics. `matrices` are all that are multiplied by, the head too, none of them of floats;
    /// words are those that kernels of the processor that this is compiled for make use of. What does not fit an address is `usize::MAX`.
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
        // The sums of both planes of activations, which matrices of floats have none of.
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

    /// All of it in bytes.
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

/// What a step works in: slices of the caller's, whatever they hold, of at least the lengths that [`Needs`] tells.
#[derive(Debug)]
pub struct Memory<'w> {
    /// Rows.
    pub places: &'w mut [Place],
    /// Residuals, activations, scores.
    pub floats: &'w mut [f32],
    /// Codes of activations.
    pub bytes: &'w mut [i8],
    /// Codes of queries, and of activations of 16 bits.
    pub halves: &'w mut [i16],
    /// Sums.
    pub longs: &'w mut [i64],
    /// The scratch of products.
    pub words: &'w mut [u32],
}

impl Memory<'_> {
    /// Refuses memory of less than a step needs.
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

/// Refuses the first part of a memory that has less than is needed: what it is, how much is needed, how much there is.
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
    /// Every matrix that a step multiplies by.
    pub(crate) fn all_weights(&self) -> impl Iterator<Item = &Weights<'a>> {
        let layers = self.layers().iter().flat_map(Layer::weights);
        layers.chain([self.head()])
    }
}

impl Config {
    /// Whether a size of a matrix fits what this machine addresses.
    pub(super) const fn fits(&self) -> bool {
        self.query_width() < usize::MAX && self.kv_width() < usize::MAX
    }
}
