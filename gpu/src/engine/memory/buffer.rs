//! Elements in device memory.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use tercet_core::number::Plain;

use super::pool::{Pool, class};
use crate::engine::error::CudaError;

/// Elements in a device's memory. The memory returns to the engine's pool when the buffer is dropped.
///
/// It begins at a multiple of 256 bytes. It may be dropped, or sent to and read from other threads, at any time: its
/// memory is reused only after the work queued with it has run. It may outlive its engine.
pub struct DeviceBuffer<T> {
    pool: Arc<Pool>,
    pointer: CUdeviceptr,
    len: usize,
    class: usize,
    elements: PhantomData<T>,
}

// SAFETY: it is a number that only the driver follows, and elements are plain. `T` says how they are read, and none is
// stored.
unsafe impl<T: Plain> Send for DeviceBuffer<T> {}
// SAFETY: as above; what changes the elements needs the buffer alone.
unsafe impl<T: Plain> Sync for DeviceBuffer<T> {}

impl<T: Plain> DeviceBuffer<T> {
    /// Allocates `len` elements with arbitrary values.
    pub(in crate::engine) fn new(pool: &Arc<Pool>, len: usize) -> Result<Self, CudaError> {
        let full = CudaError::OutOfMemory {
            asked: usize::MAX,
            free: 0,
        };
        let bytes = len
            .checked_mul(size_of::<T>())
            .ok_or_else(|| full.clone())?;
        // An empty buffer has no memory: the driver refuses to allocate none.
        let (class, pointer) = if bytes == 0 {
            (0, 0)
        } else {
            let class = class(bytes).ok_or(full)?;
            (class, pool.take(class)?)
        };
        Ok(Self {
            pool: Arc::clone(pool),
            pointer,
            len,
            class,
            elements: PhantomData,
        })
    }

    /// Returns the number of elements.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are no elements.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of its elements.
    pub const fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Returns its address on the device.
    pub(in crate::engine) const fn pointer(&self) -> CUdeviceptr {
        self.pointer
    }

    /// Returns the pool of its engine.
    pub(in crate::engine) const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// True if it belongs to the engine with this pool.
    pub(in crate::engine) fn is_of(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }

    /// Returns the address of `len` elements from `start` on, if it belongs to the engine with this pool.
    pub(in crate::engine) fn part(
        &self,
        pool: &Arc<Pool>,
        start: usize,
        len: usize,
    ) -> Result<CUdeviceptr, CudaError> {
        let expected = start.saturating_add(len);
        let found = if self.is_of(pool) { self.len } else { 0 };
        if found < expected {
            return Err(CudaError::Length { expected, found });
        }
        Ok(self.pointer + (start * size_of::<T>()) as u64)
    }

    /// Checks that it belongs to the engine with this pool and holds `expected` elements.
    pub(in crate::engine) fn check(
        &self,
        pool: &Arc<Pool>,
        expected: usize,
    ) -> Result<(), CudaError> {
        let found = if self.is_of(pool) { self.len } else { 0 };
        if found == expected && (found == self.len) {
            return Ok(());
        }
        Err(CudaError::Length { expected, found })
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if self.class > 0 {
            self.pool.give(self.pointer, self.class);
        }
    }
}

impl<T> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
