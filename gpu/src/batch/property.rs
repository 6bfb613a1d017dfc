//! The queue, step by step on one thread, compared with a list.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::shared::{Closing, Patience, QueueCore};
use super::stats::Tally;
use super::{BatchError, BatchJob, BatchOptions, Linear, Reason, Ticket};

/// Requests are numbers of several kinds.
struct Numbers;

impl BatchJob for Numbers {
    type Request = (u8, usize);
    type Answer = usize;
    type Error = String;
    type Kind = u8;

    fn kind(&(kind, _): &(u8, usize)) -> u8 {
        kind
    }
}

#[derive(Clone, Debug)]
enum Action {
    Submit(u8),
    /// Cancels the ticket at this place among those held.
    Cancel(usize),
    Work,
    Fail,
}

fn step() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..3_u8).prop_map(Action::Submit),
        3 => (0..64_usize).prop_map(Action::Cancel),
        2 => Just(Action::Work),
        1 => Just(Action::Fail),
    ]
}

type Request = (u8, usize);

/// A queue whose only worker is the test, with its expected content and counts.
struct Run {
    options: BatchOptions,
    shared: Arc<QueueCore<Numbers>>,
    waiting: Vec<Request>,
    tickets: Vec<(Request, Ticket<Numbers>)>,
    taken: u64,
    answered: u64,
    failed: u64,
    cancelled: u64,
    full: u64,
    batches: u64,
}

impl Run {
    fn new(options: BatchOptions) -> Self {
        let predictions = vec![Box::new(Linear::default()) as _];
        let shared = QueueCore::new(options, vec!["one".to_owned()], predictions);
        Self {
            options,
            shared: Arc::new(shared),
            waiting: Vec::new(),
            tickets: Vec::new(),
            taken: 0,
            answered: 0,
            failed: 0,
            cancelled: 0,
            full: 0,
            batches: 0,
        }
    }

    fn submit(&mut self, request: Request) {
        let capacity = self.options.capacity;
        match self.shared.submit(request, Patience::None) {
            Ok(slot) => {
                assert!(self.waiting.len() < capacity);
                let ticket = Ticket::new(slot, Arc::clone(&self.shared));
                self.waiting.push(request);
                self.tickets.push((request, ticket));
                self.taken += 1;
            }
            Err(refused) => {
                assert_eq!(self.waiting.len(), capacity);
                assert_eq!(refused.reason, Reason::Full { capacity });
                assert_eq!(refused.request, request);
                self.full += 1;
            }
        }
    }

    fn cancel(&mut self, at: usize) {
        let (request, ticket) = self.tickets.remove(at);
        assert!(ticket.cancel());
        self.waiting.retain(|waiting| *waiting != request);
        self.cancelled += 1;
    }

    /// Returns the requests of the next batch: as many of the first one's kind as allowed.
    fn due(&mut self) -> Vec<Request> {
        let kind = self.waiting[0].0;
        let of_kind = self.waiting.iter().copied().filter(|r| r.0 == kind);
        let batch: Vec<_> = of_kind.take(self.options.max_size).collect();
        self.waiting.retain(|request| !batch.contains(request));
        batch
    }

    /// Runs the next batch, which exists.
    fn work(&mut self, fails: bool) {
        let expected = self.due();
        let batch = self.shared.next(0).unwrap();
        assert_eq!(batch.requests, expected);
        for (slot, request) in batch.slots.iter().zip(&expected) {
            let outcome = match fails {
                true => Err(BatchError::Failed(Arc::new("no".to_owned()))),
                false => Ok(10 * request.1),
            };
            assert!(slot.finish(outcome).is_ok());
        }
        let count = expected.len() as u64;
        let mut tally = Tally {
            sizes: vec![expected.len()],
            ..Tally::default()
        };
        if fails {
            (tally.failed, self.failed) = (count, self.failed + count);
        } else {
            (tally.answered, self.answered) = (count, self.answered + count);
        }
        self.shared.done(0, &tally);
        self.batches += 1;
        self.read(&expected, fails);
    }

    /// Reads every second ticket, and drops the others unread.
    fn read(&mut self, requests: &[Request], fails: bool) {
        let tickets = std::mem::take(&mut self.tickets);
        let (done, waiting) = tickets
            .into_iter()
            .partition(|(request, _)| requests.contains(request));
        self.tickets = waiting;
        for (request, ticket) in done {
            assert!(ticket.is_done());
            if request.1 % 2 == 1 {
                continue;
            }
            match ticket.wait() {
                Ok(answer) => assert_eq!((answer, fails), (10 * request.1, false)),
                Err(BatchError::Failed(error)) => assert_eq!((&**error, fails), ("no", true)),
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Closes it, and checks the counts.
    fn end(mut self, closing: Closing) {
        self.shared.close(closing);
        let mut closed = 0;
        if closing == Closing::Refuse {
            closed = self.waiting.len() as u64;
            for (_, ticket) in self.tickets.drain(..) {
                assert!(matches!(ticket.wait(), Err(BatchError::Closed)));
            }
        } else {
            while !self.waiting.is_empty() {
                self.work(false);
            }
        }
        assert!(self.shared.next(0).is_none());
        assert!(self.tickets.is_empty());
        let refused = self.shared.submit((0, 0), Patience::Forever);
        assert_eq!(refused.err().unwrap().reason, Reason::Closed);
        let stats = self.shared.stats();
        let found = [
            stats.submitted,
            stats.answered,
            stats.failed,
            stats.cancelled,
        ];
        assert_eq!(
            found,
            [self.taken, self.answered, self.failed, self.cancelled]
        );
        let found = [stats.closed, stats.refused, stats.batches];
        assert_eq!(found, [closed, self.full + 1, self.batches]);
        let ended = self.answered + self.failed + self.cancelled + closed;
        assert_eq!(self.taken, ended);
        let depth = stats.depth;
        assert_eq!((depth.in_use, u64::from(depth.failures)), (0, self.full));
        assert!(depth.high_water <= self.options.capacity);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_queue_does_as_a_list_would(
        steps in prop::collection::vec(step(), 0..200),
        max_size in 1..6_usize,
        capacity in 1..20_usize,
        closing in prop_oneof![Just(Closing::Answer), Just(Closing::Refuse)],
    ) {
        let mut run = Run::new(BatchOptions { max_size, max_wait: Duration::ZERO, capacity, name: "test" });
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Action::Submit(kind) => run.submit((kind, number)),
                Action::Cancel(at) if !run.tickets.is_empty() => run.cancel(at % run.tickets.len()),
                Action::Work if !run.waiting.is_empty() => run.work(false),
                Action::Fail if !run.waiting.is_empty() => run.work(true),
                _ => {}
            }
            prop_assert_eq!(run.shared.stats().depth.in_use, run.waiting.len());
        }
        run.end(closing);
    }
}
