//! The public interface of the cache.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::flight::Flight;
use super::found::{Evicted, Location, Reserved};
use super::lead::{Lead, Leaving, Reservation};
use super::meters::Event;
use super::table::Table;
use super::{CacheError, CacheOptions, CacheStats, Clock, Computed, Monotonic, Pinned, Tiers};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

/// A result of [`Cache::get_or_compute`].
pub type Got<T, C> = Result<Pinned<<T as Tiers>::Device>, CacheError<C, <T as Tiers>::Error>>;

pub(super) struct State<K, D, H> {
    pub(super) table: Table<K, D, H>,
    pub(super) flights: HashMap<K, Flying<D>>,
}

/// A key whose value is being computed or moved.
pub(super) struct Flying<D> {
    pub(super) flight: Arc<Flight<D>>,
    /// True if the key was removed meanwhile: the value is returned, but not kept.
    pub(super) stale: bool,
}

pub(super) type StateOf<K, T> = State<K, <T as Tiers>::Device, <T as Tiers>::Host>;

/// A cache of values that never change, on a device and on the host. See the [module](super).
pub struct Cache<K, T: Tiers, C = Monotonic> {
    tiers: T,
    clock: C,
    state: Mutex<StateOf<K, T>>,
    /// Notified when evicted values are gone.
    settled: Condvar,
}

/// A key's value, or the next step to get it.
enum Lookup<D, H> {
    Done(Pinned<D>),
    Wait(Arc<Flight<D>>),
    Upload(Arc<H>, Duration),
    Compute,
}

impl<K: Clone + Eq + Hash, T: Tiers> Cache<K, T> {
    /// Returns an empty cache.
    pub fn new(options: CacheOptions, tiers: T) -> Self {
        Self::with_clock(options, tiers, Monotonic::default())
    }
}

impl<K: Clone + Eq + Hash, T: Tiers, C: Clock> Cache<K, T, C> {
    /// Returns an empty cache with the caller's clock.
    pub fn with_clock(options: CacheOptions, tiers: T, clock: C) -> Self {
        let state = State {
            table: Table::new(options),
            flights: HashMap::new(),
        };
        Self {
            tiers,
            clock,
            state: Mutex::new(state),
            settled: Condvar::new(),
        }
    }

    /// Returns the tiers, which copy the values.
    pub const fn tiers(&self) -> &T {
        &self.tiers
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, StateOf<K, T>> {
        lock(&self.state)
    }

    /// Changes the state under the lock; values to be dropped are dropped after it.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut StateOf<K, T>) -> R) -> R {
        let mut state = self.lock();
        let result = work(&mut state);
        Self::unlock(state);
        result
    }

    fn unlock(mut state: MutexGuard<'_, StateOf<K, T>>) {
        state.table.show();
        let litter = mem::take(&mut state.table.litter);
        drop(state);
        drop(litter);
    }

    /// Returns a key's value on the device, if the cache has it. A value that is only on the host is uploaded. Waits
    /// while another thread computes or moves it. O(log n), and a copy.
    ///
    /// # Errors
    /// Those of [`Tiers::upload`].
    pub fn get(&self, key: &K) -> Result<Option<Pinned<T::Device>>, T::Error> {
        loop {
            match self.step(key, false) {
                Lookup::Done(value) => return Ok(Some(value)),
                Lookup::Wait(flight) => {
                    if let Some(value) = self.shared(&flight) {
                        return Ok(Some(value));
                    }
                }
                Lookup::Upload(host, born) => {
                    let mut lead = Lead::new(self, key.clone());
                    return self.promote(&mut lead, host, born, true).map(Some);
                }
                Lookup::Compute => return Ok(None),
            }
        }
    }

    /// Returns a key's value on the device: from the cache, or else from `compute`.
    ///
    /// If several threads ask for one key at the same time, one computes, and the others wait and get its value. If it
    /// fails or panics, only that thread gets the error, nothing is kept, and one of the waiting threads computes.
    /// `compute` may ask the cache for other keys, as long as computing these never asks for this one. O(log n), and
    /// the copies.
    ///
    /// # Errors
    /// [`CacheError::Compute`]: the error of `compute`. [`CacheError::Tier`]: the error of [`Tiers::upload`].
    pub fn get_or_compute<E>(
        &self,
        key: &K,
        compute: impl FnOnce() -> Result<Computed<T::Device, T::Host>, E>,
    ) -> Got<T, E> {
        loop {
            match self.step(key, true) {
                Lookup::Done(value) => return Ok(value),
                Lookup::Wait(flight) => {
                    if let Some(value) = self.shared(&flight) {
                        return Ok(value);
                    }
                }
                Lookup::Upload(host, born) => {
                    let mut lead = Lead::new(self, key.clone());
                    let value = self.promote(&mut lead, host, born, true);
                    return value.map_err(CacheError::Tier);
                }
                Lookup::Compute => {
                    let mut lead = Lead::new(self, key.clone());
                    return match compute().map_err(CacheError::Compute)? {
                        Computed::Device(value) => Ok(self.admit(&mut lead, value)),
                        Computed::Host(value) => {
                            let born = self.clock.now();
                            self.promote(&mut lead, Arc::new(value), born, false)
                                .map_err(CacheError::Tier)
                        }
                    };
                }
            }
        }
    }

    /// Returns a key's value, or the next step to get it; unless that step is to wait, or to do nothing, the caller
    /// leads it.
    fn step(&self, key: &K, computes: bool) -> Lookup<T::Device, T::Host> {
        let now = self.clock.now();
        self.with(|state| {
            if let Some(flying) = state.flights.get(key) {
                return Lookup::Wait(Arc::clone(&flying.flight));
            }
            let step = match state.table.find(key, now) {
                Location::Device(value) => {
                    state.table.count(Event::DeviceHit);
                    return Lookup::Done(Pinned { value });
                }
                Location::Host(value, born) => {
                    state.table.count(Event::HostHit);
                    Lookup::Upload(value, born)
                }
                Location::Nowhere => {
                    state.table.count(Event::Miss);
                    if !computes {
                        return Lookup::Compute;
                    }
                    Lookup::Compute
                }
            };
            state.fly(key);
            step
        })
    }

    /// Waits for another thread's flight, and returns its value.
    fn shared(&self, flight: &Flight<T::Device>) -> Option<Pinned<T::Device>> {
        let value = flight.wait()?;
        self.lock().table.count(Event::Shared);
        Some(Pinned { value })
    }

    /// Uploads a value from the host to the device. `kept` is true if the host has it under the key.
    fn promote(
        &self,
        lead: &mut Lead<'_, K, T, C>,
        host: Arc<T::Host>,
        born: Duration,
        kept: bool,
    ) -> Result<Pinned<T::Device>, T::Error> {
        let bytes = self.tiers.uploaded_bytes(&host);
        let _span = tracing::trace_span!("upload", bytes).entered();
        let mut room = self.make_room(bytes);
        let value = loop {
            match self.tiers.upload(&host) {
                Ok(value) => break Arc::new(value),
                // Others use the device too: more values must go than the budget requires.
                Err(error) if self.tiers.is_full(&error) && self.evict_one() => {}
                Err(error) => return Err(error),
            }
        };
        let host_bytes = self.tiers.host_bytes(&host);
        let mut copy = (!kept).then_some(host);
        lead.end(Some(&value), |table, key| {
            if let Some(room) = room.take() {
                table.commit(key, Arc::clone(&value), room.used(), born);
            }
            if let Some(copy) = copy.take() {
                table.keep(key, copy, host_bytes, born);
            }
        });
        Ok(Pinned { value })
    }

    /// Takes a value that was computed on the device.
    fn admit(&self, lead: &mut Lead<'_, K, T, C>, value: T::Device) -> Pinned<T::Device> {
        let born = self.clock.now();
        let mut room = self.make_room(self.tiers.device_bytes(&value));
        let value = Arc::new(value);
        lead.end(Some(&value), |table, key| {
            if let Some(room) = room.take() {
                table.commit(key, Arc::clone(&value), room.used(), born);
            }
        });
        Pinned { value }
    }

    /// Makes room on the device, if possible. Waits for values that other threads have evicted: they wait for nothing
    /// but their copies.
    fn make_room(&self, bytes: usize) -> Option<Reservation<'_, K, T, C>> {
        let now = self.clock.now();
        let mut state = self.lock();
        let evicted = loop {
            match state.table.reserve(bytes, now) {
                Reserved::Room(evicted) => break evicted,
                Reserved::Later => state = wait(&self.settled, state, None),
                Reserved::Never => return None,
            }
        };
        state.fly_all(&evicted);
        Self::unlock(state);
        let room = Reservation { cache: self, bytes };
        self.demote(evicted);
        Some(room)
    }

    /// Evicts one value from the device; false if none can be evicted.
    fn evict_one(&self) -> bool {
        let now = self.clock.now();
        let evicted = self.with(|state| {
            let evicted = state.table.evict_one(now)?;
            state.fly_all(&evicted);
            Some(evicted)
        });
        evicted.map(|evicted| self.demote(evicted)).is_some()
    }

    /// Records that evicted values are gone.
    pub(super) fn settle(&self, surplus: usize) {
        self.with(|state| state.table.settle(surplus));
        self.settled.notify_all();
    }

    /// Downloads values that leave the device to the host.
    fn demote(&self, evicted: Evicted<K, T::Device>) {
        let surplus = evicted.surplus;
        let _leaving = Leaving {
            cache: self,
            surplus,
        };
        // Begin all flights before anything can fail.
        let victims = evicted.victims.into_iter().map(|victim| {
            let lead = Lead::new(self, victim.key);
            (lead, victim.value, victim.born)
        });
        for (mut lead, value, born) in victims.collect::<Vec<_>>() {
            let bytes = self.tiers.device_bytes(&value);
            let host =
                tracing::trace_span!("download", bytes).in_scope(|| self.tiers.download(&value));
            drop(value);
            match host {
                Ok(host) => {
                    let bytes = self.tiers.host_bytes(&host);
                    lead.end(None, |table, key| {
                        table.count(Event::Demotion);
                        table.keep(key, Arc::new(host), bytes, born);
                    });
                }
                Err(_) => {
                    self.lock().table.count(Event::Lost);
                    lead.end(None, |_, _| ());
                }
            }
        }
    }

    /// Removes a key's value. A value that is being computed or moved is returned but not kept. Returns true if there
    /// was one. Handles keep their values.
    pub fn remove(&self, key: &K) -> bool {
        self.with(|state| {
            let flying = state.flights.get_mut(key);
            let found = flying.map(|flying| flying.stale = true).is_some();
            state.table.remove(key) || found
        })
    }

    /// Removes all values, as [`Cache::remove`] does for one. O(n log n).
    pub fn clear(&self) {
        self.with(|state| {
            for flying in state.flights.values_mut() {
                flying.stale = true;
            }
            state.table.clear();
        });
    }

    /// Removes the values that are too old, and returns their number. Such values are never returned anyway; this frees
    /// their memory. O(n).
    pub fn purge(&self) -> usize {
        let now = self.clock.now();
        self.with(|state| state.table.purge(now))
    }

    /// Returns whether a key's value is on the device, and whether it is on the host. This does not count as a use.
    pub fn places(&self, key: &K) -> (bool, bool) {
        self.lock().table.places(key)
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> CacheStats {
        self.lock().table.stats()
    }
}

impl<K: Clone + Eq + Hash, D, H> State<K, D, H> {
    /// Records that a key's value is being computed or moved from now on.
    fn fly(&mut self, key: &K) {
        let flying = Flying {
            flight: Arc::new(Flight::new()),
            stale: false,
        };
        self.flights.insert(key.clone(), flying);
    }

    /// Records that the evicted values to be downloaded are being moved from now on.
    fn fly_all(&mut self, evicted: &Evicted<K, D>) {
        for victim in &evicted.victims {
            self.fly(&victim.key);
        }
    }
}

impl<K, T: Tiers, C> fmt::Debug for Cache<K, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}
