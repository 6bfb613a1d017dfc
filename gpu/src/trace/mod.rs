//! One time line of the processor's threads and of devices: what ran when, for Perfetto or Chrome's `about:tracing`.
//!
//! [`Recorder::start`] listens, for the whole process, to the spans ([`tracing`]) of `tercet-host`'s flows and engines, of a dispatcher's
//! calls, a queue's batches and a cache's copies, and has every CUDA engine that is made from then on mark what it queues: kernels, copies in,
//! copies out, and what several devices do together (NCCL's collectives, on each device's row of kernels). [`Recorder::write`] gives it as JSON in
//! Chrome's trace event format, which <https://ui.perfetto.dev> opens.
//!
//! Without a recorder a span costs one look at a number, and a device nothing. With one a span costs some hundred nanoseconds on the
//! processor, and what a device is given two marks in its queue.
//!
//! ```
//! use tercet_core::quant::{Method, int8};
//! use tercet_core::engine::{Output, QuantizeEngine};
//! use tercet_core::quant::Groups;
//! use tercet_gpu::trace::Recorder;
//! use tercet_host::parallel::Threads;
//!
//! let recorder = Recorder::start()?;
//! let (mut codes, mut scales) = (vec![0; 1 << 18], [0.0]);
//! let out = Output { codes: &mut codes, scales: &mut scales, zero_points: &mut [] };
//! let values = vec![0.5f32; 1 << 18];
//! let mut engine = Threads::default();
//! engine.tensor(&values, Groups::tensor(1 << 18)?, out)?.quantize(Method::Symmetric { limit: int8::LIMIT })?;
//!
//! let mut json = Vec::new();
//! recorder.write(&mut json)?;
//! assert!(String::from_utf8(json)?.contains(r#""name":"apply""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chrome;
mod layer;

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer as _, filter};

/// What is recorded of the process, once it is.
static RECORDED: OnceLock<Arc<Recorded>> = OnceLock::new();

/// Events that are kept: about 200 MB. What comes after is counted.
const MOST: usize = 1 << 21;

/// Records what the process does, from [`Recorder::start`] on.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Recorded>);

impl Recorder {
    /// Starts, once a process.
    ///
    /// # Errors
    /// [`AlreadyListening`] where this was called before, or the process has another global subscriber of [`tracing`]'s.
    pub fn start() -> Result<Self, AlreadyListening> {
        let recorded = Arc::new(Recorded {
            begun: Instant::now(),
            kept: Mutex::default(),
        });
        let layer = layer::Spans(Arc::clone(&recorded));
        let ours = filter::filter_fn(|about| about.target().starts_with("tercet"));
        tracing_subscriber::registry()
            .with(layer.with_filter(ours))
            .try_init()
            .map_err(|_| AlreadyListening)?;
        let recorded = RECORDED.get_or_init(|| recorded);
        Ok(Self(Arc::clone(recorded)))
    }

    /// Writes what was recorded so far; of a device what it was given by engines that were dropped, or that waited since.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        chrome::write(&self.0, out)
    }

    /// How many events there are, and how many more did not fit.
    pub fn events(&self) -> (usize, u64) {
        let kept = self.0.lock();
        (kept.events.len(), kept.left_out)
    }
}

/// The process has a subscriber of spans already, of this module's or another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyListening;

impl fmt::Display for AlreadyListening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("somebody listens to this process's spans already")
    }
}

impl std::error::Error for AlreadyListening {}

/// What CUDA engines that are made now are to mark.
#[cfg(feature = "cuda")]
pub(crate) fn recorded() -> Option<&'static Arc<Recorded>> {
    RECORDED.get()
}

/// The events of a process.
#[derive(Debug)]
pub(crate) struct Recorded {
    begun: Instant,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    events: Vec<Event>,
    left_out: u64,
    /// Names of the processor's threads, in the order of their first events.
    threads: Vec<String>,
    /// Names of devices, by their numbers.
    devices: Vec<(usize, String)>,
    /// Where the last event of a device's row ended.
    ends: HashMap<Lane, Duration>,
}

impl Kept {
    /// When an event of a device's row begins.
    ///
    /// A device tells times as f32 milliseconds, so that what comes after another may seem to begin before its end, by what those round:
    /// viewers would take the two for nested. They round too, where they add lengths to beginnings: one nanosecond lies between.
    fn after_the_last(&mut self, lane: Lane, start: Duration, length: Duration) -> Duration {
        let last = self.ends.entry(lane).or_default();
        // Two times of so many seconds, of 24 bits each, and a length.
        let rounded = *last / (1 << 21) + Duration::from_nanos(100);
        let start = match start + rounded >= *last {
            true => start.max(*last + Duration::from_nanos(1)),
            false => start,
        };
        *last = start + length;
        start
    }
}

/// Something that took time.
#[derive(Debug)]
struct Event {
    lane: Lane,
    name: &'static str,
    /// Since the recorder was started.
    start: Duration,
    length: Duration,
    /// What else is known: JSON, an object's members.
    about: String,
}

/// Where an event is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    /// A thread of the processor.
    Thread(usize),
    /// Kernels of a device.
    #[cfg(feature = "cuda")]
    Kernels(usize),
    /// Copies from the host to a device.
    #[cfg(feature = "cuda")]
    CopiesIn(usize),
    /// Copies from a device to the host.
    #[cfg(feature = "cuda")]
    CopiesOut(usize),
}

impl Recorded {
    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        // Whoever panicked left whole events.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an event that began at `start`.
    pub(crate) fn keep(
        &self,
        lane: Lane,
        name: &'static str,
        start: Instant,
        length: Duration,
        about: String,
    ) {
        let mut start = start.saturating_duration_since(self.begun);
        let mut kept = self.lock();
        if !matches!(lane, Lane::Thread(_)) {
            start = kept.after_the_last(lane, start, length);
        }
        let event = Event {
            lane,
            name,
            start,
            length,
            about,
        };
        match kept.events.len() < MOST {
            true => kept.events.push(event),
            false => kept.left_out += 1,
        }
    }

    /// A number for this thread, which has none.
    fn number_thread(&self, name: String) -> usize {
        let mut kept = self.lock();
        kept.threads.push(name);
        kept.threads.len() - 1
    }

    /// Says what a device is called.
    #[cfg(feature = "cuda")]
    pub(crate) fn name_device(&self, ordinal: usize, name: &str) {
        let mut kept = self.lock();
        if kept.devices.iter().all(|(other, _)| *other != ordinal) {
            kept.devices.push((ordinal, name.to_owned()));
        }
    }
}
