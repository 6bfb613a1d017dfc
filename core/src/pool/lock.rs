//! Locks of a pool's figures.

use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;

use super::sealed::Sealed;

/// Mutual exclusion for the parts of a pool; sealed. A lock that is `Sync` works between threads and interrupts.
pub trait Lock: Sealed {
    /// Runs `f` on the content of `cell`.
    ///
    /// # Safety
    /// `cell` is reached through this lock alone, where the lock is not `Sync` by one thread at a time, and `f` does
    /// not come back to it.
    #[doc(hidden)]
    unsafe fn with<B: ?Sized, R>(cell: &UnsafeCell<B>, f: impl FnOnce(&mut B) -> R) -> R;
}

/// One owner: no lock at all, and not `Sync`.
#[derive(Debug)]
pub struct Local(PhantomData<Cell<()>>);

impl Sealed for Local {}

impl Lock for Local {
    #[inline]
    unsafe fn with<B: ?Sized, R>(cell: &UnsafeCell<B>, f: impl FnOnce(&mut B) -> R) -> R {
        // SAFETY: by the caller's word nobody else is in the cell, nor will be before `f` ends.
        f(unsafe { &mut *cell.get() })
    }
}

/// Each operation in its own critical section.
#[cfg(feature = "critical-section")]
#[derive(Debug)]
pub struct Critical;

#[cfg(feature = "critical-section")]
impl Sealed for Critical {}

#[cfg(feature = "critical-section")]
impl Lock for Critical {
    #[inline]
    unsafe fn with<B: ?Sized, R>(cell: &UnsafeCell<B>, f: impl FnOnce(&mut B) -> R) -> R {
        // SAFETY: critical sections exclude one another, and by the caller's word `f` does not come back to the cell.
        critical_section::with(|_| f(unsafe { &mut *cell.get() }))
    }
}
