//! Bump allocation in memory that C provides.

use core::ffi::c_void;
use core::{ptr, slice};

use tercet_core::pool::{Counts, Scope};

use crate::Status;
use crate::buffer::{In, Out, apart};

/// `TKA1`: the first word of an arena that was initialised.
const TAG: usize = u32::from_le_bytes(*b"TKA1") as usize;

/// An arena in the caller's memory. Allocations take memory from its front, and are given back all at once. The fields
/// are private to the library.
#[repr(C)]
#[derive(Debug)]
pub struct Arena {
    opaque: [usize; 8],
}

/// The content of [`Arena`].
#[repr(C)]
struct Inner {
    tag: usize,
    start: *mut u8,
    capacity: usize,
    used: usize,
    counts: Counts,
}

const _: () =
    assert!(size_of::<Inner>() <= size_of::<Arena>() && align_of::<Inner>() <= align_of::<Arena>());

/// The use of an arena's memory now and at most, and the number of failed requests.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaStats {
    /// Bytes of its memory.
    pub capacity: usize,
    /// Bytes in use now, including those that alignment skipped.
    pub in_use: usize,
    /// Maximum of bytes in use since `tercet_arena_init`.
    pub high_water: usize,
    /// Number of failed requests.
    pub failures: u32,
}

/// Makes an arena of `len` bytes of memory at any address. O(1); the memory is not written.
///
/// The memory belongs to the arena until the caller stops using both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_arena_init(
    arena: *mut Arena,
    memory: *mut c_void,
    len: usize,
) -> Status {
    Status::of(|| {
        let arena = Out::one(arena.cast::<Inner>())?;
        let memory = Out::new(memory.cast::<u8>(), len)?;
        apart([arena.span(), memory.span()], [])?;
        let inner = Inner {
            tag: TAG,
            start: memory.pointer(),
            capacity: len,
            used: 0,
            counts: Counts::new(),
        };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        unsafe { arena.set(inner) };
        Ok(())
    })
}

/// Borrows an arena to read it.
///
/// # Safety
/// The memory must be there, and nobody may write it, while `'a` lasts.
unsafe fn look<'a>(arena: *const Arena) -> Result<&'a Inner, Status> {
    let arena = In::one(arena.cast::<Inner>())?;
    // SAFETY: the tag is an integer, aligned; the caller vouches that it is there.
    if unsafe { (&raw const (*arena.pointer()).tag).read() } != TAG {
        return Err(Status::State);
    }
    // SAFETY: `tercet_arena_init` wrote it, since its tag is there; the caller vouches for the rest.
    Ok(unsafe { arena.value() })
}

/// Borrows an arena to change it.
///
/// # Safety
/// The memory must be there, and nobody else may use it, while `'a` lasts.
unsafe fn open<'a>(arena: *mut Arena) -> Result<&'a mut Inner, Status> {
    // SAFETY: the caller vouches for it.
    unsafe { look(arena)? };
    // SAFETY: `look` checked that it is one, and its borrow has ended; the caller vouches for the rest.
    Ok(unsafe { &mut *arena.cast() })
}

/// Allocates `len` bytes at a multiple of `align`, a power of two. O(1); the content of the bytes is unspecified.
///
/// Returns null if there is too little memory, if `align` is not a power of two, or if the arena was not initialised.
/// The first two are counted in the arena's failures. If `len` is 0, the address is aligned, not null, and must not be
/// read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_arena_alloc(
    arena: *mut Arena,
    len: usize,
    align: usize,
) -> *mut c_void {
    // SAFETY: C vouches that the arena is there and not in use.
    let Ok(arena) = (unsafe { open(arena) }) else {
        return ptr::null_mut();
    };
    let left = arena.capacity.saturating_sub(arena.used);
    let rest = arena.start.wrapping_add(arena.used).cast();
    // SAFETY: `used` is at most `capacity`, so this is the remaining part of the memory that C gave to the arena, and
    // none of it was handed out since the last rewind.
    let rest = unsafe { slice::from_raw_parts_mut(rest, left) };
    let mut scope = Scope::over(rest, arena.used, &mut arena.counts);
    match scope.alloc_bytes(len, align) {
        Ok(bytes) => {
            arena.used = scope.stats().in_use;
            bytes.as_mut_ptr().cast()
        }
        Err(_) => ptr::null_mut(),
    }
}

/// Stores the number of bytes in use now in `mark`, for `tercet_arena_rewind`. O(1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_arena_mark(arena: *const Arena, mark: *mut usize) -> Status {
    Status::of(|| {
        let (object, mark) = (In::one(arena)?, Out::one(mark)?);
        apart([mark.span()], [object.span()])?;
        // SAFETY: C vouches that both are there and not in use.
        unsafe { mark.set(look(arena)?.used) };
        Ok(())
    })
}

/// Gives back all memory allocated since a mark; 0 is the mark of an empty arena. O(1).
///
/// The caller must not use that memory any more. Returns TERCET_STATUS_ARGUMENT for a mark beyond the bytes in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_arena_rewind(arena: *mut Arena, mark: usize) -> Status {
    Status::of(|| {
        // SAFETY: C vouches that the arena is there and not in use.
        let arena = unsafe { open(arena)? };
        if mark > arena.used {
            return Err(Status::Argument);
        }
        arena.used = mark;
        Ok(())
    })
}

/// Reports the arena's use of memory now and at most. O(1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_arena_stats(arena: *const Arena, stats: *mut ArenaStats) -> Status {
    Status::of(|| {
        let (object, out) = (In::one(arena)?, Out::one(stats)?);
        apart([out.span()], [object.span()])?;
        // SAFETY: C vouches that the arena is there and not in use.
        let arena = unsafe { look(arena)? };
        let mut counts = arena.counts;
        let stats = Scope::over(&mut [], arena.used, &mut counts).stats();
        let stats = ArenaStats {
            capacity: arena.capacity,
            in_use: arena.used,
            high_water: stats.high_water,
            failures: stats.failures,
        };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        unsafe { out.set(stats) };
        Ok(())
    })
}
