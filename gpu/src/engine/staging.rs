//! Copies between the host's memory and the device's, by way of pinned slots.
//!
//! The device copies at full speed, and beside other work, only from and to memory that the system does not move. So slices pass
//! through a few slots of such memory: while the device copies one slot, the host fills or empties the next.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::context::Context;
use super::error::CudaError;
use super::stream::{Event, Stream};
use super::timeline::{Queued, Timeline};

/// Pinned memory, and a mark of the last copy that used it.
struct Slot {
    context: Arc<Context>,
    bytes: NonNull<u8>,
    used: Event,
}

// SAFETY: the memory is the slot's own, and the driver's functions take it from any thread.
unsafe impl Send for Slot {}
// SAFETY: a shared slot is only looked at.
unsafe impl Sync for Slot {}

impl Slot {
    fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, CudaError> {
        let used = Event::new(context)?;
        let mut pointer: *mut c_void = std::ptr::null_mut();
        // No flags: write-combined memory, which others take, is slow to read from.
        let got = context.call("cuMemHostAlloc", |api| {
            // SAFETY: the pointer is to a pointer; `drop` frees the memory.
            unsafe { api.cuMemHostAlloc(&mut pointer, bytes, 0) }
        });
        let full = CudaError::Driver {
            call: "cuMemHostAlloc",
            status: super::error::Status::OUT_OF_MEMORY,
        };
        match (got, NonNull::new(pointer.cast())) {
            (Ok(()), Some(bytes)) => Ok(Self {
                context: Arc::clone(context),
                bytes,
                used,
            }),
            // It is the host's memory that ran out: a smaller chunk would not help.
            (Err(CudaError::OutOfMemory { .. }) | Ok(()), _) => Err(full),
            (Err(error), _) => Err(error),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // What still copies from or to it must be done first.
        self.used.settle();
        // SAFETY: allocated in `new`, freed once, and no longer used.
        self.context
            .release(|api| unsafe { api.cuMemFreeHost(self.bytes.as_ptr().cast()) });
    }
}

/// Slots of pinned memory, made when first needed, and a stream each for copies in and out.
pub(super) struct Staging {
    slots: Vec<Slot>,
    count: usize,
    /// Bytes of a slot.
    size: usize,
    /// The slot that was filled longest ago.
    next: usize,
    inward: Arc<Stream>,
    outward: Arc<Stream>,
}

impl Staging {
    /// `count` slots of `size` bytes each; at least two, of at least 4096.
    pub(super) fn new(
        context: &Arc<Context>,
        count: usize,
        size: usize,
    ) -> Result<Self, CudaError> {
        Ok(Self {
            slots: Vec::new(),
            count: count.max(2),
            size: size.max(4096),
            next: 0,
            inward: Stream::new(context)?,
            outward: Stream::new(context)?,
        })
    }

    /// Has copies marked.
    pub(super) fn trace(&self, timeline: &Arc<Timeline>) {
        self.inward.trace(timeline);
        self.outward.trace(timeline);
    }

    /// The next slot in turn, which nothing uses any more.
    fn slot(&mut self) -> Result<usize, CudaError> {
        if self.slots.is_empty() {
            let context = Arc::clone(self.inward.context());
            for _ in 0..self.count {
                let slot = Slot::new(&context, self.size);
                match slot {
                    Ok(slot) => self.slots.push(slot),
                    Err(error) => {
                        self.slots.clear();
                        return Err(error);
                    }
                }
            }
        }
        let slot = self.next % self.slots.len();
        self.next = slot + 1;
        self.slots[slot].used.synchronize()?;
        Ok(slot)
    }

    /// Copies `from` to the device. On return `from` is free to change, and what is queued on `compute` from now on sees the copy.
    ///
    /// The copy begins after `after`, or where that is `None` after all that `compute` has queued.
    ///
    /// # Safety
    /// The device has `from.len()` bytes at `to`, of `compute`'s engine; nothing that was queued after `after` uses them.
    pub(super) unsafe fn copy_in(
        &mut self,
        compute: &Stream,
        after: Option<&Event>,
        from: &[u8],
        to: CUdeviceptr,
    ) -> Result<(), CudaError> {
        // What fits one slot has nothing to overlap with: on the stream itself it saves two waits.
        let stream = if after.is_none() && from.len() <= self.size {
            None
        } else {
            Some(Arc::clone(&self.inward))
        };
        if let Some(stream) = &stream {
            match after {
                Some(event) => stream.wait_for(event)?,
                None => {
                    let queued = Event::new(compute.context())?;
                    queued.record(compute)?;
                    stream.wait_for(&queued)?;
                }
            }
        }
        let stream = stream.as_deref().unwrap_or(compute);
        // SAFETY: as the caller promises.
        let copied = unsafe { self.fill(stream, from, to) };
        if std::ptr::eq(stream, compute) {
            return copied.map(|_| ());
        }
        match copied {
            // The stream's order makes the last copy's mark that of all of them.
            Ok(Some(slot)) => compute.wait_for(&self.slots[slot].used),
            Ok(None) => Ok(()),
            Err(error) => {
                // Copies that were begun write the buffer: its memory must not be given to others before they are done.
                stream.settle();
                Err(error)
            }
        }
    }

    /// As [`Staging::copy_in`], on a stream; the slot of the last copy.
    ///
    /// # Safety
    /// As there.
    unsafe fn fill(
        &mut self,
        stream: &Stream,
        from: &[u8],
        to: CUdeviceptr,
    ) -> Result<Option<usize>, CudaError> {
        let mut last = None;
        for (index, part) in from.chunks(self.size).enumerate() {
            let slot = self.slot()?;
            last = Some(slot);
            let Slot { bytes, used, .. } = &self.slots[slot];
            // SAFETY: the slot has `size` bytes, nothing copies from it now, and `from` is not a part of it.
            unsafe { bytes.copy_from_nonoverlapping(NonNull::from(part).cast(), part.len()) };
            let to = to + (index * self.size) as u64;
            stream.marked(Queued::CopyIn(part.len()), || {
                stream.context().call("cuMemcpyHtoDAsync", |api| {
                    let from = bytes.as_ptr().cast();
                    // SAFETY: the device has the bytes, as the caller promises; the slot is not touched until `used` was passed.
                    unsafe { api.cuMemcpyHtoDAsync_v2(to, from, part.len(), stream.handle()) }
                })
            })?;
            used.record(stream)?;
        }
        Ok(last)
    }

    /// Copies from the device to `to`, and waits for it. The copy begins after all that `compute` has queued.
    ///
    /// # Safety
    /// The device has `to.len()` bytes at `from`, of `compute`'s engine, and they were written before.
    pub(super) unsafe fn copy_out(
        &mut self,
        compute: &Stream,
        from: CUdeviceptr,
        to: &mut [u8],
    ) -> Result<(), CudaError> {
        if to.is_empty() {
            return Ok(());
        }
        let outward = Arc::clone(&self.outward);
        let stream = if to.len() <= self.size {
            compute
        } else {
            let queued = Event::new(compute.context())?;
            queued.record(compute)?;
            outward.wait_for(&queued)?;
            &*outward
        };
        // SAFETY: as the caller promises.
        let copied = unsafe { self.drain(stream, from, to) };
        if copied.is_err() && !std::ptr::eq(stream, compute) {
            // Copies that were begun read the buffer: its memory must not be given to others before.
            stream.settle();
        }
        copied
    }

    /// As [`Staging::copy_out`], where the copy begins after a mark, beside what else the engine does.
    ///
    /// # Safety
    /// The device has `to.len()` bytes at `from`, written before the mark and not written again until this returns.
    pub(super) unsafe fn copy_out_after(
        &mut self,
        mark: &Event,
        from: CUdeviceptr,
        to: &mut [u8],
    ) -> Result<(), CudaError> {
        let stream = Arc::clone(&self.outward);
        stream.wait_for(mark)?;
        // SAFETY: as the caller promises.
        let copied = unsafe { self.drain(&stream, from, to) };
        if copied.is_err() {
            // As in `copy_out`.
            stream.settle();
        }
        copied
    }

    /// As [`Staging::copy_out`], on a stream.
    ///
    /// # Safety
    /// As there.
    unsafe fn drain(
        &mut self,
        stream: &Stream,
        from: CUdeviceptr,
        to: &mut [u8],
    ) -> Result<(), CudaError> {
        let size = self.size;
        // One slot is emptied while the others are filled.
        let ahead = self.count - 1;
        let mut filled = std::collections::VecDeque::with_capacity(ahead);
        let parts = to.len().div_ceil(size);
        for index in 0..parts + ahead {
            if index < parts {
                let start = index * size;
                let len = size.min(to.len() - start);
                let slot = self.slot()?;
                let Slot { bytes, used, .. } = &self.slots[slot];
                stream.marked(Queued::CopyOut(len), || {
                    stream.context().call("cuMemcpyDtoHAsync", |api| {
                        let (to, from) = (bytes.as_ptr().cast(), from + start as u64);
                        // SAFETY: the device has the bytes, as the caller promises, and the slot has room for them; nobody looks at
                        // it until `used` was passed.
                        unsafe { api.cuMemcpyDtoHAsync_v2(to, from, len, stream.handle()) }
                    })
                })?;
                used.record(stream)?;
                filled.push_back((slot, start, len));
            }
            if index >= ahead {
                let Some((slot, start, len)) = filled.pop_front() else {
                    break;
                };
                let Slot { bytes, used, .. } = &self.slots[slot];
                used.synchronize()?;
                // SAFETY: the copy into the slot is done, so its first `len` bytes have values, and nothing writes them now.
                let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), len) };
                to[start..][..len].copy_from_slice(bytes);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging")
            .field("slots", &self.count)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
