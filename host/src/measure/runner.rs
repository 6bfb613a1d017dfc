//! Contenders in turns.

use std::time::{Duration, Instant};

use serde::Serialize;
use thiserror::Error;

use super::case::Case;
use super::ceilings::Ceilings;
use super::clock::{Clock, Stopwatch};
use super::contender::{self, Contender};
use super::memory::Growth;
use super::work::{Arithmetic, Bound};

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time for each contender of a case, what it prepares not counted. A run that takes longer is timed once.
    pub budget: Duration,
    /// Turns that a contender's time is cut into, at least 1, so that a slow moment of the machine falls on all.
    pub rounds: usize,
    /// Rounds of which a ceiling is the best.
    pub ceiling_rounds: usize,
}

impl Settings {
    /// For figures to keep.
    pub const fn thorough() -> Self {
        Self {
            budget: Duration::from_millis(600),
            rounds: 6,
            ceiling_rounds: 8,
        }
    }

    /// For a first look.
    pub const fn quick() -> Self {
        Self {
            budget: Duration::from_millis(60),
            rounds: 3,
            ceiling_rounds: 3,
        }
    }
}

/// What a contender took for a case. Serialized, times are in seconds and rates a second.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// The operation.
    pub operation: String,
    /// The size of its input, in words.
    pub size: String,
    /// Values in the input.
    pub values: usize,
    /// `scalar` or `threads`.
    pub engine: &'static str,
    /// The instruction set.
    pub backend: &'static str,
    /// How many threads.
    pub threads: usize,
    /// The best time.
    pub seconds: f64,
    /// The median time.
    pub median_seconds: f64,
    /// How many were taken.
    pub samples: usize,
    /// Values in the best time.
    pub values_per_second: f64,
    /// Bytes that any implementation must move.
    pub bytes: usize,
    /// Those in the best time.
    pub bytes_per_second: f64,
    /// Multiply-adds that any implementation must do; 0 where the work is of another kind.
    pub products: u64,
    /// What is multiplied.
    pub arithmetic: Arithmetic,
    /// Those in the best time.
    pub products_per_second: f64,
    /// The least time by the ceilings of this machine.
    pub attainable_seconds: f64,
    /// What it is set by.
    pub bound: Bound,
    /// That over the best time: 1 is the roofline.
    pub roofline: f64,
    /// The first contender's time over this one's, best times both.
    pub speedup: f64,
    /// Resident memory of the process at its largest during a run, inputs included; `None` where that is not told.
    pub peak_memory: Option<u64>,
    /// By how much a run added to it.
    pub added_memory: Option<u64>,
}

impl Measured {
    /// The contender, as [`Contender`] shows itself.
    pub fn contender(&self) -> String {
        contender::name(self.engine, self.backend, self.threads)
    }
}

/// A contender's results are not those of the first one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{operation} of {size}: {by} gives other bits than {first}")]
pub struct WrongBits {
    /// The operation.
    pub operation: String,
    /// The size of its input.
    pub size: String,
    /// Who.
    pub by: String,
    /// Whose bits are right.
    pub first: String,
}

/// Measures cases.
#[derive(Debug)]
pub struct Runner {
    settings: Settings,
    ceilings: Ceilings,
}

impl Runner {
    /// Measures as long as the settings say.
    pub fn new(settings: Settings) -> Self {
        let ceilings = Ceilings::new(settings.ceiling_rounds);
        Self { settings, ceilings }
    }

    /// The ceilings measured so far.
    pub fn ceilings(&mut self) -> &mut Ceilings {
        &mut self.ceilings
    }

    /// Has every contender run a case once, checks that all wrote the first one's bits, and times them in turns.
    ///
    /// The speed-up is over the first contender. Where an operation is not shared over threads, contenders of several are left out.
    ///
    /// # Errors
    /// [`WrongBits`].
    pub fn run(
        &mut self,
        case: &Case,
        contenders: &[Contender],
    ) -> Result<Vec<Measured>, WrongBits> {
        let mut trials: Vec<(Contender, Vec<f64>, Option<Growth>)> = Vec::new();
        let mut bits = None;
        for &by in contenders {
            if by.threads() > 1 && !case.work.shared {
                continue;
            }
            let mut first = First {
                budget: self.settings.budget,
                ..First::default()
            };
            let found = self.turn(case, by, &mut first);
            if *bits.get_or_insert(found) != found {
                return Err(WrongBits {
                    operation: case.operation.clone(),
                    size: case.size.clone(),
                    by: by.to_string(),
                    first: contenders[0].to_string(),
                });
            }
            trials.push((by, first.sample.into_iter().collect(), first.growth));
        }
        let rounds = self.settings.rounds.max(1);
        for _ in 0..rounds {
            for (by, samples, _) in &mut trials {
                let slow = samples.first().copied().unwrap_or(0.0);
                if slow >= self.settings.budget.as_secs_f64() {
                    continue;
                }
                let mut watch = Stopwatch {
                    budget: self.settings.budget / rounds as u32,
                    samples: Vec::new(),
                };
                self.turn(case, *by, &mut watch);
                samples.append(&mut watch.samples);
            }
        }
        let steps = f64::from(case.work.steps);
        for (_, samples, _) in &mut trials {
            samples.iter_mut().for_each(|sample| *sample /= steps);
            samples.sort_by(f64::total_cmp);
        }
        let baseline = trials.first().map_or(0.0, |(_, samples, _)| samples[0]);
        Ok(trials
            .iter()
            .map(|(by, samples, growth)| self.measured(case, *by, samples, *growth, baseline))
            .collect())
    }

    fn turn(&mut self, case: &Case, by: Contender, clock: &mut dyn Clock) -> u64 {
        self.ceilings.install(by.threads(), || case.run(by, clock))
    }

    fn measured(
        &mut self,
        case: &Case,
        by: Contender,
        samples: &[f64],
        growth: Option<Growth>,
        baseline: f64,
    ) -> Measured {
        let work = &case.work;
        let seconds = samples[0];
        let (attainable, bound) = self.ceilings.attainable(work, by.backend(), by.threads());
        Measured {
            operation: case.operation.clone(),
            size: case.size.clone(),
            values: work.values,
            engine: by.engine(),
            backend: by.backend().isa().name(),
            threads: by.threads(),
            seconds,
            median_seconds: samples[samples.len() / 2],
            samples: samples.len(),
            values_per_second: work.values as f64 / seconds,
            bytes: work.bytes(),
            bytes_per_second: work.bytes() as f64 / seconds,
            products: work.products,
            arithmetic: work.arithmetic,
            products_per_second: work.products as f64 / seconds,
            attainable_seconds: attainable,
            bound,
            roofline: attainable / seconds,
            speedup: baseline / seconds,
            peak_memory: growth.map(|growth| growth.peak),
            added_memory: growth.map(|growth| growth.added),
        }
    }
}

/// The run whose result is checked, and one more to see what memory it takes. A slow run is timed here, since what it costs to
/// fault pages in does not show.
#[derive(Default)]
struct First {
    budget: Duration,
    sample: Option<f64>,
    growth: Option<Growth>,
}

impl Clock for First {
    fn time(&mut self, work: &mut (dyn FnMut() + Send)) {
        let start = Instant::now();
        work();
        let spent = start.elapsed();
        if spent >= self.budget {
            self.sample = Some(spent.as_secs_f64());
        } else {
            self.growth = Growth::of(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::catalogue;
    use crate::simd::Backend;

    #[test]
    fn contenders_are_timed_beside_the_first() {
        let mut runner = Runner::new(Settings {
            budget: Duration::from_millis(2),
            rounds: 2,
            ceiling_rounds: 1,
        });
        let contenders = [
            Contender::Scalar,
            Contender::Threads {
                backend: Backend::best(),
                threads: 2,
            },
        ];
        for name in ["int8 rows", "k-means step", "matvec tq2_0"] {
            let entry = catalogue(Some(1 << 15)).find(|entry| entry.operation == name);
            let case = entry.expect("it is listed").build();
            let results = runner.run(&case, &contenders).expect("equal bits");
            assert_eq!(results.len(), 2);
            assert_eq!(results[0].speedup, 1.0);
            for found in &results {
                assert!(found.seconds > 0.0 && found.seconds <= found.median_seconds);
                assert!(found.roofline > 0.0 && found.samples >= 1, "{found:?}");
                let ratio = results[0].seconds / found.seconds;
                assert!((found.speedup - ratio).abs() < 1e-12);
            }
        }
    }
}
