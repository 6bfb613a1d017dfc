//! The free list of a block pool: a stack of the free blocks' indices.
//!
//! The list has a head (the index on top, or `N` if the list is empty) and one 16-bit link per block. The links are
//! beside the blocks, never in them: the holder of a block may write all of it, and an allocation that has lost its
//! race may still read the block's link.
//!
//! A link records the state of its block: [`TAKEN`]; free, with the next free block below it ([`link_to`]); or, with
//! value 0, never taken yet. The blocks of the last kind are in the list in their order, so the one below is the next
//! index, and zeroed memory is the whole list: 0, 1, 2, … `N`. Nothing is initialized, a `static` pool is in `.bss`,
//! and no block is accessed before it is used.
//!
//! The links are also the statistics. These cost nothing until they are requested, and then one pass over the links.
//! The blocks in use are the links that are [`TAKEN`]. The list is last in, first out, so blocks never taken stay
//! below all that were returned, and a block is taken for the first time only while every block taken before is in
//! use. So the number of links that are not 0 is the largest number of blocks that were in use at once.

#[cfg(any(target_has_atomic = "32", feature = "portable-atomic"))]
mod atomic;
#[cfg(feature = "critical-section")]
mod critical;
mod local;

#[cfg(any(target_has_atomic = "32", feature = "portable-atomic"))]
pub use atomic::AtomicList;
#[cfg(feature = "critical-section")]
pub use critical::CriticalList;
pub use local::LocalList;

use super::Stats;
use super::sealed::Sealed;

/// Largest number of blocks of one pool: a link has 16 bits and needs three values besides their indices.
pub const MAX_BLOCKS: usize = TAKEN as usize - 2;

/// The link of a block that is in use.
const TAKEN: u16 = u16::MAX;

/// A free list, which determines who may take and return blocks at the same time; sealed.
///
/// # Safety
/// An index that [`take`](FreeList::take) returned is below `N` and is not returned again before it was given back.
/// If the list is `Sync`, that holds for all threads and interrupts together, and what was done to a block before it
/// was given back happens before what is done after it was taken again.
pub unsafe trait FreeList<const N: usize>: Sealed {
    /// Takes a free block and returns its index. If there is none, it returns `None` and counts a failure.
    #[doc(hidden)]
    fn take(&self) -> Option<usize>;

    /// Makes a block free again.
    ///
    /// # Safety
    /// `index` came from `take` of this list and was not given back since.
    #[doc(hidden)]
    unsafe fn give(&self, index: usize);

    #[doc(hidden)]
    fn stats(&self) -> Stats;
}

/// Returns the link of a free block above the block `next`, or above none if `next` is `N`: 1 to [`TAKEN`] − 1.
#[inline]
const fn link_to(next: usize) -> u16 {
    (next + 1) as u16
}

/// Returns the index below the free block `index`, from its link.
#[inline]
const fn below(index: usize, link: u16) -> usize {
    match (link as usize).checked_sub(1) {
        Some(next) => next,
        None => index + 1,
    }
}

/// Computes the statistics from the links.
fn count(links: impl ExactSizeIterator<Item = u16>, failures: u32) -> Stats {
    let mut stats = Stats {
        capacity: links.len(),
        failures,
        ..Stats::default()
    };
    for link in links {
        stats.in_use += usize::from(link == TAKEN);
        stats.high_water += usize::from(link != 0);
    }
    stats
}
