//! Tercet's operations through the queue: the bits of one at a time, by every engine of the processor, and errors of
//! one request.

#[path = "../support/batch.rs"]
mod compare;

use std::thread;

use compare::{assigned, multiplied, multiplied_by, quantized, through};
use tercet_core::linear::{Layer, Layout, LinearError, Matrix};
use tercet_core::quant::{Method, QuantError};
use tercet_core::scalar::{self, Scalar};
use tercet_core::search::{Dot, FloatRows, Int8Rows, SearchError};
use tercet_gpu::batch::executors::{
    Activations, Assign, Assigning, Layers, Multiply, QuantizeRows, Quantizing, Query, Search,
    Searching,
};
use tercet_gpu::batch::{BatchError, BatchJob, BatchOptions, Executor, Queue, Worker};
use tercet_host::engine::EngineError;
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

fn backends() -> impl Iterator<Item = Threads> {
    Backend::all().map(|backend| Threads::default().with_backend(backend))
}

#[test]
fn products_have_the_bits_of_one_at_a_time() {
    multiplied_by(|| Scalar);
    for threads in backends() {
        multiplied_by(|| threads);
    }
}

#[test]
fn searches_find_what_they_find_alone() {
    crate::searched_by!(Scalar);
    for threads in backends() {
        crate::searched_by!(threads);
    }
}

#[test]
fn points_get_the_centroids_they_get_alone() {
    assigned(|| Scalar);
    for threads in backends() {
        assigned(|| threads);
    }
}

#[test]
fn rows_get_the_codes_they_get_alone() {
    quantized(|| Scalar);
    for threads in backends() {
        quantized(|| threads);
    }
}

/// Whoever does a batch, the bits are the same.
#[test]
fn engines_of_several_kinds_share_a_queue() {
    multiplied(
        |layer| {
            let scalar = Worker::new("scalar", Layers::new(Scalar, layer));
            let threads = backends().map(move |threads| {
                Worker::new(threads.backend().to_string(), Layers::new(threads, layer))
            });
            std::iter::once(scalar).chain(threads).collect()
        },
        100,
    );
}

/// The faults of requests, each between two good ones.
fn faults<'a, J: BatchJob<Error = EngineError, Request: Clone> + 'a>(
    work: impl Executor<J> + 'a,
    good: &J::Request,
    bad: impl IntoIterator<Item = J::Request>,
) -> Vec<String> {
    thread::scope(|scope| {
        let queue = Queue::in_scope(scope, BatchOptions::default(), [Worker::new("one", work)]);
        let queue = queue.unwrap();
        let told = bad.into_iter().map(|bad| {
            let tickets = [good.clone(), bad, good.clone()].map(|request| queue.submit(request));
            let [before, bad, after] = tickets.map(|ticket| ticket.unwrap().wait());
            assert!(before.is_ok() && after.is_ok());
            match bad {
                Err(BatchError::Failed(fault)) => fault.to_string(),
                other => panic!("{:?}", other.map(|_| ())),
            }
        });
        told.collect()
    })
}

#[test]
fn what_is_wrong_with_a_request_is_told_to_it_alone() {
    let length = |found| LinearError::Length { expected: 3, found }.to_string();
    let layer = Layer::new(Matrix::new(Layout::Int8, 1, 3, &[1, 2, 3]).unwrap());
    let ask = |values: &[i8]| Activations {
        values: values.to_vec(),
        scale: 1.0,
    };
    let bad = [ask(&[1, 2]), ask(&[0, -128, 0]), ask(&[])];
    assert_eq!(
        faults::<Multiply>(Layers::new(Scalar, layer), &ask(&[1, 2, 3]), bad),
        [
            length(2),
            LinearError::NotSymmetric { index: 1 }.to_string(),
            length(0)
        ]
    );

    let rows = Int8Rows::new(&[1, 2, 3, 4], 2).unwrap();
    let work = Search::<_, _, Dot>::new(rows, scalar::Base::new(rows));
    let ask = |values: &[i8]| Query {
        values: values.to_vec(),
        k: 1,
    };
    let wrong = SearchError::QueryLength {
        expected: 2,
        found: 3,
    };
    assert_eq!(
        faults::<Searching<_, Dot>>(work, &ask(&[1, 2]), [ask(&[1, 2, 3])]),
        [wrong.to_string()]
    );

    let rows = FloatRows::new(&[1.0_f32, 2.0], 2).unwrap();
    let work = Search::<_, _, Dot>::new(rows, scalar::Base::new(rows));
    let ask = |values: [f32; 2]| Query {
        values: values.to_vec(),
        k: 1,
    };
    let wrong = SearchError::QueryNotFinite {
        query: 0,
        column: 1,
    };
    assert_eq!(
        faults::<Searching<_, Dot>>(work, &ask([1.0, 2.0]), [ask([1.0, f32::NAN])]),
        [wrong.to_string()]
    );

    let work = Assign::new(Scalar, vec![1, 2, 3, 4], 2).unwrap();
    let told = faults::<Assigning>(work, &vec![1, 2], [vec![1]]);
    assert!(told[0].contains('1') && told[0].contains('2'), "{told:?}");
    assert!(Assign::new(Scalar, vec![1, 2, 3], 2).is_err());

    let work = QuantizeRows::new(Scalar, Method::Affine);
    let wrong = QuantError::NotFinite { index: 1 };
    assert_eq!(
        faults::<Quantizing<f32>>(
            work,
            &vec![1.0; 3],
            [vec![0.0, f32::INFINITY, f32::NAN], vec![]]
        ),
        [wrong.to_string(), QuantError::Empty.to_string()]
    );
}

/// A layer without rows of weights gives each request nothing.
#[test]
fn a_layer_of_nothing_answers_nothing() {
    let layer = Layer::new(Matrix::new(Layout::Int8, 0, 3, &[]).unwrap());
    let requests = compare::activations(3, 9);
    let found = thread::scope(|scope| {
        let workers = [Worker::new("scalar", Layers::new(Scalar, layer))];
        through::<Multiply>(scope, workers, requests)
    });
    assert_eq!(found, vec![Vec::<f32>::new(); 9]);
}
