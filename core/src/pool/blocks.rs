//! The pool: its memory, and a free list that records who may use it.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::block::{Block, Lease, Release};
#[cfg(any(target_has_atomic = "32", feature = "portable-atomic"))]
use super::list::AtomicList;
#[cfg(feature = "critical-section")]
use super::list::CriticalList;
use super::list::{FreeList, LocalList};
use super::sealed::Sealed;
use super::{Full, Stats};

/// Every block starts at a multiple of this, on every machine: enough for every primitive type up to 64 bits.
pub const BLOCK_ALIGN: usize = 8;

#[repr(C, align(8))]
struct Slot<const BLOCK: usize>([u8; BLOCK]);

/// `N` blocks of `BLOCK` bytes, managed by the free list `L`.
///
/// Use it by one of its type names. The table shows instructions on a Cortex-M4 (rustc 1.96, `opt-level = "s"`,
/// inlined, without contention), counted in the code for blocks of 64 bytes; those for the value's own bytes are
/// extra:
///
/// | pool | allocate | return | memory besides the blocks |
/// |---|---|---|---|
/// | [`BlockPool`]: one owner | 13 | 8 | 2 bytes each, 8 in all |
/// | `SharedBlockPool`: no lock | 24, of them 1 barrier | 20, of them 1 barrier | 2 bytes each, 8 in all (16 with 64-bit atomics) |
/// | `CriticalBlockPool`: critical sections | 13 and the section's | 8 and the section's | 2 bytes each, 8 in all |
#[repr(C)] // The list's head first: short addresses.
pub struct Blocks<const BLOCK: usize, const N: usize, L> {
    list: L,
    memory: UnsafeCell<MaybeUninit<[Slot<BLOCK>; N]>>,
}

/// `N` blocks of `BLOCK` bytes for one owner: no atomics, no critical section, and not `Sync`.
///
/// A value of any type that fits takes one block, independent of its size; the compiler checks that it fits.
/// Allocation and release are O(1) and access only the block itself. `BLOCK` is rounded up to a multiple of
/// [`BLOCK_ALIGN`], and each block takes 2 more bytes outside it. New pools are zeros, so that a `static` pool takes
/// no flash.
///
/// The pool may move to another thread, but never be shared with one:
///
/// ```compile_fail,E0277
/// use tercet_core::pool::BlockPool;
///
/// let pool = BlockPool::<16, 4>::new();
/// std::thread::scope(|threads| {
///     threads.spawn(|| pool.alloc(7_u32).is_ok()); // `Cell` cannot be shared between threads safely
/// });
/// ```
///
/// The same applies to its blocks, which would return to it there:
///
/// ```compile_fail,E0277
/// use tercet_core::pool::BlockPool;
///
/// let pool = BlockPool::<16, 4>::new();
/// let block = pool.alloc(7_u32).unwrap();
/// std::thread::scope(|threads| {
///     threads.spawn(move || drop(block));
/// });
/// ```
pub type BlockPool<const BLOCK: usize, const N: usize> = Blocks<BLOCK, N, LocalList<N>>;

/// `N` blocks of `BLOCK` bytes that threads and interrupts share without a lock, by compare-and-swap.
///
/// Available for targets that have this instruction, and with the feature `portable-atomic` for all others. An
/// operation never waits for an interrupted one; it repeats if others came in between. There is one condition, on the
/// time for which an allocation may be interrupted. The tag of `32 − ⌈log₂(N + 1)⌉` bits (`64 − ⌈log₂(N + 1)⌉` if the
/// machine swaps 64 bits) must not wrap around meanwhile. That takes 2²⁴ allocations by others for up to 255 blocks,
/// and 2²⁰ for 4,095.
///
/// ```
/// use tercet_core::pool::SharedBlockPool;
///
/// static FRAMES: SharedBlockPool<64, 8> = SharedBlockPool::new();
///
/// let frame = FRAMES.alloc([0_i16; 32]).unwrap();
/// std::thread::spawn(move || drop(frame)).join().unwrap();
/// assert_eq!(FRAMES.stats().in_use, 0);
/// ```
#[cfg(any(target_has_atomic = "32", feature = "portable-atomic"))]
pub type SharedBlockPool<const BLOCK: usize, const N: usize> = Blocks<BLOCK, N, AtomicList<N>>;

/// `N` blocks of `BLOCK` bytes that threads and interrupts share, with one critical section per operation.
///
/// Needs the feature `critical-section` and, in the program, an implementation of that crate's sections. Interrupts
/// wait for about a dozen instructions.
#[cfg(feature = "critical-section")]
pub type CriticalBlockPool<const BLOCK: usize, const N: usize> = Blocks<BLOCK, N, CriticalList<N>>;

// SAFETY: a block's memory is reached only by whom the list gave its index, which is one at a time if it is `Sync`
// (the contract of `FreeList`).
unsafe impl<const BLOCK: usize, const N: usize, L: FreeList<N> + Sync> Sync
    for Blocks<BLOCK, N, L>
{
}

impl<const BLOCK: usize, const N: usize> BlockPool<BLOCK, N> {
    /// Creates a pool of `N` free blocks.
    pub const fn new() -> Self {
        Self::of(LocalList::new())
    }
}

#[cfg(all(
    any(target_has_atomic = "32", feature = "portable-atomic"),
    not(all(test, loom))
))]
impl<const BLOCK: usize, const N: usize> SharedBlockPool<BLOCK, N> {
    /// Creates a pool of `N` free blocks.
    pub const fn new() -> Self {
        Self::of(AtomicList::new())
    }
}

#[cfg(feature = "critical-section")]
impl<const BLOCK: usize, const N: usize> CriticalBlockPool<BLOCK, N> {
    /// Creates a pool of `N` free blocks.
    pub const fn new() -> Self {
        Self::of(CriticalList::new())
    }
}

impl<const BLOCK: usize, const N: usize, L> Blocks<BLOCK, N, L> {
    const fn of(list: L) -> Self {
        const { assert!(BLOCK > 0, "a block has at least one byte") }
        Self {
            list,
            memory: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

impl<const BLOCK: usize, const N: usize, L: FreeList<N>> Blocks<BLOCK, N, L> {
    /// Moves `value` into a block, or returns it if none is free. O(1).
    ///
    /// The compiler checks that a `T` is not larger than `BLOCK` and aligned to at most [`BLOCK_ALIGN`]. A zero-sized
    /// type takes a block too.
    ///
    /// ```compile_fail,E0080
    /// use tercet_core::pool::BlockPool;
    ///
    /// let pool = BlockPool::<16, 4>::new();
    /// let too_large = pool.alloc([0_u8; 17]);
    /// ```
    #[inline]
    pub fn alloc<T>(&self, value: T) -> Result<Block<'_, T, Self>, T> {
        match self.alloc_uninit() {
            Ok(block) => Ok(Block::write(block, value)),
            Err(Full) => Err(value),
        }
    }

    /// Returns a block for a `T` that is written later, in place. O(1).
    ///
    /// ```
    /// use tercet_core::pool::{Block, BlockPool};
    ///
    /// let pool = BlockPool::<16, 1>::new();
    /// let block = pool.alloc_uninit::<u64>()?;
    /// assert!(pool.alloc_uninit::<u64>().is_err());
    /// assert_eq!(*Block::write(block, 7), 7);
    /// # Ok::<(), tercet_core::pool::Full>(())
    /// ```
    #[inline]
    pub fn alloc_uninit<T>(&self) -> Result<Block<'_, MaybeUninit<T>, Self>, Full> {
        const {
            assert!(size_of::<T>() <= BLOCK, "the type is larger than a block");
            assert!(
                align_of::<T>() <= BLOCK_ALIGN,
                "the type's alignment is above BLOCK_ALIGN"
            );
        }
        // SAFETY: the block is large and aligned enough, as checked above, and any bytes are a `MaybeUninit`.
        Ok(unsafe { self.lease()?.holding() })
    }

    /// Returns a block of zeros. O(`BLOCK`), for the zeros; [`alloc_uninit`](Self::alloc_uninit) does not write them.
    #[inline]
    pub fn alloc_zeroed(&self) -> Result<Block<'_, [u8; BLOCK], Self>, Full> {
        let lease = self.lease()?;
        // SAFETY: the block has BLOCK bytes and is the lease's; a byte may be zero.
        unsafe {
            lease.place().write_bytes(0, BLOCK);
            Ok(lease.holding())
        }
    }

    /// Returns the number of blocks in use, the largest number so far, and the number of failed requests. O(`N`): one
    /// pass over 2 bytes per block.
    ///
    /// In a shared pool, operations of others at the same time may be counted or not.
    pub fn stats(&self) -> Stats {
        self.list.stats()
    }

    #[inline]
    fn lease(&self) -> Result<Lease<'_, Self>, Full> {
        let index = self.list.take().ok_or(Full)?;
        // SAFETY: the list's indices are below N, so the place is in the memory; nobody else has it until it is
        // released.
        Ok(unsafe { Lease::new(self.first().add(index).cast(), self) })
    }

    /// Returns the first block.
    #[inline]
    fn first(&self) -> NonNull<Slot<BLOCK>> {
        // SAFETY: a reference to the pool is not null.
        unsafe { NonNull::new_unchecked(self.memory.get()).cast() }
    }
}

impl<const BLOCK: usize, const N: usize, L> Sealed for Blocks<BLOCK, N, L> {}

impl<const BLOCK: usize, const N: usize, L: FreeList<N>> Release for Blocks<BLOCK, N, L> {
    #[inline]
    unsafe fn release(&self, place: NonNull<u8>) {
        // SAFETY: by the caller's word `place` is a block of this pool, whose index the list gave out.
        unsafe {
            let index = place
                .cast::<Slot<BLOCK>>()
                .offset_from_unsigned(self.first());
            self.list.give(index);
        }
    }
}

impl<const BLOCK: usize, const N: usize> Default for BlockPool<BLOCK, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(
    any(target_has_atomic = "32", feature = "portable-atomic"),
    not(all(test, loom))
))]
impl<const BLOCK: usize, const N: usize> Default for SharedBlockPool<BLOCK, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "critical-section")]
impl<const BLOCK: usize, const N: usize> Default for CriticalBlockPool<BLOCK, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BLOCK: usize, const N: usize, L: FreeList<N>> fmt::Debug for Blocks<BLOCK, N, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Blocks").field(&self.stats()).finish()
    }
}

#[cfg(feature = "defmt")]
impl<const BLOCK: usize, const N: usize, L: FreeList<N>> defmt::Format for Blocks<BLOCK, N, L> {
    fn format(&self, f: defmt::Formatter<'_>) {
        self.stats().format(f);
    }
}
