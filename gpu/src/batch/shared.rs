//! The queue's state, under one lock, and the operations of submitters, workers and tickets on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lanes::{Help, Lanes, cost};
use super::line::{Entry, Line, Waits};
use super::meters::Counted;
use super::slot::{Left, Slot};
use super::stats::Tally;
use super::{BatchError, BatchJob, BatchOptions, BatchStats, Predict, Reason, Refused};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

/// The outcome of a request.
pub(super) type Outcome<J> = Result<<J as BatchJob>::Answer, BatchError<<J as BatchJob>::Error>>;
/// The slot of a request and its outcome.
pub(super) type SlotOf<J> = Slot<<J as BatchJob>::Request, Outcome<J>>;

/// Number of cancelled requests, beyond as many as wait, that may be in the line before a sweep: so that many
/// cancellations pay for each sweep.
const LITTER: usize = 64;

impl<R, A> Waits for Arc<Slot<R, A>> {
    fn is_waiting(&self) -> bool {
        Slot::is_waiting(self)
    }
}

/// Requests that will run together.
struct Formed<J: BatchJob> {
    kind: J::Kind,
    entries: Vec<Entry<Arc<SlotOf<J>>>>,
}

/// Requests that a worker has begun with.
pub(super) struct Batch<J: BatchJob> {
    pub(super) kind: J::Kind,
    pub(super) requests: Vec<J::Request>,
    pub(super) slots: Vec<Arc<SlotOf<J>>>,
}

/// Maximum time that a submitter waits for room.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    None,
    Until(Instant),
    Forever,
}

/// The end of requests whose batch has not begun when the queue closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closing {
    /// They are answered.
    Answer,
    /// Their tickets get [`BatchError::Closed`].
    Refuse,
}

struct State<J: BatchJob> {
    line: Line<J::Kind, Arc<SlotOf<J>>>,
    lanes: Lanes<Formed<J>>,
    /// Approximate number of cancelled requests in the line or in a batch.
    gone: usize,
    /// Workers that wait for work.
    idle: usize,
    /// Workers that have not ended.
    working: usize,
    /// Submitters that wait for room.
    blocked: usize,
    closing: Option<Closing>,
    stats: Counted,
}

/// State shared by a queue, its workers and its tickets.
pub(super) struct QueueCore<J: BatchJob> {
    options: BatchOptions,
    predictions: Vec<Box<dyn Predict<J::Kind>>>,
    state: Mutex<State<J>>,
    /// Notified when there is something for workers.
    work: Condvar,
    /// Notified when there is room for submitters.
    room: Condvar,
    /// Notified when a worker has ended.
    ended: Condvar,
}

impl<J: BatchJob> QueueCore<J> {
    /// Returns the state of a queue whose workers, with these names, are about to start.
    pub(super) fn new(
        options: BatchOptions,
        names: Vec<String>,
        predictions: Vec<Box<dyn Predict<J::Kind>>>,
    ) -> Self {
        let state = State {
            line: Line::new(),
            lanes: Lanes::new(names.len()),
            gone: 0,
            idle: 0,
            working: names.len(),
            blocked: 0,
            closing: None,
            stats: Counted::new(options.name, names, options.capacity),
        };
        Self {
            options,
            predictions,
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        lock(&self.state)
    }

    /// Returns the predicted cost of a batch on a worker. A prediction that panics counts against its worker.
    fn cost(&self, worker: usize, kind: &J::Kind, requests: usize) -> u64 {
        let model = self.predictions.get(worker);
        let predicted = model
            .map(|model| catch_unwind(AssertUnwindSafe(|| model.predict(kind, requests.max(1)))));
        cost(predicted.and_then(Result::ok).unwrap_or(Duration::MAX))
    }

    /// Puts a request in the line.
    pub(super) fn submit(
        &self,
        request: J::Request,
        patience: Patience,
    ) -> Result<Arc<SlotOf<J>>, Refused<J::Request>> {
        let kind = J::kind(&request);
        let mut state = self.lock();
        let mut blocked = false;
        let reason = loop {
            if state.closing.is_some() {
                break Some(Reason::Closed);
            }
            let capacity = self.options.capacity;
            if state.stats.depth.in_use < capacity {
                break None;
            }
            let until = match patience {
                Patience::Forever => None,
                Patience::Until(until) if Instant::now() < until => Some(until),
                Patience::Until(_) | Patience::None => break Some(Reason::Full { capacity }),
            };
            if !blocked {
                state.stats.block();
            }
            blocked = true;
            state.blocked += 1;
            state = wait(&self.room, state, until);
            state.blocked -= 1;
        };
        if let Some(reason) = reason {
            state.stats.refuse(reason != Reason::Closed);
            return Err(Refused { reason, request });
        }
        let slot = Arc::new(Slot::new(request));
        state.stats.enter();
        let of_kind = state.line.push(kind, Arc::clone(&slot), Instant::now());
        // The first request of a kind sets the time when it is due. A full batch is due now, and so is everything if no
        // more can come.
        let whole = of_kind.is_multiple_of(self.options.max_size);
        let full = state.stats.depth.in_use >= self.options.capacity;
        let wake = state.idle > 0 && (of_kind == 1 || whole || full);
        drop(state);
        if wake {
            self.work.notify_one();
        }
        Ok(slot)
    }

    /// Gives up a ticket; returns true if the request will be in no batch.
    pub(super) fn cancel(&self, slot: &SlotOf<J>) -> bool {
        let Left::Request(_request) = slot.cancel() else {
            return false;
        };
        let mut state = self.lock();
        state.stats.leave(1);
        state.stats.cancel();
        state.gone += 1;
        if state.gone > state.stats.depth.in_use + LITTER {
            state.gone = 0;
            state.line.sweep();
        }
        self.make_room(&state, 1);
        drop(state);
        true
    }

    /// Wakes submitters after `count` places became free.
    fn make_room(&self, state: &State<J>, count: usize) {
        match (state.blocked, count) {
            (0, _) | (_, 0) => {}
            (_, 1) => self.room.notify_one(),
            _ => self.room.notify_all(),
        }
    }

    /// Waits for the next batch of a worker; `None` when there will be no more.
    pub(super) fn next(&self, worker: usize) -> Option<Batch<J>> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if let Some(formed) = state.lanes.begin(worker, now) {
                if let Some(batch) = self.begin(&mut state, formed, now) {
                    return Some(batch);
                }
                state.lanes.end(worker);
                continue;
            }
            if self.form(&mut state, worker, now) {
                continue;
            }
            let help = state.lanes.help(worker, now, |formed: &Formed<J>| {
                self.cost(worker, &formed.kind, formed.entries.len())
            });
            let later = match help {
                Help::Taken => {
                    state.stats.help();
                    continue;
                }
                Help::Later(moment) => Some(moment),
                Help::None => None,
            };
            // The requests of a closed queue are due, so a batch would have been formed; other workers run their own
            // batches.
            if state.closing.is_some() && !state.lanes.has(worker) {
                return None;
            }
            let due = state.line.due_at(self.options.max_wait);
            let until = [later, due].into_iter().flatten().min();
            state.idle += 1;
            state = wait(&self.work, state, until);
            state.idle -= 1;
        }
    }

    /// Forms a batch that is due, and gives it to the worker that will finish it first; false if none is due.
    fn form(&self, state: &mut State<J>, worker: usize, now: Instant) -> bool {
        let full = state.stats.depth.in_use >= self.options.capacity;
        let all = full || state.closing.is_some();
        let Some((kind, count)) = state.line.due(now, &self.options, all) else {
            return false;
        };
        let (at, cost) = state.lanes.least(|at| self.cost(at, &kind, count));
        let (entries, gone) = state.line.take(&kind, count);
        state.gone = state.gone.saturating_sub(gone);
        if !entries.is_empty() {
            let formed = Formed { kind, entries };
            state.lanes.assign(at, formed, cost);
            // That worker may sleep, like others.
            if at != worker && state.idle > 0 {
                self.work.notify_all();
            }
        }
        true
    }

    /// Begins a batch with those of its requests that still wait; `None` if there are none.
    fn begin(&self, state: &mut State<J>, formed: Formed<J>, now: Instant) -> Option<Batch<J>> {
        let count = formed.entries.len();
        let (mut requests, mut slots) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for entry in formed.entries {
            if let Some(request) = entry.item.start() {
                state
                    .stats
                    .begin(now.saturating_duration_since(entry.since));
                requests.push(request);
                slots.push(entry.item);
            }
        }
        let begun = requests.len();
        state.gone = state.gone.saturating_sub(count - begun);
        state.stats.leave(begun);
        self.make_room(state, begun);
        // Another worker must watch the line while this one is busy.
        if state.idle > 0 && !state.line.is_empty() {
            self.work.notify_one();
        }
        let kind = formed.kind;
        (begun > 0).then_some(Batch {
            kind,
            requests,
            slots,
        })
    }

    /// Records that a worker has done its batch.
    pub(super) fn done(&self, worker: usize, tally: &Tally) {
        let mut state = self.lock();
        let before = state.lanes.outstanding(worker);
        state.lanes.end(worker);
        let predicted = Duration::from_nanos(before - state.lanes.outstanding(worker));
        state.stats.end(worker, tally, predicted);
    }

    /// Records that a worker has ended.
    pub(super) fn end(&self) {
        self.lock().working -= 1;
        self.ended.notify_all();
    }

    /// Stops accepting requests. A queue closed with [`Closing::Refuse`] stays so.
    pub(super) fn close(&self, closing: Closing) {
        let mut state = self.lock();
        state.closing = state.closing.max(Some(closing));
        let mut given_up = Vec::new();
        if state.closing == Some(Closing::Refuse) {
            let mut entries: Vec<_> = state.line.drain().collect();
            let formed = state.lanes.drain();
            entries.extend(formed.into_iter().flat_map(|formed| formed.entries));
            for entry in entries {
                if let Some(request) = entry.item.start() {
                    state.stats.leave(1);
                    state.stats.give_up();
                    given_up.push((entry.item, request));
                }
            }
        }
        drop(state);
        self.work.notify_all();
        self.room.notify_all();
        for (slot, _request) in given_up {
            // If the ticket is gone, nobody is informed.
            let _ = slot.finish(Err(BatchError::Closed));
        }
    }

    /// Waits until all workers have ended.
    pub(super) fn wait(&self) {
        let mut state = self.lock();
        while state.working > 0 {
            state = wait(&self.ended, state, None);
        }
    }

    pub(super) fn stats(&self) -> BatchStats {
        let state = self.lock();
        let mut stats = BatchStats::clone(&state.stats);
        for (at, worker) in stats.workers.iter_mut().enumerate() {
            worker.outstanding = Duration::from_nanos(state.lanes.outstanding(at));
        }
        stats
    }
}
