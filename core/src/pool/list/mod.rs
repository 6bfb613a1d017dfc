//! The free list of a block pool: which blocks are free, as a stack of indices.
//!
//! The list is a head (the index on top, or `N` where the list is empty) and one link of 16 bits a block, beside the
//! blocks, never in them: whoever holds a block may write all of it, and an allocation that has lost its race may
//! still look at the block's link.
//!
//! A link says what its block is: [`TAKEN`]; free, with the next free one below it ([`link_to`]); or, being 0,
//! never taken yet. The blocks of the last kind lie in the list in their order, so the one below is the next index, and zeroed memory is
//! the whole list: 0, 1, 2, … `N`. Nothing is initialised, a `static` pool lies in `.bss`, and no block is touched
//! before it is used.
//!
//! The links also are the statistics, which therefore cost nothing until they are asked for, and then one pass over them.
//! The blocks in use are the links that are [`TAKEN`]. The list is last in, first out, so those never taken
//! stay below all that came back, and a block is taken for the first time only while every one taken before is
//! in use: the links that are not 0 are the most blocks that were in use at once.

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

/// The most blocks of one pool: a link has 16 bits and says three things more than their indices.
pub const MAX_BLOCKS: usize = TAKEN as usize - 2;

/// The link of a block that is in use.
const TAKEN: u16 = u16::MAX;

/// Who may take and return blocks at once; sealed.
///
/// # Safety
/// An index that [`take`](FreeList::take) returned is below `N` and is not returned again before it was given back.
/// If the list is `Sync`, that holds for all threads and interrupts together, and what was done to a block before it was
/// given back happens before what is done after it was taken again.
pub unsafe trait FreeList<const N: usize>: Sealed {
    /// The index of a free block, which is free no longer; `None`, which is counted, if there is none.
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

/// The link of a free block above the block `next`, or above none if that is `N`: 1 to [`TAKEN`] − 1.
#[inline]
const fn link_to(next: usize) -> u16 {
    (next + 1) as u16
}

/// The index below the free block `index`, by its link.
#[inline]
const fn below(index: usize, link: u16) -> usize {
    match (link as usize).checked_sub(1) {
        Some(next) => next,
        None => index + 1,
    }
}

/// What the links say.
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
