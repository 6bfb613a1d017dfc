//! Records one timeline of CPU threads and devices, for Perfetto or Chrome's `about:tracing`.
//!
//! For the whole process, [`Recorder::start`] records the spans ([`tracing`]) of `tercet-host`'s flows and engines, of
//! a dispatcher's calls and a queue's batches. Every CUDA engine made from then on marks the work
//! that it queues: kernels, copies in, copies out, and common work of several devices (NCCL's collectives, on each
//! device's row of kernels). [`Recorder::write`] writes it as JSON in Chrome's trace event format, which
//! <https://ui.perfetto.dev> opens.
//!
//! Without a recorder a span reads one number, and a device does nothing extra. With a recorder a span takes some
//! hundred nanoseconds on the processor, and each piece of device work has two marks in the device's queue.
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

/// The recorded data of the process, once recording has started.
static RECORDED: OnceLock<Arc<Recorded>> = OnceLock::new();

/// Maximum number of events that are kept: about 200 MB. Later events are only counted.
const MOST: usize = 1 << 21;

/// Records the work of the process, from [`Recorder::start`] on.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Recorded>);

impl Recorder {
    /// Starts recording, once per process.
    ///
    /// # Errors
    /// [`AlreadyListening`] if this was called before, or the process has another global subscriber of [`tracing`].
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

    /// Writes the events recorded so far. Device work is included if its engine was dropped, or has waited since.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        chrome::write(&self.0, out)
    }

    /// Returns the number of events, and of those that did not fit.
    pub fn events(&self) -> (usize, u64) {
        let kept = self.0.lock();
        (kept.events.len(), kept.left_out)
    }
}

/// The process already has a subscriber of spans, from this module or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyListening;

impl fmt::Display for AlreadyListening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the spans of this process already have a listener")
    }
}

impl std::error::Error for AlreadyListening {}

/// Returns the recording that CUDA engines made now must mark their work in.
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
    /// End of the last event in each row of a device.
    ends: HashMap<Lane, Duration>,
}

impl Kept {
    /// Returns the start of an event in a device's row.
    ///
    /// A device returns times as f32 milliseconds, so an event after another may seem to begin before its end because
    /// of rounding: viewers would show the two as nested. Viewers also round when they add lengths to starts, so one
    /// nanosecond is left between.
    fn after_the_last(&mut self, lane: Lane, start: Duration, length: Duration) -> Duration {
        let last = self.ends.entry(lane).or_default();
        // Rounding of two times of this many seconds, with 24 bits each, and of a length.
        let rounded = *last / (1 << 21) + Duration::from_nanos(100);
        let start = match start + rounded >= *last {
            true => start.max(*last + Duration::from_nanos(1)),
            false => start,
        };
        *last = start + length;
        start
    }
}

/// A piece of work with a duration.
#[derive(Debug)]
struct Event {
    lane: Lane,
    name: &'static str,
    /// Since the recorder was started.
    start: Duration,
    length: Duration,
    /// Other data: the members of a JSON object.
    about: String,
}

/// The row that shows an event.
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
        // A thread that panicked left whole events.
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

    /// Returns a number for this thread, which has none yet.
    fn number_thread(&self, name: String) -> usize {
        let mut kept = self.lock();
        kept.threads.push(name);
        kept.threads.len() - 1
    }

    /// Sets the name of a device.
    #[cfg(feature = "cuda")]
    pub(crate) fn name_device(&self, ordinal: usize, name: &str) {
        let mut kept = self.lock();
        if kept.devices.iter().all(|(other, _)| *other != ordinal) {
            kept.devices.push((ordinal, name.to_owned()));
        }
    }
}
