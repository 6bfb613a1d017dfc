//! Assigns batches to workers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum predicted time of a batch, in nanoseconds: 13 days, so that no sum overflows.
const LONGEST: u64 = 1 << 50;

/// Converts a predicted time to whole nanoseconds, at least one, so that free batches are shared out too.
pub(super) fn cost(predicted: Duration) -> u64 {
    u64::try_from(predicted.as_nanos()).map_or(LONGEST, |nanos| nanos.clamp(1, LONGEST))
}

/// The pending work of one worker.
#[derive(Debug)]
struct Lane<B> {
    /// Batches assigned to it, and their costs.
    assigned: VecDeque<(B, u64)>,
    /// Start and cost of the running batch.
    running: Option<(Instant, u64)>,
    /// Total cost of all of them.
    outstanding: u64,
}

impl<B> Lane<B> {
    fn batches(&self) -> usize {
        self.assigned.len() + usize::from(self.running.is_some())
    }
}

/// The workers' batches.
#[derive(Debug)]
pub(super) struct Lanes<B>(Vec<Lane<B>>);

/// The result of an idle worker's attempt to take another's batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Help {
    /// It has taken a batch.
    Taken,
    /// Not before this moment, if nothing changes.
    Later(Instant),
    /// No worker needs help.
    None,
}

impl<B> Lanes<B> {
    pub(super) fn new(workers: usize) -> Self {
        let lane = || Lane {
            assigned: VecDeque::new(),
            running: None,
            outstanding: 0,
        };
        Self((0..workers).map(|_| lane()).collect())
    }

    /// Returns the worker that would finish one more batch first, from the batch's cost on each worker. Ties go to the
    /// worker with the fewest batches, then to the first. O(workers).
    pub(super) fn least(&self, cost: impl Fn(usize) -> u64) -> (usize, u64) {
        let lanes = self.0.iter().enumerate();
        let choices = lanes.map(|(at, lane)| {
            let cost = cost(at);
            (lane.outstanding + cost, lane.batches(), at, cost)
        });
        choices.min().map_or((0, 1), |(_, _, at, cost)| (at, cost))
    }

    pub(super) fn assign(&mut self, worker: usize, batch: B, cost: u64) {
        if let Some(lane) = self.0.get_mut(worker) {
            lane.assigned.push_back((batch, cost));
            lane.outstanding += cost;
        }
    }

    /// Starts and returns a worker's next batch.
    pub(super) fn begin(&mut self, worker: usize, now: Instant) -> Option<B> {
        let lane = self.0.get_mut(worker)?;
        let (batch, cost) = lane.assigned.pop_front()?;
        lane.running = Some((now, cost));
        Some(batch)
    }

    /// Ends a worker's batch.
    pub(super) fn end(&mut self, worker: usize) {
        if let Some(lane) = self.0.get_mut(worker)
            && let Some((_, cost)) = lane.running.take()
        {
            lane.outstanding -= cost;
        }
    }

    /// True if a worker has batches to begin.
    pub(super) fn has(&self, worker: usize) -> bool {
        let lane = self.0.get(worker);
        lane.is_some_and(|lane| !lane.assigned.is_empty())
    }

    /// Returns the predicted nanoseconds of a worker's remaining work.
    pub(super) fn outstanding(&self, worker: usize) -> u64 {
        self.0.get(worker).map_or(0, |lane| lane.outstanding)
    }

    /// For an idle worker: takes the last batch of a worker that is late with its running batch by more than the
    /// helper's cost for the batch. So wrong predictions, and a worker that hangs, delay nothing for long. O(workers).
    pub(super) fn help(&mut self, helper: usize, now: Instant, cost: impl Fn(&B) -> u64) -> Help {
        let moment = |lane: &Lane<B>| {
            let (since, running) = lane.running?;
            let (last, _) = lane.assigned.back()?;
            let cost = cost(last);
            Some((since + Duration::from_nanos(running + cost), cost))
        };
        let moments = self.0.iter().enumerate().filter(|&(at, _)| at != helper);
        let first = moments
            .filter_map(|(at, lane)| moment(lane).map(|(when, cost)| (when, at, cost)))
            .min();
        let Some((when, at, new)) = first else {
            return Help::None;
        };
        if when > now {
            return Help::Later(when);
        }
        let lane = self.0.get_mut(at);
        let taken = lane.and_then(|lane| {
            let (batch, cost) = lane.assigned.pop_back()?;
            lane.outstanding -= cost;
            Some(batch)
        });
        let Some(batch) = taken else {
            return Help::None;
        };
        self.assign(helper, batch, new);
        Help::Taken
    }

    /// Takes all batches that have not begun.
    pub(super) fn drain(&mut self) -> Vec<B> {
        let mut all = Vec::new();
        for lane in &mut self.0 {
            for (batch, cost) in lane.assigned.drain(..) {
                lane.outstanding -= cost;
                all.push(batch);
            }
        }
        all
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const fn ns(nanos: u64) -> Duration {
        Duration::from_nanos(nanos)
    }

    #[test]
    fn costs_are_whole_and_bounded() {
        assert_eq!(cost(Duration::ZERO), 1);
        assert_eq!(cost(ns(7)), 7);
        assert_eq!(cost(Duration::MAX), LONGEST);
    }

    #[test]
    fn batches_go_where_they_are_done_first() {
        let mut lanes = Lanes::new(3);
        // The second worker takes half as long, the third ten times.
        let each = |at: usize| [100, 50, 1000][at];
        let mut chosen = Vec::new();
        for batch in 0..7 {
            let (at, cost) = lanes.least(each);
            assert_eq!(cost, each(at));
            lanes.assign(at, batch, cost);
            chosen.push(at);
        }
        // Done at 50 by the second; 100 on both, the first has fewer; 150; 200; 200 …
        assert_eq!(chosen, [1, 0, 1, 1, 0, 1, 1]);
        assert_eq!(lanes.outstanding(1), 250);
        let now = Instant::now();
        assert_eq!(lanes.begin(1, now), Some(0));
        assert_eq!(lanes.outstanding(1), 250);
        lanes.end(1);
        lanes.end(1);
        assert_eq!(lanes.outstanding(1), 200);
        assert_eq!(lanes.drain().len(), 6);
        assert_eq!([0, 1, 2].map(|at| lanes.outstanding(at)), [0; 3]);
    }

    #[test]
    fn free_batches_are_shared_out_in_turns() {
        let mut lanes = Lanes::new(2);
        for batch in 0..6 {
            let (at, cost) = lanes.least(|_| cost(Duration::ZERO));
            assert_eq!(at, batch % 2);
            lanes.assign(at, batch, cost);
        }
    }

    #[test]
    fn only_who_is_late_is_helped() {
        let start = Instant::now();
        let mut lanes = Lanes::new(2);
        for batch in ["under way", "next", "last"] {
            lanes.assign(0, batch, 100);
        }
        // Not from a worker that has not begun one: it may be about to.
        assert_eq!(lanes.help(1, start, |_| 30), Help::None);
        assert_eq!(lanes.begin(0, start), Some("under way"));
        let late = start + ns(130);
        assert_eq!(lanes.help(1, start, |_| 30), Help::Later(late));
        assert_eq!(lanes.help(1, late, |_| 30), Help::Taken);
        assert_eq!((lanes.outstanding(0), lanes.outstanding(1)), (200, 30));
        assert_eq!(lanes.begin(1, late), Some("last"));
        // No worker helps itself.
        assert_eq!(lanes.help(0, late, |_| 30), Help::None);
    }
}
