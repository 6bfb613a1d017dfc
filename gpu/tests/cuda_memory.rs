//! Memory of a device: copies through pinned slots, the pool's figures, chunks, and what happens when something fails.

use std::sync::Mutex;

use crate::support::emulator::{device, emulated};
use rayon::prelude::*;
use tercet_gpu::engine::{Chunks, Cuda, CudaError, CudaOptions, DeviceBuffer, Item};

/// Slots so small that a few thousand elements pass through many.
fn small(slots: usize) -> CudaOptions {
    CudaOptions {
        slots,
        slot: 4096,
        ..CudaOptions::default()
    }
}

const LENGTHS: [usize; 11] = [0, 1, 31, 255, 256, 257, 1000, 1024, 1025, 9_999, 65_537];

fn values(len: usize) -> Vec<u32> {
    (0..len as u32)
        .map(|i| i.wrapping_mul(2_654_435_761) ^ 7)
        .collect()
}

#[test]
fn slices_come_back_as_they_went() {
    let Some(device) = device() else { return };
    for slots in [1, 2, 3, 5] {
        for seed in 0..4 {
            device.set(&format!("seed={seed}"));
            let mut cuda = Cuda::new(&small(slots)).unwrap();
            for len in LENGTHS {
                let values = values(len);
                let mut there = cuda.upload(&values).unwrap();
                let mut twin = cuda.zeros::<u32>(len).unwrap();
                let mut back = vec![1; len];
                cuda.read(&twin, &mut back).unwrap();
                assert!(back.iter().all(|&x| x == 0), "{len}");
                cuda.copy(&there, &mut twin).unwrap();
                // What is queued sees what was queued before it, on whatever stream.
                cuda.fill(&mut there, 0xABCD_EF01).unwrap();
                cuda.read(&twin, &mut back).unwrap();
                assert_eq!(back, values, "{len} of {slots} slots, seed {seed}");
                cuda.read(&there, &mut back).unwrap();
                assert!(back.iter().all(|&x| x == 0xABCD_EF01), "{len}");
                cuda.write(&values, &mut there).unwrap();
                cuda.clear(&mut there).unwrap();
                cuda.read(&there, &mut back).unwrap();
                assert!(back.iter().all(|&x| x == 0), "{len}");
            }
        }
    }
}

/// Slots that several threads fill and empty, the last of them in part.
#[test]
fn long_slices_come_back_as_they_went() {
    let Some(device) = device() else { return };
    let values = values((50 << 20) / 4 + 1);
    let mut back = vec![0; values.len()];
    for seed in 0..2 {
        device.set(&format!("seed={seed}"));
        let mut cuda = Cuda::first().unwrap();
        let there = cuda.upload(&values).unwrap();
        cuda.read(&there, &mut back).unwrap();
        assert!(back == values);
        back.fill(0);
        let chunks = Chunks {
            most: 5 << 20,
            least: 1,
        };
        let one = Item {
            input: 1,
            output: 1,
        };
        cuda.stream_through(chunks, one, &values, &mut back, echo)
            .unwrap();
        assert!(back == values);
        back.fill(0);
    }
}

/// The threads of a pool, of which one has the engine and the others wait for it: whoever copies must not need any of
/// them.
#[test]
fn an_engine_behind_a_lock_copies_on_threads_of_a_pool() {
    let Some(_device) = device() else { return };
    let cuda = Mutex::new(Cuda::first().unwrap());
    let values = values((20 << 20) / 4);
    let there_and_back = |_| {
        let mut cuda = cuda.lock().unwrap();
        let mut back = vec![0; values.len()];
        let there = cuda.upload(&values).unwrap();
        cuda.read(&there, &mut back).unwrap();
        assert!(back == values);
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3);
    let pool = pool.build().unwrap();
    pool.install(|| {
        (0..6)
            .into_par_iter()
            .with_max_len(1)
            .for_each(there_and_back)
    });
    (0..6)
        .into_par_iter()
        .with_max_len(1)
        .for_each(there_and_back);
}

#[test]
fn a_small_upload_does_not_wait_for_what_was_queued_before() {
    let Some(device) = emulated() else { return };
    device.set("late=most");
    let mut cuda = Cuda::first().unwrap();
    let first = cuda.upload(&values(30_000)).unwrap();
    let mut second = cuda.zeros::<u32>(30_000).unwrap();
    let mut small = cuda.zeros::<u32>(16_384).unwrap();
    cuda.synchronize().unwrap();
    let before = device.count("bytes copied");
    cuda.copy(&first, &mut second).unwrap();
    for round in 0..32 {
        cuda.write(&[round; 16_384], &mut small).unwrap();
        assert_eq!(device.count("bytes copied"), before, "{round}");
    }
    // So many are on their way at most.
    cuda.write(&[32; 16_384], &mut small).unwrap();
    assert!(device.count("bytes copied") > before);
    let mut back = vec![0; 16_384];
    cuda.read(&small, &mut back).unwrap();
    assert!(back.iter().all(|&x| x == 32));
}

#[test]
fn elements_of_every_size_come_back() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::new(&small(2)).unwrap();
    macro_rules! round {
        ($($kind:ty),*) => {$(
            let values: Vec<$kind> = (0..3001).map(|i| (i % 120) as $kind).collect();
            let there = cuda.upload(&values).unwrap();
            assert_eq!((there.len(), there.bytes()), (3001, 3001 * size_of::<$kind>()));
            let mut back = vec![<$kind>::default(); 3001];
            cuda.read(&there, &mut back).unwrap();
            assert_eq!(back, values);
        )*};
    }
    round!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);
}

#[test]
fn buffers_of_other_lengths_and_engines_are_refused() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut other = Cuda::first().unwrap();
    let mut buffer = cuda.upload(&[1_u32, 2, 3]).unwrap();
    let wrong = |expected, found| Err(CudaError::Length { expected, found });
    assert_eq!(cuda.read(&buffer, &mut [0; 2]), wrong(2, 3));
    assert_eq!(cuda.write(&[0; 4], &mut buffer), wrong(4, 3));
    assert_eq!(other.read(&buffer, &mut [0; 3]), wrong(3, 0));
    assert_eq!(other.clear(&mut buffer), wrong(3, 0));
    let mut there = other.zeros::<u32>(3).unwrap();
    assert_eq!(cuda.copy(&buffer, &mut there), wrong(3, 0));
    let mut back = [0; 3];
    cuda.read(&buffer, &mut back).unwrap();
    assert_eq!(back, [1, 2, 3]);
}

#[test]
fn the_pool_counts_classes_and_high_water() {
    let Some(_device) = device() else { return };
    let options = CudaOptions {
        memory: Some(64 << 10),
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).unwrap();
    let empty = cuda.memory().unwrap();
    assert_eq!((empty.bytes.in_use, empty.bytes.capacity), (0, 64 << 10));
    let one = cuda.zeros::<u8>(1).unwrap();
    assert_eq!(cuda.memory().unwrap().bytes.in_use, 256);
    // 33,000 bytes are rounded up to a multiple of 4096.
    let many = cuda.zeros::<u8>(33_000).unwrap();
    let stats = cuda.memory().unwrap();
    assert_eq!(
        (stats.bytes.in_use, stats.bytes.high_water),
        (256 + 36_864, 256 + 36_864)
    );
    assert!(stats.reserved >= stats.bytes.in_use);
    let refused = cuda.zeros::<u8>(32 << 10).unwrap_err();
    let free = (64 << 10) - 256 - 36_864;
    assert_eq!(
        refused,
        CudaError::OutOfMemory {
            asked: 32 << 10,
            free
        }
    );
    assert_eq!(
        refused.to_string(),
        format!("out of device memory: 32768 bytes requested, {free} free")
    );
    assert_eq!(cuda.memory().unwrap().bytes.failures, 1);
    drop(many);
    let stats = cuda.memory().unwrap().bytes;
    assert_eq!((stats.in_use, stats.high_water), (256, 256 + 36_864));
    let again = cuda.zeros::<u8>(32 << 10).unwrap();
    // More than there are addresses is refused as any other.
    assert!(
        cuda.zeros::<u64>(usize::MAX / 4)
            .unwrap_err()
            .is_out_of_memory()
    );
    assert!(cuda.zeros::<u8>(usize::MAX).unwrap_err().is_out_of_memory());
    drop((one, again));
    assert_eq!(cuda.memory().unwrap().bytes.in_use, 0);
}

#[test]
fn idle_memory_is_kept_until_it_is_trimmed() {
    let Some(_device) = emulated() else { return };
    let mut cuda = Cuda::first().unwrap();
    drop(cuda.zeros::<u8>(1 << 20).unwrap());
    cuda.synchronize().unwrap();
    let stats = cuda.memory().unwrap();
    assert_eq!((stats.bytes.in_use, stats.reserved), (0, 1 << 20));
    cuda.trim().unwrap();
    let stats = cuda.memory().unwrap();
    assert_eq!((stats.reserved, stats.reserved_high_water), (0, 1 << 20));
}

#[test]
fn buffers_outlive_their_engine_and_go_to_other_threads() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let buffer = cuda.upload(&values(5000)).unwrap();
    let moved = std::thread::spawn(move || {
        let mut back = vec![0; 5000];
        cuda.read(&buffer, &mut back).unwrap();
        assert_eq!(back, values(5000));
        // The engine ends here; the buffer lives on.
        buffer
    });
    let buffer = moved.join().unwrap();
    std::thread::spawn(move || drop(buffer)).join().unwrap();
}

#[test]
fn engines_work_side_by_side() {
    let Some(_device) = device() else { return };
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            scope.spawn(move || {
                let mut cuda = Cuda::new(&small(2)).unwrap();
                for round in 0..5 {
                    let values: Vec<u32> = (0..9000).map(|i| i ^ (thread << 20) ^ round).collect();
                    let there = cuda.upload(&values).unwrap();
                    let mut back = vec![0; values.len()];
                    cuda.read(&there, &mut back).unwrap();
                    assert_eq!(back, values);
                }
            });
        }
    });
}

/// Copies its input to its output, chunk by chunk.
fn echo(
    cuda: &mut Cuda,
    _: std::ops::Range<usize>,
    input: &DeviceBuffer<u32>,
    output: &mut DeviceBuffer<u32>,
) -> Result<(), CudaError> {
    cuda.copy(input, output)
}

const PAIRS: Item = Item {
    input: 2,
    output: 2,
};

#[test]
fn data_streams_through_in_chunks() {
    let Some(device) = device() else { return };
    for seed in 0..4 {
        device.set(&format!("seed={seed}"));
        let mut cuda = Cuda::new(&small(2)).unwrap();
        for len in [0, 1, 99, 100, 101, 4321] {
            for most in [1, 100, 1000, 1 << 20] {
                let values = values(2 * len);
                let mut back = vec![0; values.len()];
                let chunks = Chunks { most, least: 1 };
                if len / most > 200 {
                    continue;
                }
                cuda.stream_through(chunks, PAIRS, &values, &mut back, echo)
                    .unwrap();
                assert_eq!(back, values, "{len} by {most}, seed {seed}");
            }
        }
    }
    let mut cuda = Cuda::first().unwrap();
    let chunks = Chunks { most: 8, least: 1 };
    let ragged = cuda.stream_through(chunks, PAIRS, &[1, 2, 3], &mut [0; 3], echo);
    assert_eq!(
        ragged,
        Err(CudaError::Length {
            expected: 2,
            found: 3
        })
    );
}

/// Work that itself copies out, while the last chunk's output may be on its way.
#[test]
fn work_on_a_chunk_may_read_it() {
    let Some(device) = device() else { return };
    for seed in 0..4 {
        device.set(&format!("seed={seed}"));
        let mut cuda = Cuda::new(&small(3)).unwrap();
        let values = values(2 * 4321);
        let mut back = vec![0; values.len()];
        let mut read = vec![0; values.len()];
        let chunks = Chunks {
            most: 1000,
            least: 1,
        };
        let done = cuda.stream_through(
            chunks,
            PAIRS,
            &values,
            &mut back,
            |cuda, range, from, to| {
                cuda.copy(from, to)?;
                let mut whole = vec![0; to.len()];
                cuda.read(to, &mut whole)?;
                let part = &mut read[2 * range.start..2 * range.end];
                part.copy_from_slice(&whole[..part.len()]);
                Ok(())
            },
        );
        done.unwrap();
        assert_eq!((&back, &read), (&values, &values));
        // A chunk that fails while the last one is on its way out.
        let failed = CudaError::OutOfMemory { asked: 1, free: 0 };
        let done = cuda.stream_through(
            chunks,
            PAIRS,
            &values,
            &mut back,
            |cuda, range, from, to| {
                cuda.copy(from, to)?;
                if range.start >= 2000 {
                    return Err(failed.clone());
                }
                Ok(())
            },
        );
        assert_eq!(done, Err(failed.clone()));
    }
}

#[test]
fn where_memory_runs_out_chunks_are_halved() {
    let Some(_device) = device() else { return };
    let options = CudaOptions {
        memory: Some(16 << 10),
        ..small(2)
    };
    let mut cuda = Cuda::new(&options).unwrap();
    let values = values(20_000);
    let mut back = vec![0; values.len()];
    let chunks = Chunks {
        most: 10_000,
        least: 16,
    };
    // Four buffers of a chunk: 16 KiB hold chunks of 512 pairs.
    cuda.stream_through(chunks, PAIRS, &values, &mut back, echo)
        .unwrap();
    assert_eq!(back, values);
    let chunks = Chunks {
        most: 10_000,
        least: 1000,
    };
    let full = cuda.stream_through(chunks, PAIRS, &values, &mut back, echo);
    assert!(full.unwrap_err().is_out_of_memory());

    let mut sizes = Vec::new();
    let mut sum = 0;
    let chunks = Chunks {
        most: 10_000,
        least: 3,
    };
    let done = cuda.in_chunks(20_000, chunks, |cuda, range| {
        let buffer = cuda.upload(&values[range.clone()])?;
        let mut back = vec![0; range.len()];
        cuda.read(&buffer, &mut back)?;
        sum += back.iter().map(|&x| u64::from(x)).sum::<u64>();
        sizes.push(range.len());
        Ok(())
    });
    done.unwrap();
    assert_eq!(sum, values.iter().map(|&x| u64::from(x)).sum::<u64>());
    let (last, all) = sizes.split_last().unwrap();
    assert!(
        all.iter().all(|&size| size == 2499) && *last <= 2499,
        "{sizes:?}"
    );
}

/// Work that allocates, copies both ways, fills and waits.
fn work(cuda: &mut Cuda) -> Result<(), CudaError> {
    let values = values(3000);
    let first = cuda.upload(&values)?;
    let mut second = cuda.zeros::<u32>(3000)?;
    cuda.copy(&first, &mut second)?;
    let mut back = vec![0; 3000];
    cuda.read(&second, &mut back)?;
    assert_eq!(back, values);
    cuda.fill(&mut second, 9)?;
    cuda.read(&second, &mut back)?;
    assert!(back.iter().all(|&x| x == 9));
    let chunks = Chunks {
        most: 400,
        least: 1,
    };
    cuda.stream_through(chunks, PAIRS, &values, &mut back, echo)?;
    assert_eq!(back, values);
    Ok(())
}

/// Whatever call fails, at whatever point: an error, no panic, nothing left behind, and after it all is well again.
#[test]
fn every_fault_is_an_error_and_the_engine_goes_on() {
    let Some(device) = emulated() else { return };
    let mut injected = 0;
    let kinds = [
        "alloc", "host", "copy", "memset", "event", "stream", "sync", "context",
    ];
    // As each kind usually fails; "not supported", which leaves the device as it was; "illegal address", which loses
    // it.
    for (kind, status) in kinds
        .into_iter()
        .flat_map(|kind| ["", ":801", ":700"].map(|status| (kind, status)))
    {
        let mut failed = 0;
        for nth in 1.. {
            device.set(&format!("fail=none,fail={kind}:{nth}{status}"));
            let faults = device.count("faults");
            let result = Cuda::new(&small(2)).and_then(|mut cuda| {
                let result = work(&mut cuda);
                device.set("fail=none");
                match &result {
                    // It stays lost.
                    Err(lost @ CudaError::Lost { .. }) => {
                        assert_eq!(work(&mut cuda).as_ref(), Err(lost))
                    }
                    // The same engine does the same work now.
                    _ => work(&mut cuda).unwrap(),
                }
                result
            });
            if device.count("faults") == faults {
                assert_eq!(result, Ok(()));
                break;
            }
            if status == ":700" {
                assert!(
                    matches!(
                        result,
                        Err(CudaError::Lost { .. } | CudaError::Driver { .. })
                    ),
                    "{result:?}"
                );
            }
            failed += u32::from(result.is_err());
            injected += 1;
        }
        // The pool asks a second time, after it trimmed, so that one usual failure of `alloc` does not show.
        assert!(
            failed > 0 || (kind, status) == ("alloc", ""),
            "no {kind} failed"
        );
    }
    println!("{injected} faults injected");
    assert!(injected > 50, "{injected}");
}

#[test]
fn no_memory_at_all_is_told_with_figures() {
    let Some(device) = emulated() else { return };
    let mut cuda = Cuda::first().unwrap();
    device.set("fail=alloc:1+");
    let error = cuda.zeros::<u8>(5000).unwrap_err();
    assert!(
        matches!(error, CudaError::OutOfMemory { asked: 5120, free } if free > 0),
        "{error}"
    );
    assert_eq!(cuda.memory().unwrap().bytes.failures, 1);
    assert_eq!(cuda.memory().unwrap().bytes.in_use, 0);
    device.set("fail=none");
    drop(cuda.zeros::<u8>(5000).unwrap());
}

#[test]
fn a_device_tells_what_it_is() {
    let Some(device) = device() else { return };
    let cuda = Cuda::first().unwrap();
    let info = cuda.device_info().unwrap();
    assert!(info.capability >= (7, 5) && info.memory > 0 && info.free <= info.memory);
    assert!(info.multiprocessors > 0 && info.shared >= 48 << 10 && !info.name.is_empty());
    assert_eq!(info.driver, tercet_gpu::engine::driver_version().unwrap());
    let line = info.to_string();
    assert!(
        line.starts_with("device 0: ") && !line.contains('\n'),
        "{line}"
    );
    println!("{line}");
    let past = CudaOptions {
        device: 99,
        ..CudaOptions::default()
    };
    let count = tercet_gpu::engine::device_count().unwrap();
    assert_eq!(
        Cuda::new(&past).unwrap_err(),
        CudaError::NoDevice { ordinal: 99, count }
    );
    drop(cuda);
    device.set("capability=7.0");
    if device.count("allocations") > 0 {
        let error = Cuda::first().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cannot be used: kernels need compute capability 7.5"),
            "{error}"
        );
    }
}
