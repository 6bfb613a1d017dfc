//! Queues of work, and marks in them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{CUevent, CUstream};

use super::context::Context;
use super::error::{CudaError, Status};
use super::meters::Meters;
use super::timeline::{Queued, Timeline};

/// CU_STREAM_NON_BLOCKING: does not wait for the default stream, which other code in the process may use.
const NON_BLOCKING: u32 = 1;
/// CU_EVENT_DISABLE_TIMING: an event that only marks costs less.
const UNTIMED: u32 = 2;

/// A queue of copies and launches, which run in order.
pub(super) struct Stream {
    context: Arc<Context>,
    handle: CUstream,
    /// Marks all work queued here, if the process records a timeline.
    timeline: OnceLock<Arc<Timeline>>,
    meters: Meters,
    /// True while queued work is recorded into a graph instead of run. Code that must not become part of a graph checks
    /// it.
    recording: AtomicBool,
}

// SAFETY: the driver's functions take streams from any thread, and the handle is never changed.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub(super) fn new(context: &Arc<Context>) -> Result<Arc<Self>, CudaError> {
        let mut handle = std::ptr::null_mut();
        context.call("cuStreamCreate", |api| {
            // SAFETY: the pointer is to a handle; `drop` destroys it.
            unsafe { api.cuStreamCreate(&mut handle, NON_BLOCKING) }
        })?;
        Ok(Arc::new(Self {
            context: Arc::clone(context),
            handle,
            timeline: OnceLock::new(),
            meters: Meters::new(context.ordinal()),
            recording: AtomicBool::new(false),
        }))
    }

    /// Marks all work that is queued from now on.
    pub(super) fn trace(&self, timeline: &Arc<Timeline>) {
        // It is set once in the life of a stream.
        let _ = self.timeline.set(Arc::clone(timeline));
    }

    pub(super) fn timeline(&self) -> Option<&Timeline> {
        self.timeline.get().map(|timeline| &**timeline)
    }

    /// Runs `queue`, which queues something here.
    #[inline]
    pub(super) fn marked<R>(
        &self,
        queued: Queued,
        queue: impl FnOnce() -> Result<R, CudaError>,
    ) -> Result<R, CudaError> {
        self.count(queued);
        match self.timeline.get() {
            None => queue(),
            Some(timeline) => timeline.between(&self.context, self, queued, queue),
        }
    }

    /// Counts queued work, for a recorder.
    pub(super) fn count(&self, queued: Queued) {
        self.meters.count(queued);
    }

    /// True if queued work is currently recorded instead of run.
    pub(super) fn is_recording(&self) -> bool {
        // The user of the engine changes and reads it; other threads read it under the pool's lock, under which it is
        // changed.
        self.recording.load(Ordering::Relaxed)
    }

    /// Only for [`super::memory::Pool`], under its lock.
    pub(super) fn set_recording(&self, now: bool) {
        self.recording.store(now, Ordering::Relaxed);
    }

    pub(super) const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) const fn handle(&self) -> CUstream {
        self.handle
    }

    /// Waits until all queued work is done; reports a failure in it.
    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        self.context.call("cuStreamSynchronize", |api| {
            // SAFETY: the stream lives.
            unsafe { api.cuStreamSynchronize(self.handle) }
        })
    }

    /// True if all queued work is done; reports a failure in it.
    pub(super) fn is_done(&self) -> Result<bool, CudaError> {
        let mut done = true;
        self.context.call("cuStreamQuery", |api| {
            // SAFETY: the stream lives.
            match unsafe { api.cuStreamQuery(self.handle) } {
                Err(Status::NOT_READY) => {
                    done = false;
                    Ok(())
                }
                answer => answer,
            }
        })?;
        Ok(done)
    }

    /// Waits as [`Stream::synchronize`] does, even if the device counts as lost. Used by destructors and after
    /// failures, before memory that queued work may still use is given to others.
    pub(super) fn settle(&self) {
        // SAFETY: the stream lives.
        self.context
            .release(|api| unsafe { api.cuStreamSynchronize(self.handle) });
    }

    /// Makes work queued here from now on wait for the event's mark.
    pub(super) fn wait_for(&self, event: &Event) -> Result<(), CudaError> {
        self.context.call("cuStreamWaitEvent", |api| {
            // SAFETY: both live; the flags must be 0 and are.
            unsafe { api.cuStreamWaitEvent(self.handle, event.handle, 0) }
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made in `new` and destroyed once. What is queued is still done before the driver frees it.
        self.context
            .release(|api| unsafe { api.cuStreamDestroy_v2(self.handle) });
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

/// A mark in a stream.
pub(super) struct Event {
    context: Arc<Context>,
    handle: CUevent,
}

// SAFETY: the driver's functions take events from any thread, and the handle is never changed.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Makes a mark of nothing, which nothing waits for.
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, CudaError> {
        Self::with(context, UNTIMED)
    }

    /// Makes a mark that also records its time.
    pub(super) fn timed(context: &Arc<Context>) -> Result<Self, CudaError> {
        Self::with(context, 0)
    }

    fn with(context: &Arc<Context>, flags: u32) -> Result<Self, CudaError> {
        let mut handle = std::ptr::null_mut();
        context.call("cuEventCreate", |api| {
            // SAFETY: the pointer is to a handle; `drop` destroys it.
            unsafe { api.cuEventCreate(&mut handle, flags) }
        })?;
        Ok(Self {
            context: Arc::clone(context),
            handle,
        })
    }

    /// Marks the work queued so far.
    pub(super) fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        self.context.call("cuEventRecord", |api| {
            // SAFETY: both live and are of one context.
            unsafe { api.cuEventRecord(self.handle, stream.handle) }
        })
    }

    /// Waits until the marked work is done; reports an earlier failure.
    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        self.context.call("cuEventSynchronize", |api| {
            // SAFETY: the event lives.
            unsafe { api.cuEventSynchronize(self.handle) }
        })
    }

    /// Waits as [`Stream::settle`] does.
    pub(super) fn settle(&self) {
        // SAFETY: the event lives.
        self.context
            .release(|api| unsafe { api.cuEventSynchronize(self.handle) });
    }

    /// Returns the milliseconds from `start` to this mark; both are timed, recorded and passed. The resolution is about
    /// half a microsecond.
    pub(super) fn since(&self, start: &Self) -> Result<f32, CudaError> {
        let mut milliseconds = 0.0;
        self.context.call("cuEventElapsedTime", |api| {
            // SAFETY: both live, and the pointer is to a float.
            unsafe { api.cuEventElapsedTime(&mut milliseconds, start.handle, self.handle) }
        })?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made in `with` and destroyed once; the driver keeps what streams still wait for.
        self.context
            .release(|api| unsafe { api.cuEventDestroy_v2(self.handle) });
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").finish_non_exhaustive()
    }
}
