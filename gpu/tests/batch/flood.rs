//! Many requests from many threads: the counts add up, and memory is bounded.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tercet_gpu::batch::{
    BatchError, BatchJob, BatchOptions, Executor, Queue, Reason, Ticket, Worker,
};

/// Requests that exist, and the most that did.
static ALIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counted(u64);

impl Counted {
    fn new(number: u64) -> Self {
        MOST.fetch_max(ALIVE.fetch_add(1, Relaxed) + 1, Relaxed);
        Self(number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
    }
}

struct Flood;

impl BatchJob for Flood {
    type Request = Counted;
    type Answer = Counted;
    type Error = u64;
    type Kind = u64;

    fn kind(request: &Counted) -> u64 {
        request.0 % 3
    }
}

/// Fails, panics, or answers, by the first of a batch; counts what it has run.
struct Mixed<'a>(&'a AtomicUsize);

impl Executor<Flood> for Mixed<'_> {
    fn check(&self, request: &Counted) -> Result<(), u64> {
        if request.0.is_multiple_of(101) {
            Err(request.0)
        } else {
            Ok(())
        }
    }

    fn run(&mut self, kind: &u64, requests: &[Counted]) -> Result<Vec<Counted>, u64> {
        self.0.fetch_add(requests.len(), Relaxed);
        assert!(requests.iter().all(|request| request.0 % 3 == *kind));
        match requests[0].0 % 997 {
            0 => Err(requests[0].0),
            _ => Ok(requests.iter().map(|x| Counted::new(2 * x.0)).collect()),
        }
    }
}

const THREADS: u64 = 8;
const EACH: u64 = 40_000;
const CAPACITY: usize = 256;
const MAX_SIZE: usize = 32;
const WORKERS: usize = 3;
/// Tickets that a thread holds at a time.
const HELD: usize = 64;

#[derive(Default)]
struct Told {
    answered: u64,
    failed: u64,
    refused: u64,
    cancelled: u64,
    unread: u64,
}

/// Reads what a ticket has come to.
fn read(number: u64, ticket: Ticket<Flood>, told: &mut Told) {
    match ticket.wait() {
        Ok(answer) => {
            assert_eq!(answer.0, 2 * number);
            told.answered += 1;
        }
        Err(BatchError::Failed(error)) => {
            assert!(error.is_multiple_of(101) || error.is_multiple_of(997));
            told.failed += 1;
        }
        Err(other) => panic!("{number}: {other}"),
    }
}

fn submit(queue: &Queue<Flood>, number: u64, told: &mut Told) -> Option<Ticket<Flood>> {
    let request = Counted::new(number);
    let submitted = match number % 5 {
        0 => queue.try_submit(request),
        1 => queue.submit_within(request, Duration::from_micros(200)),
        _ => queue.submit(request),
    };
    match submitted {
        Ok(ticket) => Some(ticket),
        Err(refused) => {
            assert_eq!(refused.reason, Reason::Full { capacity: CAPACITY });
            assert_eq!(refused.request.0, number);
            told.refused += 1;
            None
        }
    }
}

fn thread(queue: &Queue<Flood>, first: u64) -> Told {
    let (mut told, mut held) = (Told::default(), Vec::with_capacity(HELD));
    for number in first..first + EACH {
        let Some(ticket) = submit(queue, number, &mut told) else {
            continue;
        };
        if number % 11 > 0 {
            held.push((number, ticket));
        } else if ticket.cancel() {
            told.cancelled += 1;
        } else {
            told.unread += 1;
        }
        if held.len() == HELD {
            for (number, ticket) in held.drain(..) {
                read(number, ticket, &mut told);
            }
        }
    }
    for (number, ticket) in held {
        read(number, ticket, &mut told);
    }
    told
}

#[test]
fn in_a_flood_every_request_ends_once_and_few_exist() {
    let options = BatchOptions {
        max_size: MAX_SIZE,
        max_wait: Duration::from_micros(50),
        capacity: CAPACITY,
        name: "test",
    };
    let run = AtomicUsize::new(0);
    let (told, stats) = thread::scope(|scope| {
        let workers = (0..WORKERS).map(|at| Worker::new(format!("worker {at}"), Mixed(&run)));
        let queue = Queue::in_scope(scope, options, workers).unwrap();
        let told: Vec<Told> = thread::scope(|submitters| {
            let queue = &queue;
            let firsts = (0..THREADS).map(|at| at * EACH);
            let threads = firsts.map(|first| submitters.spawn(move || thread(queue, first)));
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        (told, queue.shutdown())
    });
    let sum = |of: fn(&Told) -> u64| told.iter().map(of).sum::<u64>();
    let (answered, failed) = (sum(|t| t.answered), sum(|t| t.failed));
    let (cancelled, unread) = (sum(|t| t.cancelled), sum(|t| t.unread));
    let refused = sum(|t| t.refused);
    assert_eq!(stats.submitted, THREADS * EACH - refused);
    assert_eq!(stats.refused, refused);
    assert_eq!(stats.cancelled, cancelled);
    assert_eq!(stats.answered + stats.failed, answered + failed + unread);
    assert!(stats.answered >= answered && stats.failed >= failed);
    assert_eq!(
        stats.submitted,
        stats.answered + stats.failed + stats.cancelled
    );
    assert_eq!((stats.closed, stats.panics, stats.depth.in_use), (0, 0, 0));
    assert!(stats.depth.high_water <= CAPACITY);
    // Some of those run failed with their batch; what was refused alone was not run.
    let run = run.load(Relaxed) as u64;
    assert!(stats.answered <= run && run <= stats.answered + stats.failed);
    assert_eq!(stats.sizes.iter().sum::<u64>(), stats.batches);
    assert!(
        stats.sizes[6..].iter().all(|&count| count == 0),
        "more than 32"
    );
    let by_worker = stats.workers.iter().map(|worker| worker.requests);
    assert_eq!(by_worker.sum::<u64>(), stats.answered + stats.failed);
    // Requests: those that wait, a batch and its answers at each worker, one in each submitter's hand; answers in
    // tickets.
    let most = CAPACITY + WORKERS * 2 * MAX_SIZE + THREADS as usize * (HELD + 1);
    assert!(MOST.load(Relaxed) <= most, "{}", MOST.load(Relaxed));
    assert_eq!(ALIVE.load(Relaxed), 0);
}
