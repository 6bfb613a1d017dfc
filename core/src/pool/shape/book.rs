//! The assignment of a [`Shapes`](super::Shapes) pool's bytes: only numbers, no memory.
//!
//! Spans are taken from the front of the store. Every byte taken belongs to exactly one **span**, which is an entry
//! that is lent, idle (returned, and remembered by its key) or blank (free, without a key). So a free span always has
//! neighbours, and a run of free ones can become one.
#![forbid(unsafe_code)]

use super::ShapeError;
use super::key::{Key, Shape};
use crate::number::Kind;
use crate::pool::CacheStats;
use crate::pool::count::{Counts, add};

/// Alignment of spans' starts and lengths: enough for every [`Plain`](crate::number::Plain) type.
pub(super) const ALIGN: usize = 8;

/// State of an entry. The first is zero, so that a new book is zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The entry belongs to no span.
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
    /// A multiple of [`ALIGN`]; 0 only if vacant.
    bytes: usize,
    /// Used if idle or lent.
    key: Key,
    /// Time of its return, by the book's clock.
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

/// The spans and the counters. `E` is an array of entries, or a slice of them in code that does not depend on their
/// number.
#[derive(Debug)]
pub(super) struct Book<E: ?Sized> {
    /// Number of bytes from the front of the store that belong to spans.
    carved: usize,
    /// Number of lent bytes.
    lent: usize,
    /// Number of returns so far, modulo 2³².
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
    /// Lends a span of at least `bytes` (`None`: more than an address can hold) of a store of `capacity`. Returns its
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

    /// Returns a lent span.
    pub(super) fn give_back(&mut self, at: usize) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.state = State::Idle;
            entry.returned = self.clock;
            self.lent -= entry.bytes;
            self.clock = self.clock.wrapping_add(1);
        }
    }

    /// Drops every span; counters stay.
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

    /// Returns the entry of a free span of at least `bytes`. It is not longer if the rest can be a span of its own.
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

    /// Returns the most recently returned idle span of a key.
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

    /// Returns the smallest blank span that is large enough; of equal ones the first in the store.
    fn smallest_blank(&self, bytes: usize) -> Option<usize> {
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(_, entry)| entry.state == State::Blank && entry.bytes >= bytes)
            .min_by_key(|(_, entry)| (entry.bytes, entry.start))
            .map(|(at, _)| at)
    }

    /// Returns a new span from the unused part of the store.
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

    /// Returns the least recently returned idle span that is large enough, and drops its key.
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

    /// Returns the run of free spans from this entry on, up to the required length: the entry, its start and its end.
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

    /// Makes one span of the first run of free ones that is long enough, including the unused part of the store after
    /// it.
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

    /// Cuts a free span to `bytes`. The rest returns to the unused part of the store or becomes a blank span. If
    /// neither is possible, the span keeps it.
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
