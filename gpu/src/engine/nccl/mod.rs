//! NCCL, if the system has it: sums and copies that several devices do together.

mod api;

use std::ffi::{c_int, c_uint};
use std::fmt;
use std::sync::Arc;

use cudarc::nccl::sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t};
use tercet_core::number::Plain;

use self::api::{Api, Failure, does_not_work, nccl};
use crate::engine::stream::Stream;
use crate::engine::timeline::{Queued, Timeline};
use crate::engine::{Cuda, CudaError, DeviceBuffer};

/// A communicator for each of several different devices.
///
/// Their common operations run on the devices' own streams, and wait there for all devices. If one never arrives,
/// because it is lost, the others wait forever: so the host polls ([`Communicators::check`]) instead of waiting, until
/// nothing is running.
pub(super) struct Communicators {
    api: &'static Api,
    handles: Vec<ncclComm_t>,
}

// SAFETY: NCCL takes communicators from any thread, one at a time, which `&mut` sees to.
unsafe impl Send for Communicators {}
// SAFETY: shared ones are only asked for errors, which NCCL allows at any time.
unsafe impl Sync for Communicators {}

/// Integers that NCCL adds.
pub(super) trait Summed: Plain {
    const TYPE: ncclDataType_t;
}
impl Summed for i64 {
    const TYPE: ncclDataType_t = ncclDataType_t::ncclInt64;
}
impl Summed for u64 {
    const TYPE: ncclDataType_t = ncclDataType_t::ncclUint64;
}

impl Communicators {
    /// Makes communicators for these devices, in this order; NCCL refuses a device that occurs twice. Takes up to
    /// seconds, and some of the devices' memory.
    pub(super) fn new(devices: &[Cuda]) -> Result<Self, CudaError> {
        let api = nccl()?;
        let numbers: Vec<c_int> = devices.iter().map(|cuda| cuda.context.device()).collect();
        let mut handles = vec![std::ptr::null_mut(); numbers.len()];
        let count = c_int::try_from(numbers.len())
            .map_err(|_| does_not_work("too many devices".to_owned()))?;
        // SAFETY: there is a place for each handle and a number for each device, which are numbers of the runtime's as
        // well as the driver's. `drop` ends them.
        unsafe { api.ncclCommInitAll(handles.as_mut_ptr(), count, numbers.as_ptr()) }
            .map_err(|failure| api.failed("ncclCommInitAll", failure))?;
        Ok(Self { api, handles })
    }

    /// Lets NCCL treat the calls of `calls` as one group for all devices: a collective on these streams, one for each
    /// device, to which each gives so many bytes.
    pub(super) fn group(
        &mut self,
        streams: &[Arc<Stream>],
        (name, bytes): (&'static str, usize),
        calls: impl FnOnce(&Self) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let queued = Queued::Collective(name, bytes);
        for stream in streams {
            stream.count(queued);
        }
        // Kernels are queued when the group ends: the marks enclose all of it.
        let marks = Timeline::begin_together(streams, queued)?;
        // SAFETY: the end follows, also after a failure.
        self.done("ncclGroupStart", unsafe { self.api.ncclGroupStart() })?;
        let called = calls(self);
        // SAFETY: the group was started. Its calls are as `calls` promised.
        let ended = unsafe { self.api.ncclGroupEnd() };
        called.and(self.done("ncclGroupEnd", ended))?;
        Timeline::end_together(streams, marks)
    }

    /// Adds up the devices' tables. Each device gets its part of `len` elements: `rank` gets the sums of those from
    /// rank · `len` on.
    ///
    /// # Safety
    /// The buffers and the stream belong to the device of this rank, and the buffers live until the stream is done with
    /// them; `from` has been written. Every rank is called in one group, with the same number of elements.
    pub(super) unsafe fn reduce_scatter<T: Summed>(
        &self,
        rank: usize,
        stream: &Stream,
        from: &DeviceBuffer<T>,
        (to, len): (&mut DeviceBuffer<T>, usize),
    ) -> Result<(), CudaError> {
        check_length(from, len * self.handles.len())?;
        check_length(to, len)?;
        // SAFETY: as the caller promises; the buffers have as many elements of this kind as is told. Pools are open to
        // the devices that reach them, so that NCCL's kernels may go straight to another's buffer if they reach it.
        let called = unsafe {
            self.api.ncclReduceScatter(
                from.pointer() as *const _,
                to.pointer() as *mut _,
                len,
                T::TYPE,
                ncclRedOp_t::ncclSum,
                self.handles[rank],
                stream.handle().cast(),
            )
        };
        self.done("ncclReduceScatter", called)
    }

    /// Sends each device's part of a table to all devices: the part of `rank` is the elements from rank · `len` on,
    /// which are already in place.
    ///
    /// # Safety
    /// As [`Communicators::reduce_scatter`].
    pub(super) unsafe fn all_gather(
        &self,
        rank: usize,
        stream: &Stream,
        table: &mut DeviceBuffer<i8>,
        len: usize,
    ) -> Result<(), CudaError> {
        check_length(table, len * self.handles.len())?;
        let first = table.pointer() + (rank * len) as u64;
        // SAFETY: as the caller promises; a rank's own part may lie in its place in the table, as NCCL documents.
        let called = unsafe {
            self.api.ncclAllGather(
                first as *const _,
                table.pointer() as *mut _,
                len,
                ncclDataType_t::ncclInt8,
                self.handles[rank],
                stream.handle().cast(),
            )
        };
        self.done("ncclAllGather", called)
    }

    /// Returns failures that happened after a call returned. Does not wait.
    pub(super) fn check(&self) -> Result<(), CudaError> {
        for &handle in &self.handles {
            let mut error: c_uint = 0;
            // SAFETY: the communicator lives, and the pointer is to a number of an enum's size.
            let asked = unsafe { self.api.ncclCommGetAsyncError(handle, &mut error) };
            self.done("ncclCommGetAsyncError", asked)?;
            if error != 0 {
                let error = Failure(error);
                return Err(self.api.failed("what several devices do together", error));
            }
        }
        Ok(())
    }

    /// Ends running work, done or not: nobody waits for it any more, and its results are arbitrary.
    pub(super) fn abort(mut self) {
        for handle in self.handles.drain(..) {
            // SAFETY: made in `new`, and ended once. An answer would say nothing new: something failed before.
            let _ = unsafe { self.api.ncclCommAbort(handle) };
        }
    }

    fn done(&self, call: &str, result: Result<(), Failure>) -> Result<(), CudaError> {
        result.map_err(|failure| self.api.failed(call, failure))
    }
}

fn check_length<T: Plain>(buffer: &DeviceBuffer<T>, expected: usize) -> Result<(), CudaError> {
    let found = buffer.len();
    if found < expected {
        return Err(CudaError::Length { expected, found });
    }
    Ok(())
}

impl Drop for Communicators {
    fn drop(&mut self) {
        for &handle in &self.handles {
            // SAFETY: made in `new`, and ended once. Nothing is under way: whoever used them asked until it was done,
            // or aborted them.
            let _ = unsafe { self.api.ncclCommDestroy(handle) };
        }
    }
}

impl fmt::Debug for Communicators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Communicators")
            .field("devices", &self.handles.len())
            .finish_non_exhaustive()
    }
}
