//! Many threads, many keys: what is given out is right, computings add up, and bytes are bounded.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use tercet_core::number::Random;

use super::meter::cache;

const THREADS: u64 = 8;
const EACH: u64 = 40_000;
const KEYS: u64 = 96;
const DEVICE: usize = 2000;
const HOST: usize = 1500;
/// Handles that a thread holds for a while.
const HELD: usize = 2;

/// Some are larger than a thread's share of the device, none than the device.
fn size(key: u64) -> usize {
    (key * 37 % 101) as usize + 1
}

#[test]
fn in_a_flood_values_are_right_and_bytes_bounded() {
    let cache = cache(DEVICE, HOST);
    let (computed, given) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let (cache, computed, given) = (&cache, &computed, &given);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let mut held = Vec::new();
                for _ in 0..EACH {
                    // Low keys more often.
                    let most = 1 + random.below(KEYS);
                    let key = random.below(most);
                    let step = random.below(1000);
                    if step == 0 {
                        cache.remove(&key);
                        continue;
                    }
                    let value = if step < 100 {
                        cache.get(&key).unwrap()
                    } else {
                        let value = cache.get_or_compute(&key, || {
                            computed.fetch_add(1, Relaxed);
                            match step % 10 {
                                0 => Err(()),
                                1..5 => Ok(cache.tiers().there(key, size(key))),
                                _ => Ok(cache.tiers().here(key, size(key))),
                            }
                        });
                        value.ok()
                    };
                    given.fetch_add(1, Relaxed);
                    let Some(value) = value else { continue };
                    assert_eq!(value.key, key);
                    if step.is_multiple_of(50) {
                        held.push(value);
                    }
                    if held.len() > HELD {
                        held.clear();
                    }
                }
            });
        }
    });
    let stats = cache.stats();
    let calls = stats.device_hits + stats.host_hits + stats.shared + stats.misses;
    assert_eq!(calls, given.load(Relaxed));
    // `get` does not compute.
    assert!(stats.misses >= computed.load(Relaxed));
    assert!(
        stats.evictions > 0 && stats.demotions > 0 && stats.dropped > 0,
        "{stats:?}"
    );
    assert!(stats.device.high_water <= DEVICE && stats.host.high_water <= HOST);
    let (device, host) = (&cache.tiers().device, &cache.tiers().host);
    // With nobody there, what exists is what the cache holds.
    assert_eq!(
        (device.now(), host.now()),
        (stats.device.in_use, stats.host.in_use)
    );
    // Beside it there were, for each thread, handles and the value in its hands, here or there.
    let beside = THREADS as usize * (HELD + 2) * 101;
    assert!(device.most() <= DEVICE + beside, "{}", device.most());
    assert!(
        host.most() <= HOST + THREADS as usize * 2 * 101,
        "{}",
        host.most()
    );
    cache.clear();
    assert_eq!((device.now(), host.now()), (0, 0));
}
