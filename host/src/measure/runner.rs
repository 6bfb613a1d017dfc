//! Runs contenders in turns.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::case::Case;
use super::ceilings::Ceilings;
use super::clock::{Clock, First, Stopwatch};
use super::contender::{self, Contender};
use super::measured::{Measured, Row};
use super::memory::Growth;
use crate::simd::Backend;

/// Durations of measurements.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time for each contender of a case, without its preparation. A run that takes longer is timed twice; one that
    /// takes eight times as long, once.
    pub budget: Duration,
    /// Number of turns that a contender's time is split into, at least 1, so that a slow moment of the machine affects
    /// all contenders.
    pub rounds: usize,
    /// Time for each ceiling.
    pub ceiling: Duration,
}

impl Settings {
    /// Returns settings for results that are kept.
    pub const fn thorough() -> Self {
        Self {
            budget: Duration::from_millis(600),
            rounds: 6,
            ceiling: Duration::from_millis(80),
        }
    }

    /// Returns settings for a first look.
    pub const fn quick() -> Self {
        Self {
            budget: Duration::from_millis(60),
            rounds: 3,
            ceiling: Duration::from_millis(6),
        }
    }
}

/// Foreign code that does the work of a case on one thread. The caller must ensure that it does the same work.
pub struct Guest {
    /// Its name.
    pub name: &'static str,
    /// One run.
    pub run: Box<dyn FnMut() + Send>,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The results of a contender differ from those of the first one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{operation} of {size}: {by} gives other bits than {first}")]
pub struct WrongBits {
    /// The operation.
    pub operation: String,
    /// The size of its input.
    pub size: String,
    /// The contender.
    pub by: String,
    /// The contender with the correct bits.
    pub first: String,
}

/// Measures cases.
#[derive(Debug)]
pub struct Runner {
    pub(super) settings: Settings,
    ceilings: Ceilings,
}

impl Runner {
    /// Returns a runner with these settings.
    pub fn new(settings: Settings) -> Self {
        let ceilings = Ceilings::new(settings.ceiling);
        Self { settings, ceilings }
    }

    /// Returns the ceilings measured so far.
    pub fn ceilings(&mut self) -> &mut Ceilings {
        &mut self.ceilings
    }

    /// Lets every contender run a case once, checks that all wrote the first one's bits, and times them in turns.
    ///
    /// The speed-up is relative to the first contender. Contenders that the case is not meaningful for are left out
    /// ([`LeastWork::is_for`](super::LeastWork::is_for)).
    ///
    /// # Errors
    /// [`WrongBits`].
    pub fn run(
        &mut self,
        case: &Case,
        contenders: &[Contender],
    ) -> Result<Vec<Measured>, WrongBits> {
        self.run_beside(case, contenders, &mut [])
    }

    /// Does [`Runner::run`] with guests, whose turns and results come after those of the contenders.
    ///
    /// # Errors
    /// [`WrongBits`].
    pub fn run_beside(
        &mut self,
        case: &Case,
        contenders: &[Contender],
        guests: &mut [Guest],
    ) -> Result<Vec<Measured>, WrongBits> {
        let (found, _) = self.compete(case, contenders, guests)?;
        Ok(found)
    }

    /// Returns the times of contenders and guests, and their common bits.
    pub(super) fn compete(
        &mut self,
        case: &Case,
        contenders: &[Contender],
        guests: &mut [Guest],
    ) -> Result<(Vec<Measured>, Option<u64>), WrongBits> {
        let steps = f64::from(case.work.steps);
        let (mut trials, bits) = self.check(case, contenders)?;
        for guest in guests.iter_mut() {
            let mut first = First::new(self.settings.budget);
            first.time(&mut guest.run);
            // A guest's run is one step.
            let samples = first.sample.map(|sample| sample * steps);
            trials.push((Who::Guest(guest.name), samples.into_iter().collect(), None));
        }
        let rounds = self.settings.rounds.max(1);
        let budget = self.settings.budget.as_secs_f64();
        for round in 0..rounds {
            let mut next = guests.iter_mut();
            for (who, samples, _) in &mut trials {
                let guest = match who {
                    Who::Guest(_) => next.next(),
                    Who::Contender(_) => None,
                };
                let slow = samples.first().copied().unwrap_or(0.0);
                if slow >= budget && (round > 0 || slow >= 8.0 * budget) {
                    continue;
                }
                let mut watch = Stopwatch {
                    budget: self.settings.budget / rounds as u32,
                    samples: Vec::new(),
                };
                match (who, guest) {
                    (Who::Contender(by), _) => {
                        self.turn(case, *by, &mut watch);
                    }
                    (Who::Guest(_), Some(guest)) => {
                        watch.time(&mut guest.run);
                        watch.samples.iter_mut().for_each(|sample| *sample *= steps);
                    }
                    (Who::Guest(_), None) => {}
                }
                samples.append(&mut watch.samples);
            }
        }
        for (_, samples, _) in &mut trials {
            samples.iter_mut().for_each(|sample| *sample /= steps);
            samples.sort_by(f64::total_cmp);
        }
        // First for all of them, before any result: they are compared with the same ceilings.
        for (who, samples, _) in &trials {
            let (backend, threads) = who.held();
            (self.ceilings).doubt(&case.work, backend, threads, samples[0]);
        }
        let baseline = trials.first().map_or(0.0, |(_, samples, _)| samples[0]);
        let found = trials
            .iter()
            .map(|(who, samples, growth)| self.measured(case, *who, samples, *growth, baseline))
            .collect();
        Ok((found, bits))
    }

    /// Runs every contender once or twice, compares their bits, and returns them.
    fn check(
        &mut self,
        case: &Case,
        contenders: &[Contender],
    ) -> Result<(Vec<Trial>, Option<u64>), WrongBits> {
        let mut trials = Vec::new();
        let mut bits = None;
        for &by in contenders {
            if !case.work.is_for(by) {
                continue;
            }
            let mut first = First::new(self.settings.budget);
            let found = self.turn(case, by, &mut first);
            if *bits.get_or_insert(found) != found {
                return Err(WrongBits {
                    operation: case.operation.clone(),
                    size: case.size.clone(),
                    by: by.to_string(),
                    first: contenders[0].to_string(),
                });
            }
            let samples = first.sample.into_iter().collect();
            trials.push((Who::Contender(by), samples, first.growth));
        }
        Ok((trials, bits))
    }

    fn turn(&mut self, case: &Case, by: Contender, clock: &mut dyn Clock) -> u64 {
        self.ceilings.install(by.threads(), || case.run(by, clock))
    }

    fn measured(
        &mut self,
        case: &Case,
        who: Who,
        samples: &[f64],
        growth: Option<Growth>,
        baseline: f64,
    ) -> Measured {
        let (engine, name) = match who {
            Who::Contender(by) => (by.engine(), by.backend().isa().name()),
            Who::Guest(name) => (name, contender::GUEST),
        };
        let (backend, threads) = who.held();
        let ceiling = self.ceilings.attainable(&case.work, backend, threads);
        let row = Row {
            engine,
            backend: name,
            threads,
            device: false,
        };
        Measured::new(case, row, samples, growth, ceiling, baseline)
    }
}

/// A contender or a guest, its samples in seconds per run, and the memory of one run.
type Trial = (Who, Vec<f64>, Option<Growth>);

#[derive(Clone, Copy, Debug)]
enum Who {
    Contender(Contender),
    Guest(&'static str),
}

impl Who {
    /// Returns the instruction set and the number of threads of its ceilings.
    fn held(self) -> (Backend, usize) {
        match self {
            Self::Contender(by) => (by.backend(), by.threads()),
            Self::Guest(_) => (Backend::best(), 1),
        }
    }
}
