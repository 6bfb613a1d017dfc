//! A dispatcher's reports about its work: figures, advice, and a live view of where the time goes.

use std::fmt;
use std::time::Instant;

use super::bottleneck::{Bottlenecks, InFlight, Observed};
use super::{Flights, Metrics};
use crate::dispatch::advice::{Machine, Why};
use crate::dispatch::choose::State;
use crate::dispatch::{Advice, Device, Dispatcher, Engine, First, Job};

/// Reports where a dispatcher's time goes. Each report covers the time since the last one, running calls included.
///
/// While a monitor exists, each call is recorded as it begins, which takes some hundred nanoseconds; without one, a
/// call only reads one number. Calls that began before the monitor are counted when they end.
///
/// ```
/// use tercet_core::block::Format;
/// use tercet_gpu::dispatch::{Dispatcher, Engine, Operation, Settings};
///
/// let dispatcher = Dispatcher::new(Settings::default());
/// let mut monitor = dispatcher.monitor();
/// let mut floats = [0.0; 32];
/// dispatcher.on(Engine::Scalar).decode(Format::Q8_0, &[1; 34], &mut floats)?;
/// let report = monitor.report();
/// assert_eq!((report.calls, report.shares[0].operation), (1, Operation::Decode));
/// println!("{report}");
/// // Nothing since.
/// assert_eq!(monitor.report().calls, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Monitor<D: Device = First> {
    dispatcher: Dispatcher<D>,
    at: Instant,
    before: Metrics,
    air: InFlight,
}

impl<D: Device> Dispatcher<D> {
    /// Returns the figures of the work so far.
    pub fn metrics(&self) -> Metrics {
        self.shared.counters.snapshot()
    }

    /// Returns what would be faster, from the work so far; empty if nothing is known to be.
    pub fn recommend(&self) -> Vec<Advice> {
        let why = |job: &Job, engine| self.why_not(job, engine);
        self.advisor(&why).advise(&self.metrics())
    }

    /// Returns the inputs of advice.
    fn advisor<'a>(&'a self, why: Why<'a>) -> Machine<'a> {
        let shared = &*self.shared;
        Machine {
            costs: self.costs(),
            source: shared.source,
            best: shared.best.as_ref(),
            settings: self.settings(),
            // If its costs were measured, there is a device, even before it is opened.
            device: match shared.device.state() {
                State::Open => true,
                State::Closed(_) => shared.costs_of.is_some(),
                State::Missing | State::GivenUp => false,
            },
            why,
        }
    }

    /// Returns why an engine that is predicted to be faster did not do a job.
    fn why_not(&self, job: &Job, engine: Engine) -> String {
        let explanation = self.explain(job);
        if explanation.chosen == Some(engine) {
            return "calls ask for another engine".to_owned();
        }
        let mut all = explanation.candidates.into_iter();
        let found = all.find(|candidate| candidate.engine == engine);
        found.map_or_else(String::new, |candidate| candidate.why)
    }

    /// Starts to observe where the time goes.
    pub fn monitor(&self) -> Monitor<D> {
        let flights = &self.shared.flights;
        flights.watch();
        let at = Instant::now();
        Monitor {
            before: self.metrics(),
            air: InFlight::of(&flights.flying(), at),
            at,
            dispatcher: self.clone(),
        }
    }
}

impl<D: Device> Monitor<D> {
    fn flights(&self) -> &Flights {
        &self.dispatcher.shared.flights
    }

    /// Reports where the time went since the last call of this function, or since [`Dispatcher::monitor`].
    pub fn report(&mut self) -> Bottlenecks {
        // A call that ends between these two lines is missed here and counted in the next report; in the other order it
        // would be counted twice.
        let metrics = self.dispatcher.metrics();
        let flying = self.flights().flying();
        let now = Instant::now();
        let air = InFlight::of(&flying, now);
        let seen = Observed {
            seconds: now.saturating_duration_since(self.at).as_secs_f64(),
            done: metrics.since(&self.before),
            flying: &flying,
            before: &self.air,
            now: &air,
        };
        let dispatcher = &self.dispatcher;
        let why = |job: &Job, engine| dispatcher.why_not(job, engine);
        let report = seen.report(&dispatcher.advisor(&why));
        (self.at, self.before, self.air) = (now, metrics, air);
        report
    }
}

impl<D: Device> Drop for Monitor<D> {
    fn drop(&mut self) {
        self.flights().leave();
    }
}

impl<D: Device> fmt::Debug for Monitor<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("dispatcher", &self.dispatcher)
            .finish_non_exhaustive()
    }
}
