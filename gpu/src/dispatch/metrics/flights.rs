//! Calls that are under way, for who watches.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::dispatch::{Bound, Engine, Job, Prediction};

/// Calls under way, kept while somebody watches; else a call looks at one number.
#[derive(Debug, Default)]
pub(in crate::dispatch) struct Flights {
    watching: AtomicUsize,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    next: u64,
    flying: Vec<(u64, Flying)>,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying {
    pub(super) job: Job,
    pub(super) engine: Engine,
    pub(super) prediction: Option<Prediction>,
    since: Instant,
}

impl Flying {
    pub(super) fn seconds(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.since).as_secs_f64()
    }

    pub(super) fn bound(&self) -> Option<Bound> {
        self.prediction.map(|prediction| prediction.bound())
    }
}

/// A call is under way as long as this lives.
pub(in crate::dispatch) struct Flight<'a> {
    flights: &'a Flights,
    number: u64,
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, Now> {
        // Nothing panics while it is held.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more watches, until it says [`Flights::leave`].
    pub(super) fn watch(&self) {
        self.watching.fetch_add(1, Relaxed);
    }

    pub(super) fn leave(&self) {
        self.watching.fetch_sub(1, Relaxed);
    }

    /// A call begins.
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
        let flying = Flying {
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

    /// Those under way.
    pub(super) fn flying(&self) -> Vec<Flying> {
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
