//! The queue, step by step on one thread, beside a list.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::shared::{Closing, Patience, Shared};
use super::{BatchError, BatchOptions, Job, Linear, Reason, Ticket};

/// Requests are numbers, of kinds.
struct Numbers;

impl Job for Numbers {
    type Request = (u8, usize);
    type Answer = usize;
    type Error = String;
    type Kind = u8;

    fn kind(&(kind, _): &(u8, usize)) -> u8 {
        kind
    }
}

#[derive(Clone, Debug)]
enum Step {
    Submit(u8),
    /// The ticket of this place among those held.
    Cancel(usize),
    Work,
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_u8).prop_map(Step::Submit),
        3 => (0..64_usize).prop_map(Step::Cancel),
        2 => Just(Step::Work),
        1 => Just(Step::Fail),
    ]
}

/// What the queue should hold.
#[derive(Default)]
struct Model {
    waiting: Vec<(u8, usize)>,
}

impl Model {
    /// The requests of the next batch: as many of the first's kind as may be.
    fn next(&mut self, max_size: usize) -> Vec<(u8, usize)> {
        let kind = self.waiting[0].0;
        let mut batch: Vec<_> = self.waiting.clone();
        batch.retain(|request| request.0 == kind);
        batch.truncate(max_size);
        self.waiting.retain(|request| !batch.contains(request));
        batch
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
        let options = BatchOptions { max_size, max_wait: Duration::ZERO, capacity };
        let predictions = vec![Box::new(Linear::default()) as _];
        let shared = Arc::new(Shared::<Numbers>::new(options, vec!["one".into()], predictions));
        let mut model = Model::default();
        let mut tickets: Vec<((u8, usize), Ticket<Numbers>)> = Vec::new();
        let (mut taken, mut answered, mut failed) = (0, 0, 0);
        let (mut cancelled, mut full, mut batches) = (0, 0, 0);
        let work = |model: &mut Model, fails: bool, tickets: &mut Vec<((u8, usize), Ticket<Numbers>)>| {
            let expected = model.next(max_size);
            let batch = shared.next(0).unwrap();
            assert_eq!(batch.requests, expected);
            for (slot, request) in batch.slots.iter().zip(&expected) {
                let outcome = if fails {
                    Err(BatchError::Failed(Arc::new("no".to_owned())))
                } else {
                    Ok(10 * request.1)
                };
                assert!(slot.finish(outcome).is_ok());
            }
            let mut tally = super::stats::Tally { sizes: vec![expected.len()], ..Default::default() };
            *if fails { &mut tally.failed } else { &mut tally.answered } = expected.len() as u64;
            shared.done(0, &tally);
            // Every second ticket is read, the others are dropped unread.
            let mut at = 0;
            while at < tickets.len() {
                if !expected.contains(&tickets[at].0) {
                    at += 1;
                    continue;
                }
                let (request, ticket) = tickets.remove(at);
                assert!(ticket.is_done());
                if request.1 % 2 == 0 {
                    match ticket.wait() {
                        Ok(answer) => assert_eq!((answer, fails), (10 * request.1, false)),
                        Err(BatchError::Failed(error)) => assert_eq!((&**error, fails), ("no", true)),
                        Err(other) => panic!("{other}"),
                    }
                }
            }
            expected.len() as u64
        };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Submit(kind) => {
                    let request = (kind, number);
                    match shared.submit(request, Patience::None) {
                        Ok(slot) => {
                            prop_assert!(model.waiting.len() < capacity);
                            model.waiting.push(request);
                            tickets.push((request, Ticket::new(slot, Arc::clone(&shared))));
                            taken += 1;
                        }
                        Err(refused) => {
                            prop_assert_eq!(model.waiting.len(), capacity);
                            prop_assert_eq!(refused.reason, Reason::Full { capacity });
                            prop_assert_eq!(refused.request, request);
                            full += 1;
                        }
                    }
                }
                Step::Cancel(at) if !tickets.is_empty() => {
                    let (request, ticket) = tickets.remove(at % tickets.len());
                    prop_assert!(ticket.cancel());
                    model.waiting.retain(|waiting| *waiting != request);
                    cancelled += 1;
                }
                Step::Work | Step::Fail if !model.waiting.is_empty() => {
                    let fails = matches!(step, Step::Fail);
                    let count = work(&mut model, fails, &mut tickets);
                    *if fails { &mut failed } else { &mut answered } += count;
                    batches += 1;
                }
                _ => {}
            }
            let depth = shared.stats().depth;
            prop_assert_eq!(depth.in_use, model.waiting.len());
        }
        shared.close(closing);
        let left = model.waiting.len() as u64;
        let mut closed = 0;
        if closing == Closing::Refuse {
            closed = left;
            for (_, ticket) in tickets.drain(..) {
                prop_assert!(matches!(ticket.wait(), Err(BatchError::Closed)));
            }
        } else {
            while !model.waiting.is_empty() {
                answered += work(&mut model, false, &mut tickets);
                batches += 1;
            }
        }
        prop_assert!(shared.next(0).is_none());
        prop_assert!(tickets.is_empty());
        let refused = shared.submit((0, 0), Patience::Forever).map(|_| ()).unwrap_err();
        prop_assert_eq!(refused.reason, Reason::Closed);
        let stats = shared.stats();
        prop_assert_eq!(
            [stats.submitted, stats.answered, stats.failed, stats.cancelled, stats.closed, stats.refused, stats.batches],
            [taken, answered, failed, cancelled, closed, full + 1, batches]
        );
        prop_assert_eq!(taken, answered + failed + cancelled + closed);
        prop_assert_eq!((stats.depth.in_use, u64::from(stats.depth.failures)), (0, full));
        prop_assert!(stats.depth.high_water <= capacity);
    }
}
