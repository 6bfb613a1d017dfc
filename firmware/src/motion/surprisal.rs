//! A ternary language model that reads motion, and flags what it did not expect.
//!
//! ```text
//! sample ──► change to it ──► letter ──► language model ──► how likely was the letter? ──► sum of the last 40
//! ```
//!
//! [`letter`](super::letter) makes a letter of each reading. The model, a GGUF file in flash that `tercet train` made of
//! standing and walking, says how likely each of the letters is after those before. The surprisal of the one that comes,
//! −ln p ([`nll`]), is an integer. [`Watch`] sums the last [`WINDOW`] of them. Motion is unusual if the sum is above
//! [`LIMIT`].
//!
//! All of it is the same on every machine: letters are integers, and the model's logits are those of `tercet`.

use tercet_core::conformance::Digest;
use tercet_core::gguf::Aligned;
use tercet_core::model::{
    Cache, DecoderLayer, Memory as StepMemory, Model, ModelError, Place, Row, Sequence, decode, nll,
};
use tercet_core::pool::Ring;
use tercet_core::scalar::Only;
use tercet_core::train::loss;

use super::adapter::FIRST;
use super::letters::{ALPHABET, place};
use super::{Adapter, Recording, Sample, WINDOW, change};
use crate::story::Error;

#[allow(dead_code, reason = "a text of motion has no end")]
mod model {
    //! Facts that the build script read in the file, and all RAM of the model, except the stack.
    include!(concat!(env!("OUT_DIR"), "/motion_model.rs"));
}
pub use model::Memory;
use model::{BUILT, CONFIG, LAYOUTS, NEEDS, PARTS, PROMPT};

// By value, so that the image has a symbol for it and its bytes are counted as data (`firmware/programs.toml`).
static FILE: Aligned<[u8; include_bytes!("../../data/motion-model.gguf").len()]> =
    Aligned(*include_bytes!("../../data/motion-model.gguf"));

/// Returns the bundled model's file.
pub fn file() -> &'static [u8] {
    &FILE.0
}

/// The largest sum of [`WINDOW`] surprisals that is not flagged, in units of 2⁻³² nats: 5/4 of the largest of ten
/// training recordings that the model was not trained on. A test measures it again.
pub const LIMIT: i64 = 698_528_106_470;

/// What is known of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its letter.
    pub letter: u8,
    /// Its surprisal, in units of 2⁻³² nats ([`NLL_UNIT`](tercet_core::model::NLL_UNIT)).
    pub surprisal: i64,
    /// The sum of the last [`WINDOW`] surprisals, from the reading on that makes them complete.
    pub window: Option<i64>,
}

impl Verdict {
    /// Returns true if the last [`WINDOW`] readings are unusual.
    pub fn flagged(&self) -> bool {
        self.window.is_some_and(|sum| sum > LIMIT)
    }
}

/// The model at work, what it was surprised by, and what it learns.
#[derive(Debug)]
pub struct Watch<'m> {
    model: &'m Model<'m, 'm>,
    cache: Cache<'m>,
    sequences: [Sequence<'m>; 1],
    memory: StepMemory<'m>,
    /// How likely the model takes each token to be next.
    logits: &'m mut [f32],
    adapter: &'m mut Adapter,
    learns: bool,
    last: Option<Sample>,
    /// The adapter's row for the next letter.
    row: usize,
    surprisals: Ring<i64, WINDOW>,
}

/// Calls `then` with the bundled model, which has read nothing and does not learn. What `adapter` has learned changes what
/// it takes for likely.
///
/// # Errors
/// Those of [`Error`]. The committed file causes none.
pub fn watch<R>(
    memory: &mut Memory,
    adapter: &mut Adapter,
    then: impl FnOnce(&mut Watch<'_>) -> R,
) -> Result<R, Error> {
    let mut layers = [DecoderLayer::EMPTY; CONFIG.layers];
    let model = Model::built(&FILE.0, &BUILT, &mut layers)?;
    let mut places = [Place::default(); NEEDS.places];
    let ((cache, sequence), work) = memory.work.split(model.config(), &mut places)?;
    Ok(then(&mut Watch {
        model: &model,
        cache,
        sequences: [sequence],
        memory: work,
        logits: &mut memory.logits,
        adapter,
        learns: false,
        last: None,
        row: FIRST,
        surprisals: Ring::new(0),
    }))
}

impl Watch<'_> {
    /// Forgets all readings: the next one is the first.
    pub fn cut(&mut self) {
        self.last = None;
        self.surprisals.clear();
    }

    /// Learns from the next readings on that they are usual, or no longer.
    pub fn learn(&mut self, learns: bool) {
        self.learns = learns;
    }

    /// Returns what was learned so far.
    pub fn adapter(&self) -> &Adapter {
        self.adapter
    }

    /// Takes a reading. Returns `None` for the first one. O(weights of the model + [`LETTERS`](super::LETTERS)).
    ///
    /// There may be any number of readings: the model attends to the last 64 letters.
    ///
    /// # Errors
    /// Those of [`decode`]; [`ModelError::Logits`]. The bundled model causes none.
    pub fn take(&mut self, sample: &Sample) -> Result<Option<Verdict>, ModelError> {
        let Some(before) = self.last.replace(*sample) else {
            self.begin()?;
            return Ok(None);
        };
        let place = place(&change(&before, sample));
        let letter = ALPHABET.get(place).copied().unwrap_or(b'A');
        // Nothing but a letter comes.
        let mut scores = ALPHABET.map(|letter| {
            let logit = self.logits.get(usize::from(letter));
            logit.copied().unwrap_or(f32::NAN)
        });
        self.adapter.add(self.row, &mut scores);
        let surprisal = if self.learns {
            let surprisal = loss(&mut scores, place);
            self.adapter.learn(self.row, &scores);
            surprisal
        } else {
            nll(&scores, place)
        };
        let surprisal = surprisal.ok_or(ModelError::Logits)?;
        self.row = Adapter::after(place);
        self.surprisals.push(surprisal);
        // Each is below 2⁴⁵, so no sum overflows.
        let window = self
            .surprisals
            .is_full()
            .then(|| self.surprisals.iter().sum());
        self.read(letter.into())?;
        Ok(Some(Verdict {
            letter,
            surprisal,
            window,
        }))
    }

    /// Begins a sequence, as the lines of the training text begin.
    fn begin(&mut self) -> Result<(), ModelError> {
        let [sequence] = &mut self.sequences;
        sequence.reset(&mut self.cache);
        self.row = FIRST;
        PROMPT.iter().try_for_each(|&token| self.read(token))
    }

    fn read(&mut self, token: u32) -> Result<(), ModelError> {
        let row = Row {
            token,
            sequence: 0,
            logits: true,
        };
        let mut fault = None;
        decode(
            &mut Only::<LAYOUTS, PARTS>,
            self.model,
            (&mut self.cache, &mut self.sequences),
            &[row],
            &mut self.memory,
            self.logits,
            &mut |error| fault = Some(error),
        )?;
        fault.map_or(Ok(()), Err)
    }
}

/// Recordings of each activity that a board watches; a desk watches all ten.
pub const PLAYED: usize = 1;

/// Recordings of running from which is learned that it is usual.
pub const LEARNED: usize = 5;

/// What was found in one or several recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Readings, except the first of each recording.
    pub letters: u32,
    /// The sum of their surprisals, in units of 2⁻³² nats.
    pub surprisal: i64,
    /// Complete windows; one ends at each reading.
    pub windows: u32,
    /// Flagged windows.
    pub flagged: u32,
    /// The smallest sum of a window.
    pub smallest: i64,
    /// The largest sum of a window.
    pub largest: i64,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            letters: 0,
            surprisal: 0,
            windows: 0,
            flagged: 0,
            smallest: i64::MAX,
            largest: 0,
        }
    }
}

impl Found {
    /// Lets the watch take a recording, from its beginning on. `digest` gets every letter and surprisal.
    ///
    /// # Errors
    /// Those of [`Watch::take`].
    pub fn play(
        &mut self,
        watch: &mut Watch<'_>,
        recording: Recording<'_>,
        digest: &mut Digest,
    ) -> Result<(), ModelError> {
        watch.cut();
        for sample in (0..recording.len()).map_while(|index| recording.get(index)) {
            let Some(verdict) = watch.take(&sample)? else {
                continue;
            };
            digest.u64(verdict.letter.into());
            digest.u64(verdict.surprisal as u64);
            self.letters += 1;
            self.surprisal += verdict.surprisal;
            if let Some(window) = verdict.window {
                self.windows += 1;
                self.flagged += u32::from(verdict.flagged());
                self.smallest = self.smallest.min(window);
                self.largest = self.largest.max(window);
            }
        }
        Ok(())
    }

    /// Returns the mean surprisal in hundredths of a bit, rounded down.
    pub fn centibits(&self) -> u32 {
        centibits(self.surprisal, self.letters)
    }
}

/// Returns the mean of a sum of so many surprisals in hundredths of a bit, rounded down; 0 for none.
pub fn centibits(sum: i64, count: u32) -> u32 {
    /// 2³² · ln 2: a bit in units of 2⁻³² nats.
    const BIT: u64 = 2_977_044_472;
    let whole = u64::from(count) * BIT;
    (sum.unsigned_abs() * 100).checked_div(whole).unwrap_or(0) as u32
}
