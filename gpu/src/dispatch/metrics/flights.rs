//! Running calls, for observers.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::dispatch::{Bound, Engine, Job, Prediction};

/// Running calls, recorded while there is an observer; otherwise a call only reads one number.
#[derive(Debug, Default)]
pub(in crate::dispatch) struct Flights {
    watching: AtomicUsize,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    next: u64,
    flying: Vec<(u64, RunningCall)>,
}

/// A running call.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningCall {
    pub(super) job: Job,
    pub(super) engine: Engine,
    pub(super) prediction: Option<Prediction>,
    since: Instant,
}

impl RunningCall {
    pub(super) fn seconds(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.since).as_secs_f64()
    }

    pub(super) fn bound(&self) -> Option<Bound> {
        self.prediction.map(|prediction| prediction.bound())
    }
}

/// A call is running as long as this lives.
pub(in crate::dispatch) struct Flight<'a> {
    flights: &'a Flights,
    number: u64,
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, Now> {
        // Nothing panics while the lock is held.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an observer, until it calls [`Flights::leave`].
    pub(super) fn watch(&self) {
        self.watching.fetch_add(1, Relaxed);
    }

    pub(super) fn leave(&self) {
        self.watching.fetch_sub(1, Relaxed);
    }

    /// Records the start of a call.
    #[inline]
    pub(in crate::dispatch) fn begin(
        &self,
        job: &Job,
        engine: Engine,
        prediction: Option<Prediction>,
    ) -> Option<Flight<'_>> {
        if self.watching.load(Relaxed) == 0 {
            return None;
        }
        let mut now = self.lock();
        let number = now.next;
        now.next += 1;
        let flying = RunningCall {
            job: *job,
            engine,
            prediction,
            since: Instant::now(),
        };
        now.flying.push((number, flying));
        drop(now);
        Some(Flight {
            flights: self,
            number,
        })
    }

    /// Returns the running calls.
    pub(super) fn flying(&self) -> Vec<RunningCall> {
        self.lock()
            .flying
            .iter()
            .map(|(_, flying)| *flying)
            .collect()
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut now = self.flights.lock();
        let mine = now
            .flying
            .iter()
            .position(|(number, _)| *number == self.number);
        if let Some(mine) = mine {
            now.flying.swap_remove(mine);
        }
    }
}
