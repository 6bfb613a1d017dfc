//! Sequences of launches that are recorded once and queued again by one call.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use cudarc::driver::sys::{CUgraph, CUgraphExec, CUstreamCaptureMode};

use super::context::Context;
use super::device::Cuda;
use super::error::CudaError;
use super::timeline::Queued;

/// Recorded launches with their arguments.
///
/// A launch costs the host some microseconds, and a whole graph not much more: work with many short, repeated launches
/// gets faster. A graph may be sent to other threads, and may outlive its engine.
pub struct Graph {
    context: Arc<Context>,
    executable: CUgraphExec,
}

// SAFETY: the driver's functions take graphs from any thread; one is launched only with `&mut` on its engine.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl Cuda {
    /// Records the launches and fills of `record`, without running them.
    ///
    /// `record` must not wait, copy from or to the host, make a buffer, or need a kernel that is not loaded
    /// ([`Cuda::prepare`]): these are refused, and recording fails. The memory of a buffer that is dropped meanwhile,
    /// here or on another thread, returns to the pool when recording ends.
    ///
    /// # Errors
    /// Those of `record`, including [`CudaError::Recording`], and of the driver.
    pub fn capture(
        &mut self,
        record: impl FnOnce(&mut Self) -> Result<(), CudaError>,
    ) -> Result<Graph, CudaError> {
        self.begin_capture()?;
        // A capture of the driver continues until it is ended.
        match catch_unwind(AssertUnwindSafe(|| record(self))) {
            Ok(recorded) => self.end_capture(recorded),
            Err(panic) => {
                self.abandon_capture();
                resume_unwind(panic)
            }
        }
    }

    /// Records from now on instead of running; [`Cuda::end_capture`] must follow.
    pub(super) fn begin_capture(&mut self) -> Result<(), CudaError> {
        self.pool.begin_recording(|| {
            self.context.call("cuStreamBeginCapture", |api| {
                let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
                // SAFETY: the stream lives and is not the default one; if it already records, the driver refuses.
                unsafe { api.cuStreamBeginCapture_v2(self.stream.handle(), mode) }
            })
        })
    }

    /// Ends a capture and discards it.
    pub(super) fn abandon_capture(&mut self) {
        let _ = self.recorded();
    }

    /// Returns the launches recorded since [`Cuda::begin_capture`], unless that failed.
    pub(super) fn end_capture(
        &mut self,
        recorded: Result<(), CudaError>,
    ) -> Result<Graph, CudaError> {
        let context = Arc::clone(&self.context);
        let graph = self.recorded();
        recorded?;
        let graph = graph?;
        let mut executable = std::ptr::null_mut();
        context.call("cuGraphInstantiate", |api| {
            // SAFETY: the graph was recorded, the pointer is to a handle. `drop` destroys it.
            unsafe { api.cuGraphInstantiateWithFlags(&mut executable, graph.graph, 0) }
        })?;
        drop(graph);
        Ok(Graph {
            context,
            executable,
        })
    }

    /// Ends recording and returns the result.
    fn recorded(&self) -> Result<Recorded, CudaError> {
        let mut recorded = Recorded {
            context: Arc::clone(&self.context),
            graph: std::ptr::null_mut(),
        };
        self.pool.end_recording(|| {
            self.context.call("cuStreamEndCapture", |api| {
                // SAFETY: the stream lives, and the pointer is to a handle; if it records nothing, the driver refuses.
                unsafe { api.cuStreamEndCapture(self.stream.handle(), &mut recorded.graph) }
            })
        })?;
        Ok(recorded)
    }

    /// Queues the recorded launches.
    ///
    /// # Errors
    /// [`CudaError::Length`] for a graph of another device; [`CudaError::Lost`], [`CudaError::Driver`].
    ///
    /// # Safety
    /// The conditions of [`Cuda::launch`] hold now for each recorded launch: above all, its buffers live and belong to
    /// this engine. The engine that recorded the graph still lives, because it holds the kernels.
    pub unsafe fn replay(&mut self, graph: &Graph) -> Result<(), CudaError> {
        if !Arc::ptr_eq(&graph.context, &self.context) {
            return Err(CudaError::Length {
                expected: 1,
                found: 0,
            });
        }
        self.stream.marked(Queued::Graph, || {
            self.context.call("cuGraphLaunch", |api| {
                // SAFETY: the graph and the stream live; its launches are as the caller promises.
                unsafe { api.cuGraphLaunch(graph.executable, self.stream.handle()) }
            })
        })
    }
}

/// A recording that cannot be launched yet.
struct Recorded {
    context: Arc<Context>,
    graph: CUgraph,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.graph.is_null() {
            // SAFETY: recorded once and destroyed once.
            self.context
                .release(|api| unsafe { api.cuGraphDestroy(self.graph) });
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made once and destroyed once; the driver lets it finish if it is running.
        self.context
            .release(|api| unsafe { api.cuGraphExecDestroy(self.executable) });
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").finish_non_exhaustive()
    }
}
