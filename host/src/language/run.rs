//! A running model: its cache, its sequences and the memory of its steps.

use tercet_core::engine::ModelEngine;
use tercet_core::model::{
    Cache, CacheShape, CacheType, Codes, Memory, Model, ModelError, Needs, Pattern, Place, Row,
    Sequence, decode,
};
use tracing::trace_span;

use super::available::available;
use super::file::LanguageFile;
use super::inputs::{Inputs, Recorder};
use crate::Error;
use crate::engine::{DoneBy, EngineError, FlowEngine, WithFallback};
use crate::parallel::team;

/// How a model is run; the result depends on all fields but the last three. The default is one sequence, in steps of 64
/// rows.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// The positions that are attended to; `None` for the file's.
    pub pattern: Option<Pattern>,
    /// How keys and values are stored; `None` for the type of the file or of its architecture.
    pub cache: Option<CacheType>,
    /// Maximum number of positions of a sequence without a window; `None` for the model's context.
    pub context: Option<u32>,
    /// Number of sequences.
    pub sequences: usize,
    /// Maximum number of rows per step: only speed and memory depend on it.
    pub chunk: u32,
    /// Bytes that are used beside this run, for example by a draft model: there must be room for both.
    pub beside: usize,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            pattern: None,
            cache: None,
            context: None,
            sequences: 1,
            chunk: 64,
            beside: 0,
        }
    }
}

/// Bytes of a model whose steps are so short that no thread is kept awake for them.
const SMALL: usize = 1 << 20;

/// Memory in bytes, known before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Usage {
    /// Weights, which stay in the file's map.
    pub weights: usize,
    /// Keys and values.
    pub cache: usize,
    /// Steps: residuals, activations, sums and logits.
    pub steps: usize,
}

/// Sizes of all memory of a model's run.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    pattern: Pattern,
    kind: CacheType,
    context: u32,
    chunk: u32,
    shape: CacheShape,
    pages: usize,
    needs: Needs,
    logits: usize,
}

impl RunOptions {
    fn sizes<E: FlowEngine>(&self, engine: &E, model: &Model<'_, '_>) -> Result<Sizes, ModelError> {
        let config = model.config();
        let pattern = self.pattern.unwrap_or(config.pattern);
        let kind = self.cache.unwrap_or(config.cache);
        let context = self.context.unwrap_or(config.context);
        let chunk = self.chunk.max(1);
        let rows = chunk as usize;
        let needs = Needs::of(engine, model, pattern, context, rows)?;
        let pages = Sequence::pages(pattern, context, chunk);
        let logits = rows
            .checked_mul(config.vocabulary)
            .ok_or(ModelError::TooLarge)?;
        Ok(Sizes {
            pattern,
            kind,
            context,
            chunk,
            shape: CacheShape::new(config, kind),
            pages,
            needs,
            logits,
        })
    }

    /// Returns the memory of a model's run on an engine.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if sizes do not fit this machine's addresses.
    pub fn usage<E: FlowEngine>(
        &self,
        engine: &E,
        file: &LanguageFile,
        model: &Model<'_, '_>,
    ) -> Result<Usage, Error> {
        let sizes = self
            .sizes(engine, model)
            .map_err(|error| file.error(&error))?;
        let pages = sizes.pages.saturating_mul(self.sequences);
        Ok(Usage {
            weights: model.bytes(),
            cache: sizes.shape.bytes().saturating_mul(pages),
            steps: sizes
                .needs
                .total_bytes()
                .saturating_add(sizes.logits.saturating_mul(4)),
        })
    }

    /// As [`RunOptions::usage`], and checks that this machine has enough free memory, if it reports that.
    ///
    /// # Errors
    /// [`Error::Memory`] if it has not; those of [`RunOptions::usage`].
    pub fn fits<E: FlowEngine>(
        &self,
        engine: &E,
        file: &LanguageFile,
        model: &Model<'_, '_>,
    ) -> Result<Usage, Error> {
        let usage = self.usage(engine, file, model)?;
        let needed = usage.cache.saturating_add(usage.steps);
        let needed = u64::try_from(needed.saturating_add(self.beside)).unwrap_or(u64::MAX);
        match available() {
            Some(available) if needed > available => Err(Error::Memory {
                path: file.path().to_path_buf(),
                cache: usage.cache,
                steps: usage.steps.saturating_add(self.beside),
                available,
            }),
            _ => Ok(usage),
        }
    }
}

/// Returns a vector of so many elements, or an error if memory is not enough.
pub(super) fn room<T: Clone>(
    value: T,
    len: usize,
    what: &'static str,
    file: &LanguageFile,
) -> Result<Vec<T>, Error> {
    let mut room = Vec::new();
    room.try_reserve_exact(len).map_err(|_| {
        let bytes = len.saturating_mul(size_of::<T>());
        Error::unsupported(
            file.path(),
            format!("{what} need {bytes} bytes, but this machine has too little memory"),
        )
    })?;
    room.resize(len, value);
    Ok(room)
}

/// Runs a model on an engine: `work` receives the [`Decoder`], with empty sequences.
///
/// Memory for all sequences and for steps of [`RunOptions::chunk`] rows is allocated first, if there is enough.
///
/// # Errors
/// [`Error::Memory`]; [`Error::Unsupported`] for sizes that are too large; those of `work`.
pub fn run<E: FlowEngine, T>(
    engine: &mut E,
    file: &LanguageFile,
    model: &Model<'_, '_>,
    options: &RunOptions,
    work: impl FnOnce(&mut Decoder<'_, '_, E>) -> Result<T, Error>,
) -> Result<(T, DoneBy), Error> {
    options.fits(engine, file, model)?;
    let sizes = options
        .sizes(engine, model)
        .map_err(|error| file.error(&error))?;
    let pages = sizes.pages.saturating_mul(options.sequences);
    let codes = sizes.shape.codes().saturating_mul(pages);
    const CACHE: &str = "the cache's keys and values";
    const TABLES: &str = "the tables of the cache's pages";
    let both = |wide: bool| {
        let narrow = room(0i8, if wide { 0 } else { codes }, CACHE, file)?;
        Ok::<_, Error>((
            narrow,
            room(0i16, if wide { codes } else { 0 }, CACHE, file)?,
        ))
    };
    let (mut keys, mut values) = (
        both(sizes.kind.wide_keys())?,
        both(sizes.kind.wide_values())?,
    );
    let mut scales = room(
        0.0,
        sizes.shape.scales().saturating_mul(pages).saturating_mul(2),
        CACHE,
        file,
    )?;
    let mut free = room(0, pages, TABLES, file)?;
    let refuse = |error: ModelError| file.error(&error);
    let cache = Cache::new(
        sizes.shape,
        codes_of(&mut keys, sizes.kind.wide_keys()),
        codes_of(&mut values, sizes.kind.wide_values()),
        &mut scales,
        &mut free,
    );
    let mut tables = room(0, pages, TABLES, file)?;
    let mut sequences = Vec::new();
    for table in tables.chunks_mut(sizes.pages.max(1)) {
        let sequence = Sequence::new(sizes.pattern, sizes.kind, sizes.context, sizes.chunk, table);
        sequences.push(sequence.map_err(refuse)?);
    }
    let needs = &sizes.needs;
    let mut places = room(Place::default(), needs.places, "activations", file)?;
    let mut floats = room(0.0, needs.floats, "activations", file)?;
    let mut bytes = room(0, needs.bytes, "activations", file)?;
    let mut halves = room(0, needs.halves, "activations", file)?;
    let mut longs = room(0, needs.longs, "sums", file)?;
    let mut words = room(0, needs.words, "scratch", file)?;
    let mut logits = room(0.0, sizes.logits, "logits", file)?;
    let mut decoder = Decoder {
        shared: WithFallback::new(engine),
        file,
        model,
        cache: cache.map_err(refuse)?,
        sequences: &mut sequences,
        memory: Memory {
            places: &mut places,
            floats: &mut floats,
            bytes: &mut bytes,
            halves: &mut halves,
            longs: &mut longs,
            words: &mut words,
        },
        logits: &mut logits,
        inputs: None,
        chunk: sizes.chunk as usize,
        room: match sizes.pattern.is_ring() {
            true => usize::MAX,
            false => sizes.context as usize,
        },
    };
    let done = work(&mut decoder)?;
    Ok((done, decoder.shared.by()))
}

fn codes_of((narrow, wide): &mut (Vec<i8>, Vec<i16>), is_wide: bool) -> Codes<'_> {
    match is_wide {
        true => Codes::Wide(wide),
        false => Codes::Narrow(narrow),
    }
}

/// A model with its cache and sequences.
pub struct Decoder<'d, 'f, E> {
    shared: WithFallback<'d, E>,
    file: &'f LanguageFile,
    model: &'d Model<'d, 'd>,
    pub(super) cache: Cache<'d>,
    pub(super) sequences: &'d mut [Sequence<'d>],
    memory: Memory<'d>,
    logits: &'d mut [f32],
    inputs: Option<Inputs>,
    chunk: usize,
    room: usize,
}

/// Does [`decode`], and adds the inputs of matrices to `inputs` unless it fails.
fn decode_into<E: ModelEngine>(
    engine: &mut E,
    inputs: Option<&mut Inputs>,
    model: &Model<'_, '_>,
    state: (&mut Cache<'_>, &mut [Sequence<'_>]),
    rows: &[Row],
    (memory, logits): (&mut Memory<'_>, &mut [f32]),
    report: &mut dyn FnMut(ModelError),
) -> Result<(), E::Failure> {
    let Some(inputs) = inputs else {
        return decode(engine, model, state, rows, memory, logits, report);
    };
    let mut grown = inputs.clone();
    let mut engine = Recorder {
        engine,
        inputs: &mut grown,
    };
    decode(&mut engine, model, state, rows, memory, logits, report)?;
    *inputs = grown;
    Ok(())
}

impl<E: FlowEngine> Decoder<'_, '_, E> {
    /// Returns the model.
    pub fn model(&self) -> &Model<'_, '_> {
        self.model
    }

    /// Returns the maximum number of rows per step.
    pub const fn chunk(&self) -> usize {
        self.chunk
    }

    /// Returns the number of sequences.
    pub const fn sequences(&self) -> usize {
        self.sequences.len()
    }

    /// Returns the maximum number of positions of a sequence; `usize::MAX` for the ring of a window.
    pub const fn room(&self) -> usize {
        self.room
    }

    /// Returns the current number of positions of a sequence.
    pub fn len(&self, sequence: usize) -> u32 {
        self.sequences.get(sequence).map_or(0, Sequence::len)
    }

    /// Returns the positions that a sequence attends to.
    pub fn pattern(&self) -> Pattern {
        let first = self.sequences.first();
        first.map_or(self.model.config().pattern, |sequence| *sequence.pattern())
    }

    /// Records the inputs of the model's matrices from now on, starting from zero.
    ///
    /// # Errors
    /// [`Error::BadFile`].
    pub fn record(&mut self) -> Result<(), Error> {
        self.inputs = Some(Inputs::of(self.file, self.model)?);
        Ok(())
    }

    /// Returns the recorded inputs; `None` if recording was not requested.
    pub const fn recorded(&self) -> Option<&Inputs> {
        self.inputs.as_ref()
    }

    /// Removes the positions of a sequence from `len` on, and returns the remaining number. All are removed if a
    /// window's ring has overwritten positions that position `len` attends to, or if a value was not finite.
    pub fn cut(&mut self, sequence: usize, len: u32) -> u32 {
        let Some(found) = self.sequences.get_mut(sequence) else {
            return 0;
        };
        if found.truncate(len, &mut self.cache).is_err() {
            found.reset(&mut self.cache);
        }
        found.len()
    }

    /// Removes all positions of a sequence.
    pub fn reset(&mut self, sequence: usize) {
        if let Some(sequence) = self.sequences.get_mut(sequence) {
            sequence.reset(&mut self.cache);
        }
    }

    /// Evaluates at most [`Decoder::chunk`] rows, and returns the logits of those that ask for them, each a row of the
    /// vocabulary's size. The processor's threads do the work that the engine has no room for.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for input that [`decode`] refuses, and for values that are not finite; [`Error::Engine`].
    pub fn step(&mut self, rows: &[Row]) -> Result<&[f32], Error> {
        let _span = trace_span!("step", rows = rows.len()).entered();
        let mut fault = None;
        let model = self.model;
        let asked = rows.iter().filter(|row| row.logits).count();
        let (cache, sequences) = (&mut self.cache, &mut *self.sequences);
        let (memory, logits) = (&mut self.memory, &mut *self.logits);
        let mut report = |error| {
            fault.get_or_insert(error);
        };
        let (engine, inputs) = (&mut *self.shared.engine, &mut self.inputs);
        let threads = match model.bytes() < SMALL {
            true => 1,
            false => engine.team(),
        };
        let done = team::with(threads, || {
            let done = decode_into(
                engine,
                inputs.as_mut(),
                model,
                (cache, sequences),
                rows,
                (memory, logits),
                &mut report,
            );
            done.map_err(Into::into)
        });
        let done = self.shared.or_threads(done, |threads| {
            let (cache, sequences) = (&mut self.cache, &mut *self.sequences);
            let (memory, logits) = (&mut self.memory, &mut *self.logits);
            Ok(decode_into(
                threads,
                self.inputs.as_mut(),
                model,
                (cache, sequences),
                rows,
                (memory, logits),
                &mut report,
            )?)
        });
        done.map_err(|failure| self.error(failure))?;
        match fault {
            Some(fault) => Err(self.file.error(&fault)),
            None => Ok(&self.logits[..asked * self.model.config().vocabulary]),
        }
    }

    fn error(&self, failure: EngineError) -> Error {
        let file = self.file;
        self.shared
            .error(failure, |refusal| Error::unsupported(file.path(), refusal))
    }

    /// Evaluates a prompt in steps of [`Decoder::chunk`] rows, and returns the logits after its last token; `told`
    /// receives the number of evaluated tokens after each step.
    ///
    /// # Errors
    /// Those of [`Decoder::step`]; [`Error::Options`] for no tokens.
    pub fn prompt(
        &mut self,
        sequence: usize,
        tokens: &[u32],
        told: &mut dyn FnMut(usize),
    ) -> Result<&[f32], Error> {
        if tokens.is_empty() {
            return Err(Error::options("a prompt must have at least one token"));
        }
        let mut done = 0;
        for chunk in tokens.chunks(self.chunk) {
            done += chunk.len();
            let last = done == tokens.len();
            let rows: Vec<Row> = (1..)
                .zip(chunk)
                .map(|(number, &token)| Row {
                    token,
                    sequence,
                    logits: last && number == chunk.len(),
                })
                .collect();
            self.step(&rows)?;
            told(done);
        }
        Ok(&self.logits[..self.model.config().vocabulary])
    }
}
