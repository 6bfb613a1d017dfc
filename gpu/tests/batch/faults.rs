//! Executor that fails, panics or miscounts: every request of it hears so once, and the queue goes on.

use std::time::Duration;

use tercet_gpu::batch::{BatchError, BatchOptions, Executor, Queue, Ticket, Worker};

use super::gate::{BAD, Numbers, Told, WORSE, ask, plus_one};

/// A queue that runs three requests at once.
fn threes(work: impl Executor<Numbers> + 'static) -> Queue<Numbers> {
    let options = BatchOptions {
        max_size: 3,
        max_wait: Duration::from_secs(3600),
        capacity: 100,
        name: "test",
    };
    Queue::new(options, [Worker::new("told", work)]).unwrap()
}

type Outcome = Result<u64, BatchError<String>>;

fn outcomes(tickets: Vec<Ticket<Numbers>>) -> Vec<Outcome> {
    tickets.into_iter().map(Ticket::wait).collect()
}

/// Checks that a batch fails whole, as told, and that the next one is answered.
fn fails_once(
    mut fail: impl FnMut() -> Result<Vec<u64>, String> + Send + 'static,
    told: impl Fn(&BatchError<String>) -> bool,
    panics: u64,
) {
    let mut first = true;
    let queue = threes(Told(move |numbers: &[u64]| {
        if std::mem::take(&mut first) {
            return fail();
        }
        plus_one(numbers)
    }));
    let failed = outcomes(ask(&queue, 0..3));
    assert!(
        failed
            .iter()
            .all(|outcome| outcome.as_ref().is_err_and(&told)),
        "{failed:?}"
    );
    let answered = outcomes(ask(&queue, 3..6));
    assert_eq!(
        answered.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
        [4, 5, 6]
    );
    let stats = queue.shutdown();
    let counts = [stats.submitted, stats.failed, stats.answered, stats.panics];
    assert_eq!(counts, [6, 3, 3, panics]);
    assert_eq!(stats.batches, 2);
}

#[test]
fn a_run_that_fails_tells_each_of_its_requests() {
    fails_once(
        || Err("no device".to_owned()),
        |error| matches!(error, BatchError::Failed(text) if **text == "no device"),
        0,
    );
}

#[test]
fn a_run_that_panics_tells_each_of_its_requests() {
    fails_once(
        || panic!("in mid-batch"),
        |error| matches!(error, BatchError::Panicked(text) if &**text == "in mid-batch"),
        1,
    );
}

#[test]
fn a_run_that_miscounts_answers_nobody() {
    for answers in [2, 4] {
        fails_once(
            move || Ok(vec![9; answers]),
            move |error| {
                let &BatchError::Miscounted {
                    requests,
                    answers: found,
                } = error
                else {
                    return false;
                };
                (requests, found) == (3, answers)
            },
            0,
        );
    }
}

#[test]
fn a_bad_request_fails_alone() {
    let queue = threes(Told(plus_one));
    let found = outcomes(ask(&queue, [1, BAD, 2]));
    assert_eq!(
        (found[0].as_ref().ok(), found[2].as_ref().ok()),
        (Some(&2), Some(&3))
    );
    assert_eq!(found[1].as_ref().unwrap_err().to_string(), "a bad number");
    let found = outcomes(ask(&queue, [WORSE, 3, 4]));
    assert!(matches!(&found[0], Err(BatchError::Panicked(text)) if &**text == "a worse number"));
    assert_eq!(
        (found[1].as_ref().ok(), found[2].as_ref().ok()),
        (Some(&4), Some(&5))
    );
    let found = outcomes(ask(&queue, [BAD, BAD, BAD]));
    assert!(found.iter().all(Result::is_err));
    let stats = queue.shutdown();
    // Nothing is run of a batch that has no good request.
    assert_eq!((stats.batches, stats.answered, stats.failed), (2, 4, 5));
    assert_eq!(stats.sizes[..3], [0, 2, 0]);
}

#[test]
fn what_is_too_much_at_once_is_run_in_halves() {
    let queue = threes(Told(|numbers: &[u64]| match numbers.len() {
        1 if numbers[0] == 7 => Err("too many".to_owned()),
        1 => plus_one(numbers),
        _ => Err("too many".to_owned()),
    }));
    let found = outcomes(ask(&queue, [6, 7, 8]));
    assert_eq!(
        (found[0].as_ref().ok(), found[2].as_ref().ok()),
        (Some(&7), Some(&9))
    );
    assert_eq!(found[1].as_ref().unwrap_err().to_string(), "too many");
    let stats = queue.shutdown();
    // 3, then 1 and 2, then 1 and 1.
    assert_eq!((stats.batches, stats.split), (5, 1));
    assert_eq!((stats.answered, stats.failed), (2, 1));
}

/// Says how many it has room for.
struct Little(usize);

impl Executor<Numbers> for Little {
    fn most(&self, _: &u8, wanted: usize) -> usize {
        assert!(wanted > 0);
        self.0
    }

    fn run(&mut self, _: &u8, requests: &[(u8, u64)]) -> Result<Vec<u64>, String> {
        assert!(requests.len() <= self.0.max(1));
        Ok(requests.iter().map(|request| request.1 + 1).collect())
    }
}

#[test]
fn a_batch_is_run_in_parts_for_which_there_is_room() {
    for (room, runs, split) in [(0, 3, 1), (1, 3, 1), (2, 2, 1), (3, 1, 0), (99, 1, 0)] {
        let queue = threes(Little(room));
        let found = outcomes(ask(&queue, 0..3));
        let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
        assert_eq!(found, [1, 2, 3], "{room}");
        let stats = queue.shutdown();
        assert_eq!((stats.batches, stats.split), (runs, split), "{room}");
    }
}

/// A request whose destructor panics.
struct Mine(u64);

impl Drop for Mine {
    fn drop(&mut self) {
        assert!(self.0 != 5, "stepped on");
    }
}

struct Mines;

impl tercet_gpu::batch::BatchJob for Mines {
    type Request = Mine;
    type Answer = u64;
    type Error = String;
    type Kind = ();

    fn kind(_: &Mine) {}
}

impl Executor<Mines> for () {
    fn run(&mut self, (): &(), requests: &[Mine]) -> Result<Vec<u64>, String> {
        Ok(requests.iter().map(|mine| mine.0).collect())
    }
}

#[test]
fn destructors_of_requests_that_panic_end_no_worker() {
    let options = BatchOptions {
        max_size: 1,
        ..BatchOptions::default()
    };
    let queue = Queue::<Mines>::new(options, [Worker::new("mines", ())]).unwrap();
    for number in 0..10 {
        let answer = queue.submit(Mine(number)).unwrap().wait();
        // It was answered before the request was dropped.
        assert_eq!(answer.unwrap(), number);
    }
    let stats = queue.shutdown();
    assert_eq!((stats.answered, stats.failed, stats.panics), (10, 0, 1));
}
