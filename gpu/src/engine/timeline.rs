//! When a device did what, for [`crate::trace`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::Context;
use super::error::CudaError;
use super::stream::{Event, Stream};
use crate::trace::{Lane, Recorded};

/// Marks that wait to be read: then half of them are, which waits for the device.
const WAITING: usize = 4096;

/// Reads the marks of one engine's streams.
pub(super) struct Timeline {
    recorded: &'static Arc<Recorded>,
    ordinal: usize,
    /// A mark that all others are measured from, and when it was passed.
    origin: Event,
    begun: Instant,
    marks: Mutex<Vec<Mark>>,
    /// Whether launches are recorded into a graph now, where marks would become a part of it.
    pub(super) capturing: AtomicBool,
}

/// What was queued.
#[derive(Clone, Copy)]
pub(super) enum Queued {
    Kernel(&'static str),
    CopyIn(usize),
    CopyOut(usize),
    /// From a place of this device, or of another, to one of this.
    Copy(usize),
    Fill(usize),
    Graph,
}

struct Mark {
    queued: Queued,
    start: Event,
    end: Event,
}

impl Timeline {
    /// Begins one, if the process records. Waits for the device.
    pub(super) fn begin(
        context: &Arc<Context>,
        stream: &Stream,
        name: &str,
    ) -> Result<Option<Arc<Self>>, CudaError> {
        let Some(recorded) = crate::trace::recorded() else {
            return Ok(None);
        };
        recorded.name_device(context.ordinal(), name);
        let origin = Event::timed(context)?;
        stream.synchronize()?;
        origin.record(stream)?;
        origin.synchronize()?;
        Ok(Some(Arc::new(Self {
            recorded,
            ordinal: context.ordinal(),
            origin,
            begun: Instant::now(),
            marks: Mutex::default(),
            capturing: AtomicBool::new(false),
        })))
    }

    /// Queues something between two marks.
    pub(super) fn between<R>(
        &self,
        context: &Arc<Context>,
        stream: &Stream,
        queued: Queued,
        queue: impl FnOnce() -> Result<R, CudaError>,
    ) -> Result<R, CudaError> {
        if self.capturing.load(Ordering::Relaxed) {
            return queue();
        }
        let (start, end) = (Event::timed(context)?, Event::timed(context)?);
        start.record(stream)?;
        let done = queue()?;
        end.record(stream)?;
        let due = {
            let mut marks = self.lock();
            marks.push(Mark { queued, start, end });
            match marks.len() < WAITING {
                true => Vec::new(),
                false => marks.drain(..WAITING / 2).collect(),
            }
        };
        self.read(due);
        Ok(done)
    }

    /// Reads all marks. Waits for them.
    pub(super) fn finish(&self) {
        let due = std::mem::take(&mut *self.lock());
        self.read(due);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Mark>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks of a device that was lost meanwhile say nothing, and are left out.
    fn read(&self, marks: Vec<Mark>) {
        for Mark { queued, start, end } in marks {
            let times = end
                .synchronize()
                .and_then(|()| Ok((start.since(&self.origin)?, end.since(&start)?)));
            let Ok((start, length)) = times else { continue };
            let time =
                |milliseconds: f32| Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3);
            let device = self.ordinal;
            let (lane, name, bytes) = match queued {
                Queued::Kernel(name) => (Lane::Kernels(device), name, None),
                Queued::CopyIn(bytes) => (Lane::CopiesIn(device), "copy in", Some(bytes)),
                Queued::CopyOut(bytes) => (Lane::CopiesOut(device), "copy out", Some(bytes)),
                Queued::Copy(bytes) => (Lane::Kernels(device), "copy", Some(bytes)),
                Queued::Fill(bytes) => (Lane::Kernels(device), "fill", Some(bytes)),
                Queued::Graph => (Lane::Kernels(device), "graph", None),
            };
            let about = bytes.map_or_else(String::new, |bytes| format!("\"bytes\":{bytes}"));
            let start = self.begun + time(start);
            self.recorded.keep(lane, name, start, time(length), about);
        }
    }
}
