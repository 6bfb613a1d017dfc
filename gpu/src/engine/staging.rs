//! Copies between host memory and device memory through pinned slots.
//!
//! The device copies at full speed, and beside other work, only from and to memory that the system does not move. So
//! slices pass through slots of such memory: while the device copies one slot, several threads of the host fill or
//! empty the next, because one thread alone is slower than the bus. Each direction has its own slots and stream, so
//! that two threads keep the bus busy in both directions.
//!
//! Registering the caller's memory instead would save a copy, but costs more than that if the memory is used only once,
//! because the system has to visit each of its pages.

mod ring;

use std::collections::VecDeque;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use rayon::prelude::*;

use self::ring::Ring;
use super::context::Context;
use super::error::CudaError;
use super::stream::{Event, Stream};
use super::team;
use super::timeline::{Queued, Timeline};

/// Bytes of a small slot. Copies up to this size take one. Many of them can be in progress at a time, so that an upload
/// of parameters does not wait for the kernels that were queued before the last few.
const SMALL: usize = 64 << 10;
/// Small slots for copies in. Copies out have one, because each is waited for.
const SMALL_SLOTS: usize = 32;
/// Bytes that one thread copies at a time.
const PIECE: usize = 1 << 20;

/// Slots and a stream for copies in one direction.
struct Way {
    stream: Arc<Stream>,
    small: Ring,
    large: Ring,
}

impl Way {
    fn new(
        context: &Arc<Context>,
        small: usize,
        (count, size): (usize, usize),
    ) -> Result<Self, CudaError> {
        let size = size.max(4096);
        Ok(Self {
            stream: Stream::new(context)?,
            small: Ring::new(context, small, SMALL.min(size)),
            large: Ring::new(context, count.max(2), size),
        })
    }

    /// Returns the slots for a copy of `len` bytes, and the stream for a copy of many parts.
    fn slots(&mut self, len: usize) -> (&mut Ring, &Stream) {
        let ring = if len <= self.small.size() {
            &mut self.small
        } else {
            &mut self.large
        };
        (ring, &self.stream)
    }
}

/// Pinned memory for both directions, allocated when first needed.
#[derive(Debug)]
pub(super) struct Staging {
    pub(super) inward: Inward,
    outward: Arc<OutwardCopies>,
}

impl Staging {
    /// Returns `count` slots of `size` bytes in each direction; at least two, of at least 4096.
    pub(super) fn new(
        context: &Arc<Context>,
        count: usize,
        size: usize,
    ) -> Result<Self, CudaError> {
        Ok(Self {
            inward: Inward(Way::new(context, SMALL_SLOTS, (count, size))?),
            outward: Arc::new(OutwardCopies(Mutex::new(Outward(Way::new(
                context,
                1,
                (count, size),
            )?)))),
        })
    }

    /// Records copies in the timeline.
    pub(super) fn trace(&self, timeline: &Arc<Timeline>) {
        self.inward.0.stream.trace(timeline);
        self.outward.lock().0.stream.trace(timeline);
    }

    /// Returns the copies out, for a thread beside the engine's.
    pub(super) fn outward(&self) -> Arc<OutwardCopies> {
        Arc::clone(&self.outward)
    }
}

/// Copies out, for one thread at a time.
#[derive(Debug)]
pub(super) struct OutwardCopies(Mutex<Outward>);

impl OutwardCopies {
    pub(super) fn lock(&self) -> MutexGuard<'_, Outward> {
        // Slots have their marks, even if a thread that used them panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While launches are recorded, a copy would become part of them, and read or write a slot at each replay.
fn refuse_while_recording(compute: &Stream) -> Result<(), CudaError> {
    if compute.is_recording() {
        return Err(CudaError::Recording {
            refused: "copied from or to the host",
        });
    }
    Ok(())
}

/// Copies to the device.
pub(super) struct Inward(Way);

impl Inward {
    /// Copies `from` to the device. After the return `from` may change, and work queued on `compute` from now on sees
    /// the copy.
    ///
    /// The copy begins after `after`, or if that is `None` after all work queued on `compute`.
    ///
    /// # Safety
    /// The device has `from.len()` bytes at `to`, of `compute`'s engine; no work queued after `after` uses them.
    pub(super) unsafe fn copy_in(
        &mut self,
        compute: &Stream,
        after: Option<&Event>,
        from: &[u8],
        to: CUdeviceptr,
    ) -> Result<(), CudaError> {
        if from.is_empty() {
            return Ok(());
        }
        refuse_while_recording(compute)?;
        let (ring, own) = self.0.slots(from.len());
        // A copy that fits one slot has nothing to overlap with: on the stream itself it saves two waits.
        let stream = if after.is_none() && from.len() <= ring.size() {
            compute
        } else {
            match after {
                Some(event) => own.wait_for(event)?,
                None => {
                    let queued = Event::new(compute.context())?;
                    queued.record(compute)?;
                    own.wait_for(&queued)?;
                }
            }
            own
        };
        // SAFETY: as the caller promises.
        let mut copied = unsafe { fill(ring, stream, from, to) };
        if !std::ptr::eq(stream, compute) {
            // By the order of the stream, the mark of the last copy is also that of all before it.
            copied = copied.and_then(|slot| compute.wait_for(ring.used(slot)).map(|()| slot));
        }
        if copied.is_err() {
            // Copies that were begun write the buffer, whose memory must not be given to others before they are done,
            // and read slots that have no mark for it.
            stream.settle();
        }
        copied.map(|_| ())
    }
}

/// Queues the copies of [`Inward::copy_in`] on a stream. Returns the slot of the last one.
///
/// # Safety
/// As for [`Inward::copy_in`].
unsafe fn fill(
    ring: &mut Ring,
    stream: &Stream,
    from: &[u8],
    to: CUdeviceptr,
) -> Result<usize, CudaError> {
    let size = ring.size();
    let mut last = 0;
    for (index, part) in from.chunks(size).enumerate() {
        last = ring.next()?;
        let bytes = ring.bytes(last);
        // SAFETY: the slot has `size` bytes, its last copy is done, and it is lent to nobody else; bytes that may have
        // no value may be anything.
        let slot = unsafe { std::slice::from_raw_parts_mut(bytes.cast().as_ptr(), part.len()) };
        // SAFETY: bytes that have values are bytes that may have none, of the same layout.
        let part: &[MaybeUninit<u8>] =
            unsafe { std::slice::from_raw_parts(part.as_ptr().cast(), part.len()) };
        copy(part, slot);
        let to = to + (index * size) as u64;
        stream.marked(Queued::CopyIn(part.len()), || {
            stream.context().call("cuMemcpyHtoDAsync", |api| {
                let from = bytes.as_ptr().cast();
                // SAFETY: the device has the bytes, as the caller promises; the slot is not touched until `used` was
                // passed.
                unsafe { api.cuMemcpyHtoDAsync_v2(to, from, part.len(), stream.handle()) }
            })
        })?;
        ring.used(last).record(stream)?;
    }
    Ok(last)
}

/// Copies to the host.
pub(super) struct Outward(Way);

impl Outward {
    /// True if a copy of so many bytes takes long enough that its own thread may be worth it.
    pub(super) const fn is_long(&self, len: usize) -> bool {
        len > self.0.large.size()
    }

    /// Copies from the device to `to`, and waits for it. The copy begins after all work queued on `compute`.
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
        refuse_while_recording(compute)?;
        let (ring, own) = self.0.slots(to.len());
        let stream = if to.len() <= ring.size() {
            compute
        } else {
            let queued = Event::new(compute.context())?;
            queued.record(compute)?;
            own.wait_for(&queued)?;
            own
        };
        // SAFETY: as the caller promises.
        unsafe { drain(ring, stream, from, to) }
    }

    /// As [`Outward::copy_out`], but the copy begins after a mark, beside other work of the engine, which is recording
    /// nothing now.
    ///
    /// # Safety
    /// The device has `to.len()` bytes at `from`, written before the mark and not written again until this returns.
    pub(super) unsafe fn copy_out_after(
        &mut self,
        mark: &Event,
        from: CUdeviceptr,
        to: &mut [u8],
    ) -> Result<(), CudaError> {
        if to.is_empty() {
            return Ok(());
        }
        let (ring, own) = self.0.slots(to.len());
        own.wait_for(mark)?;
        // SAFETY: as the caller promises.
        unsafe { drain(ring, own, from, to) }
    }
}

/// Copies as [`Outward::copy_out`] does, on a stream. After a failure no part of the copy is still running.
///
/// # Safety
/// As for [`Outward::copy_out`].
unsafe fn drain(
    ring: &mut Ring,
    stream: &Stream,
    from: CUdeviceptr,
    to: &mut [u8],
) -> Result<(), CudaError> {
    // SAFETY: as the caller promises.
    let copied = unsafe { emptied(ring, stream, from, to) };
    if copied.is_err() {
        // Copies that were begun read the buffer, whose memory must not be given to others before they are done, and
        // write slots that may have no mark for it.
        stream.settle();
    }
    copied
}

/// # Safety
/// As [`drain`].
unsafe fn emptied(
    ring: &mut Ring,
    stream: &Stream,
    from: CUdeviceptr,
    to: &mut [u8],
) -> Result<(), CudaError> {
    let size = ring.size();
    // One slot is emptied while the others are filled.
    let ahead = ring.count() - 1;
    let mut filled = VecDeque::with_capacity(ahead + 1);
    let parts = to.len().div_ceil(size);
    for index in 0..parts + ahead {
        if index < parts {
            let start = index * size;
            let len = size.min(to.len() - start);
            let slot = ring.next()?;
            let bytes = ring.bytes(slot);
            stream.marked(Queued::CopyOut(len), || {
                stream.context().call("cuMemcpyDtoHAsync", |api| {
                    let (to, from) = (bytes.as_ptr().cast(), from + start as u64);
                    // SAFETY: the device has the bytes, as the caller promises, and the slot has room for them; nobody
                    // looks at it until `used` was passed.
                    unsafe { api.cuMemcpyDtoHAsync_v2(to, from, len, stream.handle()) }
                })
            })?;
            ring.used(slot).record(stream)?;
            filled.push_back((slot, start, len));
        }
        if index >= ahead {
            let Some((slot, start, len)) = filled.pop_front() else {
                break;
            };
            ring.used(slot).synchronize()?;
            // SAFETY: the copy into the slot is done, so its first `len` bytes have values, and nothing writes them
            // now: the slot is the next in turn only after `ahead` others.
            let bytes = unsafe { std::slice::from_raw_parts(ring.bytes(slot).as_ptr(), len) };
            copy(bytes, &mut to[start..][..len]);
        }
    }
    Ok(())
}

/// Copies as many bytes as both have, with several threads if that pays off.
fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T]) {
    const { assert!(size_of::<T>() == 1) };
    if from.len() <= PIECE {
        to.copy_from_slice(from);
    } else {
        team::together(|| {
            let pieces = to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE));
            pieces.for_each(|(to, from)| to.copy_from_slice(from));
        });
    }
}

impl fmt::Debug for Inward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inward").field(&self.0.large).finish()
    }
}

impl fmt::Debug for Outward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outward").field(&self.0.large).finish()
    }
}
