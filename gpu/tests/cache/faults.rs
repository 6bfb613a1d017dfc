//! What fails or panics is one caller's own: nothing is kept of it, nobody waits for ever, and bytes come back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tercet_gpu::cache::CacheError;

use super::meter::{ask, cache};

#[test]
fn an_error_is_not_kept() {
    let cache = cache(100, 100);
    let failed = cache.get_or_compute(&1, || Err("no weights"));
    assert_eq!(failed.unwrap_err(), CacheError::Compute("no weights"));
    assert_eq!(cache.places(&1), (false, false));
    cache.tiers().no_upload.store(true, SeqCst);
    let failed = cache.get_or_compute(&1, || Ok::<_, ()>(cache.tiers().here(1, 10)));
    assert_eq!(failed.unwrap_err(), CacheError::Tier("no upload"));
    assert_eq!(
        (cache.tiers().host.now(), cache.stats().device.in_use),
        (0, 0)
    );
    cache.tiers().no_upload.store(false, SeqCst);
    ask(&cache, 1, 10);
    let stats = cache.stats();
    assert_eq!((stats.failures, stats.misses), (2, 3));
    assert_eq!(cache.places(&1), (true, true));
}

#[test]
fn a_panic_is_not_kept() {
    let cache = cache(100, 100);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        cache.get_or_compute(&1, || -> Result<_, ()> { panic!("in mid-computing") })
    }));
    assert!(panicked.is_err());
    cache.tiers().no_upload.store(true, SeqCst);
    cache.tiers().panics.store(true, SeqCst);
    let panicked = catch_unwind(AssertUnwindSafe(|| ask(&cache, 1, 10)));
    assert!(panicked.is_err());
    assert_eq!(
        (cache.tiers().host.now(), cache.stats().device.in_use),
        (0, 0)
    );
    cache.tiers().no_upload.store(false, SeqCst);
    ask(&cache, 1, 10);
    assert_eq!(cache.stats().failures, 2);
}

#[test]
fn a_value_that_cannot_be_downloaded_is_lost_and_nothing_else() {
    for panics in [false, true] {
        let cache = cache(100, 100);
        for key in 0..2 {
            let value = cache.get_or_compute(&key, || Ok::<_, ()>(cache.tiers().there(key, 40)));
            value.unwrap();
        }
        cache.tiers().no_download.store(true, SeqCst);
        cache.tiers().panics.store(panics, SeqCst);
        // It needs the room of both.
        let asked = catch_unwind(AssertUnwindSafe(|| ask(&cache, 2, 90)));
        assert_eq!(asked.is_err(), panics);
        cache.tiers().no_download.store(false, SeqCst);
        let stats = cache.stats();
        assert_eq!((stats.evictions, stats.demotions), (2, 0));
        let (lost, failures) = if panics { (0, 3) } else { (2, 0) };
        assert_eq!((stats.lost, stats.failures), (lost, failures));
        let room = if panics { 0 } else { 90 };
        assert_eq!(
            (stats.device.in_use, cache.tiers().device.now()),
            (room, room)
        );
        // Nobody leads these keys any more.
        for key in 0..3 {
            ask(&cache, key, 10);
        }
    }
}

/// Each computing but the last fails or panics; each is one thread's.
#[test]
fn one_of_those_that_wait_tries_again() {
    const THREADS: usize = 8;
    let cache = cache(100, 100);
    let (computed, barrier) = (AtomicUsize::new(0), Barrier::new(THREADS));
    let outcomes: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    catch_unwind(AssertUnwindSafe(|| {
                        let value = cache.get_or_compute(&7, || {
                            thread::sleep(Duration::from_millis(2));
                            match computed.fetch_add(1, SeqCst) {
                                0 | 2 => Err("not now"),
                                1 => panic!("not yet"),
                                _ => Ok(cache.tiers().here(7, 10)),
                            }
                        });
                        value.map(|value| value.key)
                    }))
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let count = |of: fn(&Result<u64, _>) -> bool| {
        outcomes.iter().filter(|o| o.as_ref().is_ok_and(of)).count()
    };
    assert_eq!(count(|outcome| *outcome == Ok(7)), THREADS - 3);
    assert_eq!(
        count(|outcome| *outcome == Err(CacheError::Compute("not now"))),
        2
    );
    assert_eq!(computed.load(SeqCst), 4);
    let stats = cache.stats();
    assert_eq!((stats.failures, stats.misses), (3, 4));
    assert_eq!(
        stats.misses + stats.shared + stats.device_hits,
        THREADS as u64
    );
}
