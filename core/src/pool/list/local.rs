//! The free list of one owner: plain loads and stores.

use core::cell::Cell;

use super::{FreeList, MAX_BLOCKS, TAKEN, below, count, link_to};
use crate::pool::Stats;
use crate::pool::sealed::Sealed;

/// The free blocks of a pool with a single owner; not `Sync`.
#[repr(C)] // The head first: short addresses.
pub struct LocalList<const N: usize> {
    head: Cell<usize>,
    failures: Cell<u32>,
    links: [Cell<u16>; N],
}

impl<const N: usize> LocalList<N> {
    /// Creates a list of all `N` blocks.
    pub(in crate::pool) const fn new() -> Self {
        const { assert!(N <= MAX_BLOCKS, "a pool has at most MAX_BLOCKS blocks") }
        Self {
            head: Cell::new(0),
            failures: Cell::new(0),
            links: [const { Cell::new(0) }; N],
        }
    }

    /// Returns the link at `index`; 0 after the last.
    #[cfg(feature = "critical-section")]
    pub(super) fn link(&self, index: usize) -> u16 {
        self.links.get(index).map_or(0, Cell::get)
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures.get()
    }
}

impl<const N: usize> Sealed for LocalList<N> {}

// SAFETY: each index is in the list once: all are at the start, `take` removes the one it returns, and `give` adds one
// that its caller had from `take`. The list is not `Sync`, and nothing it calls can come back to it.
unsafe impl<const N: usize> FreeList<N> for LocalList<N> {
    #[inline]
    fn take(&self) -> Option<usize> {
        let index = self.head.get();
        // The head of an empty list is N, for which there is no link.
        let Some(link) = self.links.get(index) else {
            self.failures.set(self.failures.get().saturating_add(1));
            return None;
        };
        self.head.set(below(index, link.replace(TAKEN)));
        Some(index)
    }

    #[inline]
    unsafe fn give(&self, index: usize) {
        // SAFETY: `index` came from `take`, which found a link there.
        let link = unsafe { self.links.get_unchecked(index) };
        link.set(link_to(self.head.replace(index)));
    }

    fn stats(&self) -> Stats {
        count(self.links.iter().map(Cell::get), self.failures())
    }
}
