//! Slots of pinned memory, used in turn.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::engine::context::Context;
use crate::engine::error::{CudaError, Status};
use crate::engine::stream::Event;

/// Slots of one size, allocated together when the first is needed.
pub(super) struct Ring {
    context: Arc<Context>,
    count: usize,
    /// Bytes of a slot.
    size: usize,
    slots: Option<Slots>,
    /// The least recently used slot.
    next: usize,
}

impl Ring {
    pub(super) fn new(context: &Arc<Context>, count: usize, size: usize) -> Self {
        Self {
            context: Arc::clone(context),
            count,
            size,
            slots: None,
            next: 0,
        }
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the next slot in turn, after waiting until no copy uses it; reports an earlier failure.
    pub(super) fn next(&mut self) -> Result<usize, CudaError> {
        if self.slots.is_none() {
            self.slots = Some(Slots::new(&self.context, self.count, self.size)?);
        }
        let slot = self.next;
        self.used(slot).synchronize()?;
        self.next = (slot + 1) % self.count;
        Ok(slot)
    }

    fn made(&self) -> &Slots {
        let slots = self.slots.as_ref();
        slots.expect("slots are numbered once they are made")
    }

    /// Returns the start of a slot from [`Ring::next`].
    pub(super) fn bytes(&self, slot: usize) -> NonNull<u8> {
        assert!(slot < self.count);
        // SAFETY: there are so many slots, of this size, one behind the other.
        unsafe { self.made().bytes.add(slot * self.size) }
    }

    /// Returns the mark of the last copy that used a slot from [`Ring::next`].
    pub(super) fn used(&self, slot: usize) -> &Event {
        &self.made().used[slot]
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("count", &self.count)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// Pinned memory, and for each slot a mark of the last copy that used it.
struct Slots {
    context: Arc<Context>,
    bytes: NonNull<u8>,
    used: Vec<Event>,
}

// SAFETY: the memory is the slots' own, and the driver's functions take it from any thread.
unsafe impl Send for Slots {}
// SAFETY: shared slots are only looked at.
unsafe impl Sync for Slots {}

impl Slots {
    fn new(context: &Arc<Context>, count: usize, size: usize) -> Result<Self, CudaError> {
        let used = (0..count)
            .map(|_| Event::new(context))
            .collect::<Result<_, _>>()?;
        let full = CudaError::Driver {
            call: "cuMemHostAlloc",
            status: Status::OUT_OF_MEMORY,
        };
        let bytes = count.checked_mul(size).ok_or_else(|| full.clone())?;
        let mut pointer: *mut c_void = std::ptr::null_mut();
        // No flags: write-combined memory, the usual choice, is slow to read.
        let got = context.call("cuMemHostAlloc", |api| {
            // SAFETY: the pointer is to a pointer; `drop` frees the memory.
            unsafe { api.cuMemHostAlloc(&mut pointer, bytes, 0) }
        });
        match (got, NonNull::new(pointer.cast())) {
            (Ok(()), Some(bytes)) => Ok(Self {
                context: Arc::clone(context),
                bytes,
                used,
            }),
            // The host's memory ran out: a smaller chunk would not help.
            (Err(CudaError::OutOfMemory { .. }) | Ok(()), _) => Err(full),
            (Err(error), _) => Err(error),
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // Copies from or to the slots must end first.
        for used in &self.used {
            used.settle();
        }
        // SAFETY: allocated in `new`, freed once, and no longer used.
        self.context
            .release(|api| unsafe { api.cuMemFreeHost(self.bytes.as_ptr().cast()) });
    }
}
