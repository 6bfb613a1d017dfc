//! Work that a thread has begun and always ends, whatever happens in between.

use std::hash::Hash;
use std::mem;
use std::sync::Arc;

use super::meters::Event;
use super::table::Table;
use super::{Cache, Clock, Tiers};

/// The thread that leads a key's flight. However it ends, the waiting threads are informed.
pub(super) struct Lead<'a, K: Clone + Eq + Hash, T: Tiers, C: Clock> {
    cache: &'a Cache<K, T, C>,
    key: K,
    /// True if the end was reported.
    ended: bool,
}

impl<'a, K: Clone + Eq + Hash, T: Tiers, C: Clock> Lead<'a, K, T, C> {
    /// Records that the key's flight has begun.
    pub(super) const fn new(cache: &'a Cache<K, T, C>, key: K) -> Self {
        Self {
            cache,
            key,
            ended: false,
        }
    }

    /// Keeps the value, unless the key was removed meanwhile, and informs the waiting threads. `keep` is called under
    /// the cache's lock, and only borrows, so that nothing of it is dropped there.
    pub(super) fn end(
        &mut self,
        value: Option<&Arc<T::Device>>,
        keep: impl FnOnce(&mut Table<K, T::Device, T::Host>, &K),
    ) {
        self.ended = true;
        let flying = self.cache.with(|state| {
            let flying = state.flights.remove(&self.key);
            if flying.as_ref().is_some_and(|flying| !flying.stale) {
                keep(&mut state.table, &self.key);
            }
            flying
        });
        if let Some(flying) = flying {
            flying.flight.end(value.map(Arc::clone));
        }
    }
}

impl<K: Clone + Eq + Hash, T: Tiers, C: Clock> Drop for Lead<'_, K, T, C> {
    fn drop(&mut self) {
        if !self.ended {
            self.cache.lock().table.count(Event::Failure);
            self.end(None, |_, _| ());
        }
    }
}

/// Values that leave the device; when they are gone, their room is available to all.
pub(super) struct Leaving<'a, K: Clone + Eq + Hash, T: Tiers, C: Clock> {
    pub(super) cache: &'a Cache<K, T, C>,
    pub(super) surplus: usize,
}

impl<K: Clone + Eq + Hash, T: Tiers, C: Clock> Drop for Leaving<'_, K, T, C> {
    fn drop(&mut self) {
        self.cache.settle(self.surplus);
    }
}

/// Room on the device that is not used yet.
pub(super) struct Reservation<'a, K: Clone + Eq + Hash, T: Tiers, C: Clock> {
    pub(super) cache: &'a Cache<K, T, C>,
    pub(super) bytes: usize,
}

impl<K: Clone + Eq + Hash, T: Tiers, C: Clock> Reservation<'_, K, T, C> {
    /// Marks the room as used; returns its size.
    pub(super) const fn used(self) -> usize {
        let bytes = self.bytes;
        mem::forget(self);
        bytes
    }
}

impl<K: Clone + Eq + Hash, T: Tiers, C: Clock> Drop for Reservation<'_, K, T, C> {
    fn drop(&mut self) {
        self.cache.with(|state| state.table.unreserve(self.bytes));
    }
}
