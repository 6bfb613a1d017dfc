//! Batches go where a dispatcher's costs say that they are done first.

use std::thread;
use std::time::Duration;

use tercet_core::engine::SearchEngine;
use tercet_core::linear::{Layer, Layout, Matrix};
use tercet_core::quant::Method;
use tercet_core::scalar::Scalar;
use tercet_core::search::{Dot, Int8Rows};
use tercet_gpu::batch::executors::{
    Activations, Asked, Assign, Costed, Layers, Priced, QuantizeRows, Quantizing, Query, Search,
};
use tercet_gpu::batch::{BatchJob, BatchOptions, BatchStats, Predict, Queue, Worker};
use tercet_gpu::dispatch::{self, Cost, Costs, Engine, Location, Operation};
use tercet_host::parallel::Threads;

/// One request a batch: each is the worker's that will have done it first.
const SINGLES: BatchOptions = BatchOptions {
    max_size: 1,
    max_wait: Duration::ZERO,
    capacity: 1000,
    name: "test",
};

/// Seconds that nobody waits for: a worker that is late by less is not helped. The other takes a hundred times as
/// long, so that it gets nothing either while a batch that was answered is not yet counted as done.
const LONG: f64 = 1000.0;
const LONGER: f64 = 100.0 * LONG;

/// Costs of an operation: so many seconds a call on one engine, and on another.
fn costs(operation: Operation, simd: f64, threads: f64) -> Costs {
    let mut costs = Costs::none();
    for (engine, seconds) in [(Engine::Simd, simd), (Engine::Threads, threads)] {
        costs.set(operation, engine, Cost::constant(seconds, 1e18, 1e18));
    }
    costs
}

/// What two workers did with one request after another, each of which is answered before the next.
fn in_turns<J: BatchJob>(
    queue: Queue<J>,
    requests: impl IntoIterator<Item = J::Request>,
) -> BatchStats {
    for request in requests {
        let ticket = queue
            .submit(request)
            .unwrap_or_else(|_| panic!("it is open"));
        assert!(ticket.wait().is_ok());
    }
    queue.shutdown()
}

/// Whatever the work is, all batches are the cheaper engine's.
#[test]
fn each_kind_of_work_goes_to_the_engine_of_least_cost() {
    for (simd, threads, expected) in [(LONG, LONGER, [9, 0]), (LONGER, LONG, [0, 9])] {
        let done = |stats: BatchStats| [stats.workers[0].requests, stats.workers[1].requests];

        let costs_of = |operation| costs(operation, simd, threads);
        let bytes = [1, 2, 3, 0xFF, 0, 1];
        let layer = Layer::new(Matrix::new(Layout::Int8, 2, 3, &bytes).unwrap());
        let rows = Int8Rows::new(&[1, 2, 3, 4, 5, 6], 2).unwrap();
        thread::scope(|scope| {
            let costs = costs_of(Operation::Matmul);
            let work = |engine| Layers::new(engine, layer);
            let workers = [
                Worker::by_cost("simd", work(Threads::alone()), &costs, Engine::Simd),
                Worker::by_cost("threads", work(Threads::default()), &costs, Engine::Threads),
            ];
            let queue = Queue::in_scope(scope, SINGLES, workers).unwrap();
            let values = vec![1, 2, 3];
            let request = Activations { values, scale: 1.0 };
            assert_eq!(done(in_turns(queue, vec![request; 9])), expected);

            let costs = costs_of(Operation::Search);
            let base = || Scalar.base(rows).unwrap();
            let workers = [
                Worker::by_cost(
                    "simd",
                    Search::<_, _, Dot>::new(rows, base()),
                    &costs,
                    Engine::Simd,
                ),
                Worker::by_cost(
                    "threads",
                    Search::<_, _, Dot>::new(rows, base()),
                    &costs,
                    Engine::Threads,
                ),
            ];
            let queue = Queue::in_scope(scope, SINGLES, workers).unwrap();
            let query = Query {
                values: vec![1, 1],
                k: 2,
            };
            assert_eq!(done(in_turns(queue, vec![query; 9])), expected);
        });
        let costs = costs_of(Operation::Assign);
        let work = || Assign::new(Threads::alone(), vec![0, 9], 1).unwrap();
        let workers = [
            Worker::by_cost("simd", work(), &costs, Engine::Simd),
            Worker::by_cost("threads", work(), &costs, Engine::Threads),
        ];
        let queue = Queue::new(SINGLES, workers).unwrap();
        assert_eq!(done(in_turns(queue, vec![vec![3]; 9])), expected);

        let costs = costs_of(Operation::QuantizeInteger);
        let work = || QuantizeRows::new(Threads::alone(), Method::Symmetric { limit: 127 });
        let workers = [
            Worker::by_cost("simd", work(), &costs, Engine::Simd),
            Worker::by_cost("threads", work(), &costs, Engine::Threads),
        ];
        let queue = Queue::<Quantizing<f32>>::new(SINGLES, workers).unwrap();
        assert_eq!(done(in_turns(queue, vec![vec![1.0, 2.0]; 9])), expected);
    }
}

/// By the model a batch of one is one engine's, and one of many another's.
#[test]
fn a_prediction_is_the_model_s_of_the_whole_batch() {
    let work = Assign::new(Scalar, vec![0; 8 * 16], 16).unwrap();
    let launch = |launch, rate| Cost::constant(launch, 1e18, rate);
    let (here, there) = (launch(1e-6, 1e6), launch(1e-2, 1e9));
    let predict = |cost: &Cost, requests| {
        let costed = Costed::new(cost.clone(), work.price());
        costed.predict(&(), requests).as_secs_f64()
    };
    // 16 coordinates and 8 centroids are 128 multiply-adds a point.
    assert!((predict(&here, 10) - (1e-6 + 10.0 * 128e-6)).abs() < 1e-9);
    assert!((predict(&there, 10_000) - (1e-2 + 10_000.0 * 128e-9)).abs() < 1e-9);
    assert!(predict(&here, 1) < predict(&there, 1) && predict(&here, 100) > predict(&there, 100));
    assert_eq!(work.operation(), Operation::Assign);
}

#[test]
fn what_is_resident_does_not_cross() {
    let job = dispatch::Job {
        bytes_out: 100,
        ..dispatch::Job::each(Operation::Matmul, 1, 1000, 0)
    };
    let cost = Cost::constant(0.0, 1e3, 1e18).with_transfer(1e2);
    let seconds = |resident, place| {
        let job = job.at(place);
        Asked { job, resident }.seconds(&cost)
    };
    // Memory is 1.1 s in each case; 1100, 200 and no bytes cross.
    assert!((seconds(0, Location::Host) - (11.0 + 1.1)).abs() < 1e-9);
    assert!((seconds(900, Location::Host) - (2.0 + 1.1)).abs() < 1e-9);
    assert!((seconds(900, Location::Device) - 1.1).abs() < 1e-9);
}

/// Without a cost nothing is known of a worker, which then gets what it would get so.
#[test]
fn an_engine_without_a_cost_is_as_before() {
    let work = Assign::new(Scalar, vec![0, 9], 1).unwrap();
    let worker = Worker::by_cost("scalar", work, &Costs::none(), Engine::Scalar);
    let queue = Queue::new(SINGLES, [worker]).unwrap();
    let stats = in_turns(queue, [vec![3], vec![8]]);
    assert_eq!(
        (stats.answered, stats.workers[0].predicted),
        (2, Duration::from_nanos(2))
    );
}
