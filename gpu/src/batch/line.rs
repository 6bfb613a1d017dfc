//! Requests that no batch has taken, in order, each with others of its kind.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

use super::BatchOptions;

/// What stands in a line and may lose interest.
pub(super) trait Waits {
    fn is_waiting(&self) -> bool;
}

/// One in a line.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) item: T,
    /// When it came.
    pub(super) since: Instant,
    /// The how-manieth it was.
    number: u64,
}

/// The line. Those that wait no more stay until they come to the front, or until [`Line::sweep`].
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

    /// Adds one at the end; how many of its kind there are now. O(1).
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

    /// The kind that a batch is due of, and of how many: as many as a batch may have, or one of them has waited long enough, or `all` are
    /// due. Of several the one whose first came first. O(kinds).
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

    /// When the one that came first will have waited long enough; `None` where that is never. O(kinds).
    pub(super) fn due_at(&self, max_wait: Duration) -> Option<Instant> {
        let firsts = self.kinds.values().filter_map(VecDeque::front);
        let oldest = firsts.min_by_key(|first| first.number)?;
        oldest.since.checked_add(max_wait)
    }

    /// Takes up to `most` of a kind that still wait, and tells how many did not any more. O(taken).
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

    /// Takes all.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Entry<T>> + use<K, T> {
        let kinds = std::mem::take(&mut self.kinds);
        kinds.into_values().flatten()
    }

    /// Forgets those that wait no more. O(all).
    pub(super) fn sweep(&mut self) {
        self.kinds.retain(|_, entries| {
            entries.retain(|entry| entry.item.is_waiting());
            !entries.is_empty()
        });
    }

    /// Has every kind begin with one that waits.
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
