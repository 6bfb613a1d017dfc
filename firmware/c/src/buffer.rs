//! Checks the memory that C provides before any of it is borrowed.
//!
//! A pointer and a length become an [`In`] or an [`Out`] if they could be a buffer at all. Then [`apart`] checks that
//! the outputs of a call do not overlap each other or the inputs. Only after that does a call borrow. The remaining
//! conditions are those that only C can know: that the memory is there, and that nobody else uses it meanwhile.

use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::NonNull;
use core::slice;

use crate::Status;

/// Types for which every bit pattern is a value, so that memory with any content may be borrowed as them.
///
/// # Safety
/// Every bit pattern must be a value of the type.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: every pattern of an integer or a float is a value.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for i8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for usize {}
// SAFETY: as above.
unsafe impl Plain for f32 {}

/// Range of addresses of a buffer.
pub(crate) type Span = Range<usize>;

/// A buffer to read.
#[derive(Clone, Copy)]
pub(crate) struct In<T> {
    start: NonNull<T>,
    len: usize,
}

/// A buffer to write.
pub(crate) struct Out<T> {
    start: NonNull<T>,
    len: usize,
}

/// Checks that `start` could begin `len` values of `T`: it is aligned, not null unless there are no values, and their
/// end is within the address space.
fn check<T>(start: *mut T, len: usize) -> Result<NonNull<T>, Status> {
    if len == 0 {
        return Ok(NonNull::dangling());
    }
    let start = NonNull::new(start).ok_or(Status::Null)?;
    if !start.is_aligned() {
        return Err(Status::Alignment);
    }
    let bytes = len.checked_mul(size_of::<T>()).ok_or(Status::Limit)?;
    let end = start.addr().get().checked_add(bytes);
    if bytes > isize::MAX as usize || end.is_none() {
        return Err(Status::Limit);
    }
    Ok(start)
}

fn span<T>(start: NonNull<T>, len: usize) -> Span {
    let first = start.addr().get();
    // `check` saw that neither wraps.
    first..first.wrapping_add(len.wrapping_mul(size_of::<T>()))
}

impl<T> In<T> {
    /// Makes a buffer of `len` values; `start` may be null if there are none.
    pub(crate) fn new(start: *const T, len: usize) -> Result<Self, Status> {
        check(start.cast_mut(), len).map(|start| Self { start, len })
    }

    /// Makes a buffer of one value.
    pub(crate) fn one(start: *const T) -> Result<Self, Status> {
        Self::new(start, 1)
    }

    /// Returns its addresses.
    pub(crate) fn span(&self) -> Span {
        span(self.start, self.len)
    }

    /// Borrows it.
    ///
    /// # Safety
    /// The memory must be there, and nobody may write it, while `'a` lasts.
    pub(crate) unsafe fn slice<'a>(self) -> &'a [T]
    where
        T: Plain,
    {
        // SAFETY: `check` saw to null, alignment and length, any content is a value, and the caller vouches for the
        // rest.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Borrows the first value.
    ///
    /// # Safety
    /// As for [`In::slice`]; and there must be a first value, whose content is a `T`.
    pub(crate) unsafe fn value<'a>(self) -> &'a T {
        // SAFETY: `check` saw to null and alignment, and the caller vouches for the rest.
        unsafe { self.start.as_ref() }
    }

    /// Returns its address.
    pub(crate) fn pointer(&self) -> *const T {
        self.start.as_ptr()
    }
}

impl<T> Out<T> {
    /// Makes a buffer of `len` values; `start` may be null if there are none.
    pub(crate) fn new(start: *mut T, len: usize) -> Result<Self, Status> {
        check(start, len).map(|start| Self { start, len })
    }

    /// Makes a buffer of one value.
    pub(crate) fn one(start: *mut T) -> Result<Self, Status> {
        Self::new(start, 1)
    }

    /// Makes a buffer of one optional value: if `start` is null, the caller does not want it.
    pub(crate) fn optional(start: *mut T) -> Result<Self, Status> {
        Self::new(start, usize::from(!start.is_null()))
    }

    /// Returns its addresses.
    pub(crate) fn span(&self) -> Span {
        span(self.start, self.len)
    }

    /// Borrows it.
    ///
    /// # Safety
    /// The memory must be there, and nobody else may use it, while `'a` lasts; [`apart`] must have found that it does
    /// not overlap the other borrowed buffers.
    pub(crate) unsafe fn slice<'a>(self) -> &'a mut [T]
    where
        T: Plain,
    {
        // SAFETY: `check` saw to null, alignment and length, any content is a value, and the caller vouches for the
        // rest.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Returns the number of values that it has room for.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Borrows it as uninitialised bytes.
    ///
    /// # Safety
    /// As for [`Out::slice`].
    pub(crate) unsafe fn bytes<'a>(self) -> &'a mut [MaybeUninit<u8>] {
        let len = self.len.wrapping_mul(size_of::<T>());
        // SAFETY: `check` saw to null and to the length in bytes, uninitialised bytes may hold anything, and the caller
        // vouches for the rest.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().cast(), len) }
    }

    /// Writes the value, if there is room for one.
    ///
    /// # Safety
    /// The memory must be there, and nobody else may use it during the call.
    pub(crate) unsafe fn set(self, value: T) {
        if self.len > 0 {
            // SAFETY: `check` saw to null and alignment, and the caller vouches for the rest.
            unsafe { self.start.write(value) }
        }
    }

    /// Returns its address.
    pub(crate) fn pointer(&self) -> *mut T {
        self.start.as_ptr()
    }
}

/// Returns an error if an output shares a byte with another output or with an input. Inputs may overlap one another.
pub(crate) fn apart<const O: usize, const I: usize>(
    outputs: [Span; O],
    inputs: [Span; I],
) -> Result<(), Status> {
    let share = |a: &Span, b: &Span| a.start.max(b.start) < a.end.min(b.end);
    for (index, output) in outputs.iter().enumerate() {
        let others = outputs.iter().skip(index.wrapping_add(1)).chain(&inputs);
        if { others }.any(|other| share(output, other)) {
            return Err(Status::Overlap);
        }
    }
    Ok(())
}
