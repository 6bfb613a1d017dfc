//! The content of a cache: values by key, in the order of their use, within budgets. It does no locking and no copies.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tercet_core::pool::Stats;

use super::found::{Evicted, Litter, Location, Reserved, Victim};
use super::meters::{Event, Meters};
use super::order::{Order, Stamp};
use super::{CacheOptions, CacheStats};

/// A value in one tier.
struct TierEntry<T> {
    value: Arc<T>,
    bytes: usize,
    stamp: Stamp,
}

/// A key's value, in one tier or both.
struct Entry<D, H> {
    /// Time when it was computed.
    born: Duration,
    device: Option<TierEntry<D>>,
    host: Option<TierEntry<H>>,
}

/// The table. Bytes of each tier never exceed its budget.
pub(super) struct Table<K, D, H> {
    options: CacheOptions,
    entries: HashMap<K, Entry<D, H>>,
    /// Values on the device.
    device: Order<K>,
    /// Values only on the host, and copies.
    sole: Order<K>,
    spare: Order<K>,
    spare_bytes: usize,
    /// Bytes on the device of values that are about to leave it, beyond the room that is reserved in their place.
    leaving: usize,
    next: Stamp,
    pub(super) litter: Litter<D, H>,
    stats: CacheStats,
    meters: Meters,
}

impl<K: Clone + Eq + Hash, D, H> Table<K, D, H> {
    pub(super) fn new(options: CacheOptions) -> Self {
        let tier = |capacity| Stats {
            capacity,
            ..Stats::default()
        };
        let table = Self {
            options,
            entries: HashMap::new(),
            device: Order::new(),
            sole: Order::new(),
            spare: Order::new(),
            spare_bytes: 0,
            leaving: 0,
            next: 0,
            litter: Litter::default(),
            stats: CacheStats {
                device: tier(options.device_bytes),
                host: tier(options.host_bytes),
                ..CacheStats::default()
            },
            meters: Meters::new(options.name),
        };
        table.show();
        table
    }

    /// Counts one event.
    pub(super) fn count(&mut self, event: Event) {
        self.count_many(event, 1);
    }

    fn count_many(&mut self, event: Event, times: u64) {
        *event.of(&mut self.stats) += times;
        self.meters.count(event, times);
    }

    /// Records how full the tiers are.
    pub(super) fn show(&self) {
        self.meters.show(&self.stats);
    }

    const fn stamp(&mut self) -> Stamp {
        self.next += 1;
        self.next
    }

    /// Returns a key's value, and marks it as last used in each tier that it is in. A value that is too old is removed.
    /// O(log n).
    pub(super) fn find(&mut self, key: &K, now: Duration) -> Location<D, H> {
        let Some(entry) = self.entries.get(key) else {
            return Location::Nowhere;
        };
        if self.is_old(entry.born, now) {
            self.remove(key);
            self.count(Event::Expired);
            return Location::Nowhere;
        }
        let stamp = self.stamp();
        let Some(entry) = self.entries.get_mut(key) else {
            return Location::Nowhere;
        };
        if let Some(held) = &mut entry.host {
            let order = match entry.device {
                Some(_) => &mut self.spare,
                None => &mut self.sole,
            };
            order.remove(mem::replace(&mut held.stamp, stamp));
            order.insert(stamp, key.clone());
        }
        match (&mut entry.device, &entry.host) {
            (Some(held), _) => {
                self.device.remove(mem::replace(&mut held.stamp, stamp));
                self.device.insert(stamp, key.clone());
                Location::Device(Arc::clone(&held.value))
            }
            (None, Some(held)) => Location::Host(Arc::clone(&held.value), entry.born),
            (None, None) => Location::Nowhere,
        }
    }

    fn is_old(&self, born: Duration, now: Duration) -> bool {
        let age = now.saturating_sub(born);
        self.options.time_to_live.is_some_and(|most| age >= most)
    }

    /// Makes room on the device by evicting values that nobody holds, the least recently used first, and counts the
    /// room as taken. If there is not enough, nothing is evicted. Values that are also on the host are only dropped
    /// here; the others are returned. O(values evicted and held · log n).
    pub(super) fn reserve(&mut self, bytes: usize, now: Duration) -> Reserved<K, D> {
        let mut free = self.stats.device.free() - self.leaving;
        let mut chosen = Vec::new();
        if bytes <= self.options.device_bytes {
            let mut oldest = self.device.iter();
            while free < bytes
                && let Some(key) = oldest.next()
            {
                if let Some(bytes) = self.evictable(key) {
                    free += bytes;
                    chosen.push(key.clone());
                }
            }
            if free < bytes && bytes <= free + self.leaving {
                return Reserved::Later;
            }
        }
        if free < bytes {
            self.stats.device.failures = self.stats.device.failures.saturating_add(1);
            return Reserved::Never;
        }
        // Without victims the rest is available to all.
        let surplus = if chosen.is_empty() { 0 } else { free - bytes };
        let victims = chosen.iter().filter_map(|key| self.evict(key, now));
        let victims = victims.collect();
        self.leaving += surplus;
        take(&mut self.stats.device, bytes);
        Reserved::Room(Evicted { victims, surplus })
    }

    /// Evicts the least recently used value that nobody holds; `None` if there is none.
    pub(super) fn evict_one(&mut self, now: Duration) -> Option<Evicted<K, D>> {
        let oldest = self.device.iter();
        let mut free = oldest.filter_map(|key| Some((key, self.evictable(key)?)));
        let found = free.next().map(|(key, bytes)| (key.clone(), bytes));
        drop(free);
        let (key, surplus) = found?;
        self.leaving += surplus;
        let victims = self.evict(&key, now).into_iter().collect();
        Some(Evicted { victims, surplus })
    }

    /// Records that evicted values are gone.
    pub(super) const fn settle(&mut self, surplus: usize) {
        self.leaving -= surplus;
    }

    /// Returns a value's bytes on the device, if nobody holds it. New holders need the cache's lock, so nobody can
    /// begin to hold it meanwhile.
    fn evictable(&self, key: &K) -> Option<usize> {
        let held = self.entries.get(key)?.device.as_ref()?;
        (Arc::strong_count(&held.value) == 1).then_some(held.bytes)
    }

    /// Removes a value from the device; returns it if that was the only place and it is worth keeping.
    fn evict(&mut self, key: &K, now: Duration) -> Option<Victim<K, D>> {
        let entry = self.entries.get_mut(key)?;
        let born = entry.born;
        let held = entry.device.take()?;
        self.device.remove(held.stamp);
        self.stats.device.in_use -= held.bytes;
        self.stats.evictions += 1;
        self.meters.count(Event::Eviction, 1);
        if let Some(copy) = &entry.host {
            self.spare.remove(copy.stamp);
            self.spare_bytes -= copy.bytes;
            self.sole.insert(copy.stamp, key.clone());
            self.litter.device.push(held.value);
            return None;
        }
        self.entries.remove(key);
        if self.options.host_bytes == 0 || self.is_old(born, now) {
            self.litter.device.push(held.value);
            return None;
        }
        Some(Victim {
            key: key.clone(),
            value: held.value,
            born,
        })
    }

    /// Releases reserved room.
    pub(super) const fn unreserve(&mut self, bytes: usize) {
        self.stats.device.in_use -= bytes;
    }

    /// Puts a value into room that was reserved for it; the key has no value on the device. O(log n).
    pub(super) fn commit(&mut self, key: &K, value: Arc<D>, bytes: usize, born: Duration) {
        let stamp = self.stamp();
        let entry = self.entries.entry(key.clone()).or_insert(Entry {
            born,
            device: None,
            host: None,
        });
        if let Some(copy) = &entry.host {
            self.sole.remove(copy.stamp);
            self.spare.insert(copy.stamp, key.clone());
            self.spare_bytes += copy.bytes;
        }
        entry.device = Some(TierEntry {
            value,
            bytes,
            stamp,
        });
        self.device.insert(stamp, key.clone());
    }

    /// Keeps a value on the host if there is room. A copy of a value on the device only takes the room of other copies;
    /// a value that is nowhere else also takes that of values like itself. The key has none there. O(values evicted ·
    /// log n).
    pub(super) fn keep(&mut self, key: &K, value: Arc<H>, bytes: usize, born: Duration) {
        let is_copy = self.entries.contains_key(key);
        let mut free = self.stats.host.free();
        if is_copy {
            free += self.spare_bytes;
        } else {
            free = self.options.host_bytes;
        }
        if bytes > free {
            self.stats.host.failures = self.stats.host.failures.saturating_add(1);
            self.litter.host.push(value);
            return;
        }
        while self.stats.host.free() < bytes
            && let Some(key) = self.spare.first().or_else(|| self.sole.first()).cloned()
        {
            self.forget_copy(&key);
        }
        take(&mut self.stats.host, bytes);
        let stamp = self.stamp();
        let order = if is_copy {
            self.spare_bytes += bytes;
            &mut self.spare
        } else {
            &mut self.sole
        };
        order.insert(stamp, key.clone());
        let entry = self.entries.entry(key.clone()).or_insert(Entry {
            born,
            device: None,
            host: None,
        });
        entry.host = Some(TierEntry {
            value,
            bytes,
            stamp,
        });
    }

    /// Removes a value from the host, and from the table if it is nowhere else.
    fn forget_copy(&mut self, key: &K) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let Some(held) = entry.host.take() else {
            return;
        };
        self.stats.host.in_use -= held.bytes;
        self.litter.host.push(held.value);
        if entry.device.is_some() {
            self.spare.remove(held.stamp);
            self.spare_bytes -= held.bytes;
        } else {
            self.sole.remove(held.stamp);
            self.entries.remove(key);
            self.count(Event::Dropped);
        }
    }

    /// Removes a key; false if there was none. O(log n).
    pub(super) fn remove(&mut self, key: &K) -> bool {
        let Some(entry) = self.entries.remove(key) else {
            return false;
        };
        if let Some(held) = entry.host {
            self.stats.host.in_use -= held.bytes;
            if entry.device.is_some() {
                self.spare.remove(held.stamp);
                self.spare_bytes -= held.bytes;
            } else {
                self.sole.remove(held.stamp);
            }
            self.litter.host.push(held.value);
        }
        if let Some(held) = entry.device {
            self.stats.device.in_use -= held.bytes;
            self.device.remove(held.stamp);
            self.litter.device.push(held.value);
        }
        true
    }

    /// Removes values that are too old; returns their number. O(n).
    pub(super) fn purge(&mut self, now: Duration) -> usize {
        let old = self.entries.iter();
        let old = old.filter(|(_, entry)| self.is_old(entry.born, now));
        let old: Vec<K> = old.map(|(key, _)| key.clone()).collect();
        for key in &old {
            self.remove(key);
        }
        self.count_many(Event::Expired, old.len() as u64);
        old.len()
    }

    pub(super) fn clear(&mut self) {
        let keys: Vec<K> = self.entries.keys().cloned().collect();
        for key in &keys {
            self.remove(key);
        }
    }

    /// Returns whether a key's value is on the device and on the host.
    pub(super) fn places(&self, key: &K) -> (bool, bool) {
        let entry = self.entries.get(key);
        entry.map_or((false, false), |entry| {
            (entry.device.is_some(), entry.host.is_some())
        })
    }

    pub(super) fn stats(&self) -> CacheStats {
        CacheStats {
            on_device: self.device.len(),
            on_host: self.sole.len() + self.spare.len(),
            ..self.stats
        }
    }
}

fn take(tier: &mut Stats, bytes: usize) {
    tier.in_use += bytes;
    tier.high_water = tier.high_water.max(tier.in_use);
}
