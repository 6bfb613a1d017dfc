//! A cache of fixed size that drops the least recently used value.
#![forbid(unsafe_code)]

mod hash;
mod link;
mod value;

use core::fmt;
use core::hash::Hash;
use core::iter;

use super::CacheStats;
use super::count::{Counts, add};
use link::Link;
pub use value::{Elements, Parts, Value};

/// A cache of values of any length, `[T]`, in `BLOCKS` blocks of `BLOCK` elements, by key.
///
/// Its budget is the memory of its blocks. A value takes as many blocks as its elements need (one if it has none),
/// from any free places, so nothing fragments. It is read as slices of up to `BLOCK` elements, or as one slice if one
/// block holds it. [`Lru::insert`] evicts least recently used values until the new one fits. A borrowed value cannot
/// be evicted: [`Lru::get`] borrows the cache.
///
/// Finding a key is O(1) if the hashes are spread, and O(values) if all collide. Hashing has no secret, so an
/// adversary who chooses the keys can cause this. A touch is O(1); an insertion is O(blocks written and evicted). No
/// `unsafe`. On 32-bit machines a block costs 16 bytes and an `Option<K>` besides its elements. A `static` cache
/// filled with zeros is in `.bss` if `None::<K>` is zeros too, as for integers.
///
/// ```
/// use tercet_core::pool::Lru;
///
/// // Rows of a table in slow memory, by number: 6 blocks of 16 bytes.
/// let mut rows = Lru::<u32, u8, 16, 6>::new(0);
/// let mut read = |number: u32| {
///     if rows.get(&number).is_none() {
///         rows.insert_with(number, 32, |_, part| part.fill(number as u8)).unwrap();
///     }
///     rows.get(&number).map(|row| row.iter().map(|&v| u32::from(v)).sum::<u32>())
/// };
/// assert_eq!([read(1), read(2), read(1), read(3)], [Some(32), Some(64), Some(32), Some(96)]);
/// // Two blocks each: a fourth row takes the place of the one that was not used for longest.
/// assert_eq!(read(4), Some(128));
/// assert!(rows.peek(&2).is_none() && rows.peek(&1).is_some());
/// assert_eq!(rows.stats().evictions, 1);
/// // More than the whole budget is refused, and evicts nothing.
/// assert_eq!(rows.insert(5, &[0; 97]), Err(5));
/// assert_eq!(rows.len(), 3);
/// ```
///
/// ```compile_fail,E0499
/// # use tercet_core::pool::Lru;
/// let mut cache = Lru::<u32, u8, 16, 6>::new(0);
/// let held = cache.get(&1);
/// let _ = cache.insert(2, &[1, 2, 3]);
/// println!("{}", held.is_some());
/// ```
pub struct Lru<K, T, const BLOCK: usize, const BLOCKS: usize> {
    blocks: [[T; BLOCK]; BLOCKS],
    /// The next block of the same value, or of the list of free ones.
    next: [Link; BLOCKS],
    /// The entry of a value has the index of the value's first block.
    entries: [Entry<K>; BLOCKS],
    /// The first entry of each hash.
    buckets: [Link; BLOCKS],
    newest: Link,
    oldest: Link,
    /// Free blocks that were used before.
    free: Link,
    /// Blocks from here on were never used.
    fresh: usize,
    len: usize,
    /// Number of blocks that belong to values.
    in_use: usize,
    counts: Counts,
    hits: u32,
    misses: u32,
    evictions: u32,
}

/// One entry per block; only used if the block is a value's first.
struct Entry<K> {
    /// The key, if this block begins a value.
    key: Option<K>,
    /// Number of elements of the value.
    len: usize,
    newer: Link,
    older: Link,
    /// Bucket of the key's hash, and the next entry in it.
    bucket: u16,
    chain: Link,
}

impl<K> Entry<K> {
    const NONE: Self = Self {
        key: None,
        len: 0,
        newer: Link::NONE,
        older: Link::NONE,
        bucket: 0,
        chain: Link::NONE,
    };
}

impl<K: Eq + Hash, T: Copy, const BLOCK: usize, const BLOCKS: usize> Lru<K, T, BLOCK, BLOCKS> {
    /// Creates an empty cache whose blocks hold `fill` until values arrive.
    pub const fn new(fill: T) -> Self {
        const {
            assert!(BLOCK > 0, "a block has at least one element");
            assert!(BLOCKS > 0, "a cache has at least one block");
            assert!(BLOCKS <= Link::MAX, "a cache has at most 65,535 blocks");
        }
        Self {
            blocks: [[fill; BLOCK]; BLOCKS],
            next: [Link::NONE; BLOCKS],
            entries: [const { Entry::NONE }; BLOCKS],
            buckets: [Link::NONE; BLOCKS],
            newest: Link::NONE,
            oldest: Link::NONE,
            free: Link::NONE,
            fresh: 0,
            len: 0,
            in_use: 0,
            counts: Counts::new(),
            hits: 0,
            misses: 0,
            evictions: 0,
        }
    }

    /// Returns the value of a key and makes it the most recently used; counts a hit or a miss. O(1).
    #[inline]
    pub fn get(&mut self, key: &K) -> Option<Value<'_, T, BLOCK>> {
        let Some(at) = self.find(key) else {
            add(&mut self.misses);
            return None;
        };
        add(&mut self.hits);
        if self.newest != Link::to(at) {
            self.unlink(at);
            self.link(at);
        }
        self.value(at)
    }

    /// Returns the value of a key without changing the order of use or the counters. O(1).
    #[inline]
    pub fn peek(&self, key: &K) -> Option<Value<'_, T, BLOCK>> {
        self.value(self.find(key)?)
    }

    /// Stores a copy of `value` as the most recently used, and replaces the key's previous value; evicts until it
    /// fits. O(its blocks and those evicted).
    ///
    /// # Errors
    /// A value of more than [`Lru::capacity`] elements is refused: the call returns the key, and the cache is
    /// unchanged.
    pub fn insert(&mut self, key: K, value: &[T]) -> Result<(), K> {
        let mut rest = value;
        self.insert_with(key, value.len(), |_, part| {
            let (now, later) = rest.split_at_checked(part.len()).unwrap_or((rest, &[]));
            for (place, element) in part.iter_mut().zip(now) {
                *place = *element;
            }
            rest = later;
        })
    }

    /// Like [`Lru::insert`], for a value of `len` elements that `fill` writes in place. The cache calls `fill` for
    /// each part in order, with the index of the part's first element. The previous content of a part has no meaning.
    /// If `fill` panics, the value stays as far as it was written.
    ///
    /// # Errors
    /// Those of [`Lru::insert`]; `fill` is not called then.
    pub fn insert_with(
        &mut self,
        key: K,
        len: usize,
        mut fill: impl FnMut(usize, &mut [T]),
    ) -> Result<(), K> {
        let needed = len.div_ceil(BLOCK).max(1);
        if needed > BLOCKS {
            self.counts.refuse();
            return Err(key);
        }
        if let Some(at) = self.find(&key) {
            self.release(at);
        }
        while self.in_use + needed > BLOCKS && self.evict().is_some() {}
        let Some(first) = self.take(needed) else {
            return Err(key);
        };
        self.publish(key, len, first);
        let (mut start, mut link) = (0, Link::to(first));
        while start < len
            && let Some(at) = link.get()
            && let Some(block) = self.blocks.get_mut(at)
        {
            if let Some(part) = block.get_mut(..(len - start).min(BLOCK)) {
                fill(start, part);
            }
            start += BLOCK;
            link = self.next.get(at).copied().unwrap_or(Link::NONE);
        }
        Ok(())
    }

    /// Drops a key and its value; returns `false` if there was none. O(its blocks).
    pub fn remove(&mut self, key: &K) -> bool {
        self.find(key).map(|at| self.release(at)).is_some()
    }

    /// Drops the least recently used value and returns its key. Counts an eviction. O(its blocks).
    pub fn evict(&mut self) -> Option<K> {
        let at = self.oldest.get()?;
        add(&mut self.evictions);
        self.release(at)
    }

    /// Drops every value; counters stay. O(blocks in use).
    pub fn clear(&mut self) {
        while let Some(at) = self.oldest.get() {
            self.release(at);
        }
    }

    fn find(&self, key: &K) -> Option<usize> {
        let mut link = *self.buckets.get(hash::bucket(key, BLOCKS))?;
        loop {
            let at = link.get()?;
            let entry = self.entries.get(at)?;
            if entry.key.as_ref() == Some(key) {
                return Some(at);
            }
            link = entry.chain;
        }
    }

    /// Makes a chain of free blocks the most recently used value of a key without one.
    fn publish(&mut self, key: K, len: usize, at: usize) {
        let bucket = hash::bucket(&key, BLOCKS);
        if let (Some(entry), Some(head)) = (self.entries.get_mut(at), self.buckets.get_mut(bucket))
        {
            *entry = Entry {
                key: Some(key),
                len,
                bucket: bucket as u16,
                chain: *head,
                ..Entry::NONE
            };
            *head = Link::to(at);
        }
        self.link(at);
        self.len += 1;
        self.counts.reach(self.in_use * Self::BLOCK_BYTES);
    }
}

impl<K, T, const BLOCK: usize, const BLOCKS: usize> Lru<K, T, BLOCK, BLOCKS> {
    const BLOCK_BYTES: usize = size_of::<[T; BLOCK]>();

    /// Returns the number of values held.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no value is held.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of elements that can be held, `BLOCK` · `BLOCKS`, in values whose lengths are multiples of
    /// `BLOCK`.
    pub const fn capacity(&self) -> usize {
        BLOCK * BLOCKS
    }

    /// Returns the keys, most recently used first.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        let entry = |link: Link| link.get().and_then(|at| self.entries.get(at));
        iter::successors(entry(self.newest), move |last| entry(last.older))
            .filter_map(|entry| entry.key.as_ref())
    }

    /// Returns the numbers of hits, misses and evictions, and the bytes of the blocks that belong to values. A
    /// failure is an insertion of more than the budget.
    pub const fn stats(&self) -> CacheStats {
        let capacity = Self::BLOCK_BYTES * BLOCKS;
        CacheStats {
            bytes: self.counts.stats(capacity, self.in_use * Self::BLOCK_BYTES),
            hits: self.hits,
            misses: self.misses,
            evictions: self.evictions,
        }
    }

    fn value(&self, at: usize) -> Option<Value<'_, T, BLOCK>> {
        let len = self.entries.get(at)?.len;
        Some(Value::new(&self.blocks, &self.next, at, len))
    }

    /// Takes free blocks, of which there are enough, as a chain. Returns the first.
    fn take(&mut self, blocks: usize) -> Option<usize> {
        let mut chain = Link::NONE;
        for _ in 0..blocks {
            let at = self.free.get().unwrap_or(self.fresh);
            let next = self.next.get_mut(at)?;
            if self.free == Link::NONE {
                self.fresh += 1;
            } else {
                self.free = *next;
            }
            *next = chain;
            chain = Link::to(at);
        }
        self.in_use += blocks;
        chain.get()
    }

    /// Frees a value's blocks and removes its entry from every list.
    fn release(&mut self, at: usize) -> Option<K> {
        self.unlink(at);
        let entry = self.entries.get_mut(at)?;
        let (key, bucket, chain) = (entry.key.take(), usize::from(entry.bucket), entry.chain);
        // Link its predecessor in the bucket to its successor.
        let gone = Link::to(at);
        let first = self.buckets.get_mut(bucket)?;
        let mut link = *first;
        if link == gone {
            *first = chain;
        }
        while link != gone
            && let Some(before) = link.get().and_then(|at| self.entries.get_mut(at))
        {
            link = before.chain;
            if link == gone {
                before.chain = chain;
            }
        }
        self.len -= 1;

        link = gone;
        while let Some(block) = link.get() {
            let next = self.next.get_mut(block)?;
            link = core::mem::replace(next, self.free);
            self.free = Link::to(block);
            self.in_use -= 1;
        }
        key
    }

    /// Removes an entry from the order of use.
    fn unlink(&mut self, at: usize) {
        let Some(&Entry { newer, older, .. }) = self.entries.get(at) else {
            return;
        };
        match newer.get().and_then(|at| self.entries.get_mut(at)) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        match older.get().and_then(|at| self.entries.get_mut(at)) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Adds an entry that is not in the order of use at its newest end.
    fn link(&mut self, at: usize) {
        let (this, second) = (Link::to(at), self.newest);
        if let Some(entry) = self.entries.get_mut(at) {
            entry.newer = Link::NONE;
            entry.older = second;
        }
        match second.get().and_then(|at| self.entries.get_mut(at)) {
            Some(entry) => entry.newer = this,
            None => self.oldest = this,
        }
        self.newest = this;
    }
}

impl<K, T, const BLOCK: usize, const BLOCKS: usize> fmt::Debug for Lru<K, T, BLOCK, BLOCKS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lru").field(&self.stats()).finish()
    }
}

#[cfg(feature = "defmt")]
impl<K, T, const BLOCK: usize, const BLOCKS: usize> defmt::Format for Lru<K, T, BLOCK, BLOCKS> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "Lru({})", self.stats())
    }
}
