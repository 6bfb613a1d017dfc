//! Times of work on a device, for [`crate::trace`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::Context;
use super::error::CudaError;
use super::stream::{Event, Stream};
use crate::trace::{Lane, Recorded};

/// Maximum number of unread marks: then half of them are read, which waits for the device.
const WAITING: usize = 4096;

/// Reads the marks of one engine's streams.
pub(super) struct Timeline {
    recorded: &'static Arc<Recorded>,
    ordinal: usize,
    /// The mark that all others are measured from, and the time when it was passed.
    origin: Event,
    begun: Instant,
    marks: Mutex<Vec<Mark>>,
}

/// A kind of queued work.
#[derive(Clone, Copy)]
pub(super) enum Queued {
    Kernel(&'static str),
    CopyIn(usize),
    CopyOut(usize),
    /// From memory of this device, or of another, to memory of this device.
    Copy(usize),
    Fill(usize),
    Graph,
    /// A collective of several devices, by its name, with the bytes that this device gives to it.
    Collective(&'static str, usize),
}

impl Queued {
    /// Returns its kind, and the bytes that it moves.
    pub(super) const fn kind(self) -> (Kind, usize) {
        match self {
            Self::Kernel(_) => (Kind::Kernel, 0),
            Self::CopyIn(bytes) => (Kind::CopyIn, bytes),
            Self::CopyOut(bytes) => (Kind::CopyOut, bytes),
            Self::Copy(bytes) => (Kind::Copy, bytes),
            Self::Fill(bytes) => (Kind::Fill, bytes),
            Self::Graph => (Kind::Graph, 0),
            Self::Collective(_, bytes) => (Kind::Collective, bytes),
        }
    }
}

/// Kinds of queued work, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Kernel,
    CopyIn,
    CopyOut,
    Copy,
    Fill,
    Graph,
    Collective,
}

impl Kind {
    pub(super) const ALL: [Self; 7] = [
        Self::Kernel,
        Self::CopyIn,
        Self::CopyOut,
        Self::Copy,
        Self::Fill,
        Self::Graph,
        Self::Collective,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::CopyIn => "copy_in",
            Self::CopyOut => "copy_out",
            Self::Copy => "copy",
            Self::Fill => "fill",
            Self::Graph => "graph",
            Self::Collective => "collective",
        }
    }
}

pub(super) struct Mark {
    queued: Queued,
    start: Event,
    end: Event,
}

impl Timeline {
    /// Starts a timeline, if the process records one. Waits for the device.
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
        let mark = self.open(context, stream, queued)?;
        let done = queue()?;
        self.close(stream, mark)?;
        Ok(done)
    }

    /// Makes the first mark, before something that is queued next; `None` while launches are recorded into a graph,
    /// because marks would become part of it.
    fn open(
        &self,
        context: &Arc<Context>,
        stream: &Stream,
        queued: Queued,
    ) -> Result<Option<Mark>, CudaError> {
        if stream.is_recording() {
            return Ok(None);
        }
        let (start, end) = (Event::timed(context)?, Event::timed(context)?);
        start.record(stream)?;
        Ok(Some(Mark { queued, start, end }))
    }

    /// Makes the second mark, after the work queued since the first.
    fn close(&self, stream: &Stream, mark: Option<Mark>) -> Result<(), CudaError> {
        let Some(mark) = mark else { return Ok(()) };
        mark.end.record(stream)?;
        let due = {
            let mut marks = self.lock();
            marks.push(mark);
            match marks.len() < WAITING {
                true => Vec::new(),
                false => marks.drain(..WAITING / 2).collect(),
            }
        };
        self.read(due);
        Ok(())
    }

    /// Marks the beginning of work that several streams do together; [`Timeline::end_together`] marks its end.
    pub(super) fn begin_together(
        streams: &[Arc<Stream>],
        queued: Queued,
    ) -> Result<Vec<Option<Mark>>, CudaError> {
        let open = |stream: &Arc<Stream>| match stream.timeline() {
            Some(timeline) => timeline.open(stream.context(), stream, queued),
            None => Ok(None),
        };
        streams.iter().map(open).collect()
    }

    /// Makes the second marks, once all of the work is queued.
    pub(super) fn end_together(
        streams: &[Arc<Stream>],
        marks: Vec<Option<Mark>>,
    ) -> Result<(), CudaError> {
        for (stream, mark) in streams.iter().zip(marks) {
            if let Some(timeline) = stream.timeline() {
                timeline.close(stream, mark)?;
            }
        }
        Ok(())
    }

    /// Reads all marks. Waits for them.
    pub(super) fn finish(&self) {
        let due = std::mem::take(&mut *self.lock());
        self.read(due);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Mark>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks of a device that was lost meanwhile have no times, and are left out.
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
                Queued::Collective(name, bytes) => (Lane::Kernels(device), name, Some(bytes)),
            };
            let about = bytes.map_or_else(String::new, |bytes| format!("\"bytes\":{bytes}"));
            let start = self.begun + time(start);
            self.recorded.keep(lane, name, start, time(length), about);
        }
    }
}
