//! Buffers that are reused by shape and element type.

mod book;
mod buffer;
mod key;

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::CacheStats;
#[cfg(feature = "critical-section")]
use super::lock::Critical;
use super::lock::{Local, Lock};
use crate::number::Plain;
use book::{ALIGN, Book, Entry};
pub use buffer::Buffer;
use key::Key;
pub use key::Shape;

error_enum! {
    /// Reason why a pool returned no buffer.
    pub enum ShapeError {
        /// No free part of the store is long enough now, or all of the pool's entries are in use.
        Full {
            /// Number of bytes that the buffer needs.
            needed: usize,
        } => "{needed} bytes were asked of a pool that has them not free in one piece",
        /// The buffer is larger than the whole store.
        TooLong => "a buffer larger than the whole pool was asked for",
    }
}

/// A store of `BYTES` bytes with space for `ENTRIES` buffers, protected by the lock `L`.
///
/// Use it by one of its type names: [`ShapePool`] for one owner, `CriticalShapePool` with critical sections.
pub struct Shapes<const BYTES: usize, const ENTRIES: usize, L> {
    store: UnsafeCell<Store<BYTES>>,
    book: UnsafeCell<Book<[Entry; ENTRIES]>>,
    lock: PhantomData<L>,
}

/// The bytes. They start as zeros, so they always have values.
#[repr(align(16))]
struct Store<const BYTES: usize>([u8; BYTES]);

/// Buffers for the intermediate results of a program that requests the same shapes again and again; one owner.
///
/// [`take`](Shapes::take) tries these in order:
/// - the most recently returned idle buffer of the same shape and element type (a hit);
/// - the smallest blank part that is long enough;
/// - a new part of the store;
/// - the least recently returned idle buffer that is long enough, whose key is dropped (an eviction);
/// - the first run of neighbouring free parts, as one.
///
/// A part that is too long for its request is cut if an entry for the rest is available. If none of these is
/// possible, the request fails.
///
/// Finding costs O(`ENTRIES`), the last step O(`ENTRIES`²); a return is O(1). A buffer's bytes are a multiple of 8,
/// at a multiple of 8; an entry costs 36 bytes on 32-bit machines. No atomics, and not `Sync`. A `static` pool is in
/// `.bss`.
///
/// ```
/// use tercet_core::pool::{Shape, ShapePool};
///
/// let pool = ShapePool::<1024, 4>::new();
/// let mut input = pool.take::<i8>([16, 16])?;
/// input.fill(1);
/// let hidden = pool.take_filled([128], 0.5_f32)?;
/// assert_eq!(hidden.shape(), Shape::from([128]));
/// // 256 + 512 bytes are lent; 257 are not to be had now, and 1025 never.
/// assert!(pool.take::<u8>([257]).is_err());
///
/// drop(hidden);
/// let again = pool.take::<f32>([128])?;
/// // The same buffer, with what was in it.
/// assert_eq!(again[127], 0.5);
/// let stats = pool.stats();
/// assert_eq!((stats.hits, stats.misses), (1, 3));
/// assert_eq!((stats.bytes.in_use, stats.bytes.failures), (768, 1));
/// # Ok::<(), tercet_core::pool::ShapeError>(())
/// ```
///
/// Neither a buffer nor a borrow of it can outlive its owner:
///
/// ```compile_fail,E0505
/// # use tercet_core::pool::ShapePool;
/// let pool = ShapePool::<64, 2>::new();
/// let buffer = pool.take::<i8>([8]).unwrap();
/// let values = &buffer[..];
/// drop(buffer);
/// println!("{values:?}");
/// ```
pub type ShapePool<const BYTES: usize, const ENTRIES: usize> = Shapes<BYTES, ENTRIES, Local>;

/// A [`ShapePool`] that threads and interrupts share, with one critical section per operation. While it finds a
/// buffer, interrupts wait for O(`ENTRIES`) steps, or O(`ENTRIES`²) in the last step.
///
/// ```
/// use tercet_core::pool::CriticalShapePool;
///
/// static BUFFERS: CriticalShapePool<1024, 4> = CriticalShapePool::new();
///
/// let rows = BUFFERS.take_filled([4, 8], 1_i32).unwrap();
/// let sum = std::thread::spawn(move || rows.iter().sum::<i32>()).join();
/// assert_eq!(sum.unwrap(), 32);
/// assert_eq!(BUFFERS.stats().bytes.in_use, 0);
/// ```
#[cfg(feature = "critical-section")]
pub type CriticalShapePool<const BYTES: usize, const ENTRIES: usize> =
    Shapes<BYTES, ENTRIES, Critical>;

// SAFETY: the book is reached through the lock, which works between threads, and the store through handles, to each of
// which the book lends other bytes.
unsafe impl<const BYTES: usize, const ENTRIES: usize, L: Lock + Sync> Sync
    for Shapes<BYTES, ENTRIES, L>
{
}

impl<const BYTES: usize, const ENTRIES: usize> ShapePool<BYTES, ENTRIES> {
    /// Creates a pool with nothing lent or remembered.
    pub const fn new() -> Self {
        Self::of()
    }
}

#[cfg(feature = "critical-section")]
impl<const BYTES: usize, const ENTRIES: usize> CriticalShapePool<BYTES, ENTRIES> {
    /// Creates a pool with nothing lent or remembered.
    pub const fn new() -> Self {
        Self::of()
    }
}

impl<const BYTES: usize, const ENTRIES: usize, L> Shapes<BYTES, ENTRIES, L> {
    const fn of() -> Self {
        const {
            assert!(ALIGN <= align_of::<Store<BYTES>>());
            assert!(ENTRIES > 0, "a pool without entries has no buffers");
        }
        Self {
            store: UnsafeCell::new(Store([0; BYTES])),
            book: UnsafeCell::new(Book::new()),
            lock: PhantomData,
        }
    }
}

impl<const BYTES: usize, const ENTRIES: usize, L: Lock> Shapes<BYTES, ENTRIES, L> {
    /// Returns a buffer of a shape. Its elements have the values that its bytes had. O(`ENTRIES`), see [`ShapePool`].
    ///
    /// # Errors
    /// [`ShapeError::TooLong`] for more bytes than the store has; [`ShapeError::Full`] if none is free.
    pub fn take<T: Plain>(&self, shape: impl Into<Shape>) -> Result<Buffer<'_, T, L>, ShapeError> {
        const { assert!(align_of::<T>() <= ALIGN && size_of::<T>() > 0) };
        let shape = shape.into();
        let len = shape.elements();
        let bytes = len.and_then(|len| len.checked_mul(size_of::<T>()));
        let key = Key {
            shape,
            kind: T::KIND,
        };
        let book: &UnsafeCell<Book<[Entry]>> = &self.book;
        // SAFETY: this cell is only ever reached through the pool's lock, and the book calls nobody.
        let (entry, start) = unsafe { L::with(book, |book| book.take(key, bytes, BYTES)) }?;
        // SAFETY: the span lies in the store, at a multiple of ALIGN, and has at least the bytes asked for (so the
        // length is known), or is of the same key and was made for as many. It is lent to nobody else, and all bytes
        // are values of `T`.
        unsafe {
            let first = NonNull::new_unchecked(self.store.get().cast::<u8>().add(start));
            let len = len.unwrap_or_default();
            Ok(Buffer::new(first.cast(), len, shape, book, entry))
        }
    }

    /// Returns a buffer of a shape with every element set to a value. O(`ENTRIES` + elements), see [`ShapePool`].
    ///
    /// # Errors
    /// Those of [`Shapes::take`].
    pub fn take_filled<T: Plain>(
        &self,
        shape: impl Into<Shape>,
        value: T,
    ) -> Result<Buffer<'_, T, L>, ShapeError> {
        let mut buffer = self.take(shape)?;
        buffer.fill(value);
        Ok(buffer)
    }

    /// Drops every buffer, including leaked ones, so that the whole store is one free piece. Counters stay.
    pub fn reset(&mut self) {
        let book: &mut Book<[Entry]> = self.book.get_mut();
        book.reset();
    }

    /// Returns hits, misses (including failures) and evictions, and the lent bytes, including those added by
    /// rounding.
    pub fn stats(&self) -> CacheStats {
        let book: &UnsafeCell<Book<[Entry]>> = &self.book;
        // SAFETY: as in `take`.
        unsafe { L::with(book, |book| book.stats(BYTES)) }
    }
}

impl<const BYTES: usize, const ENTRIES: usize> Default for ShapePool<BYTES, ENTRIES> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "critical-section")]
impl<const BYTES: usize, const ENTRIES: usize> Default for CriticalShapePool<BYTES, ENTRIES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize, const ENTRIES: usize, L: Lock> fmt::Debug for Shapes<BYTES, ENTRIES, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shapes").field(&self.stats()).finish()
    }
}

#[cfg(feature = "defmt")]
impl<const BYTES: usize, const ENTRIES: usize, L: Lock> defmt::Format
    for Shapes<BYTES, ENTRIES, L>
{
    fn format(&self, f: defmt::Formatter<'_>) {
        self.stats().format(f);
    }
}
