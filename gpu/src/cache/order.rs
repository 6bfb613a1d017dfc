//! Keys by their last use.

use std::collections::BTreeMap;

/// When something was used last: a larger number is later.
pub(super) type Stamp = u64;

/// Keys in the order of their last use. O(log n) each step.
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

    /// The one that was not used for longest.
    pub(super) fn first(&self) -> Option<&K> {
        self.0.values().next()
    }

    /// All, the one that was not used for longest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &K> {
        self.0.values()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
