//! Steps of one thread that say what goes where, and threads that ask for one key.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tercet_gpu::cache::{Cache, CacheError, CacheOptions};

use super::meter::{Tested, ask, cache};

#[test]
fn what_leaves_the_device_is_copied_once_and_comes_back() {
    let cache = cache(100, 100);
    let there = |key| {
        let value = cache.get_or_compute(&key, || Ok::<_, ()>(cache.tiers().there(key, 60)));
        assert_eq!(value.unwrap().key, key);
    };
    there(1);
    assert_eq!(cache.places(&1), (true, false));
    there(2);
    assert_eq!(
        (cache.places(&1), cache.places(&2)),
        ((false, true), (true, false))
    );
    assert_eq!(cache.tiers().downloads.load(SeqCst), 1);
    // It keeps its copy, so that it leaves again for nothing; the second has no room beside it on the host, and takes its place.
    assert_eq!(cache.get(&1).unwrap().unwrap().key, 1);
    let stats = cache.stats();
    assert_eq!(
        (cache.places(&1), cache.places(&2)),
        ((true, false), (false, true))
    );
    assert_eq!((stats.demotions, stats.evictions, stats.dropped), (2, 2, 1));
    assert_eq!((stats.device.in_use, stats.host.in_use), (60, 60));
    assert!(cache.get(&3).unwrap().is_none());
    assert_eq!((stats.misses, stats.host_hits), (2, 1));
    cache.clear();
    assert_eq!(
        (cache.tiers().device.now(), cache.tiers().host.now()),
        (0, 0)
    );
}

#[test]
fn what_was_computed_on_the_host_leaves_the_device_for_nothing() {
    let cache = cache(100, 300);
    for _ in 0..10 {
        for key in 0..3 {
            ask(&cache, key, 50);
        }
    }
    let stats = cache.stats();
    assert_eq!((stats.misses, stats.demotions), (3, 0));
    assert_eq!(cache.tiers().downloads.load(SeqCst), 0);
    assert_eq!(
        (stats.device.high_water, cache.tiers().device.most()),
        (100, 100)
    );
    assert_eq!(stats.on_host, 3);
}

#[test]
fn what_a_handle_holds_stays() {
    let cache = cache(100, 0);
    ask(&cache, 1, 60);
    let held = cache.get(&1).unwrap().unwrap();
    let twin = held.clone();
    // There is no room beside it, and it is not evicted: the other is given out uncached.
    ask(&cache, 2, 60);
    assert_eq!(
        (cache.places(&1), cache.places(&2)),
        ((true, false), (false, false))
    );
    assert_eq!(cache.stats().device.failures, 1);
    drop(held);
    ask(&cache, 2, 60);
    assert_eq!(cache.stats().device.failures, 2);
    assert!(cache.remove(&1) && !cache.remove(&1));
    // Forgotten, and not freed.
    assert_eq!(
        (cache.stats().device.in_use, cache.tiers().device.now()),
        (0, 60)
    );
    assert_eq!(twin.key, 1);
    drop(twin);
    assert_eq!(cache.tiers().device.now(), 0);
}

#[test]
fn what_is_larger_than_the_budget_is_given_out_uncached() {
    let cache = cache(100, 200);
    ask(&cache, 1, 40);
    ask(&cache, 2, 150);
    // It evicts nothing; the host has room for it.
    assert_eq!(
        (cache.places(&1), cache.places(&2)),
        ((true, true), (false, true))
    );
    ask(&cache, 2, 150);
    assert_eq!(cache.stats().host_hits, 1);
    ask(&cache, 3, 1000);
    assert_eq!(cache.places(&3), (false, false));
    assert_eq!(
        (cache.tiers().device.now(), cache.tiers().host.now()),
        (40, 190)
    );
}

#[test]
fn a_device_that_has_less_than_the_budget_is_made_room_on() {
    let cache = cache(1000, 1000);
    cache.tiers().memory.store(100, SeqCst);
    for key in 0..10 {
        ask(&cache, key, 40);
    }
    let stats = cache.stats();
    assert_eq!(
        (stats.evictions, stats.on_device, stats.on_host),
        (8, 2, 10)
    );
    // Nothing can go: then the error is the caller's.
    let held = [8, 9].map(|key| cache.get(&key).unwrap().unwrap());
    let refused = cache.get_or_compute(&10, || Ok::<_, ()>(cache.tiers().here(10, 40)));
    assert_eq!(refused.unwrap_err(), CacheError::Tier("full"));
    drop(held);
    ask(&cache, 10, 40);
    assert_eq!(cache.stats().device.in_use, 80);
}

#[test]
fn old_values_are_computed_again() {
    let options = CacheOptions {
        device_bytes: 100,
        host_bytes: 100,
        time_to_live: Some(Duration::from_millis(200)),
        name: "test",
    };
    let cache: Cache<u64, Tested> = Cache::new(options, Tested::default());
    ask(&cache, 1, 10);
    thread::sleep(Duration::from_millis(220));
    assert!(cache.get(&1).unwrap().is_none());
    assert_eq!((cache.tiers().device.now(), cache.stats().expired), (0, 1));
    ask(&cache, 1, 10);
    ask(&cache, 2, 10);
    thread::sleep(Duration::from_millis(220));
    assert_eq!(cache.purge(), 2);
    assert_eq!(
        (cache.tiers().device.now(), cache.tiers().host.now()),
        (0, 0)
    );
}

#[test]
fn threads_that_ask_for_one_key_compute_it_once() {
    const THREADS: usize = 8;
    for key in 0..50 {
        // What is not kept is shared too.
        let cache = cache(if key % 2 == 0 { 100 } else { 0 }, 0);
        let (computed, barrier) = (AtomicUsize::new(0), Barrier::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    barrier.wait();
                    let value = cache.get_or_compute(&key, || {
                        computed.fetch_add(1, SeqCst);
                        // Long enough for the others to come, who are counted below.
                        thread::sleep(Duration::from_millis(2));
                        Ok::<_, ()>(cache.tiers().there(key, 10))
                    });
                    assert_eq!(value.unwrap().key, key);
                });
            }
        });
        let stats = cache.stats();
        let all = stats.misses + stats.shared + stats.device_hits;
        assert_eq!(all, THREADS as u64);
        assert_eq!(stats.misses, computed.load(SeqCst) as u64);
        if key % 2 == 0 {
            assert_eq!(stats.misses, 1);
        }
    }
}

/// A value of 100 bytes gives way to one of 1; until it has been copied, the other 99 are not there.
#[test]
fn what_is_about_to_leave_is_still_there() {
    let cache = cache(100, 300);
    let there = cache.get_or_compute(&1, || Ok::<_, ()>(cache.tiers().there(1, 100)));
    drop(there);
    thread::scope(|scope| {
        let gate = cache.tiers().gate.lock().unwrap();
        let small = scope.spawn(|| ask(&cache, 2, 1));
        while cache.stats().evictions == 0 {
            thread::yield_now();
        }
        let large = scope.spawn(|| ask(&cache, 3, 99));
        while cache.stats().misses < 3 {
            thread::yield_now();
        }
        assert_eq!(cache.tiers().uploads.load(SeqCst), 0);
        assert!(!small.is_finished() && !large.is_finished());
        drop(gate);
    });
    assert_eq!(cache.tiers().device.most(), 100);
    assert_eq!(cache.stats().device.failures, 0);
}

#[test]
fn computing_may_ask_for_other_keys() {
    let cache = cache(100, 100);
    let value = cache.get_or_compute(&2, || {
        ask(&cache, 1, 60);
        Ok::<_, ()>(cache.tiers().here(2, 60))
    });
    assert_eq!(value.unwrap().key, 2);
    assert_eq!(
        (cache.places(&1), cache.places(&2)),
        ((false, true), (true, false))
    );
}
