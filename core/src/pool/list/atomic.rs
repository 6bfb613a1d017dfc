//! The lock-free free list of threads and interrupts: Treiber's stack (*Systems programming: coping with
//! parallelism*, IBM RJ 5118, 1986) of tagged indices.
//!
//! **The head** is one word. Its low bits, as many as `N` needs, are the index on top. All others are the tag, which
//! counts allocations. An allocation reads head and link, and swaps the head if it is still the value that it read.
//! Between the two steps, others may have taken that block, taken or returned more, and returned that block last.
//! Then the index is the same but the link is not (the ABA problem). To be returned, the block had to be taken, so
//! the tag differs and the swap fails. The link's value from the read, even `TAKEN`, does not matter then.
//!
//! **Limits.** The tag repeats after 2ᵗ allocations, with t = 64 − ⌈log₂(`N` + 1)⌉ if the machine swaps 64 bits at
//! once, and 32 − ⌈log₂(`N` + 1)⌉ if only 32. A wrong swap requires that one allocation is held up between its read
//! and its swap, which are a few instructions apart, for exactly a multiple of 2ᵗ others, the last of which leave the
//! same block on top. With 64 bits t ≥ 48: at one allocation per nanosecond, it must be held up for three days. With
//! 32 bits, at 20 cycles per allocation, 168 MHz and no other work:
//!
//! | blocks, up to | t | held up for at least |
//! |---|---|---|
//! | 255 | 24 | 2.0 s |
//! | 4,095 | 20 | 125 ms |
//! | 65,533 | 16 | 7.8 ms |
//!
//! Interrupt handlers, which run to their end, stay below this limit if they do fewer than 2ᵗ allocations together.
//! If a thread may be held up longer while others allocate without pause, use `CriticalBlockPool`, which has no tag.
//!
//! **Memory order.** A block is returned with a release swap and taken after an acquire load of the head, which reads
//! that swap or a later one. The head changes only by swaps, so each of them continues the release sequences of all
//! before it. The taker therefore sees the link and the writes of the block's previous holder. The swap of an
//! allocation needs no order of its own: it succeeds only for the exact value that the acquire load read.

#[cfg(all(test, loom))]
mod models;
mod word;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use self::word::{AtomicU16, AtomicU32, AtomicWord, Word};
use super::{FreeList, TAKEN, below, count, link_to};
use crate::pool::Stats;
use crate::pool::sealed::Sealed;

/// The free blocks of a pool that threads and interrupts share, by compare-and-swap; lock-free.
#[repr(C)] // The head first: short addresses.
pub struct AtomicList<const N: usize> {
    head: AtomicWord,
    failures: AtomicU32,
    links: [AtomicU16; N],
}

impl<const N: usize> AtomicList<N> {
    /// Number of bits for every index and for `N`: at most 16.
    const INDEX_BITS: u32 = usize::BITS - N.leading_zeros();
    const INDEX: Word = Self::STEP - 1;
    /// One unit of the tag.
    const STEP: Word = 1 << Self::INDEX_BITS;

    /// Creates a list of all `N` blocks.
    #[cfg(not(all(test, loom)))]
    pub(in crate::pool) const fn new() -> Self {
        const {
            assert!(
                N <= super::MAX_BLOCKS,
                "a pool has at most MAX_BLOCKS blocks"
            )
        }
        Self {
            head: AtomicWord::new(0),
            failures: AtomicU32::new(0),
            links: [const { AtomicU16::new(0) }; N],
        }
    }

    /// Takes the index on top and adds `step` to the head. A step of 0 leaves the tag unchanged; a model shows that
    /// this would be wrong.
    #[inline]
    fn pop(&self, step: Word) -> Option<usize> {
        let mut head = self.head.load(Acquire);
        loop {
            let index = (head & Self::INDEX) as usize;
            // The head of an empty list is N, for which there is no link.
            let link = self.links.get(index)?;
            let next = below(index, link.load(Relaxed)) as Word;
            let swapped = head.wrapping_add(step) & !Self::INDEX | next & Self::INDEX;
            match self
                .head
                .compare_exchange_weak(head, swapped, Relaxed, Acquire)
            {
                Ok(_) => {
                    link.store(TAKEN, Relaxed);
                    return Some(index);
                }
                Err(now) => head = now,
            }
        }
    }

    #[cold]
    fn refuse(&self) {
        let _ = self
            .failures
            .fetch_update(Relaxed, Relaxed, |n| n.checked_add(1));
    }
}

impl<const N: usize> Sealed for AtomicList<N> {}

// SAFETY: each index is in the list once: all are at the start, a swap of `pop` removes the one that it returns (head
// and link were of one moment, by the tag), and `give` adds one that its caller had from `take`. The order is argued
// above.
unsafe impl<const N: usize> FreeList<N> for AtomicList<N> {
    #[inline]
    fn take(&self) -> Option<usize> {
        let index = self.pop(Self::STEP);
        if index.is_none() {
            self.refuse();
        }
        index
    }

    #[inline]
    unsafe fn give(&self, index: usize) {
        // SAFETY: `index` came from `take`, which found a link there.
        let link = unsafe { self.links.get_unchecked(index) };
        let mut head = self.head.load(Relaxed);
        loop {
            link.store(link_to((head & Self::INDEX) as usize), Relaxed);
            // It is enough that the same block is on top, so this swap leaves the tag unchanged.
            let swapped = head & !Self::INDEX | index as Word & Self::INDEX;
            match self
                .head
                .compare_exchange_weak(head, swapped, Release, Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn stats(&self) -> Stats {
        let links = self.links.iter().map(|link| link.load(Relaxed));
        count(links, self.failures.load(Relaxed))
    }
}
