//! The owned handle of a buffer.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::slice;

use super::book::{Book, Entry};
use super::key::Shape;
use crate::number::Plain;
use crate::pool::lock::{Local, Lock};

/// A buffer of a [`Shapes`](super::Shapes) pool, which dereferences to its elements, outermost dimension first.
///
/// Dropping it returns the buffer, which can then be found again by its shape and type. It cannot outlive its pool;
/// for a `static` pool its lifetime is `'static`. [`core::mem::forget`] leaves its bytes lent until the pool is
/// reset.
pub struct Buffer<'p, T: Plain, L: Lock = Local> {
    first: NonNull<T>,
    len: usize,
    shape: Shape,
    book: &'p UnsafeCell<Book<[Entry]>>,
    entry: usize,
    lock: PhantomData<L>,
}

// SAFETY: the handle owns its elements, which are `Send`, and reaches the book, when it is dropped, through a lock
// that works between threads.
unsafe impl<T: Plain, L: Lock + Sync> Send for Buffer<'_, T, L> {}
// SAFETY: a shared handle gives `&[T]`, of a `Sync` type, and nothing else.
unsafe impl<T: Plain, L: Lock> Sync for Buffer<'_, T, L> {}

impl<'p, T: Plain, L: Lock> Buffer<'p, T, L> {
    /// # Safety
    /// `first` is aligned and begins `len` elements with values, which are of `entry`'s span, lent to this handle
    /// alone, and live for `'p`. `book` is reached through `L` alone.
    pub(super) unsafe fn new(
        first: NonNull<T>,
        len: usize,
        shape: Shape,
        book: &'p UnsafeCell<Book<[Entry]>>,
        entry: usize,
    ) -> Self {
        Self {
            first,
            len,
            shape,
            book,
            entry,
            lock: PhantomData,
        }
    }

    /// Returns the shape for which it was taken.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl<T: Plain, L: Lock> Drop for Buffer<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `new` was promised that the book is reached through `L` alone; the book calls nobody. The span was
        // lent to this handle, which ends here.
        unsafe { L::with(self.book, |book| book.give_back(self.entry)) };
    }
}

impl<T: Plain, L: Lock> Deref for Buffer<'_, T, L> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` was promised that these elements are this handle's alone.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T: Plain, L: Lock> DerefMut for Buffer<'_, T, L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the handle is borrowed for as long.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T: Plain + fmt::Debug, L: Lock> fmt::Debug for Buffer<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(feature = "defmt")]
impl<T: Plain + defmt::Format, L: Lock> defmt::Format for Buffer<'_, T, L> {
    fn format(&self, f: defmt::Formatter<'_>) {
        (**self).format(f);
    }
}
