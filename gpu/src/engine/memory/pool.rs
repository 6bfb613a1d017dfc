//! Device memory, allocated and freed in the order of a stream.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps,
    CUmemoryPool,
};
use tercet_core::pool::Stats;

use crate::engine::context::Context;
use crate::engine::error::CudaError;
use crate::engine::meters;
use crate::engine::stream::Stream;
use crate::observe::Level;

/// The size of every allocation is a multiple of this: the driver aligns to it, and kernels rely on it.
const GRAIN: usize = 256;

/// Use of the device's memory, in the terms of [`tercet_core::pool`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes of buffers, including rounding to size classes (at most an eighth, or 255 bytes). The capacity is the
    /// amount that the engine may use; a failure is a buffer that could not be allocated.
    pub bytes: Stats,
    /// Bytes that the driver keeps for the pool: those in use, and those that wait for the next buffer.
    pub reserved: usize,
    /// Maximum bytes that it kept.
    pub reserved_high_water: usize,
}

/// A pool of the driver, which keeps returned memory until it is trimmed or destroyed, and the stream in whose order
/// memory is allocated and freed.
pub(in crate::engine) struct Pool {
    stream: Arc<Stream>,
    handle: CUmemoryPool,
    held: Mutex<PoolState>,
    level: Level,
}

/// Counters of a pool, and memory that waits to return to it.
struct PoolState {
    stats: Stats,
    /// Memory, with its classes, that came back while launches were recorded: the stream frees nothing then.
    waiting: Vec<(CUdeviceptr, usize)>,
}

// SAFETY: the driver's functions take pools from any thread, and the handle is never changed.
unsafe impl Send for Pool {}
// SAFETY: as above; what changes is locked.
unsafe impl Sync for Pool {}

impl Pool {
    /// Returns a pool of at most `capacity` bytes, whose memory is ordered by `stream`.
    pub(in crate::engine) fn new(
        stream: &Arc<Stream>,
        capacity: usize,
    ) -> Result<Arc<Self>, CudaError> {
        let context = stream.context();
        let properties = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: context.device(),
            },
            win32SecurityAttributes: std::ptr::null_mut(),
            // The driver's own bound. The engine's bound is enforced here, because the driver's may round.
            maxSize: 0,
            reserved: [0; 56],
        };
        let mut handle = std::ptr::null_mut();
        context.call("cuMemPoolCreate", |api| {
            // SAFETY: both pointers are to what they should be, and the properties are of a device that the driver
            // gave.
            unsafe { api.cuMemPoolCreate(&mut handle, &properties) }
        })?;
        let pool = Self {
            stream: Arc::clone(stream),
            handle,
            held: Mutex::new(PoolState {
                stats: Stats {
                    capacity,
                    ..Stats::default()
                },
                waiting: Vec::new(),
            }),
            level: meters::memory(context.ordinal()),
        };
        pool.level.show(&pool.lock().stats);
        // Without it the driver returns idle memory to the system at every synchronization, and allocates it again for
        // the next buffer.
        let mut threshold = u64::MAX;
        context.call("cuMemPoolSetAttribute", |api| {
            // SAFETY: the attribute is a 64-bit number, which the pointer is to.
            unsafe {
                api.cuMemPoolSetAttribute(
                    handle,
                    CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                    (&raw mut threshold).cast::<c_void>(),
                )
            }
        })?;
        Ok(Arc::new(pool))
    }

    /// Lets another device read and write the pool's memory, which [`Context::reaches`] must have allowed.
    ///
    /// `cuCtxEnablePeerAccess` does not apply to memory of pools: each pool must be opened on its own.
    pub(in crate::engine) fn open_to(&self, other: &Context) -> Result<(), CudaError> {
        if other.device() == self.context().device() {
            return Ok(());
        }
        let access = CUmemAccessDesc {
            location: CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: other.device(),
            },
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        self.context().call("cuMemPoolSetAccess", |api| {
            // SAFETY: the pool lives, and the pointer is to one description, of a device that the driver gave.
            unsafe { api.cuMemPoolSetAccess(self.handle, &access, 1) }
        })
    }

    fn context(&self) -> &Context {
        self.stream.context()
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // Nothing panics while it is held, and its data cannot be half written.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns memory of a [`class`], usable by work queued on the stream from now on. Its contents are arbitrary.
    ///
    /// If there is none, it waits for the stream, lets the driver free idle memory, and tries once more. While launches
    /// are recorded it returns none: the driver would make the allocation a node of the graph, and the memory would
    /// exist only after a replay.
    pub(super) fn take(&self, class: usize) -> Result<CUdeviceptr, CudaError> {
        self.reserve(class)?;
        let mut found = self.allocate(class);
        if found.as_ref().is_err_and(CudaError::is_out_of_memory) {
            found = self.trim().and_then(|()| self.allocate(class));
        }
        let mut held = self.lock();
        let stats = &mut held.stats;
        if found.is_ok() {
            stats.high_water = stats.high_water.max(stats.in_use);
            self.level.show(stats);
            return found;
        }
        stats.in_use -= class;
        stats.failures = stats.failures.saturating_add(1);
        self.level.show(stats);
        drop(held);
        found.map_err(|error| self.described(error, class))
    }

    /// Counts `class` bytes as in use if the capacity allows it.
    fn reserve(&self, class: usize) -> Result<(), CudaError> {
        let mut held = self.lock();
        if self.stream.is_recording() {
            return Err(CudaError::Recording { refused: "made" });
        }
        let stats = &mut held.stats;
        let free = stats.free();
        if class > free {
            stats.failures = stats.failures.saturating_add(1);
            self.level.show(stats);
            return Err(CudaError::OutOfMemory { asked: class, free });
        }
        stats.in_use += class;
        Ok(())
    }

    fn allocate(&self, class: usize) -> Result<CUdeviceptr, CudaError> {
        let mut pointer = 0;
        self.context().call("cuMemAllocFromPoolAsync", |api| {
            // SAFETY: the pointer is to a device pointer; pool and stream live. `give` frees it.
            unsafe {
                api.cuMemAllocFromPoolAsync(&mut pointer, class, self.handle, self.stream.handle())
            }
        })?;
        Ok(pointer)
    }

    /// Adds the requested and the free bytes, if the driver only said that there is no room.
    fn described(&self, error: CudaError, asked: usize) -> CudaError {
        match error {
            CudaError::OutOfMemory { asked: 0, .. } => CudaError::OutOfMemory {
                asked,
                free: self.context().memory().map_or(0, |(free, _)| free),
            },
            other => other,
        }
    }

    /// Returns memory of a class to the pool once work queued on the stream has run, or, while launches are recorded,
    /// once recording has ended.
    pub(super) fn give(&self, pointer: CUdeviceptr, class: usize) {
        let mut held = self.lock();
        if self.stream.is_recording() {
            held.waiting.push((pointer, class));
        } else {
            self.free(&mut held.stats, pointer, class);
        }
    }

    /// As [`Pool::give`], while nothing is recorded; the lock on `stats` guarantees that.
    fn free(&self, stats: &mut Stats, pointer: CUdeviceptr, class: usize) {
        // SAFETY: it came from `take`, and comes back once: a buffer gives it when it is dropped. Every use of it was
        // queued on the pool's stream, or on one that the pool's stream waits for.
        self.context()
            .release(|api| unsafe { api.cuMemFreeAsync(pointer, self.stream.handle()) });
        stats.in_use = stats.in_use.saturating_sub(class);
        self.level.show(stats);
    }

    /// Calls `begin`, which makes the stream record. The lock is held, so that no thread frees memory in between, which
    /// would become part of the recording.
    pub(in crate::engine) fn begin_recording(
        &self,
        begin: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let _held = self.lock();
        begin()?;
        self.stream.set_recording(true);
        Ok(())
    }

    /// Calls `end`, which makes the stream run work again, and frees the memory that came back meanwhile. It does so
    /// even if `end` fails, because after a failed capture the stream is as before.
    pub(in crate::engine) fn end_recording(
        &self,
        end: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let mut held = self.lock();
        let ended = end();
        self.stream.set_recording(false);
        let PoolState { stats, waiting } = &mut *held;
        for (pointer, class) in waiting.drain(..) {
            self.free(stats, pointer, class);
        }
        ended
    }

    /// Waits for the stream and returns idle memory to the system.
    pub(in crate::engine) fn trim(&self) -> Result<(), CudaError> {
        self.stream.synchronize()?;
        self.context().call("cuMemPoolTrimTo", |api| {
            // SAFETY: the pool lives.
            unsafe { api.cuMemPoolTrimTo(self.handle, 0) }
        })
    }

    pub(in crate::engine) fn stats(&self) -> Result<MemoryStats, CudaError> {
        Ok(MemoryStats {
            bytes: self.lock().stats,
            reserved: self.attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high_water: self
                .attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
        })
    }

    /// Returns the bytes that buffers could take now, as far as known; see [`crate::engine::Cuda::available`].
    pub(in crate::engine) fn available(&self) -> Result<usize, CudaError> {
        let reserved = self.attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
        let (free, _) = self.context().memory()?;
        let bytes = self.lock().stats;
        let idle = reserved.saturating_sub(bytes.in_use);
        Ok(bytes.free().min(free.saturating_add(idle)))
    }

    /// True if buffers of these sizes in bytes could be allocated now, all together.
    pub(in crate::engine) fn has_room(&self, bytes: &[usize]) -> Result<bool, CudaError> {
        // An empty buffer takes no memory.
        let mut classes = bytes.iter().filter(|&&bytes| bytes > 0);
        let total = classes.try_fold(0_usize, |total, &bytes| total.checked_add(class(bytes)?));
        match total {
            Some(total) => Ok(total <= self.available()?),
            None => Ok(false),
        }
    }

    fn attribute(&self, attribute: CUmemPool_attribute) -> Result<usize, CudaError> {
        let mut value = 0_u64;
        self.context().call("cuMemPoolGetAttribute", |api| {
            // SAFETY: the attributes asked for are 64-bit numbers, which the pointer is to.
            unsafe {
                api.cuMemPoolGetAttribute(self.handle, attribute, (&raw mut value).cast::<c_void>())
            }
        })?;
        Ok(usize::try_from(value).unwrap_or(usize::MAX))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: made in `new` and destroyed once. Buffers hold the pool, so all have been returned; what the stream
        // still does with them is done before the driver frees their memory.
        self.context()
            .release(|api| unsafe { api.cuMemPoolDestroy(self.handle) });
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.lock().stats).finish()
    }
}

/// Returns the size that a buffer of `bytes` takes. Sizes are rounded up to multiples of an eighth of the power of two
/// below them, and of 256, so that buffers of about the same size can use the same memory one after another. `None` if
/// that exceeds `usize`.
pub(super) fn class(bytes: usize) -> Option<usize> {
    let power = 1_usize << bytes.max(1).ilog2();
    bytes
        .max(1)
        .checked_next_multiple_of((power / 8).max(GRAIN))
}

/// The driver counts devices with this type.
const _: () = assert!(size_of::<c_int>() == 4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_was_asked_and_waste_an_eighth_at_most() {
        let powers = (0..63).map(|power| 1_usize << power);
        for bytes in powers.flat_map(|power| [power - 1, power, power + 1, power / 3 * 4]) {
            let class = class(bytes).unwrap();
            assert!(class >= bytes && class.is_multiple_of(GRAIN), "{bytes}");
            assert!(class - bytes <= (bytes / 8).max(GRAIN), "{bytes}");
        }
        assert_eq!(class(usize::MAX), None);
    }
}
