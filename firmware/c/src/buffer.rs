//! What C brings, checked before any of it is borrowed.
//!
//! A pointer and a length become an [`In`] or an [`Out`] if they could be a buffer at all; [`apart`] then says
//! whether the outputs of a call are apart from all else. Only after that does a call borrow, and what is left to
//! trust is what C alone can know: that the memory is there, and that nobody else uses it meanwhile.

use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::NonNull;
use core::slice;

use crate::Status;

/// Types every bit pattern of which is a value, so that memory of any content may be borrowed as them.
///
/// # Safety
/// That must hold.
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

/// Addresses of a buffer.
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

/// A pointer that could begin `len` values of `T`: aligned, not null unless there are none, with its end within the
/// addresses.
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
    /// `len` values; `start` may be null where there are none.
    pub(crate) fn new(start: *const T, len: usize) -> Result<Self, Status> {
        check(start.cast_mut(), len).map(|start| Self { start, len })
    }

    /// One value.
    pub(crate) fn one(start: *const T) -> Result<Self, Status> {
        Self::new(start, 1)
    }

    /// Where it lies.
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
        // SAFETY: `check` saw to null, alignment and length, any content is a value, and the caller vouches for the rest.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Borrows the first value.
    ///
    /// # Safety
    /// As for [`In::slice`]; and there must be one, of a content that is a `T`.
    pub(crate) unsafe fn value<'a>(self) -> &'a T {
        // SAFETY: `check` saw to null and alignment, and the caller vouches for the rest.
        unsafe { self.start.as_ref() }
    }

    /// Its address.
    pub(crate) fn pointer(&self) -> *const T {
        self.start.as_ptr()
    }
}

impl<T> Out<T> {
    /// `len` values; `start` may be null where there are none.
    pub(crate) fn new(start: *mut T, len: usize) -> Result<Self, Status> {
        check(start, len).map(|start| Self { start, len })
    }

    /// One value.
    pub(crate) fn one(start: *mut T) -> Result<Self, Status> {
        Self::new(start, 1)
    }

    /// One value that the caller may not want: null is taken.
    pub(crate) fn optional(start: *mut T) -> Result<Self, Status> {
        Self::new(start, usize::from(!start.is_null()))
    }

    /// Where it lies.
    pub(crate) fn span(&self) -> Span {
        span(self.start, self.len)
    }

    /// Borrows it.
    ///
    /// # Safety
    /// The memory must be there, and nobody else may use it, while `'a` lasts; [`apart`] must have found it apart
    /// from what else is borrowed.
    pub(crate) unsafe fn slice<'a>(self) -> &'a mut [T]
    where
        T: Plain,
    {
        // SAFETY: `check` saw to null, alignment and length, any content is a value, and the caller vouches for the rest.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// How many values it has room for.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Borrows it as bytes that hold nothing yet.
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

    /// Its address.
    pub(crate) fn pointer(&self) -> *mut T {
        self.start.as_ptr()
    }
}

/// Refuses outputs that share a byte with another output or with an input. Inputs may overlap one another.
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
