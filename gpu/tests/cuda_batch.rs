//! Requests grouped for a CUDA device: the bits of one at a time, what fits, and what happens when the device fails.

#[path = "support/batch.rs"]
mod compare;

use std::thread;
use std::time::Duration;

use crate::support::cluster::{CAPABILITIES, cuda};
use crate::support::cudas::{cudas, devices, with_memory};
use crate::support::emulator::{device, emulated};
use compare::{activations, assigned, multiplied, multiplied_by, quantized, weights};
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
use tercet_core::scalar::Scalar;
use tercet_gpu::batch::executors::{
    Activations, Assign, Assigning, CanAllocate, DeviceLayers, Layers, Multiply,
};
use tercet_gpu::batch::{BatchError, BatchOptions, Closing, Linear, Queue, Ticket, Worker};
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions};
use tercet_host::engine::EngineError;
use tercet_host::parallel::Threads;

#[test]
fn products_have_the_bits_of_one_at_a_time() {
    let Some(_device) = device() else { return };
    for capability in CAPABILITIES {
        multiplied_by(|| cuda(capability));
        multiplied(
            |layer| {
                let work = DeviceLayers::new(cuda(capability), &layer).unwrap();
                vec![Worker::new("resident", work)]
            },
            17,
        );
    }
}

#[test]
fn searches_find_what_they_find_alone() {
    let Some(_device) = device() else { return };
    for capability in CAPABILITIES {
        crate::searched_by!(cuda(capability));
    }
}

#[test]
fn points_get_the_centroids_they_get_alone() {
    let Some(_device) = device() else { return };
    for capability in CAPABILITIES {
        assigned(|| cuda(capability));
    }
}

#[test]
fn rows_get_the_codes_they_get_alone() {
    let Some(_device) = device() else { return };
    quantized(|| cuda((8, 0)));
}

#[test]
fn several_devices_are_one_engine_or_several_workers() {
    let Some(_device) = devices() else { return };
    multiplied_by(|| cudas(3));
    crate::searched_by!(cudas(2));
    quantized(|| cudas(3));
    multiplied(
        |layer| {
            let resident = |at| {
                let work = DeviceLayers::new(cuda((8, 0)), &layer).unwrap();
                Worker::new(format!("device {at}"), work).with_prediction(Linear {
                    launch: Duration::from_micros(20),
                    each: Duration::from_micros(1),
                })
            };
            let cpu = Worker::new("cpu", Layers::new(Threads::default(), layer));
            [resident(0), resident(1), cpu].into()
        },
        60,
    );
}

fn small(memory: usize) -> Cuda {
    let options = CudaOptions {
        memory: Some(memory),
        slot: 4096,
        ..CudaOptions::default()
    };
    Cuda::new(&options).unwrap()
}

/// A queue whose batches have all requests that were submitted.
fn whole(worker: Worker<'static, Multiply>) -> Queue<Multiply> {
    let options = BatchOptions {
        max_size: 1000,
        max_wait: Duration::from_secs(3600),
        capacity: 1000,
        name: "test",
    };
    Queue::new(options, [worker]).unwrap()
}

type Product = Result<Vec<f32>, BatchError<EngineError>>;

fn products(queue: &Queue<Multiply>, requests: &[Activations]) -> Vec<Product> {
    let submitted = requests.iter().cloned().map(|x| queue.submit(x).unwrap());
    let tickets: Vec<_> = submitted.collect();
    queue.close(Closing::Answer);
    tickets.into_iter().map(Ticket::wait).collect()
}

fn alone(layer: &Layer<'_>, request: &Activations) -> Vec<f32> {
    let mut out = vec![0.0; layer.weights().rows()];
    let mut scratch = vec![0; layer.weights().scratch_len()];
    let x = I8Sym::new(&request.values).unwrap();
    Scalar
        .matvec(layer, x, request.scale, &mut out, &mut scratch)
        .unwrap();
    out
}

#[test]
fn a_batch_that_does_not_fit_is_run_in_parts() {
    let Some(_device) = device() else { return };
    let (rows, cols) = (64, 256);
    let bytes = weights(Layout::TernaryLanes, rows, cols);
    let layer = Layer::new(Matrix::new(Layout::TernaryLanes, rows, cols, &bytes).unwrap());
    let requests = activations(cols, 100);
    let run = |memory| {
        let work = DeviceLayers::new(small(memory), &layer).unwrap();
        let queue = whole(Worker::new("resident", work));
        let found = products(&queue, &requests);
        for (request, found) in requests.iter().zip(found) {
            assert_eq!(found.unwrap(), alone(&layer, request));
        }
        queue.shutdown()
    };
    let stats = run(1 << 20);
    assert_eq!((stats.batches, stats.split), (1, 0));
    // 100 rows of activations and of products are 51,600 bytes and more.
    let stats = run(40_000);
    assert_eq!(stats.split, 1);
    assert!(stats.batches >= 2, "{stats:?}");
    assert_eq!(stats.answered, 100);
}

/// What the queue cannot foresee: memory is there when it asks and not when it runs.
#[test]
fn a_batch_that_finds_no_memory_is_run_in_halves() {
    let Some(device) = emulated() else { return };
    let bytes = weights(Layout::Int8, 8, 64);
    let layer = Layer::new(Matrix::new(Layout::Int8, 8, 64, &bytes).unwrap());
    let requests = activations(64, 20);
    let work = DeviceLayers::new(cuda((8, 0)), &layer).unwrap();
    let queue = whole(Worker::new("resident", work));
    // Both tries of the first allocation.
    device.set("fail=alloc:1,fail=alloc:2");
    let found = products(&queue, &requests);
    device.set("fail=none");
    for (request, found) in requests.iter().zip(found) {
        assert_eq!(found.unwrap(), alone(&layer, request));
    }
    let stats = queue.shutdown();
    assert_eq!((stats.split, stats.batches, stats.answered), (1, 3, 20));
}

#[test]
fn a_launch_that_fails_is_told_to_its_batch_and_the_next_goes_on() {
    let Some(device) = emulated() else { return };
    let bytes = weights(Layout::Int8, 8, 64);
    let layer = Layer::new(Matrix::new(Layout::Int8, 8, 64, &bytes).unwrap());
    let requests = activations(64, 6);
    let work = DeviceLayers::new(cuda((8, 0)), &layer).unwrap();
    let options = BatchOptions {
        max_size: 3,
        max_wait: Duration::from_secs(3600),
        capacity: 100,
        name: "test",
    };
    let queue = Queue::new(options, [Worker::new("resident", work)]).unwrap();
    let three = |requests: &[Activations]| {
        let submitted = requests.iter().cloned().map(|x| queue.submit(x).unwrap());
        let tickets: Vec<_> = submitted.collect();
        tickets.into_iter().map(Ticket::wait).collect::<Vec<_>>()
    };
    device.set("fail=launch:1");
    for outcome in three(&requests[..3]) {
        let Err(BatchError::Failed(fault)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(matches!(&*fault, EngineError::Failed(_)), "{fault}");
    }
    device.set("fail=none");
    for (request, found) in requests[3..].iter().zip(three(&requests[3..])) {
        assert_eq!(found.unwrap(), alone(&layer, request));
    }
    let stats = queue.shutdown();
    assert_eq!((stats.failed, stats.answered, stats.split), (3, 3, 0));
}

/// Points have to fit as a whole, unlike rows of weights: they come in as many parts as it takes.
#[test]
fn points_that_do_not_fit_are_assigned_in_parts() {
    let Some(_device) = device() else { return };
    let points: Vec<Vec<i8>> = (0..400_u32)
        .map(|at| (0..8).map(|x| (at * 37 + x * 11) as i8).collect())
        .collect();
    let centroids: Vec<i8> = points[..5].concat();
    let options = BatchOptions {
        max_size: 400,
        max_wait: Duration::from_secs(3600),
        capacity: 400,
        name: "test",
    };
    let work = Assign::new(small(20_000), centroids.clone(), 8).unwrap();
    let queue = Queue::<Assigning>::new(options, [Worker::new("small", work)]).unwrap();
    let submitted = points
        .iter()
        .map(|point| queue.submit(point.clone()).unwrap());
    let tickets: Vec<_> = submitted.collect();
    for (point, ticket) in points.iter().zip(tickets) {
        let expected = tercet_core::cluster::nearest(point, &centroids).unwrap();
        assert_eq!(ticket.wait().unwrap(), expected);
    }
    let stats = queue.shutdown();
    assert_eq!((stats.split, stats.answered, stats.failed), (1, 400, 0));
}

#[test]
fn engines_tell_whether_they_have_room() {
    let Some(_device) = device() else { return };
    assert!(Scalar.has_room(&[usize::MAX]) && Threads::default().has_room(&[usize::MAX]));
    let cuda = small(1 << 20);
    assert!(cuda.has_room(&[1 << 19]) && !cuda.has_room(&[1 << 20, 1]));
    // The second has less than the first.
    let several = with_memory(2, Some(1 << 20));
    assert!(several.has_room(&[1 << 19]) && !several.has_room(&[1 << 20, 1]));
    let refused = EngineError::from(CudaError::OutOfMemory { asked: 1, free: 0 });
    assert!(matches!(refused, EngineError::NoRoom(_)));
}

/// Callers on many threads, one device, batches as they come.
#[test]
fn many_threads_share_a_device() {
    let Some(_device) = device() else { return };
    let bytes = weights(Layout::TernaryLanes, 16, 64);
    let layer = Layer::new(Matrix::new(Layout::TernaryLanes, 16, 64, &bytes).unwrap());
    let work = DeviceLayers::new(cuda((8, 0)), &layer).unwrap();
    let options = BatchOptions {
        max_size: 16,
        max_wait: Duration::ZERO,
        capacity: 32,
        name: "test",
    };
    let queue = Queue::new(options, [Worker::new("resident", work)]).unwrap();
    let requests = activations(64, 25);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for request in &requests {
                    let found = queue.submit(request.clone()).unwrap().wait();
                    assert_eq!(found.unwrap(), alone(&layer, request));
                }
            });
        }
    });
    let stats = queue.shutdown();
    assert_eq!(stats.answered, 200);
    assert!(stats.depth.high_water <= 32);
}
