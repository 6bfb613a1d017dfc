//! Several workers: who gets which batch.

use std::thread;
use std::time::Duration;

use tercet_gpu::batch::{BatchOptions, Linear, Predict, Queue, Worker};

use super::gate::{Numbers, Told, ask, gated, plus_one};

const SINGLES: BatchOptions = BatchOptions {
    max_size: 1,
    max_wait: Duration::ZERO,
    capacity: 100,
    name: "test",
};

const fn takes(millis: u64) -> Linear {
    Linear {
        launch: Duration::from_secs(60),
        each: Duration::from_millis(millis),
    }
}

/// One is held up in a batch; the other, which is three times as slow, gets what would be done later there.
#[test]
fn a_batch_goes_where_it_is_predicted_to_be_done_first() {
    struct Seconds(u64);
    impl Predict<u8> for Seconds {
        fn predict(&self, _: &u8, requests: usize) -> Duration {
            Duration::from_secs(100 * self.0 * requests as u64)
        }
    }
    let (fast, fast_gate) = gated();
    let (slow, slow_gate) = gated();
    let workers = [
        Worker::new("fast", fast).with_prediction(Seconds(1)),
        Worker::new("slow", slow).with_prediction(Seconds(3)),
    ];
    let queue = Queue::new(SINGLES, workers).unwrap();
    let mut tickets = Vec::new();
    // 100, 200 and 300 seconds there, the last as early as at the slow one, which has fewer batches.
    for number in 0..3 {
        tickets.extend(ask(&queue, [number]));
        while queue
            .stats()
            .workers
            .iter()
            .map(|w| w.outstanding.as_secs())
            .sum::<u64>()
            < [100, 200, 500][number as usize]
        {
            thread::yield_now();
        }
    }
    fast_gate.begun();
    slow_gate.begun();
    let outstanding: Vec<_> = queue
        .stats()
        .workers
        .iter()
        .map(|w| w.outstanding.as_secs())
        .collect();
    assert_eq!(outstanding, [200, 300]);
    fast_gate.go();
    slow_gate.go();
    let (fast_log, slow_log) = (fast_gate.open(), slow_gate.open());
    for (number, ticket) in (1..).zip(tickets) {
        assert_eq!(ticket.wait().unwrap(), number);
    }
    let stats = queue.shutdown();
    assert_eq!(*fast_log.lock().unwrap(), [vec![0], vec![1]]);
    assert_eq!(*slow_log.lock().unwrap(), [vec![2]]);
    assert_eq!(stats.workers[0].predicted, Duration::from_secs(200));
    assert_eq!(stats.workers[1].predicted, Duration::from_secs(300));
    assert_eq!((stats.workers[0].batches, stats.workers[1].batches), (2, 1));
    assert_eq!(stats.helped, 0);
}

/// Predicted to be fast, it hangs; the slow one takes over what has not begun.
#[test]
fn who_hangs_holds_up_only_what_has_begun() {
    let (hangs, gate) = gated();
    let each = |millis| Linear {
        launch: Duration::ZERO,
        each: Duration::from_millis(millis),
    };
    let workers = [
        Worker::new("hangs", hangs).with_prediction(each(1)),
        Worker::new("slow", Told(plus_one)).with_prediction(each(50)),
    ];
    let queue = Queue::new(SINGLES, workers).unwrap();
    let held = ask(&queue, [0]);
    gate.begun();
    let others = ask(&queue, 1..6);
    let found: Vec<_> = others.into_iter().map(|t| t.wait().unwrap()).collect();
    assert_eq!(found, [2, 3, 4, 5, 6]);
    assert!(!held[0].is_done());
    gate.go();
    drop(gate);
    assert_eq!(held.into_iter().next().unwrap().wait().unwrap(), 1);
    let stats = queue.shutdown();
    assert_eq!(stats.workers[1].requests, 5);
    assert!(stats.helped >= 1);
}

/// The first is held up in a whole batch; what is left over becomes due without a word from anybody.
#[test]
fn somebody_minds_the_line_while_a_worker_is_busy() {
    let options = BatchOptions {
        max_size: 2,
        max_wait: Duration::from_millis(10),
        capacity: 100,
        name: "test",
    };
    for _ in 0..20 {
        let (held, gate) = gated();
        let workers = [
            Worker::new("held", held),
            Worker::new("free", Told(plus_one)),
        ];
        let queue = Queue::new(options, workers).unwrap();
        let mut tickets = ask(&queue, 0..3);
        let rest = tickets.pop().unwrap();
        gate.begun();
        assert_eq!(rest.wait().unwrap(), 3);
        gate.go();
        drop(gate);
        for (number, ticket) in (1..).zip(tickets) {
            assert_eq!(ticket.wait().unwrap(), number);
        }
    }
}

/// A model that panics loses its worker the work, and nothing else.
#[test]
fn a_prediction_that_panics_is_a_bad_one() {
    struct Panics;
    impl Predict<u8> for Panics {
        fn predict(&self, _: &u8, _: usize) -> Duration {
            panic!("no idea")
        }
    }
    let workers = [
        Worker::new("panics", Told(plus_one)).with_prediction(Panics),
        Worker::new("good", Told(plus_one)).with_prediction(takes(1)),
    ];
    let queue = Queue::<Numbers>::new(SINGLES, workers).unwrap();
    for number in 0..20 {
        assert_eq!(
            queue.submit((0, number)).unwrap().wait().unwrap(),
            number + 1
        );
    }
    let stats = queue.shutdown();
    assert_eq!(stats.workers[1].requests, 20);
}

#[test]
fn predictions_saturate() {
    let linear = Linear {
        launch: Duration::from_secs(1),
        each: Duration::from_millis(2),
    };
    assert_eq!(
        Predict::<()>::predict(&linear, &(), 500),
        Duration::from_secs(2)
    );
    let most = Linear {
        launch: Duration::MAX,
        each: Duration::MAX,
    };
    assert_eq!(
        Predict::<()>::predict(&most, &(), usize::MAX),
        Duration::MAX
    );
}
