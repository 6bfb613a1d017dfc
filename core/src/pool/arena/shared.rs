//! An arena for several threads and interrupts at the same time.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::Ordering::Relaxed;

#[cfg(all(not(all(test, loom)), target_has_atomic = "ptr"))]
use core::sync::atomic::{AtomicU32, AtomicUsize};
#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicU32, AtomicUsize};
#[cfg(not(target_has_atomic = "ptr"))]
use portable_atomic::{AtomicU32, AtomicUsize};

use super::{ArenaError, Memory, Placement, Stats, bytes_of, copy, fill, place, repeat};

/// A buffer of `BYTES` bytes from which any number of threads and interrupts take memory through `&`.
///
/// Taking memory moves one atomic counter: O(1), plus one repetition for each other taker in between. There is never
/// a lock, so an interrupt may take memory while the interrupted program was taking some. There are no marks: memory
/// freed by one taker could lie below memory that another still uses. [`SharedArena::reset`] needs `&mut`, so it is
/// only possible when nobody uses the memory.
///
/// A `static` arena is in `.bss` and returns `&'static mut` memory, once for the program's lifetime:
///
/// ```
/// use tercet_core::pool::{ArenaError, SharedArena};
///
/// static BUFFERS: SharedArena<4096> = SharedArena::new();
///
/// let totals = std::thread::scope(|threads| {
///     let workers = [1_u32, 2, 3].map(|id| {
///         threads.spawn(move || {
///             let mine: &'static mut [u32] = BUFFERS.alloc_slice(100, id)?;
///             Ok::<u32, ArenaError>(mine.iter().sum())
///         })
///     });
///     workers.map(|worker| worker.join().unwrap())
/// });
/// assert_eq!(totals, [Ok(100), Ok(200), Ok(300)]);
/// assert_eq!(BUFFERS.stats().in_use, 1200);
/// ```
///
/// A taker that needs marks can take its own [`Arena`](super::Arena) from it: `BUFFERS.alloc(Arena::<1024>::new())`.
pub struct SharedArena<const BYTES: usize> {
    memory: UnsafeCell<Memory<BYTES>>,
    /// Number of bytes taken; never above `BYTES`, and only `reset` lowers it.
    used: AtomicUsize,
    /// Largest number of bytes taken before the last reset.
    peak: usize,
    failures: AtomicU32,
}

// SAFETY: `memory` is only reached through `carve`, which gives each byte to one caller at most until `reset`, and
// that takes the arena exclusively. A value stays where its taker put it and is reached by the taker's reference
// alone, and no destructor runs, so no value of another thread is touched here.
unsafe impl<const BYTES: usize> Sync for SharedArena<BYTES> {}

#[allow(
    clippy::mut_from_ref,
    reason = "each call gives memory that no other call gave"
)]
impl<const BYTES: usize> SharedArena<BYTES> {
    /// Creates an arena with nothing taken.
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Self {
        Self {
            memory: UnsafeCell::new(Memory::new()),
            used: AtomicUsize::new(0),
            peak: 0,
            failures: AtomicU32::new(0),
        }
    }

    // Loom's atomics cannot be created at compile time.
    #[cfg(all(test, loom))]
    fn new() -> Self {
        Self {
            memory: UnsafeCell::new(Memory::new()),
            used: AtomicUsize::new(0),
            peak: 0,
            failures: AtomicU32::new(0),
        }
    }

    /// Frees everything. O(1).
    ///
    /// ```compile_fail,E0502
    /// # use tercet_core::pool::SharedArena;
    /// let mut arena = SharedArena::<64>::new();
    /// let kept = arena.alloc(1_u32).unwrap();
    /// arena.reset();
    /// *kept += 1;
    /// ```
    pub fn reset(&mut self) {
        self.peak = self.stats().high_water;
        self.used.store(0, Relaxed);
    }

    /// Returns the figures in bytes; bytes skipped for alignment count as used. If others take memory at the same
    /// time, the figures may belong to different moments.
    pub fn stats(&self) -> Stats {
        let in_use = self.used.load(Relaxed);
        Stats {
            capacity: BYTES,
            in_use,
            high_water: self.peak.max(in_use),
            failures: self.failures.load(Relaxed),
        }
    }

    /// Moves a value into the arena, or returns it if there is no space.
    #[inline]
    pub fn alloc<T>(&self, value: T) -> Result<&mut T, T> {
        match self.alloc_uninit(1) {
            Ok([place]) => Ok(place.write(value)),
            _ => Err(value),
        }
    }

    /// Returns `len` copies of a value: `alloc_slice(len, 0_i8)` is zeroed memory. O(`len`).
    ///
    /// # Errors
    /// [`ArenaError::Full`] or [`ArenaError::TooLong`]; nothing is taken then.
    #[inline]
    pub fn alloc_slice<T: Copy>(&self, len: usize, value: T) -> Result<&mut [T], ArenaError> {
        Ok(repeat(self.alloc_uninit(len)?, value))
    }

    /// Returns `len` values, each computed from its index. O(`len`).
    ///
    /// # Errors
    /// Those of [`SharedArena::alloc_slice`].
    #[inline]
    pub fn alloc_slice_with<T>(
        &self,
        len: usize,
        value: impl FnMut(usize) -> T,
    ) -> Result<&mut [T], ArenaError> {
        Ok(fill(self.alloc_uninit(len)?, value))
    }

    /// Returns a copy of a slice. O(its length).
    ///
    /// # Errors
    /// Those of [`SharedArena::alloc_slice`].
    #[inline]
    pub fn alloc_copy<T: Copy>(&self, values: &[T]) -> Result<&mut [T], ArenaError> {
        Ok(copy(self.alloc_uninit(values.len())?, values))
    }

    /// Returns `len` elements without a value yet, for code that fills its output itself.
    ///
    /// # Errors
    /// Those of [`SharedArena::alloc_slice`].
    #[inline]
    pub fn alloc_uninit<T>(&self, len: usize) -> Result<&mut [MaybeUninit<T>], ArenaError> {
        let start = self.carve(bytes_of::<T>(len), align_of::<T>())?;
        // SAFETY: `start` is aligned for `T` and begins the bytes of `len` elements that only this caller has;
        // elements of `MaybeUninit` need no value.
        Ok(unsafe { slice::from_raw_parts_mut(start.cast().as_ptr(), len) })
    }

    /// Returns `len` bytes at a multiple of `align`, without a value yet: for example a DMA buffer or a cache line.
    ///
    /// # Errors
    /// [`ArenaError::Full`]; [`ArenaError::Alignment`] if `align` is not a power of two.
    #[inline]
    pub fn alloc_bytes(
        &self,
        len: usize,
        align: usize,
    ) -> Result<&mut [MaybeUninit<u8>], ArenaError> {
        let start = self.carve(Some(len), align)?;
        // SAFETY: `start` begins `len` bytes that only this caller has; elements of `MaybeUninit` need no value.
        Ok(unsafe { slice::from_raw_parts_mut(start.cast().as_ptr(), len) })
    }

    /// Takes `bytes` (`None`: more than an address can hold) at a multiple of `align`. No other call gets any of them
    /// before `reset`: the counter moves from the value that this call read to the end of its bytes, or the call
    /// tries again.
    #[inline]
    fn carve(&self, bytes: Option<usize>, align: usize) -> Result<NonNull<u8>, ArenaError> {
        let memory = self.memory.get().cast::<u8>();
        // Relaxed: the counter only informs a taker which bytes are its own.
        let mut used = self.used.load(Relaxed);
        loop {
            let rest = memory.wrapping_add(used);
            let Placement { skip, end } =
                place(rest.addr(), BYTES.saturating_sub(used), bytes, align)
                    .inspect_err(|_| self.refuse())?;
            let start = if end == 0 {
                // A request of no bytes; any aligned address is valid.
                ptr::without_provenance_mut(align)
            } else {
                match self
                    .used
                    .compare_exchange_weak(used, used + end, Relaxed, Relaxed)
                {
                    Ok(_) => rest.wrapping_add(skip),
                    Err(now) => {
                        used = now;
                        continue;
                    }
                }
            };
            // An aligned address is not 0, and neither is one in the buffer.
            return NonNull::new(start).ok_or(ArenaError::Alignment { align });
        }
    }

    /// Counts a refused request; the counter saturates.
    #[cold]
    fn refuse(&self) {
        let _ = self
            .failures
            .fetch_update(Relaxed, Relaxed, |n| n.checked_add(1));
    }
}

impl<const BYTES: usize> Default for SharedArena<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize> fmt::Debug for SharedArena<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedArena").field(&self.stats()).finish()
    }
}

#[cfg(feature = "defmt")]
impl<const BYTES: usize> defmt::Format for SharedArena<BYTES> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "SharedArena({})", self.stats())
    }
}

#[cfg(all(test, loom))]
mod models;
