//! A worker's thread: it runs batch after batch, and answers each request once.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::shared::{Batch, Outcome, QueueCore, SlotOf};
use super::stats::Tally;
use super::{BatchError, BatchJob, Executor};

/// Runs batches until the queue has no more for this worker.
pub(super) fn serve<J: BatchJob>(
    shared: &QueueCore<J>,
    worker: usize,
    mut work: Box<dyn Executor<J> + '_>,
) {
    let _end = End(shared);
    while let Some(batch) = shared.next(worker) {
        let requests = batch.requests.len();
        let _span = tracing::trace_span!("batch", worker, requests).entered();
        let mut tally = Tally::default();
        let begun = Instant::now();
        let Batch {
            kind,
            requests,
            slots,
        } = batch;
        // Panics of the work itself are caught inside. This catches those of destructors of requests and answers.
        let done = catch_unwind(AssertUnwindSafe(|| {
            answer(&mut *work, &kind, requests, &slots, &mut tally);
        }));
        if let Err(panic) = done {
            tally.panics += 1;
            tally.failed = slots.len() as u64 - tally.answered;
            let error = BatchError::Panicked(said(&*panic));
            for slot in &slots {
                // Requests that have an answer keep it.
                let _ = slot.finish(Err(error.clone()));
            }
        }
        tally.busy = begun.elapsed();
        shared.done(worker, &tally);
    }
}

/// Records the end of a worker, however it ends.
struct End<'a, J: BatchJob>(&'a QueueCore<J>);

impl<J: BatchJob> Drop for End<'_, J> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs a batch: refuses the requests that the work refuses, and runs the others, as many at a time as there is room
/// for.
fn answer<J: BatchJob>(
    work: &mut dyn Executor<J>,
    kind: &J::Kind,
    all: Vec<J::Request>,
    slots: &[Arc<SlotOf<J>>],
    tally: &mut Tally,
) {
    let mut good = Vec::with_capacity(slots.len());
    let mut requests = Vec::with_capacity(slots.len());
    for (request, slot) in all.into_iter().zip(slots) {
        match guarded(tally, || work.check(&request)) {
            Ok(()) => {
                requests.push(request);
                good.push(Arc::clone(slot));
            }
            Err(error) => tell::<J>(slot, Err(error), tally),
        }
    }
    let mut first = 0;
    while first < requests.len() {
        let left = requests.len() - first;
        // If the work cannot even answer this, it is unlikely to do more.
        let most = guarded::<_, J::Error>(tally, || Ok(work.most(kind, left)));
        let most = most.map_or(left, |most| most.clamp(1, left));
        tally.split |= most < left;
        let part = first..first + most;
        run(work, kind, &requests[part.clone()], &good[part], tally);
        first += most;
    }
}

/// Runs a part of a batch, and repeats it in halves if that may help.
fn run<J: BatchJob>(
    work: &mut dyn Executor<J>,
    kind: &J::Kind,
    requests: &[J::Request],
    slots: &[Arc<SlotOf<J>>],
    tally: &mut Tally,
) {
    tally.sizes.push(requests.len());
    let error = match guarded(tally, || work.run(kind, requests)) {
        Ok(answers) if answers.len() == requests.len() => {
            for (slot, answer) in slots.iter().zip(answers) {
                tell::<J>(slot, Ok(answer), tally);
            }
            return;
        }
        Ok(answers) => BatchError::Miscounted {
            requests: requests.len(),
            answers: answers.len(),
        },
        Err(error) => error,
    };
    if let BatchError::Failed(error) = &error
        && requests.len() > 1
        && guarded::<_, J::Error>(tally, || Ok(work.splits(error))).unwrap_or(false)
    {
        tally.split = true;
        let half = requests.len() / 2;
        run(work, kind, &requests[..half], &slots[..half], tally);
        run(work, kind, &requests[half..], &slots[half..], tally);
        return;
    }
    for slot in slots {
        tell::<J>(slot, Err(error.clone()), tally);
    }
}

/// Gives a request its outcome, and counts it.
fn tell<J: BatchJob>(slot: &SlotOf<J>, outcome: Outcome<J>, tally: &mut Tally) {
    match outcome {
        Ok(_) => tally.answered += 1,
        Err(_) => tally.failed += 1,
    }
    // If the ticket is gone, the outcome comes back and is dropped here.
    let _ = slot.finish(outcome);
}

/// Calls a function of the work, and catches its panics.
fn guarded<T, E>(
    tally: &mut Tally,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, BatchError<E>> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| BatchError::Failed(Arc::new(error))),
        Err(panic) => {
            tally.panics += 1;
            Err(BatchError::Panicked(said(&*panic)))
        }
    }
}

/// Returns the message of a panic.
fn said(panic: &(dyn Any + Send)) -> Arc<str> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").into()
}
