//! Bump allocation: memory is taken from the front of a fixed buffer and freed all at once.
//!
//! [`Arena`] has one owner: no atomics, nested marks, and the compiler proves that nothing outlives its mark.
//! [`SharedArena`] serves threads and interrupts at the same time, without marks.

mod scope;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
mod shared;

use core::fmt;
use core::mem::{MaybeUninit, needs_drop};
use core::{ptr, slice};

use super::Stats;
use super::count::Counts;
pub use scope::Scope;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub use shared::SharedArena;

error_enum! {
    /// Reason why an arena returned no memory.
    pub enum ArenaError {
        /// The request is larger than the remaining memory.
        Full {
            /// Number of bytes that the request needs here, including those skipped for its alignment.
            needed: usize,
            /// Number of remaining bytes.
            left: usize,
        } => "{needed} bytes were asked of an arena with {left} left",
        /// The request has more bytes than an address can hold.
        TooLong => "more bytes were asked of an arena than an address can hold",
        /// The alignment is not a power of two.
        Alignment {
            /// The requested alignment.
            align: usize,
        } => "{align} is no power of two, so no alignment",
    }
}

/// The buffer. Its start is aligned for every primitive type, so that the first slice skips nothing.
#[repr(align(16))]
struct Memory<const BYTES: usize>([MaybeUninit<u8>; BYTES]);

impl<const BYTES: usize> Memory<BYTES> {
    const fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; BYTES])
    }
}

/// A buffer of `BYTES` bytes for memory that lives as long as a batch.
///
/// [`Arena::scope`] starts a batch. It takes the arena as `&mut`, so all memory of the previous batch is out of use
/// by then, and the whole buffer is free again. This is the reset, and it costs nothing. A [`Scope`] returns memory
/// that lives as long as the scope; [`Scope::scope`] sets a mark inside it.
///
/// Every operation is O(1) plus the writes to the memory. No destructor ever runs, so types that need one do not
/// compile. An arena is constant-initialized and starts as zeros: a `static` arena is in `.bss`.
///
/// ```
/// use tercet_core::pool::{Arena, ArenaError};
///
/// let mut arena = Arena::<256>::new();
/// for batch in 0..3 {
///     let mut scope = arena.scope();
///     let sums = scope.alloc_slice(8, 0_i32)?;
///     for row in 0..8 {
///         // A mark: what is taken after it is given back where `inner` ends.
///         let mut inner = scope.scope();
///         let codes = inner.alloc_slice_with(100, |column| (row * column) as u8)?;
///         sums[row] = codes.iter().map(|&code| i32::from(code)).sum::<i32>() + batch;
///     }
///     assert_eq!(sums[1], 4950 + batch);
/// }
/// assert_eq!(arena.stats().high_water, 132);
/// # Ok::<(), ArenaError>(())
/// ```
///
/// The next batch cannot start while memory of the last one is in use:
///
/// ```compile_fail,E0499
/// # use tercet_core::pool::Arena;
/// let mut arena = Arena::<64>::new();
/// let old = arena.scope().alloc(1_u32).unwrap();
/// let new = arena.scope().alloc(2_u32).unwrap();
/// *old += *new;
/// ```
///
/// For a whole program's lifetime, a `&'static mut Arena` (from `cortex_m::singleton!` or `static_cell`) gives a
/// `Scope<'static>` and memory that is `&'static mut`.
pub struct Arena<const BYTES: usize> {
    memory: Memory<BYTES>,
    counts: Counts,
}

impl<const BYTES: usize> Arena<BYTES> {
    /// Creates an arena with nothing taken.
    pub const fn new() -> Self {
        Self {
            memory: Memory::new(),
            counts: Counts::new(),
        }
    }

    /// Starts a batch with the whole buffer free.
    pub fn scope(&mut self) -> Scope<'_> {
        Scope::new(&mut self.memory.0, &mut self.counts)
    }

    /// Returns the figures in bytes. `in_use` is 0, since no scope can be open during this call; failures are refused
    /// requests.
    pub fn stats(&self) -> Stats {
        self.counts.stats(BYTES, 0)
    }
}

impl<const BYTES: usize> Default for Arena<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize> fmt::Debug for Arena<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Arena").field(&self.stats()).finish()
    }
}

#[cfg(feature = "defmt")]
impl<const BYTES: usize> defmt::Format for Arena<BYTES> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "Arena({})", self.stats())
    }
}

/// Returns the number of bytes between `address` and the next multiple of `align`, a power of two.
#[inline]
fn padding(address: usize, align: usize) -> usize {
    address.wrapping_neg() & align.wrapping_sub(1)
}

/// Place of a request in the remaining bytes.
struct Placement {
    /// Number of bytes skipped before it, for its alignment.
    skip: usize,
    /// End of the request; 0 for a request of no bytes.
    end: usize,
}

/// Places `bytes` (`None`: more than an address can hold) at a multiple of `align` in the `left` bytes at `address`.
/// So `end` is at most `left`, and equals `skip + bytes` except for a request of no bytes.
#[inline]
fn place(
    address: usize,
    left: usize,
    bytes: Option<usize>,
    align: usize,
) -> Result<Placement, ArenaError> {
    if !align.is_power_of_two() {
        return Err(ArenaError::Alignment { align });
    }
    let skip = padding(address, align);
    match bytes {
        Some(0) => Ok(Placement { skip: 0, end: 0 }),
        Some(bytes) => match skip.checked_add(bytes) {
            Some(end) if end <= left => Ok(Placement { skip, end }),
            Some(needed) => Err(ArenaError::Full { needed, left }),
            None => Err(ArenaError::TooLong),
        },
        None => Err(ArenaError::TooLong),
    }
}

/// Returns the number of bytes of `len` values of `T`, which must need no destructor; `None` if no address can hold
/// it.
#[inline]
fn bytes_of<T>(len: usize) -> Option<usize> {
    const { assert!(!needs_drop::<T>(), "an arena runs no destructor") };
    size_of::<T>().checked_mul(len)
}

/// Writes every element of `room`.
#[inline]
fn fill<T>(room: &mut [MaybeUninit<T>], mut value: impl FnMut(usize) -> T) -> &mut [T] {
    for (index, place) in room.iter_mut().enumerate() {
        place.write(value(index));
    }
    // SAFETY: the loop wrote every element (a panic in `value` does not come here), and `MaybeUninit<T>` has the layout
    // of `T`. The reference replaces the only one to these elements.
    unsafe { &mut *(ptr::from_mut(room) as *mut [T]) }
}

/// Writes `value` to every element of `room`. For a zero-sized type, there may be too many elements to count.
#[inline]
fn repeat<T: Copy>(room: &mut [MaybeUninit<T>], value: T) -> &mut [T] {
    if size_of::<T>() == 0 {
        // SAFETY: there is nothing to write, and `value` shows that `T` has a value. `MaybeUninit<T>` has the layout
        // of `T`, and the reference replaces the only one to these elements.
        return unsafe { &mut *(ptr::from_mut(room) as *mut [T]) };
    }
    fill(room, |_| value)
}

/// Copies `values` to `room`, which has as many elements.
#[inline]
fn copy<'a, T: Copy>(room: &'a mut [MaybeUninit<T>], values: &[T]) -> &'a mut [T] {
    let len = room.len().min(values.len());
    let room = ptr::from_mut(room).cast::<T>();
    // SAFETY: both slices have `len` elements, and `room` is exclusive, so they do not overlap. After the copy these
    // elements have values, and `MaybeUninit<T>` has the layout of `T`.
    unsafe {
        room.copy_from_nonoverlapping(values.as_ptr(), len);
        slice::from_raw_parts_mut(room, len)
    }
}
