//! Requests that are in no batch yet, in order, with a line for each kind.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

use super::BatchOptions;

/// An item in a line that may no longer be wanted.
pub(super) trait Waits {
    fn is_waiting(&self) -> bool;
}

/// One item in a line.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) item: T,
    /// Time of arrival.
    pub(super) since: Instant,
    /// Its number in the order of arrival.
    number: u64,
}

/// The line. Unwanted items stay until they reach the front, or until [`Line::sweep`].
#[derive(Debug)]
pub(super) struct Line<K, T> {
    kinds: HashMap<K, VecDeque<Entry<T>>>,
    next: u64,
}

impl<K: Eq + Hash + Clone, T: Waits> Line<K, T> {
    pub(super) fn new() -> Self {
        Self {
            kinds: HashMap::new(),
            next: 0,
        }
    }

    /// Adds an item at the end; returns the number of its kind. O(1).
    pub(super) fn push(&mut self, kind: K, item: T, now: Instant) -> usize {
        let entry = Entry {
            item,
            since: now,
            number: self.next,
        };
        self.next += 1;
        let entries = self.kinds.entry(kind).or_default();
        entries.push_back(entry);
        entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns the kind of a batch that is due, and its number of requests. A batch is due if it has the maximum size,
    /// if one of its requests has waited long enough, or if `all` are due. Of several kinds it returns the one with the
    /// oldest request. O(kinds).
    pub(super) fn due(
        &mut self,
        now: Instant,
        options: &BatchOptions,
        all: bool,
    ) -> Option<(K, usize)> {
        self.tidy();
        let is_due = |entries: &VecDeque<Entry<T>>| {
            let waited = |first: &Entry<T>| now.duration_since(first.since) >= options.max_wait;
            all || entries.len() >= options.max_size || entries.front().is_some_and(waited)
        };
        let due = self.kinds.iter().filter(|(_, entries)| is_due(entries));
        let first = due.min_by_key(|(_, entries)| entries.front().map(|first| first.number));
        first.map(|(kind, entries)| (kind.clone(), entries.len().min(options.max_size)))
    }

    /// Returns the time when the oldest item will have waited long enough; `None` if that is never. O(kinds).
    pub(super) fn due_at(&self, max_wait: Duration) -> Option<Instant> {
        let firsts = self.kinds.values().filter_map(VecDeque::front);
        let oldest = firsts.min_by_key(|first| first.number)?;
        oldest.since.checked_add(max_wait)
    }

    /// Takes up to `most` waiting items of a kind; also returns the number of unwanted ones that it removed. O(taken).
    pub(super) fn take(&mut self, kind: &K, most: usize) -> (Vec<Entry<T>>, usize) {
        let (mut taken, mut gone) = (Vec::new(), 0);
        let Some(entries) = self.kinds.get_mut(kind) else {
            return (taken, gone);
        };
        taken.reserve_exact(most.min(entries.len()));
        while taken.len() < most
            && let Some(entry) = entries.pop_front()
        {
            if entry.item.is_waiting() {
                taken.push(entry);
            } else {
                gone += 1;
            }
        }
        if entries.is_empty() {
            self.kinds.remove(kind);
        }
        (taken, gone)
    }

    /// Takes all items.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Entry<T>> + use<K, T> {
        let kinds = std::mem::take(&mut self.kinds);
        kinds.into_values().flatten()
    }

    /// Removes all unwanted items. O(all).
    pub(super) fn sweep(&mut self) {
        self.kinds.retain(|_, entries| {
            entries.retain(|entry| entry.item.is_waiting());
            !entries.is_empty()
        });
    }

    /// Makes every kind begin with a wanted item.
    fn tidy(&mut self) {
        self.kinds.retain(|_, entries| {
            while entries
                .front()
                .is_some_and(|first| !first.item.is_waiting())
            {
                entries.pop_front();
            }
            !entries.is_empty()
        });
    }
}
