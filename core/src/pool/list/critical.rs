//! The free list behind a critical section: that of a single owner, used by one at a time.

use super::{FreeList, LocalList, count};
use crate::pool::Stats;
use crate::pool::sealed::Sealed;

/// The free blocks of a pool that threads and interrupts share, with one critical section per operation.
pub struct CriticalList<const N: usize>(LocalList<N>);

impl<const N: usize> CriticalList<N> {
    /// Creates a list of all `N` blocks.
    pub(in crate::pool) const fn new() -> Self {
        Self(LocalList::new())
    }
}

// SAFETY: the list within is reached in critical sections only, which exclude and follow one another.
unsafe impl<const N: usize> Sync for CriticalList<N> {}

impl<const N: usize> Sealed for CriticalList<N> {}

// SAFETY: as `LocalList`; critical sections are in one order, in which a block's being given back happens before its
// being taken again.
unsafe impl<const N: usize> FreeList<N> for CriticalList<N> {
    #[inline]
    fn take(&self) -> Option<usize> {
        critical_section::with(|_| self.0.take())
    }

    #[inline]
    unsafe fn give(&self, index: usize) {
        // SAFETY: the caller's promise is the one that is asked for.
        critical_section::with(|_| unsafe { self.0.give(index) });
    }

    fn stats(&self) -> Stats {
        // One section per link: interrupts wait for this pass no longer than for one `take`.
        let links = (0..N).map(|index| critical_section::with(|_| self.0.link(index)));
        count(links, critical_section::with(|_| self.0.failures()))
    }
}
