//! What is grouped, what is refused, what is cancelled.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use tercet_gpu::batch::{
    BatchError, BatchOptions, Closing, Queue, Reason, StartError, Ticket, Worker,
};

use super::gate::{Gate, Numbers, ask, gated};

const LONG: Duration = Duration::from_secs(3600);

/// A queue whose worker is in the middle of a batch of request 0.
fn busy(options: BatchOptions) -> (Queue<Numbers>, Gate, Ticket<Numbers>) {
    let (work, gate) = gated();
    let queue = Queue::new(options, [Worker::new("gated", work)]).unwrap();
    let first = queue.submit((9, 0)).unwrap();
    gate.begun();
    (queue, gate, first)
}

const fn options(max_size: usize, capacity: usize) -> BatchOptions {
    BatchOptions {
        max_size,
        max_wait: Duration::ZERO,
        capacity,
        name: "test",
    }
}

fn answers(tickets: Vec<Ticket<Numbers>>) -> Vec<u64> {
    tickets.into_iter().map(|t| t.wait().unwrap()).collect()
}

#[test]
fn what_waits_is_grouped_by_kind_in_order() {
    let (queue, gate, first) = busy(options(3, 100));
    let kinds = [1, 1, 2, 1, 1, 2, 3];
    let tickets: Vec<_> = (1..)
        .zip(kinds)
        .map(|(number, kind)| queue.submit((kind, number)).unwrap())
        .collect();
    let log = {
        gate.go();
        gate.open()
    };
    assert_eq!(first.wait().unwrap(), 1);
    assert_eq!(answers(tickets), [2, 3, 4, 5, 6, 7, 8]);
    let stats = queue.shutdown();
    let batches = [vec![0], vec![1, 2, 4], vec![3, 6], vec![5], vec![7]];
    assert_eq!(*log.lock().unwrap(), batches);
    assert_eq!((stats.batches, stats.answered, stats.submitted), (5, 8, 8));
    assert_eq!(stats.sizes[..3], [3, 2, 0]);
    assert_eq!((stats.depth.high_water, stats.depth.in_use), (7, 0));
    assert_eq!(stats.workers[0].requests, 8);
}

#[test]
fn a_whole_batch_does_not_wait() {
    let (work, gate) = gated();
    let options = BatchOptions {
        max_size: 4,
        max_wait: LONG,
        capacity: 100,
        name: "test",
    };
    let queue = Queue::new(options, [Worker::new("gated", work)]).unwrap();
    let tickets = ask(&queue, 0..4);
    gate.begun();
    let rest = ask(&queue, 4..6);
    let log = {
        gate.go();
        gate.open()
    };
    assert_eq!(answers(tickets), [1, 2, 3, 4]);
    // Two are no batch, and would wait for an hour; closing has them done.
    assert!(!rest[0].is_done());
    queue.close(Closing::Answer);
    assert_eq!(answers(rest), [5, 6]);
    assert_eq!(*log.lock().unwrap(), [vec![0, 1, 2, 3], vec![4, 5]]);
}

#[test]
fn a_request_waits_for_others_as_long_as_it_may() {
    let (work, gate) = gated();
    let max_wait = Duration::from_millis(30);
    let options = BatchOptions {
        max_size: 100,
        max_wait,
        capacity: 100,
        name: "test",
    };
    let queue = Queue::new(options, [Worker::new("gated", work)]).unwrap();
    let log = gate.open();
    let begun = Instant::now();
    let tickets = ask(&queue, 0..3);
    assert_eq!(answers(tickets), [1, 2, 3]);
    assert!(begun.elapsed() >= max_wait);
    // All three came in far less than 30 ms, or the machine stood still: then the times say so.
    let batches = log.lock().unwrap().concat();
    assert_eq!(batches, [0, 1, 2]);
    let stats = queue.shutdown();
    assert!(stats.longest_wait >= max_wait && stats.waited >= stats.longest_wait);
}

#[test]
fn a_full_queue_refuses_waits_or_waits_for_a_while() {
    let (queue, gate, first) = busy(options(10, 2));
    let tickets = ask(&queue, 1..3);
    let refused = queue.try_submit((0, 3)).unwrap_err();
    assert_eq!(refused.reason, Reason::Full { capacity: 2 });
    assert_eq!(refused.request, (0, 3));
    assert_eq!(
        refused.to_string(),
        "the queue is full: 2 requests wait, which is its capacity"
    );
    let begun = Instant::now();
    let refused = queue.submit_within((0, 3), Duration::from_millis(20));
    assert_eq!(refused.unwrap_err().reason, Reason::Full { capacity: 2 });
    assert!(begun.elapsed() >= Duration::from_millis(20));
    let refused = queue.submit_until((0, 3), begun);
    assert_eq!(refused.unwrap_err().reason, Reason::Full { capacity: 2 });
    thread::scope(|scope| {
        let (told, heard) = channel();
        let queue = &queue;
        scope.spawn(move || {
            told.send(()).unwrap();
            let ticket = queue.submit((0, 3)).unwrap();
            assert_eq!(ticket.wait().unwrap(), 4);
        });
        heard.recv().unwrap();
        while queue.stats().blocked < 2 {
            thread::yield_now();
        }
        gate.go();
        drop(gate);
    });
    assert_eq!(first.wait().unwrap(), 1);
    assert_eq!(answers(tickets), [2, 3]);
    let stats = queue.shutdown();
    assert_eq!(
        (stats.refused, stats.depth.failures, stats.blocked),
        (3, 3, 2)
    );
    assert_eq!((stats.submitted, stats.answered), (4, 4));
}

#[test]
fn a_full_queue_does_not_wait_for_what_cannot_come() {
    let (work, gate) = gated();
    let options = BatchOptions {
        max_size: 100,
        max_wait: LONG,
        capacity: 2,
        name: "test",
    };
    let queue = Queue::new(options, [Worker::new("gated", work)]).unwrap();
    drop(gate);
    assert_eq!(answers(ask(&queue, 0..2)), [1, 2]);
}

#[test]
fn what_is_cancelled_before_its_batch_takes_no_part() {
    let (queue, gate, first) = busy(options(10, 3));
    let mut tickets = ask(&queue, 1..4);
    assert!(tickets.remove(1).cancel());
    drop(tickets.remove(0));
    // Their places are free at once.
    tickets.extend(ask(&queue, 4..6));
    assert!(queue.try_submit((0, 6)).is_err());
    // A batch has begun with the first: it goes on, and its answer is dropped.
    assert!(!first.cancel());
    let log = {
        gate.go();
        gate.open()
    };
    assert_eq!(answers(tickets), [4, 5, 6]);
    let stats = queue.shutdown();
    assert_eq!(*log.lock().unwrap(), [vec![0], vec![3, 4, 5]]);
    let counts = [
        stats.submitted,
        stats.answered,
        stats.cancelled,
        stats.refused,
    ];
    assert_eq!(counts, [6, 4, 2, 1]);
}

#[test]
fn cancelled_requests_leave_no_litter() {
    let (queue, gate, first) = busy(options(10, 10));
    let held = ask(&queue, [1]);
    for number in 0..10_000 {
        assert!(ask(&queue, [number]).remove(0).cancel());
    }
    let log = {
        gate.go();
        gate.open()
    };
    assert_eq!(answers(held), [2]);
    drop(first);
    let stats = queue.shutdown();
    assert_eq!(*log.lock().unwrap(), [vec![0], vec![1]]);
    assert_eq!((stats.cancelled, stats.depth.high_water), (10_000, 2));
}

#[test]
fn a_ticket_waits_as_long_as_told() {
    let (queue, gate, first) = busy(options(10, 10));
    let first = first.wait_for(Duration::from_millis(5)).unwrap_err();
    let first = first.wait_until(Instant::now()).unwrap_err();
    assert!(!first.is_done());
    gate.go();
    assert_eq!(first.wait_for(LONG).unwrap().unwrap(), 1);
    drop(gate);
    let ticket = queue.submit((0, 7)).unwrap();
    assert_eq!(ticket.wait_for(Duration::MAX).unwrap().unwrap(), 8);
}

#[test]
fn closing_answers_what_waits_or_refuses_it() {
    for closing in [Closing::Answer, Closing::Refuse] {
        let (queue, gate, first) = busy(options(2, 10));
        let tickets = ask(&queue, 1..6);
        queue.close(closing);
        let refused = queue.submit((0, 6)).unwrap_err();
        assert_eq!((refused.reason, refused.request), (Reason::Closed, (0, 6)));
        gate.go();
        drop(gate);
        // What has begun is answered in either case.
        assert_eq!(first.wait().unwrap(), 1);
        for (number, ticket) in (1..).zip(tickets) {
            match (closing, ticket.wait()) {
                (Closing::Answer, Ok(answer)) => assert_eq!(answer, number + 1),
                (Closing::Refuse, Err(BatchError::Closed)) => {}
                (_, outcome) => panic!("{closing:?}: {outcome:?}"),
            }
        }
        let stats = match closing {
            Closing::Answer => queue.shutdown(),
            Closing::Refuse => queue.abort(),
        };
        let closed = if closing == Closing::Refuse { 5 } else { 0 };
        assert_eq!((stats.answered, stats.closed), (6 - closed, closed));
    }
}

#[test]
fn a_blocked_submitter_hears_that_the_queue_closes() {
    let (queue, gate, first) = busy(options(1, 1));
    let waiting = ask(&queue, [1]);
    thread::scope(|scope| {
        let queue = &queue;
        let blocked = scope.spawn(move || queue.submit((0, 2)).map(|_| ()));
        while queue.stats().blocked == 0 {
            thread::yield_now();
        }
        queue.close(Closing::Refuse);
        let refused = blocked.join().unwrap().unwrap_err();
        assert_eq!(refused.reason, Reason::Closed);
    });
    gate.go();
    drop(gate);
    assert_eq!(first.wait().unwrap(), 1);
    assert!(matches!(
        waiting.into_iter().map(Ticket::wait).next(),
        Some(Err(BatchError::Closed))
    ));
}

#[test]
fn dropping_answers_what_waits_and_tickets_outlive_the_queue() {
    let (queue, gate, first) = busy(options(10, 10));
    let tickets = ask(&queue, 1..4);
    gate.go();
    drop(gate);
    drop(queue);
    assert!(tickets.iter().all(Ticket::is_done));
    assert_eq!(answers(tickets), [2, 3, 4]);
    assert_eq!(first.wait().unwrap(), 1);
}

#[test]
fn queues_without_workers_or_room_are_refused() {
    let none = Queue::<Numbers>::new(BatchOptions::default(), []);
    assert!(matches!(none, Err(StartError::NoWorker)));
    for (options, name) in [(options(0, 1), "max_size"), (options(1, 0), "capacity")] {
        let refused = Queue::new(options, [Worker::new("gated", gated().0)]).unwrap_err();
        let told = format!("{name} of a queue must be at least 1");
        assert_eq!(refused.to_string(), told);
    }
}
