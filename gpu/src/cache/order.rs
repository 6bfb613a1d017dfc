//! Keys by their last use.

use std::collections::BTreeMap;

/// Time of the last use: a larger number is later.
pub(super) type Stamp = u64;

/// Keys ordered by their last use. O(log n) per step.
#[derive(Debug)]
pub(super) struct Order<K>(BTreeMap<Stamp, K>);

impl<K> Order<K> {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn insert(&mut self, stamp: Stamp, key: K) {
        self.0.insert(stamp, key);
    }

    pub(super) fn remove(&mut self, stamp: Stamp) {
        self.0.remove(&stamp);
    }

    /// Returns the least recently used key.
    pub(super) fn first(&self) -> Option<&K> {
        self.0.values().next()
    }

    /// Iterates over all keys, the least recently used first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &K> {
        self.0.values()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
