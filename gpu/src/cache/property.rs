//! The cache compared with a list that does the same slowly.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use proptest::prelude::*;

use super::{Cache, CacheOptions, CacheStats, Clock, Computed, Pinned, Tiers};

/// A value consists of its key and its size.
struct Fake;

#[derive(Debug, PartialEq)]
struct There(u8, usize);
#[derive(Debug, PartialEq)]
struct Here(u8, usize);

impl Tiers for Fake {
    type Device = There;
    type Host = Here;
    type Error = Infallible;

    fn upload(&self, host: &Here) -> Result<There, Infallible> {
        Ok(There(host.0, host.1))
    }

    fn download(&self, device: &There) -> Result<Here, Infallible> {
        Ok(Here(device.0, device.1))
    }

    fn device_bytes(&self, device: &There) -> usize {
        device.1
    }

    // Half as large on the host.
    fn host_bytes(&self, host: &Here) -> usize {
        host.1.div_ceil(2)
    }

    fn uploaded_bytes(&self, host: &Here) -> usize {
        host.1
    }
}

#[derive(Default)]
struct Hands(AtomicU64);

impl Clock for &Hands {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Relaxed))
    }
}

#[derive(Clone, Debug)]
enum Action {
    /// Asks for a key, and computes it on the device or not; the last field is true if the handle is kept.
    Ask {
        key: u8,
        there: bool,
        hold: bool,
    },
    /// Asks without computing.
    Get(u8),
    /// Drops a handle.
    Release(usize),
    Remove(u8),
    Pass(u64),
    Purge,
    Clear,
}

fn step() -> impl Strategy<Value = Action> {
    let ask = (0..12_u8, any::<bool>(), prop::bool::weighted(0.2));
    prop_oneof![
        12 => ask.prop_map(|(key, there, hold)| Action::Ask { key, there, hold }),
        3 => (0..12_u8).prop_map(Action::Get),
        3 => (0..8_usize).prop_map(Action::Release),
        1 => (0..12_u8).prop_map(Action::Remove),
        2 => (0..5_u64).prop_map(Action::Pass),
        1 => Just(Action::Purge),
        1 => prop::strategy::Just(Action::Clear),
    ]
}

/// Sizes of values: some are larger than some budgets.
const fn size(key: u8) -> usize {
    [1, 2, 3, 5, 8, 13, 21, 4, 6, 7, 9, 40][key as usize]
}

const fn host_size(key: u8) -> usize {
    size(key).div_ceil(2)
}

/// Keys, the most recently used last.
struct Model {
    options: CacheOptions,
    device: Vec<u8>,
    host: Vec<u8>,
    born: [u64; 12],
    stats: CacheStats,
}

impl Model {
    fn device_bytes(&self) -> usize {
        self.device.iter().map(|&key| size(key)).sum()
    }

    fn host_bytes(&self) -> usize {
        self.host.iter().map(|&key| host_size(key)).sum()
    }

    fn has(&self, key: u8) -> bool {
        self.device.contains(&key) || self.host.contains(&key)
    }

    fn forget(&mut self, key: u8) -> bool {
        let had = self.has(key);
        self.device.retain(|&other| other != key);
        self.host.retain(|&other| other != key);
        had
    }

    fn is_old(&self, key: u8, now: u64) -> bool {
        let most = self.options.time_to_live;
        most.is_some_and(|most| now - self.born[key as usize] >= most.as_secs())
    }

    fn expire(&mut self, key: u8, now: u64) {
        if self.has(key) && self.is_old(key, now) {
            self.forget(key);
            self.stats.expired += 1;
        }
    }

    fn touch(&mut self, key: u8) {
        for tier in [&mut self.device, &mut self.host] {
            if let Some(at) = tier.iter().position(|&other| other == key) {
                tier.remove(at);
                tier.push(key);
            }
        }
    }

    /// Puts a key on the host.
    fn keep(&mut self, key: u8) {
        let is_copy = self.device.contains(&key);
        let copies = |model: &Self| -> Vec<u8> {
            let host = model.host.iter().copied();
            host.filter(|key| model.device.contains(key)).collect()
        };
        let displaced: usize = copies(self).iter().map(|&key| host_size(key)).sum();
        let free = match is_copy {
            true => self.options.host_bytes - self.host_bytes() + displaced,
            false => self.options.host_bytes,
        };
        if host_size(key) > free {
            self.stats.host.failures += 1;
            return;
        }
        while self.host_bytes() + host_size(key) > self.options.host_bytes {
            let first = copies(self).first().copied();
            let gone = first.unwrap_or_else(|| {
                self.stats.dropped += 1;
                self.host[0]
            });
            self.host.retain(|&other| other != gone);
        }
        self.host.push(key);
        self.stats.host.high_water = self.stats.host.high_water.max(self.host_bytes());
    }

    /// Puts a key on the device, where `held` must not be evicted.
    fn admit(&mut self, key: u8, held: &[u8], now: u64) {
        let free: Vec<u8> = self
            .device
            .iter()
            .copied()
            .filter(|key| !held.contains(key))
            .collect();
        let all: usize = free.iter().map(|&key| size(key)).sum();
        if self.device_bytes() - all + size(key) > self.options.device_bytes {
            self.stats.device.failures += 1;
            return;
        }
        let mut evicted = Vec::new();
        for gone in free {
            if self.device_bytes() + size(key) <= self.options.device_bytes {
                break;
            }
            self.device.retain(|&other| other != gone);
            evicted.push(gone);
        }
        self.stats.evictions += evicted.len() as u64;
        let keeps = self.options.host_bytes > 0;
        evicted.retain(|&gone| keeps && !self.host.contains(&gone) && !self.is_old(gone, now));
        for gone in evicted {
            self.stats.demotions += 1;
            self.keep(gone);
        }
        self.device.push(key);
        self.stats.device.high_water = self.stats.device.high_water.max(self.device_bytes());
    }

    fn ask(&mut self, key: u8, computes: Option<bool>, held: &[u8], now: u64) {
        self.expire(key, now);
        self.touch(key);
        if self.device.contains(&key) {
            self.stats.device_hits += 1;
        } else if self.host.contains(&key) {
            self.stats.host_hits += 1;
            self.admit(key, held, now);
        } else {
            self.stats.misses += 1;
            let Some(there) = computes else { return };
            self.born[key as usize] = now;
            self.admit(key, held, now);
            if !there {
                self.keep(key);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_cache_does_as_a_list_would(
        steps in prop::collection::vec(step(), 0..150),
        device_bytes in 0..50_usize,
        host_bytes in 0..40_usize,
        seconds in prop::option::of(1..12_u64),
    ) {
        let options = CacheOptions {
            device_bytes,
            host_bytes,
            time_to_live: seconds.map(Duration::from_secs),
            name: "test",
        };
        let hands = Hands::default();
        let cache = Cache::with_clock(options, Fake, &hands);
        let mut model = Model {
            options,
            device: Vec::new(),
            host: Vec::new(),
            born: [0; 12],
            stats: cache.stats(),
        };
        let mut handles: Vec<Pinned<There>> = Vec::new();
        for step in steps {
            let now = hands.0.load(Relaxed);
            // A handle of a value that is too old pins nothing in the cache.
            handles.retain(|handle| !model.is_old(handle.0, now));
            let held: Vec<u8> = handles.iter().map(|handle| handle.0).collect();
            match step {
                Action::Ask { key, there, hold } => {
                    let value = cache.get_or_compute(&key, || {
                        Ok::<_, Infallible>(match there {
                            true => Computed::Device(There(key, size(key))),
                            false => Computed::Host(Here(key, size(key))),
                        })
                    });
                    let value = value.unwrap();
                    prop_assert_eq!(&*value, &There(key, size(key)));
                    model.ask(key, Some(there), &held, now);
                    // Only for a value that the cache has.
                    if hold && model.device.contains(&key) {
                        handles.push(value);
                    }
                }
                Action::Get(key) => {
                    let value = cache.get(&key).unwrap();
                    model.ask(key, None, &held, now);
                    prop_assert_eq!(value.is_some(), model.has(key));
                }
                Action::Release(at) if at < handles.len() => {
                    handles.remove(at);
                }
                Action::Release(_) => {}
                Action::Remove(key) => {
                    prop_assert_eq!(cache.remove(&key), model.forget(key));
                    handles.retain(|handle| handle.0 != key);
                }
                Action::Pass(seconds) => {
                    hands.0.fetch_add(seconds, Relaxed);
                }
                Action::Purge => {
                    let before = model.stats.expired;
                    (0..12).for_each(|key| model.expire(key, now));
                    prop_assert_eq!(cache.purge() as u64, model.stats.expired - before);
                }
                Action::Clear => {
                    cache.clear();
                    (model.device, model.host) = (Vec::new(), Vec::new());
                }
            }
            // If the cache dropped a value, only the handle owns it.
            handles.retain(|handle| model.device.contains(&handle.0));
            for key in 0..12 {
                let places = (model.device.contains(&key), model.host.contains(&key));
                prop_assert_eq!(cache.places(&key), places, "key {}", key);
            }
            model.stats.device.in_use = model.device_bytes();
            model.stats.host.in_use = model.host_bytes();
            (model.stats.on_device, model.stats.on_host) = (model.device.len(), model.host.len());
            prop_assert_eq!(cache.stats(), model.stats);
            prop_assert!(model.device_bytes() <= device_bytes && model.host_bytes() <= host_bytes);
        }
    }
}
