//! Which bytes of a [`Shapes`](super::Shapes) pool are whose: numbers only, no memory.
//!
//! The store is carved from its front. Every carved byte belongs to exactly one **span**, an entry that is lent, idle
//! (returned, and remembered by its key) or blank (free, with no key). So a free span always has neighbours, and a run
//! of free ones can become one.
#![forbid(unsafe_code)]

use super::ShapeError;
use super::key::{Key, Shape};
use crate::number::Kind;
use crate::pool::CacheStats;
use crate::pool::count::{Counts, add};

/// Spans start at multiples of this and have lengths that are: enough for every [`Plain`](crate::number::Plain) type.
pub(super) const ALIGN: usize = 8;

/// The first is zero, so that a new book is zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The entry is of no span.
    Vacant,
    Blank,
    Idle,
    Lent,
}

/// A span of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    state: State,
    start: usize,
    /// A multiple of [`ALIGN`], and not 0 but where vacant.
    bytes: usize,
    /// Of use where idle or lent.
    key: Key,
    /// When it was returned, by the book's clock.
    returned: u32,
}

impl Entry {
    pub(super) const VACANT: Self = Self {
        state: State::Vacant,
        start: 0,
        bytes: 0,
        key: Key {
            shape: Shape::ZERO,
            kind: Kind::U8,
        },
        returned: 0,
    };

    fn is_free(&self) -> bool {
        matches!(self.state, State::Blank | State::Idle)
    }

    fn end(&self) -> usize {
        self.start + self.bytes
    }
}

/// The spans and the counters. `E` is an array of entries, or a slice of them where their number does not matter.
#[derive(Debug)]
pub(super) struct Book<E: ?Sized> {
    /// Bytes from the front of the store that belong to spans.
    carved: usize,
    /// Bytes lent.
    lent: usize,
    /// Returns so far, modulo 2³².
    clock: u32,
    counts: Counts,
    hits: u32,
    misses: u32,
    evictions: u32,
    entries: E,
}

impl<const ENTRIES: usize> Book<[Entry; ENTRIES]> {
    pub(super) const fn new() -> Self {
        Self {
            carved: 0,
            lent: 0,
            clock: 0,
            counts: Counts::new(),
            hits: 0,
            misses: 0,
            evictions: 0,
            entries: [Entry::VACANT; ENTRIES],
        }
    }
}

impl Book<[Entry]> {
    /// Lends a span of at least `bytes` (`None`: more than an address can hold) of a store of `capacity`, and returns its
    /// entry and its start.
    pub(super) fn take(
        &mut self,
        key: Key,
        bytes: Option<usize>,
        capacity: usize,
    ) -> Result<(usize, usize), ShapeError> {
        let at = match self.latest(key) {
            Some(at) => {
                add(&mut self.hits);
                Ok(at)
            }
            None => {
                add(&mut self.misses);
                self.make(bytes, capacity)
            }
        };
        let entry = at.and_then(|at| {
            let entry = self.entries.get_mut(at).ok_or(ShapeError::TooLong)?;
            entry.state = State::Lent;
            entry.key = key;
            self.lent += entry.bytes;
            Ok((at, entry.start))
        });
        match entry {
            Ok(_) => self.counts.reach(self.lent),
            Err(_) => self.counts.refuse(),
        }
        entry
    }

    /// Takes a lent span back.
    pub(super) fn give_back(&mut self, at: usize) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.state = State::Idle;
            entry.returned = self.clock;
            self.lent -= entry.bytes;
            self.clock = self.clock.wrapping_add(1);
        }
    }

    /// Forgets every span; counters stay.
    pub(super) fn reset(&mut self) {
        self.entries.fill(Entry::VACANT);
        self.carved = 0;
        self.lent = 0;
    }

    pub(super) fn stats(&self, capacity: usize) -> CacheStats {
        CacheStats {
            bytes: self.counts.stats(capacity, self.lent),
            hits: self.hits,
            misses: self.misses,
            evictions: self.evictions,
        }
    }

    /// The entry of a free span of at least `bytes`, and no more where the rest can be a span of its own.
    fn make(&mut self, bytes: Option<usize>, capacity: usize) -> Result<usize, ShapeError> {
        let bytes = bytes
            .and_then(|bytes| bytes.max(1).checked_next_multiple_of(ALIGN))
            .filter(|&bytes| bytes <= capacity)
            .ok_or(ShapeError::TooLong)?;
        let at = self
            .smallest_blank(bytes)
            .or_else(|| self.carve(bytes, capacity))
            .or_else(|| self.least_recent(bytes))
            .or_else(|| self.merge(bytes, capacity))
            .ok_or(ShapeError::Full { needed: bytes })?;
        self.trim(at, bytes);
        Ok(at)
    }

    /// The idle span of a key that was returned last.
    fn latest(&self, key: Key) -> Option<usize> {
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(_, entry)| entry.state == State::Idle && entry.key == key)
            .min_by_key(|(_, entry)| self.clock.wrapping_sub(entry.returned))
            .map(|(at, _)| at)
    }

    fn vacant(&mut self) -> Option<(usize, &mut Entry)> {
        let mut entries = self.entries.iter_mut().enumerate();
        entries.find(|(_, entry)| entry.state == State::Vacant)
    }

    /// The smallest blank span that is large enough, the first in the store of those.
    fn smallest_blank(&self, bytes: usize) -> Option<usize> {
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(_, entry)| entry.state == State::Blank && entry.bytes >= bytes)
            .min_by_key(|(_, entry)| (entry.bytes, entry.start))
            .map(|(at, _)| at)
    }

    /// A new span from the part of the store that has none.
    fn carve(&mut self, bytes: usize, capacity: usize) -> Option<usize> {
        let start = self.carved;
        if capacity - start < bytes {
            return None;
        }
        let (at, entry) = self.vacant()?;
        *entry = Entry {
            state: State::Blank,
            start,
            bytes,
            ..Entry::VACANT
        };
        self.carved = start + bytes;
        Some(at)
    }

    /// The idle span, large enough, that was returned before all others, which is forgotten.
    fn least_recent(&mut self, bytes: usize) -> Option<usize> {
        let now = self.clock;
        let entries = self.entries.iter_mut().enumerate();
        let (at, entry) = entries
            .filter(|(_, entry)| entry.state == State::Idle && entry.bytes >= bytes)
            .max_by_key(|(_, entry)| now.wrapping_sub(entry.returned))?;
        entry.state = State::Blank;
        add(&mut self.evictions);
        Some(at)
    }

    /// The run of free spans from this entry's on, to where it is long enough: the entry, where it starts, where it ends.
    fn run(&self, at: usize, bytes: usize, capacity: usize) -> Option<(usize, usize, usize)> {
        let first = self.entries.get(at).filter(|entry| entry.is_free())?;
        let (start, mut end) = (first.start, first.end());
        while end - start < bytes {
            end = if end == self.carved {
                start.checked_add(bytes).filter(|&end| end <= capacity)?
            } else {
                let mut entries = self.entries.iter();
                entries
                    .find(|entry| entry.is_free() && entry.start == end)?
                    .end()
            };
        }
        Some((at, start, end))
    }

    /// Makes one span of the first run of free ones that is long enough, with what was never carved behind it.
    fn merge(&mut self, bytes: usize, capacity: usize) -> Option<usize> {
        let (at, start, end) = (0..self.entries.len())
            .filter_map(|at| self.run(at, bytes, capacity))
            .min_by_key(|&(_, start, _)| start)?;
        for entry in &mut self.entries {
            if entry.is_free() && entry.start >= start && entry.start < end {
                if entry.state == State::Idle {
                    add(&mut self.evictions);
                }
                *entry = Entry::VACANT;
            }
        }
        *self.entries.get_mut(at)? = Entry {
            state: State::Blank,
            start,
            bytes: end - start,
            ..Entry::VACANT
        };
        self.carved = self.carved.max(end);
        Some(at)
    }

    /// Cuts a free span to `bytes`: the rest goes back to the part that was never carved or becomes a blank span. It stays
    /// where neither can be.
    fn trim(&mut self, at: usize, bytes: usize) {
        let Some(&Entry {
            start, bytes: had, ..
        }) = self.entries.get(at)
        else {
            return;
        };
        let (end, rest) = (start + bytes, had - bytes);
        if rest == 0 {
            return;
        }
        if start + had == self.carved {
            self.carved = end;
        } else if let Some((_, entry)) = self.vacant() {
            *entry = Entry {
                state: State::Blank,
                start: end,
                bytes: rest,
                ..Entry::VACANT
            };
        } else {
            return;
        }
        if let Some(entry) = self.entries.get_mut(at) {
            entry.bytes = bytes;
        }
    }
}
