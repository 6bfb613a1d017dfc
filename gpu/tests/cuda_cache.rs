//! The cache over a CUDA device: values come back as they went, budgets hold, and a device that fails loses no caller.

use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::emulator::{device, emulated};
use tercet_core::number::Random;
use tercet_gpu::cache::{Cache, CacheError, CacheOptions, Computed, CudaTiers};
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions, DeviceBuffer};

type Engine = Arc<Mutex<Cuda>>;
type Rows = Cache<u32, CudaTiers<i32>>;

fn engine(memory: Option<usize>) -> Engine {
    let options = CudaOptions {
        memory,
        slot: 4096,
        ..CudaOptions::default()
    };
    Arc::new(Mutex::new(Cuda::new(&options).unwrap()))
}

fn cache(engine: &Engine, device_bytes: usize, host_bytes: usize) -> Rows {
    let options = CacheOptions {
        device_bytes,
        host_bytes,
        time_to_live: None,
        name: "test",
    };
    Cache::new(options, CudaTiers::new(Arc::clone(engine)))
}

/// A key's value, of 1000 numbers and more.
fn values(key: u32) -> Vec<i32> {
    let number = |at: u32| (key * 1_000_003 + at) as i32;
    (0..1000 + key).map(number).collect()
}

fn read(engine: &Engine, buffer: &DeviceBuffer<i32>) -> Vec<i32> {
    let mut back = vec![0; buffer.len()];
    engine.lock().unwrap().read(buffer, &mut back).unwrap();
    back
}

/// Asks for a key, computed on the host or on the device, and checks its value there.
fn ask(engine: &Engine, rows: &Rows, key: u32, there: bool) {
    let value = rows.get_or_compute(&key, || {
        let values = values(key);
        Ok::<_, CudaError>(match there {
            true => Computed::Device(engine.lock().unwrap().upload(&values)?),
            false => Computed::Host(values),
        })
    });
    assert_eq!(read(engine, &value.unwrap()), values(key), "key {key}");
}

#[test]
fn values_come_back_as_they_went() {
    let Some(_device) = device() else { return };
    let engine = engine(None);
    // Room for three there and five here.
    let rows = cache(&engine, 13_000, 21_000);
    for round in 0..4 {
        for key in 0..9 {
            ask(&engine, &rows, key, (key + round) % 2 == 0);
        }
    }
    let stats = rows.stats();
    assert!(
        stats.demotions > 0 && stats.host_hits > 0 && stats.dropped > 0,
        "{stats:?}"
    );
    assert!(stats.device.high_water <= 13_000 && stats.host.high_water <= 21_000);
    assert_eq!(stats.on_device, 3);
    drop(rows);
    assert_eq!(engine.lock().unwrap().memory().unwrap().bytes.in_use, 0);
}

#[test]
fn budgets_bound_the_devices_memory() {
    let Some(_device) = device() else { return };
    let engine = engine(None);
    let rows = cache(&engine, 20_000, 100_000);
    for key in (0..20).chain(5..15) {
        ask(&engine, &rows, key, false);
    }
    let stats = engine.lock().unwrap().memory().unwrap().bytes;
    // Size classes add an eighth at most.
    assert!(stats.high_water <= 20_000 / 8 * 9, "{stats}");
    rows.clear();
    assert_eq!(engine.lock().unwrap().memory().unwrap().bytes.in_use, 0);
}

#[test]
fn what_a_handle_holds_is_read_after_the_cache_forgot_it() {
    let Some(_device) = device() else { return };
    let engine = engine(None);
    let rows = cache(&engine, 5_000, 0);
    ask(&engine, &rows, 1, false);
    let held = rows.get(&1).unwrap().unwrap();
    // There is no room beside it.
    ask(&engine, &rows, 2, false);
    assert_eq!(
        (rows.places(&1), rows.places(&2)),
        ((true, false), (false, false))
    );
    rows.clear();
    ask(&engine, &rows, 3, false);
    assert_eq!(read(&engine, &held), values(1));
    drop((held, rows));
    assert_eq!(engine.lock().unwrap().memory().unwrap().bytes.in_use, 0);
}

/// The budget allows more than the engine may use: values go until the next one fits.
#[test]
fn a_device_that_is_full_makes_values_go() {
    let Some(_device) = device() else { return };
    let engine = engine(Some(16 << 10));
    let rows = cache(&engine, 1 << 20, 1 << 20);
    for key in 0..10 {
        ask(&engine, &rows, key, false);
    }
    let stats = rows.stats();
    assert!(stats.evictions >= 6 && stats.on_device >= 2, "{stats:?}");
    // What fits nowhere is told.
    let refused = rows.get_or_compute(&99, || Ok::<_, CudaError>(Computed::Host(vec![0; 5000])));
    let Err(CacheError::Tier(error)) = refused else {
        panic!("{refused:?}");
    };
    assert!(error.is_out_of_memory());
    // All had to go for that, and all come back.
    for key in 0..10 {
        ask(&engine, &rows, key, false);
    }
    assert_eq!(rows.stats().misses, 11);
}

#[test]
fn copies_that_fail_are_one_callers() {
    let Some(device) = emulated() else { return };
    let engine = engine(None);
    let rows = cache(&engine, 5_000, 50_000);
    ask(&engine, &rows, 1, true);
    // The second is copied there; the first leaves for it, cannot be copied, and is lost.
    device.set("fail=copy:2:801");
    ask(&engine, &rows, 2, true);
    device.set("fail=none");
    assert_eq!((rows.stats().lost, rows.places(&1)), (1, (false, false)));
    ask(&engine, &rows, 1, false);
    ask(&engine, &rows, 2, false);
    // The first comes from the host, and cannot be copied to the device: it is on the host still.
    device.set("fail=copy:1:801");
    assert!(rows.get(&1).is_err());
    device.set("fail=none");
    assert_eq!(rows.places(&1), (false, true));
    ask(&engine, &rows, 1, false);
    assert_eq!(rows.stats().failures, 1);
}

#[test]
fn many_threads_share_a_device() {
    let Some(_device) = device() else { return };
    let engine = engine(None);
    let rows = cache(&engine, 30_000, 30_000);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (engine, rows) = (&engine, &rows);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..300 {
                    let key = random.below(16) as u32;
                    ask(engine, rows, key, random.below(2) == 0);
                }
            });
        }
    });
    let stats = rows.stats();
    let calls = stats.device_hits + stats.host_hits + stats.shared + stats.misses;
    assert_eq!((calls, stats.failures, stats.lost), (1200, 0, 0));
    assert!(stats.device.high_water <= 30_000 && stats.host.high_water <= 30_000);
}
