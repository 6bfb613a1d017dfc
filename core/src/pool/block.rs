//! The owned handle of a value in a pool's block.

use core::borrow::{Borrow, BorrowMut};
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};

use super::sealed::Sealed;

/// A pool to which blocks return; sealed.
pub trait Release: Sealed {
    /// # Safety
    /// `place` is the start of a block that was taken from this pool and was not released since; nobody uses it any
    /// more.
    #[doc(hidden)]
    unsafe fn release(&self, place: NonNull<u8>);
}

/// A block that returns to its pool when this value is dropped. The block's content is not dropped.
pub(super) struct Lease<'a, P: Release> {
    place: NonNull<u8>,
    pool: &'a P,
}

impl<'a, P: Release> Lease<'a, P> {
    /// # Safety
    /// As for [`Release::release`], except that the lease uses the block until it is dropped.
    pub(super) unsafe fn new(place: NonNull<u8>, pool: &'a P) -> Self {
        Self { place, pool }
    }

    /// # Safety
    /// The block is large and aligned enough for a `T` and holds one, which belongs to the new handle.
    pub(super) unsafe fn holding<T>(self) -> Block<'a, T, P> {
        Block {
            lease: self,
            value: PhantomData,
        }
    }

    pub(super) fn place(&self) -> NonNull<u8> {
        self.place
    }
}

impl<P: Release> Drop for Lease<'_, P> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `new` was promised it, and the lease, which is the only one of its block, ends here.
        unsafe { self.pool.release(self.place) };
    }
}

/// A value in a block of the pool `P`, owned by this handle like a value on a heap by a `Box`.
///
/// Dropping it drops the value and returns the block, even if the value's destructor panics. It cannot outlive its
/// pool; for a `static` pool its lifetime is `'static`. [`core::mem::forget`] leaks the block, which then counts as
/// in use for the rest of the pool's lifetime.
///
/// Its own operations are functions, not methods: `Block::leak(block)`. So they hide no method of `T`.
///
/// It may go to another thread if `T` may and the pool can be shared; a reference to it may if one to `T` may.
///
/// ```compile_fail,E0597
/// use tercet_core::pool::BlockPool;
///
/// let outlives = {
///     let pool = BlockPool::<16, 4>::new();
///     pool.alloc(7_u32).unwrap()
/// }; // `pool` does not live long enough
/// assert_eq!(*outlives, 7);
/// ```
pub struct Block<'a, T, P: Release> {
    lease: Lease<'a, P>,
    value: PhantomData<T>,
}

// SAFETY: the handle gives exclusive access to its `T`, as `&mut T` does, and takes its reference to the pool along,
// through which it will return the block there.
unsafe impl<T: Send, P: Release + Sync> Send for Block<'_, T, P> {}
// SAFETY: a shared handle gives `&T` and nothing else; only its owner reaches the pool.
unsafe impl<T: Sync, P: Release> Sync for Block<'_, T, P> {}

impl<'a, T, P: Release> Block<'a, T, P> {
    /// Moves the value out and returns the block.
    ///
    /// ```compile_fail,E0382
    /// use tercet_core::pool::{Block, BlockPool};
    ///
    /// let pool = BlockPool::<16, 4>::new();
    /// let block = pool.alloc(7_u32).unwrap();
    /// assert_eq!(Block::into_inner(block), 7);
    /// assert_eq!(*block, 7); // used after move
    /// ```
    #[inline]
    pub fn into_inner(block: Self) -> T {
        let place = block.lease.place.cast::<T>();
        let _returns = block.into_lease();
        // SAFETY: the block holds a `T`, which the lease does not drop.
        unsafe { place.read() }
    }

    /// Keeps the value in its block for as long as the pool is borrowed: for a `static` pool, forever.
    ///
    /// The value is not dropped, and the block stays in use.
    #[inline]
    pub fn leak(block: Self) -> &'a mut T
    where
        T: 'a,
    {
        let mut place = ManuallyDrop::new(block).lease.place.cast::<T>();
        // SAFETY: the block holds a `T`; its handle is gone without returning it, so this is the only way to the
        // value, and the pool is neither moved nor dropped while borrowed for 'a.
        unsafe { place.as_mut() }
    }

    /// Returns the block without the value, which the caller must drop or keep.
    #[inline]
    fn into_lease(self) -> Lease<'a, P> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is neither dropped nor used again, so the lease is not duplicated.
        unsafe { ptr::read(&this.lease) }
    }
}

impl<'a, T, P: Release> Block<'a, MaybeUninit<T>, P> {
    /// Writes the value of the block.
    #[inline]
    pub fn write(mut block: Self, value: T) -> Block<'a, T, P> {
        (*block).write(value);
        // SAFETY: just written.
        unsafe { block.assume_init() }
    }

    /// Returns the handle of the value that was written through [`MaybeUninit`]'s methods.
    ///
    /// # Safety
    /// The value is initialised, as for [`MaybeUninit::assume_init`].
    #[inline]
    pub unsafe fn assume_init(self) -> Block<'a, T, P> {
        // SAFETY: `MaybeUninit<T>` has the size and alignment of `T`, and the caller says that there is one.
        unsafe { self.into_lease().holding() }
    }
}

impl<T, P: Release> Drop for Block<'_, T, P> {
    #[inline]
    fn drop(&mut self) {
        // The lease returns the block after this, even if this unwinds.
        // SAFETY: the block holds a `T` that is used no more.
        unsafe { self.lease.place.cast::<T>().drop_in_place() };
    }
}

impl<T, P: Release> Deref for Block<'_, T, P> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the block holds a `T`, and only through this handle is it reached.
        unsafe { self.lease.place.cast().as_ref() }
    }
}

impl<T, P: Release> DerefMut for Block<'_, T, P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; the handle is borrowed for as long.
        unsafe { self.lease.place.cast().as_mut() }
    }
}

impl<T, P: Release> AsRef<T> for Block<'_, T, P> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T, P: Release> AsMut<T> for Block<'_, T, P> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T, P: Release> Borrow<T> for Block<'_, T, P> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T, P: Release> BorrowMut<T> for Block<'_, T, P> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: fmt::Debug, P: Release> fmt::Debug for Block<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display, P: Release> fmt::Display for Block<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(feature = "defmt")]
impl<T: defmt::Format, P: Release> defmt::Format for Block<'_, T, P> {
    fn format(&self, f: defmt::Formatter<'_>) {
        (**self).format(f);
    }
}

impl<T: PartialEq, P: Release> PartialEq for Block<'_, T, P> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, P: Release> Eq for Block<'_, T, P> {}

impl<T: PartialOrd, P: Release> PartialOrd for Block<'_, T, P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: Ord, P: Release> Ord for Block<'_, T, P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: Hash, P: Release> Hash for Block<'_, T, P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
