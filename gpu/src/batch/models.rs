//! Models of the queue under loom, which runs them in every order that the memory model allows.
//! `.ci/steps/loom.sh` starts them. Nothing is timed: a batch is due as soon as a worker is free.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use loom::thread;

use super::serve::serve;
use super::shared::{Closing, Patience, QueueCore};
use super::slot::{Left, Slot};
use super::{BatchError, BatchJob, BatchOptions, Executor, Linear, Reason, Ticket};

/// The answer is the request.
struct Echo;

impl BatchJob for Echo {
    type Request = usize;
    type Answer = usize;
    type Error = ();
    type Kind = ();

    fn kind(_: &usize) {}
}

/// Counts how often each request was run.
struct Counting(Arc<[AtomicUsize; 2]>);

impl Executor<Echo> for Counting {
    fn run(&mut self, (): &(), requests: &[usize]) -> Result<Vec<usize>, ()> {
        for &request in requests {
            self.0[request].fetch_add(1, Relaxed);
        }
        Ok(requests.to_vec())
    }
}

fn shared(workers: usize, max_size: usize, capacity: usize) -> Arc<QueueCore<Echo>> {
    let options = BatchOptions {
        max_size,
        max_wait: Duration::ZERO,
        capacity,
        name: "test",
    };
    let names = vec![String::new(); workers];
    let predictions = (0..workers).map(|_| Box::new(Linear::default()) as _);
    Arc::new(QueueCore::new(options, names, predictions.collect()))
}

fn worker(
    shared: &Arc<QueueCore<Echo>>,
    at: usize,
    runs: &Arc<[AtomicUsize; 2]>,
) -> thread::JoinHandle<()> {
    let (shared, work) = (Arc::clone(shared), Counting(Arc::clone(runs)));
    thread::spawn(move || serve(&shared, at, Box::new(work)))
}

fn submitted(shared: &Arc<QueueCore<Echo>>, request: usize) -> Ticket<Echo> {
    let slot = shared.submit(request, Patience::Forever).unwrap();
    Ticket::new(slot, Arc::clone(shared))
}

/// Two preemptions cover every relevant order of the critical sections of three threads, and keep the model short.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(run);
}

#[test]
fn a_slot_is_started_or_cancelled_and_answered_once() {
    loom::model(|| {
        let slot = Arc::new(Slot::<u32, u32>::new(7));
        let worker = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.start().map(|request| slot.finish(request + 1)))
        };
        let owner = thread::spawn(move || slot.cancel());
        match (worker.join().unwrap(), owner.join().unwrap()) {
            // It was in no batch.
            (None, Left::Request(7)) => {}
            // Either the answer came first and the canceller drops it, or it came last and is returned.
            (Some(Ok(())), Left::Begun(Some(8))) | (Some(Err(8)), Left::Begun(None)) => {}
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_waiter_is_woken_once_the_answer_is_there() {
    loom::model(|| {
        let slot = Arc::new(Slot::<u32, u32>::new(7));
        let worker = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                let request = slot.start().unwrap();
                slot.finish(request + 1)
            })
        };
        let owner = thread::spawn(move || slot.wait(None));
        assert_eq!(worker.join().unwrap(), Ok(()));
        assert_eq!(owner.join().unwrap(), Some(8));
    });
}

/// Two submitters, one of which cancels its request, one place in the queue, one worker.
#[test]
fn no_request_is_lost_and_none_is_run_twice() {
    model(|| {
        let shared = shared(1, 2, 1);
        let runs = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let worker = worker(&shared, 0, &runs);
        let waits = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || submitted(&shared, 0).wait().unwrap())
        };
        let cancels = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || submitted(&shared, 1).cancel())
        };
        assert_eq!(waits.join().unwrap(), 0);
        let cancelled = cancels.join().unwrap();
        shared.close(Closing::Answer);
        worker.join().unwrap();
        assert_eq!(runs[0].load(Relaxed), 1);
        assert_eq!(runs[1].load(Relaxed), usize::from(!cancelled));
        let stats = shared.stats();
        let counts = (stats.submitted, stats.answered, stats.cancelled);
        assert_eq!(counts, (2, 2 - u64::from(cancelled), u64::from(cancelled)));
        assert_eq!((stats.depth.in_use, stats.depth.high_water), (0, 1));
    });
}

/// A submitter and two workers: any of them forms the batch, one runs it, and both end.
#[test]
fn two_workers_do_a_request_once() {
    model(|| {
        let shared = shared(2, 1, 2);
        let runs = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let workers = [worker(&shared, 0, &runs), worker(&shared, 1, &runs)];
        let first = submitted(&shared, 0);
        let second = submitted(&shared, 1);
        assert_eq!((first.wait().unwrap(), second.wait().unwrap()), (0, 1));
        shared.close(Closing::Answer);
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!([0, 1].map(|at: usize| runs[at].load(Relaxed)), [1, 1]);
    });
}

/// Closing meets a submitter: the request is refused, given up or answered, and is run only in the last case.
#[test]
fn closing_tells_everyone_once() {
    model(|| {
        let shared = shared(1, 2, 2);
        let runs = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let worker = worker(&shared, 0, &runs);
        let submitter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || match shared.submit(0, Patience::Forever) {
                Ok(slot) => Some(Ticket::new(slot, shared).wait()),
                Err(refused) => {
                    assert_eq!(refused.reason, Reason::Closed);
                    None
                }
            })
        };
        shared.close(Closing::Refuse);
        let outcome = submitter.join().unwrap();
        worker.join().unwrap();
        shared.wait();
        let stats = shared.stats();
        let counts = [stats.submitted, stats.answered, stats.closed, stats.refused];
        match outcome {
            None => assert_eq!(counts, [0, 0, 0, 1]),
            Some(Ok(answer)) => assert_eq!((answer, counts), (0, [1, 1, 0, 0])),
            Some(Err(BatchError::Closed)) => assert_eq!(counts, [1, 0, 1, 0]),
            Some(Err(other)) => panic!("{other:?}"),
        }
        assert_eq!(runs[0].load(Relaxed) as u64, stats.answered);
    });
}
