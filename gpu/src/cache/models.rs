//! Models of the cache under loom, which runs them in every order that the memory model allows.
//! `.ci/steps/loom.sh` starts them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::thread;

use super::flight::Flight;
use super::{Cache, CacheError, CacheOptions, Computed, Tiers};

/// Every value takes one byte in either tier, except that of key 9, which takes two; its content is its key.
#[derive(Default)]
struct Bytes {
    uploads: AtomicUsize,
}

struct There(u8);
struct Here(u8);

impl Tiers for Bytes {
    type Device = There;
    type Host = Here;
    type Error = ();

    fn upload(&self, host: &Here) -> Result<There, ()> {
        self.uploads.fetch_add(1, Relaxed);
        Ok(There(host.0))
    }

    fn download(&self, device: &There) -> Result<Here, ()> {
        Ok(Here(device.0))
    }

    fn device_bytes(&self, device: &There) -> usize {
        if device.0 == 9 { 2 } else { 1 }
    }

    fn host_bytes(&self, _: &Here) -> usize {
        1
    }

    fn uploaded_bytes(&self, _: &Here) -> usize {
        1
    }
}

type Model = Arc<Cache<u8, Bytes>>;

fn cache(device_bytes: usize, host_bytes: usize) -> Model {
    let options = CacheOptions {
        device_bytes,
        host_bytes,
        time_to_live: None,
        name: "test",
    };
    Arc::new(Cache::new(options, Bytes::default()))
}

fn spawn<R: 'static>(
    cache: &Model,
    work: impl FnOnce(&Cache<u8, Bytes>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let cache = Arc::clone(cache);
    thread::spawn(move || work(&cache))
}

#[test]
fn whoever_waits_for_a_flight_hears_of_its_end() {
    for value in [None, Some(7)] {
        loom::model(move || {
            let flight = Arc::new(Flight::<u8>::new());
            let waiting = [0, 1].map(|_| {
                let flight = Arc::clone(&flight);
                thread::spawn(move || flight.wait().map(|value| *value))
            });
            flight.end(value.map(Arc::new));
            // The first end counts.
            flight.end(Some(Arc::new(9)));
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), value);
            }
        });
    }
}

#[test]
fn a_value_is_computed_once() {
    loom::model(|| {
        let cache = cache(2, 2);
        let computed = Arc::new(AtomicUsize::new(0));
        let threads = [0, 1].map(|_| {
            let computed = Arc::clone(&computed);
            spawn(&cache, move |cache| {
                let value = cache.get_or_compute(&5, || {
                    computed.fetch_add(1, Relaxed);
                    Ok::<_, ()>(Computed::Device(There(5)))
                });
                value.unwrap().0
            })
        });
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 5);
        }
        assert_eq!(computed.load(Relaxed), 1);
        let stats = cache.stats();
        assert_eq!((stats.misses, stats.device_hits + stats.shared), (1, 1));
    });
}

/// The first one to compute fails or panics; the other one is not delayed, and computes.
#[test]
fn a_failure_is_one_threads_own() {
    for panics in [false, true] {
        loom::model(move || {
            let cache = cache(2, 2);
            let computed = Arc::new(AtomicUsize::new(0));
            let threads = [0, 1].map(|_| {
                let computed = Arc::clone(&computed);
                spawn(&cache, move |cache| {
                    let compute = || {
                        if computed.fetch_add(1, Relaxed) > 0 {
                            return Ok(Computed::Host(Here(5)));
                        }
                        if panics {
                            std::panic::resume_unwind(Box::new("no"));
                        }
                        Err(())
                    };
                    let got = catch_unwind(AssertUnwindSafe(|| cache.get_or_compute(&5, compute)));
                    match got {
                        Ok(Ok(value)) => Some(value.0),
                        Ok(Err(CacheError::Compute(()))) if !panics => None,
                        Err(_) if panics => None,
                        _ => panic!("another error"),
                    }
                })
            });
            let mut got = threads.map(|thread| thread.join().unwrap());
            got.sort();
            assert_eq!(got, [None, Some(5)]);
            assert_eq!(computed.load(Relaxed), 2);
            assert_eq!((cache.stats().failures, cache.stats().misses), (1, 2));
        });
    }
}

/// One value has room on the device: one thread adds another value while a second asks for the one that leaves.
#[test]
fn what_is_demoted_is_found_again() {
    loom::model(|| {
        let cache = cache(1, 2);
        let ask = |cache: &Cache<u8, Bytes>, key: u8| {
            let value = cache.get_or_compute(&key, || Ok::<_, ()>(Computed::Device(There(key))));
            value.unwrap().0
        };
        assert_eq!(ask(&cache, 1), 1);
        let threads = [2, 1].map(|key| spawn(&cache, move |cache| ask(cache, key)));
        let got = threads.map(|thread| thread.join().unwrap());
        assert_eq!(got, [2, 1]);
        let stats = cache.stats();
        // The first is never computed again: it is on the device, in transit, or on the host.
        assert_eq!(stats.misses, 2);
        assert_eq!((stats.device.in_use, stats.device.high_water), (1, 1));
        assert_eq!(stats.lost + stats.dropped + stats.failures, 0);
    });
}

/// One value gives way to two: the second thread waits until it is gone, and both values are kept.
#[test]
fn room_that_becomes_free_is_waited_for() {
    loom::model(|| {
        let cache = cache(2, 2);
        let ask = |cache: &Cache<u8, Bytes>, key: u8| {
            let value = cache.get_or_compute(&key, || Ok::<_, ()>(Computed::Device(There(key))));
            assert_eq!(value.unwrap().0, key);
        };
        ask(&cache, 9);
        let threads = [1, 2].map(|key| spawn(&cache, move |cache| ask(cache, key)));
        for thread in threads {
            thread.join().unwrap();
        }
        let places = [9, 1, 2].map(|key| cache.places(&key));
        assert_eq!(places, [(false, true), (true, false), (true, false)]);
        let stats = cache.stats();
        assert_eq!((stats.device.high_water, stats.device.failures), (2, 0));
    });
}

/// Removing meets computing: the value is returned, and kept only if it came after.
#[test]
fn what_is_removed_on_its_way_is_not_kept() {
    loom::model(|| {
        let cache = cache(2, 2);
        let asks = spawn(&cache, |cache| {
            let value = cache.get_or_compute(&5, || Ok::<_, ()>(Computed::Host(Here(5))));
            value.unwrap().0
        });
        let removes = spawn(&cache, |cache| cache.remove(&5));
        assert_eq!(asks.join().unwrap(), 5);
        let removed = removes.join().unwrap();
        assert_eq!(cache.places(&5), (!removed, !removed));
        let stats = cache.stats();
        let bytes = usize::from(!removed);
        assert_eq!((stats.device.in_use, stats.host.in_use), (bytes, bytes));
    });
}
