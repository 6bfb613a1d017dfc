//! Tests the reports of where the time goes, with made-up costs: each kind of verdict, and running calls.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tercet_core::scalar::Scalar;
use tercet_host::engine::EngineError;

use super::with_costs;
use crate::dispatch::{
    Bottlenecks, Bound, Cost, Costs, Dispatcher, Engine, Job, Operation, Settings,
};

/// A job that starts, and runs until the test ends it.
struct Held {
    job: Job,
    gate: Option<(Sender<()>, Receiver<()>)>,
}

impl Held {
    fn run(self, dispatcher: &Dispatcher<Scalar>) {
        dispatcher.run(self.job, |_| self.hold()).unwrap();
    }

    fn hold(&self) -> Result<(), EngineError> {
        if let Some((begun, go)) = &self.gate {
            // The receiver may be gone.
            let _ = begun.send(());
            let _ = go.recv();
        } else {
            // Long enough that its share is not rounded away.
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(20) {}
        }
        Ok(())
    }
}

fn job(operation: Operation) -> Job {
    Job {
        work: 3000,
        ..Job::each(operation, 1000, 4000, 1000)
    }
}

fn dispatcher(costs: &[(Operation, Engine, Cost)]) -> Dispatcher<Scalar> {
    let mut all = Costs::none();
    for (operation, engine, cost) in costs {
        all.set(*operation, *engine, cost.clone());
    }
    let dispatcher = with_costs(Settings::default(), all).0;
    dispatcher.open().unwrap();
    dispatcher
}

/// Returns the report of ten calls of an operation, with a cost only for `engine`.
fn report(engine: Engine, cost: Cost) -> Bottlenecks {
    let dispatcher = dispatcher(&[(Operation::Assign, engine, cost)]);
    let mut monitor = dispatcher.monitor();
    for _ in 0..10 {
        let job = job(Operation::Assign);
        Held { job, gate: None }.run(&dispatcher);
    }
    let report = monitor.report();
    let share = &report.shares[0];
    assert_eq!(
        (report.shares.len(), report.calls, share.calls),
        (1, 10, 10)
    );
    assert_eq!((share.engine, share.running, share.share), (engine, 0, 1.0));
    assert!(report.busy > 1e-4 && report.busy <= report.seconds);
    let bytes = share.bytes_per_second * share.seconds;
    assert!((bytes - 50_000.0).abs() < 1.0, "{bytes}");
    assert_eq!(report.bound, share.bound);
    report
}

/// Returns the suggested change, and the part of the time that it would save.
fn change(report: &Bottlenecks) -> (String, f64) {
    let change = report.change.as_ref().unwrap();
    (change.to_string(), change.seconds / report.busy)
}

#[test]
fn what_mostly_starts_is_to_be_put_together() {
    let report = report(Engine::Threads, Cost::constant(1e-3, 1e9, 1e9));
    assert_eq!(report.bound, Some(Bound::Launch));
    let (text, saves) = change(&report);
    assert!(
        text.starts_with("assign: 100 % of 10 calls on threads spent most of their time starting"),
        "{text}"
    );
    assert!(saves > 0.9 && saves < 1.0, "{saves}");
    let words = report.to_string();
    assert!(
        words.contains("launch-bound\n  100.0 %  assign on threads: 10 calls, "),
        "{words}"
    );
    assert!(
        words.contains("\n  would help most: assign: 100 % of 10 calls"),
        "{words}"
    );
}

#[test]
fn what_mostly_crosses_is_to_stay() {
    let cost = Cost::constant(1e-6, 1e9, 1e9).with_transfer(5e6);
    let report = report(Engine::Cuda, cost);
    assert_eq!(report.bound, Some(Bound::Transfer));
    let (text, saves) = change(&report);
    assert!(
        text.contains("bound by copies: keep data resident there (Dispatcher::resident_points)"),
        "{text}"
    );
    // A millisecond of copies, 5 µs of memory, one of starting.
    assert!((saves - 1000.0 / 1006.0).abs() < 1e-6, "{saves}");
}

#[test]
fn what_mostly_reads_is_to_be_smaller() {
    let report = report(Engine::Threads, Cost::constant(1e-6, 5e6, 1e9));
    assert_eq!(report.bound, Some(Bound::Memory));
    let (text, saves) = change(&report);
    assert!(text.contains("half the bits per value"), "{text}");
    assert!(saves > 0.49 && saves < 0.5, "{saves}");
}

#[test]
fn what_mostly_computes_has_nothing_where_nobody_computes_faster() {
    let report = report(Engine::Threads, Cost::constant(1e-9, 1e15, 1.5e8));
    assert_eq!(report.bound, Some(Bound::Compute));
    assert_eq!(report.change, None);
    assert!(
        report
            .to_string()
            .ends_with("compute-bound for 100 % of it"),
        "{report}"
    );
}

#[test]
fn a_faster_engine_is_named_with_why_it_was_not_taken() {
    let slow = Cost::constant(1e-9, 1e15, 3e8);
    let fast = Cost::constant(1e-9, 1e15, 3e9);
    let dispatcher = dispatcher(&[
        (Operation::Assign, Engine::Scalar, slow),
        (Operation::Assign, Engine::Threads, fast),
    ]);
    let scalar = dispatcher.on(Engine::Scalar);
    let mut monitor = dispatcher.monitor();
    let held = |operation| Held {
        job: job(operation),
        gate: None,
    };
    held(Operation::Assign).run(&scalar);
    // And another call, without a known cost.
    held(Operation::Search).run(&dispatcher);
    let report = monitor.report();
    let (text, saves) = change(&report);
    let expected = "assign: threads is predicted to take 10 % of the time of scalar; it was not taken: calls ask for another engine";
    assert_eq!(text, expected);
    let assign = report
        .shares
        .iter()
        .find(|it| it.operation == Operation::Assign);
    assert!(
        (saves - 0.9 * assign.unwrap().share).abs() < 1e-3,
        "{saves}"
    );
    let search = report
        .shares
        .iter()
        .find(|it| it.operation == Operation::Search);
    assert_eq!(search.unwrap().bound, None);
    let shares: f64 = report.shares.iter().map(|it| it.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["calls"], 2);
    assert_eq!(json["bound"], "compute");
    assert_eq!(json["change"]["operation"], "assign");
}

/// A call that runs during several reports appears in each of them with its part, and in total with no more than it
/// took.
#[test]
fn calls_under_way_are_told_while_they_are() {
    let cost = Cost::constant(1e-6, 5e6, 1e9);
    let dispatcher = dispatcher(&[(Operation::Kmeans, Engine::Simd, cost)]);
    let mut monitor = dispatcher.monitor();
    let (begun, has_begun) = channel();
    let (go, may_go) = channel();
    let worker = dispatcher.clone();
    let held = Held {
        job: job(Operation::Kmeans),
        gate: Some((begun, may_go)),
    };
    let start = Instant::now();
    let thread = std::thread::spawn(move || held.run(&worker));
    has_begun.recv().unwrap();
    let mut told = 0.0;
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(5));
        let report = monitor.report();
        let share = &report.shares[0];
        assert_eq!((report.calls, share.calls, share.running), (0, 0, 1));
        assert_eq!(
            (share.operation, share.bound),
            (Operation::Kmeans, Some(Bound::Memory))
        );
        assert!(
            share.seconds >= 4e-3 && share.seconds <= report.seconds + 1e-3,
            "{report:?}"
        );
        // There is advice for running calls too.
        assert!(report.change.is_some());
        assert!(
            report
                .to_string()
                .contains("kmeans on simd: 1 under way, memory-bound"),
            "{report}"
        );
        told += share.seconds;
    }
    go.send(()).unwrap();
    thread.join().unwrap();
    let last = monitor.report();
    assert_eq!((last.calls, last.shares[0].running), (1, 0));
    told += last.shares[0].seconds;
    let metrics = dispatcher.metrics();
    assert!(
        (told - metrics.seconds).abs() < 2e-3,
        "{told}, {}",
        metrics.seconds
    );
    assert!(told <= start.elapsed().as_secs_f64());
    // Nothing is reported twice; and without an observer, nothing is recorded.
    assert!(monitor.report().shares.is_empty());
    drop(monitor);
    assert!(
        dispatcher
            .shared
            .flights
            .begin(&job(Operation::Kmeans), Engine::Simd, None)
            .is_none()
    );
}

#[test]
fn an_interval_is_the_difference_of_its_ends() {
    let cost = Cost::constant(1e-6, 5e6, 1e9);
    let dispatcher = dispatcher(&[
        (Operation::Assign, Engine::Simd, cost.clone()),
        (Operation::Search, Engine::Threads, cost),
    ]);
    let run = |operation| {
        let job = job(operation);
        Held { job, gate: None }.run(&dispatcher);
    };
    run(Operation::Assign);
    let first = dispatcher.metrics();
    for _ in 0..3 {
        run(Operation::Search);
    }
    let second = dispatcher.metrics();
    let interval = second.since(&first);
    assert_eq!((interval.calls, interval.elements), (3, 3000));
    // An engine without work in the interval is not in it.
    let [search] = &interval.engines[..] else {
        panic!("{interval:?}")
    };
    assert_eq!(
        search,
        second.of(Operation::Search, Engine::Threads).unwrap()
    );
    assert_eq!((search.work, search.memory_bound), (9000, 3));
    assert!((search.bound_seconds.memory - search.seconds).abs() < 1e-9);
    run(Operation::Search);
    let more = dispatcher.metrics().since(&second);
    assert_eq!(more.engines[0].calls, 1);
    assert_eq!(more.engines[0].latencies.iter().sum::<u64>(), 1);
    assert!(
        dispatcher
            .metrics()
            .since(&dispatcher.metrics())
            .engines
            .is_empty()
    );
}
