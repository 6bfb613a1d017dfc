//! Generates a text token by token, in pieces of work.

use super::{Cache, Memory, Model, ModelError, Progress, Row, Sampler, Sequence, decode_piece};
use crate::engine::ModelEngine;

/// Memory and settings with which a [`Generator`] draws tokens.
#[derive(Debug)]
pub struct Draws<'m> {
    /// One logit per token of the vocabulary.
    pub logits: &'m mut [f32],
    /// The last tokens, as many as the sampler's penalty considers.
    pub recent: &'m mut [u32],
    /// Rules for drawing tokens.
    pub sampler: Sampler,
    /// Tokens that end a text.
    pub ends: &'m [u32],
}

/// Result of [`Generator::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Event {
    /// A piece of work is done, and more remains.
    Working,
    /// All [`logits`](Generator::logits) for the next token are computed.
    Logits,
    /// A token was drawn.
    Token(u32),
    /// No more tokens come until a text is [begun](Generator::begin).
    Over(End),
}

/// Reason why no more tokens come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum End {
    /// The requested number of tokens was drawn, or no text was begun.
    Length,
    /// The last token ends a text.
    Token,
    /// The sequence has no position for another token.
    Context,
    /// An error occurred, or a value was not finite; `poll` has returned the error.
    Failed,
}

/// The next action.
#[derive(Clone, Copy, Debug)]
enum Next {
    Feed(u32),
    Draw,
    Over(End),
}

/// Continues a text with one sequence and one row per step, in the caller's memory, one piece of work at a time: see
/// [`decode_piece`]. Between two pieces a program may do other work. Nothing here waits, and interrupts stay enabled.
///
/// The tokens are those of `tercet generate`: for the same file, prompt, pattern, cache and sampler they are equal on
/// every machine.
///
/// ```
/// use tercet_core::gguf::Reader;
/// use tercet_core::model::{
///     Cache, CacheShape, Codes, Draws, End, Event, Generator, DecoderLayer, Memory, Model, Needs, Pattern, Place, Sampler, Sequence,
/// };
/// use tercet_core::scalar::Scalar;
///
/// let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance/models/ternary.gguf"));
/// let file = Reader::new(bytes)?;
/// let (mut layers, mut steps) = ([DecoderLayer::EMPTY; 2], [0; 2]);
/// let model = Model::new(&file, &mut layers, &mut steps)?;
/// let (config, context) = (model.config(), 64);
/// let (shape, needs) = (CacheShape::new(config, config.cache), Needs::of(&Scalar, &model, Pattern::FULL, context, 1)?);
/// let (mut keys, mut values) = (vec![0; shape.codes()], vec![0; shape.codes()]);
/// let (mut scales, mut free, mut table) = (vec![0.0; 2 * shape.scales()], [0], [0]);
/// let (keys, values) = (Codes::Narrow(&mut keys), Codes::Narrow(&mut values));
/// let cache = Cache::new(shape, keys, values, &mut scales, &mut free)?;
/// let sequence = Sequence::new(Pattern::FULL, config.cache, context, 1, &mut table)?;
/// let (mut places, mut floats) = ([Place::default()], vec![0.0; needs.floats]);
/// let (mut bytes, mut halves) = (vec![0; needs.bytes], vec![0; needs.halves]);
/// let (mut longs, mut words) = (vec![0; needs.longs], vec![0; needs.words.max(config.vocabulary)]);
/// let memory = Memory {
///     places: &mut places, floats: &mut floats, bytes: &mut bytes, halves: &mut halves, longs: &mut longs, words: &mut words,
/// };
/// let mut logits = vec![0.0; config.vocabulary];
/// let sampler = Sampler { temperature: 0.8, seed: 7, ..Sampler::GREEDY };
/// let draws = Draws { logits: &mut logits, recent: &mut [], sampler, ends: &[] };
///
/// let mut generator = Generator::new(Scalar, &model, (cache, sequence), memory, draws);
/// generator.begin(&[256, 72, 105], 4);
/// let mut tokens = Vec::new();
/// let end = loop {
///     match generator.poll()? {
///         Event::Token(token) => tokens.push(token),
///         Event::Over(end) => break end,
///         // Whatever else there is to do.
///         Event::Working | Event::Logits => {}
///     }
/// };
/// assert_eq!((tokens.len(), end), (4, End::Length));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Generator<'m, E> {
    engine: E,
    model: &'m Model<'m, 'm>,
    cache: Cache<'m>,
    sequences: [Sequence<'m>; 1],
    memory: Memory<'m>,
    draws: Draws<'m>,
    /// Number of last tokens that are known.
    known: usize,
    progress: Progress,
    /// Rest of the prompt after the next token.
    prompt: &'m [u32],
    /// Number of tokens still to be drawn.
    left: u32,
    next: Next,
}

impl<'m, E: ModelEngine> Generator<'m, E> {
    /// Creates a generator without a text. The contents of the memory do not matter; if a slice is too small, the
    /// first step returns an error. Drawing uses [`Memory::words`] as scratch, which needs one element per token of
    /// the vocabulary, except for a temperature of 0.
    pub const fn new(
        engine: E,
        model: &'m Model<'m, 'm>,
        (cache, sequence): (Cache<'m>, Sequence<'m>),
        memory: Memory<'m>,
        draws: Draws<'m>,
    ) -> Self {
        Self {
            engine,
            model,
            cache,
            sequences: [sequence],
            memory,
            draws,
            known: 0,
            progress: Progress(0),
            prompt: &[],
            left: 0,
            next: Next::Over(End::Length),
        }
    }

    /// Drops the current text and begins another, for which at most `tokens` more are drawn. A text of no tokens is
    /// over at once.
    pub fn begin(&mut self, prompt: &'m [u32], tokens: u32) {
        let [sequence] = &mut self.sequences;
        sequence.reset(&mut self.cache);
        self.known = 0;
        self.progress = Progress::default();
        self.left = tokens;
        self.prompt = prompt;
        self.next = match tokens {
            0 => Next::Over(End::Length),
            _ => self.of_prompt().unwrap_or(Next::Over(End::Length)),
        };
    }

    /// Takes the next token from the prompt.
    fn of_prompt(&mut self) -> Option<Next> {
        let (&token, rest) = self.prompt.split_first()?;
        self.prompt = rest;
        self.remember(token);
        Some(Next::Feed(token))
    }

    /// Adds a token to those that the penalty considers.
    fn remember(&mut self, token: u32) {
        let recent = &mut *self.draws.recent;
        if let Some(slot) = recent.get_mut(self.known) {
            *slot = token;
            self.known = self.known.saturating_add(1);
        } else if let Some((last, before)) = recent.split_last_mut() {
            let mut next = *last;
            *last = token;
            for slot in before.iter_mut().rev() {
                next = core::mem::replace(slot, next);
            }
        }
    }

    /// Returns the logits of the next token, after [`Event::Logits`].
    pub fn logits(&self) -> &[f32] {
        self.draws.logits
    }

    /// Returns the number of tokens processed so far.
    pub const fn len(&self) -> u32 {
        let [sequence] = &self.sequences;
        sequence.len()
    }

    /// Returns true if no token was processed.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Does one piece of work: at most one layer. O(weights of a layer + attended positions · heads · values of a
    /// head).
    ///
    /// # Errors
    /// Those of [`decode`](super::decode); [`ModelError::NotFinite`]; [`ModelError::Logits`] if the sampler cannot
    /// draw. The text is then over.
    pub fn poll(&mut self) -> Result<Event, E::Failure> {
        match self.next {
            Next::Over(end) => Ok(Event::Over(end)),
            Next::Draw => self.draw(),
            Next::Feed(token) => {
                let fed = self.feed(token);
                if fed.is_err() {
                    self.next = Next::Over(End::Failed);
                }
                fed
            }
        }
    }

    fn feed(&mut self, token: u32) -> Result<Event, E::Failure> {
        let row = Row {
            token,
            sequence: 0,
            logits: self.prompt.is_empty(),
        };
        let mut fault = None;
        let done = decode_piece(
            &mut self.engine,
            self.model,
            (&mut self.cache, &mut self.sequences),
            &[row],
            &mut self.memory,
            self.draws.logits,
            &mut |error| fault = Some(error),
            &mut self.progress,
        )?;
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        if !done {
            return Ok(Event::Working);
        }
        Ok(match self.of_prompt() {
            Some(next) => {
                self.next = next;
                Event::Working
            }
            None => {
                self.next = Next::Draw;
                Event::Logits
            }
        })
    }

    fn draw(&mut self) -> Result<Event, E::Failure> {
        let position = self.len();
        let Draws {
            logits,
            recent,
            sampler,
            ends,
        } = &mut self.draws;
        let recent = recent.get(..self.known).unwrap_or_default();
        let logits = logits
            .get_mut(..self.model.config().vocabulary)
            .unwrap_or_default();
        let Some(token) = sampler.draw(logits, recent, position.into(), self.memory.words) else {
            self.next = Next::Over(End::Failed);
            return Err(ModelError::Logits.into());
        };
        let is_end = ends.contains(&token);
        self.left = self.left.saturating_sub(1);
        self.remember(token);
        let [sequence] = &self.sequences;
        self.next = if is_end {
            Next::Over(End::Token)
        } else if self.left == 0 {
            Next::Over(End::Length)
        } else if sequence.is_full() {
            Next::Over(End::Context)
        } else {
            Next::Feed(token)
        };
        Ok(Event::Token(token))
    }
}
