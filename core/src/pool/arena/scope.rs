//! The open end of an [`Arena`](super::Arena): the rest of its buffer.

use core::fmt;
use core::mem::{self, MaybeUninit};
use core::ptr::{self, NonNull};
use core::slice;

use super::super::count::Counts;
use super::{ArenaError, Placement, Stats, bytes_of, copy, fill, padding, place, repeat};

/// Takes memory that lives as long as `'a`, from the front of the rest.
///
/// A scope is the unused rest of the buffer as one exclusive slice. Taking memory splits it, and a mark
/// ([`Scope::scope`]) is a shorter borrow of it. So neither a mark nor its end has any code. The borrow checker
/// prevents both a reference that outlives its mark and allocation from the outer scope while the inner one is open:
///
/// ```compile_fail,E0499
/// # use tercet_core::pool::Arena;
/// let mut arena = Arena::<64>::new();
/// let mut scope = arena.scope();
/// let kept = scope.scope().alloc(1_u32).unwrap();
/// let other = scope.alloc(2_u32).unwrap();
/// *kept += *other;
/// ```
///
/// ```compile_fail,E0499
/// # use tercet_core::pool::Arena;
/// let mut arena = Arena::<64>::new();
/// let mut scope = arena.scope();
/// let mut inner = scope.scope();
/// let outer = scope.alloc(1_u32);
/// let inner = inner.alloc(2_u32);
/// ```
///
/// Memory taken before a mark stays valid beside it. A type with a destructor does not compile:
///
/// ```compile_fail,E0080
/// # use tercet_core::pool::Arena;
/// let mut arena = Arena::<64>::new();
/// let text = arena.scope().alloc(String::new());
/// ```
pub struct Scope<'a> {
    rest: &'a mut [MaybeUninit<u8>],
    /// Number of bytes of the whole arena.
    capacity: usize,
    counts: &'a mut Counts,
}

impl<'a> Scope<'a> {
    pub(super) fn new(memory: &'a mut [MaybeUninit<u8>], counts: &'a mut Counts) -> Self {
        Self {
            capacity: memory.len(),
            rest: memory,
            counts,
        }
    }

    /// Continues in memory that does not belong to an [`Arena`](super::Arena): a region of the linker script, or
    /// memory from C code. `rest` is the remaining part, after the `used` bytes taken before.
    pub fn over(rest: &'a mut [MaybeUninit<u8>], used: usize, counts: &'a mut Counts) -> Self {
        Self {
            capacity: used.saturating_add(rest.len()),
            rest,
            counts,
        }
    }

    /// Sets a mark: memory taken through the returned scope is freed at that scope's end. Costs nothing, and nests.
    pub fn scope(&mut self) -> Scope<'_> {
        Scope {
            rest: self.rest,
            capacity: self.capacity,
            counts: self.counts,
        }
    }

    /// Returns the number of remaining bytes, of which an alignment may skip some.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Returns the arena's current figures, in bytes; bytes skipped for alignment count as used.
    pub fn stats(&self) -> Stats {
        let in_use = self.capacity.saturating_sub(self.rest.len());
        self.counts.stats(self.capacity, in_use)
    }

    /// Moves a value into the arena, or returns it if there is no space.
    #[inline]
    pub fn alloc<T>(&mut self, value: T) -> Result<&'a mut T, T> {
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
    pub fn alloc_slice<T: Copy>(
        &mut self,
        len: usize,
        value: T,
    ) -> Result<&'a mut [T], ArenaError> {
        Ok(repeat(self.alloc_uninit(len)?, value))
    }

    /// Returns `len` values, each computed from its index. O(`len`).
    ///
    /// # Errors
    /// Those of [`Scope::alloc_slice`].
    #[inline]
    pub fn alloc_slice_with<T>(
        &mut self,
        len: usize,
        value: impl FnMut(usize) -> T,
    ) -> Result<&'a mut [T], ArenaError> {
        Ok(fill(self.alloc_uninit(len)?, value))
    }

    /// Returns a copy of a slice. O(its length).
    ///
    /// # Errors
    /// Those of [`Scope::alloc_slice`].
    #[inline]
    pub fn alloc_copy<T: Copy>(&mut self, values: &[T]) -> Result<&'a mut [T], ArenaError> {
        Ok(copy(self.alloc_uninit(values.len())?, values))
    }

    /// Returns all items of an iterator, whose length need not be known. O(items).
    ///
    /// # Errors
    /// [`ArenaError::Full`] at the first item without space; the items are lost, and nothing is taken.
    #[inline]
    pub fn alloc_from_iter<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<&'a mut [T], ArenaError> {
        // A mark with its own figures over the whole rest: the values written after it stay there when it ends.
        let mut unseen = Counts::new();
        let mut ahead = Scope::new(self.rest, &mut unseen);
        let room = match size_of::<T>() {
            0 => usize::MAX,
            size => {
                let skip = padding(ahead.rest.as_ptr().addr(), align_of::<T>());
                ahead.left().saturating_sub(skip) / size
            }
        };
        let room = ahead.alloc_uninit::<T>(room)?;
        let mut len = 0;
        for item in items {
            match room.get_mut(len) {
                Some(place) => place.write(item),
                // One more than fits is refused, like a slice of that length.
                None => {
                    return self
                        .alloc_uninit::<T>(len.saturating_add(1))
                        .map(|_| Default::default());
                }
            };
            len += 1;
        }
        let taken = self.alloc_uninit::<T>(len)?;
        // SAFETY: `taken` begins where `room` did, for it was asked of the same bytes with the same alignment (with
        // size 0, or with no item, there is no byte to read), and the loop wrote the first `len` elements there.
        // `MaybeUninit<T>` has the layout of `T`, and the reference replaces the only one there is.
        Ok(unsafe { &mut *(ptr::from_mut(taken) as *mut [T]) })
    }

    /// Returns `len` elements without a value yet, for code that fills its output itself.
    ///
    /// # Errors
    /// Those of [`Scope::alloc_slice`].
    #[inline]
    pub fn alloc_uninit<T>(&mut self, len: usize) -> Result<&'a mut [MaybeUninit<T>], ArenaError> {
        let start = self.carve(bytes_of::<T>(len), align_of::<T>())?;
        // SAFETY: `start` is aligned for `T` and begins the bytes of `len` elements, exclusive for `'a`; elements of
        // `MaybeUninit` need no value.
        Ok(unsafe { slice::from_raw_parts_mut(start.cast().as_ptr(), len) })
    }

    /// Returns `len` bytes at a multiple of `align`, without a value yet: for example a DMA buffer or a cache line.
    ///
    /// # Errors
    /// [`ArenaError::Full`]; [`ArenaError::Alignment`] if `align` is not a power of two.
    #[inline]
    pub fn alloc_bytes(
        &mut self,
        len: usize,
        align: usize,
    ) -> Result<&'a mut [MaybeUninit<u8>], ArenaError> {
        let start = self.carve(Some(len), align)?;
        // SAFETY: `start` begins `len` bytes, exclusive for `'a`; elements of `MaybeUninit` need no value.
        Ok(unsafe { slice::from_raw_parts_mut(start.cast().as_ptr(), len) })
    }

    /// Splits off `bytes` (`None`: more than an address can hold) at a multiple of `align`, and updates the figures.
    #[inline]
    fn carve(&mut self, bytes: Option<usize>, align: usize) -> Result<NonNull<u8>, ArenaError> {
        let (address, left) = (self.rest.as_ptr().addr(), self.rest.len());
        let Placement { skip, end } =
            place(address, left, bytes, align).inspect_err(|_| self.counts.refuse())?;
        if end == 0 {
            // A request of no bytes; any aligned address is valid, and 0 is not one.
            let none = NonNull::new(ptr::without_provenance_mut(align));
            return none.ok_or(ArenaError::Alignment { align });
        }
        let whole = mem::take(&mut self.rest);
        let (taken, rest) = whole.split_at_mut_checked(end).unwrap_or_default();
        self.rest = rest;
        self.counts
            .reach(self.capacity.saturating_sub(self.rest.len()));
        Ok(NonNull::from(taken.get_mut(skip..).unwrap_or_default()).cast())
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.stats()).finish()
    }
}
