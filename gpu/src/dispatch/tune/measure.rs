//! Measures each operation on each engine, over a grid of sizes, within a budget.

use std::time::Duration;

use tercet_host::measure::date;

use super::call::with_call;
use super::case::Shape;
use super::turns::{ROUNDS, Rounds, SHORT, WARM, is_worth, take_turns, timed};
use super::{Key, Tuning};
use crate::dispatch::engine::Device;
use crate::dispatch::{
    Cost, Costs, Curve, DispatchError, Dispatcher, Engine, Job, Operation, Sample, Sweeps,
};

/// Options of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TuneOptions {
    /// Approximate time of the measurements. Inputs and calls that are longer than their share add to it: four seconds
    /// took seven to eight in all on two processors, and one second 1.6 to 1.8.
    pub budget: Duration,
    /// The largest case, in elements: values, coordinates or weights.
    pub largest: usize,
}

impl Default for TuneOptions {
    /// A budget of four seconds, up to 4 Mi elements.
    fn default() -> Self {
        Self {
            budget: Duration::from_secs(4),
            largest: 4 << 20,
        }
    }
}

impl TuneOptions {
    /// A budget of a second, up to 1 Mi elements.
    pub const fn quick() -> Self {
        Self {
            budget: Duration::from_secs(1),
            largest: 1 << 20,
        }
    }
}

/// A range of sizes at which an operation is measured, with a shape for each, and the amount that its curve depends on.
struct Sweep {
    /// Elements of the smallest case, and the factor from case to case.
    smallest: usize,
    step: usize,
    shape: fn(Operation, usize) -> Option<Shape>,
    amount: fn(&Job) -> u64,
}

/// The sweeps of [`Sweeps`]: little work per byte, much work per byte, many items.
///
/// Cases with much work start at a larger size: in smaller ones the work would be a negligible part.
const SWEEPS: [Sweep; 3] = [
    Sweep {
        smallest: 64,
        step: 4,
        shape: |operation, elements| Some(Shape::streaming(operation, elements)),
        amount: Job::bytes,
    },
    Sweep {
        smallest: 1024,
        step: 8,
        shape: Shape::busy,
        amount: |job| job.work,
    },
    Sweep {
        smallest: 1024,
        step: 11,
        shape: Shape::many,
        amount: |job| job.items,
    },
];

impl Sweep {
    fn shapes(&self, operation: Operation, largest: usize) -> Vec<Shape> {
        let sizes = sizes(self.smallest, self.step, largest);
        let shapes = sizes
            .into_iter()
            .filter_map(|size| (self.shape)(operation, size));
        shapes.collect()
    }
}

/// If a case took this many times its share of the budget, larger cases are left out: rates apply beyond the last
/// point.
const LONG: u32 = 50;
/// If all threads take the same time as one, up to this part, they did the work on one thread.
const ALIKE: f64 = 0.1;

/// A case and the times of the engines for it.
struct Taken {
    shape: Shape,
    job: Job,
    rounds: Vec<Rounds>,
}

/// Measures every operation on every engine that `dispatcher` can open. Calls `progress` with each operation as it
/// begins.
///
/// Everything is measured in twelve rounds, because other load and the sleep states of threads change over time. A time
/// is the mean of the middle half of the medians of the rounds. Memory: some 40 bytes per element of the largest case.
///
/// # Errors
/// [`DispatchError`] of an engine that failed. This can only be a device: the processor's engines refuse none of the
/// calls made here.
pub fn tune<D: Device>(
    dispatcher: &Dispatcher<D>,
    options: &TuneOptions,
    progress: &mut dyn FnMut(Operation),
) -> Result<Tuning, DispatchError> {
    let device = dispatcher.open().ok();
    let engines: Vec<Engine> = (Engine::ALL.into_iter())
        .filter(|engine| match engine {
            Engine::Cuda => device.is_some(),
            Engine::Threads => rayon::current_num_threads() > 1,
            _ => true,
        })
        .collect();
    let mut table = Operation::ALL.map(|operation| {
        let taken = |shape: Shape| Taken {
            shape,
            job: shape.job(operation),
            rounds: vec![Rounds::default(); engines.len()],
        };
        let sweep = |sweep: &Sweep| -> Vec<Taken> {
            let shapes = sweep.shapes(operation, options.largest);
            let mut taken: Vec<_> = shapes.into_iter().map(taken).collect();
            // Small cases with whole rows may be the same.
            taken.dedup_by_key(|taken| (sweep.amount)(&taken.job));
            taken
        };
        (operation, SWEEPS.each_ref().map(sweep))
    });
    let cases = table.iter().flat_map(|(_, sweeps)| sweeps).map(Vec::len);
    let turns = u32::try_from(cases.sum::<usize>() * engines.len()).unwrap_or(u32::MAX);
    // Half of the time is for waking up threads, which about half of the cases need.
    let share = options.budget / 2 / (ROUNDS * turns);
    let warm = WARM.min(options.budget / 500);
    let copies = match device {
        Some(_) => Some(copies(dispatcher, options.largest, share)?),
        None => None,
    };
    for round in 0..ROUNDS {
        for (operation, sweeps) in &mut table {
            if round == 0 {
                progress(*operation);
            }
            for sweep in sweeps {
                measure(dispatcher, *operation, sweep, &engines, (share, warm))?;
            }
        }
    }
    let mut costs = Costs::none();
    for (operation, sweeps) in &table {
        let mut one: Option<(Cost, [Vec<Sample>; 3])> = None;
        for (index, &engine) in engines.iter().enumerate() {
            let found = sweeps
                .each_ref()
                .map(|sweep| samples(sweep, &engines, index));
            let cost = match &one {
                Some((like, others)) if engine == Engine::Threads => {
                    Cost::fit_like(all(&found), like, all(others))
                }
                _ => {
                    let copies = copies.as_ref().filter(|_| engine == Engine::Cuda);
                    Cost::fit(all(&found), copies)
                }
            };
            let cost = cost.map_err(|error| DispatchError::Engine {
                engine,
                source: error.into(),
            })?;
            if engine == Engine::Simd {
                one = Some((cost.clone(), found));
            }
            costs.set(*operation, engine, cost);
        }
    }
    Ok(Tuning {
        key: Key::here(),
        device,
        made: date(),
        costs,
    })
}

const fn all(samples: &[Vec<Sample>; 3]) -> Sweeps<'_> {
    let [streaming, busy, many] = samples;
    Sweeps {
        streaming: streaming.as_slice(),
        busy: busy.as_slice(),
        many: many.as_slice(),
    }
}

/// Runs a round of a sweep: each case on every engine that did the smaller case in time.
fn measure<D: Device>(
    dispatcher: &Dispatcher<D>,
    operation: Operation,
    sweep: &mut [Taken],
    engines: &[Engine],
    (share, warm): (Duration, Duration),
) -> Result<(), DispatchError> {
    let long = (share * LONG).as_secs_f64();
    let handles: Vec<_> = engines
        .iter()
        .map(|&engine| dispatcher.on(engine))
        .collect();
    let mut able = vec![true; engines.len()];
    for taken in sweep {
        if !is_worth(share, engines, &able, &taken.rounds) {
            continue;
        }
        // All engines share one input.
        let case = taken.shape.entry(operation).build();
        with_call(&case, |call| {
            take_turns((share, warm), engines, &able, &mut taken.rounds, |index| {
                call(&handles[index])
            })
        })?;
        for (able, rounds) in able.iter_mut().zip(&taken.rounds) {
            *able &= rounds.typical() <= long;
        }
    }
    Ok(())
}

/// Returns the times of an engine over a sweep.
fn samples(sweep: &[Taken], engines: &[Engine], index: usize) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let one = engines.iter().position(|&engine| engine == Engine::Simd);
    for Taken { job, rounds, .. } in sweep {
        let seconds: Vec<f64> = rounds.iter().map(Rounds::typical).collect();
        let mut taken = seconds[index];
        // If all threads leave a call to one of them, both have the same time. A short call is such a call: a shorter
        // time is chance.
        if let Some(one) = one
            && engines[index] == Engine::Threads
            && taken < seconds[one] * (1.0 + ALIKE)
            && (taken > seconds[one] * (1.0 - ALIKE) || seconds[one] < SHORT.as_secs_f64())
        {
            taken = seconds[one];
        }
        let sample = Sample {
            bytes: job.bytes(),
            work: job.work,
            items: job.items,
            seconds: taken,
        };
        if taken.is_finite() {
            samples.push(sample);
        }
    }
    samples
}

/// Returns the sizes from the smallest up to the largest.
fn sizes(smallest: usize, step: usize, largest: usize) -> Vec<usize> {
    let next = |&size: &usize| size.checked_mul(step);
    let sizes = std::iter::successors(Some(smallest), next);
    sizes
        .take_while(|&size| size <= largest.max(smallest))
        .collect()
}

/// Measures seconds by bytes copied to the device or back.
fn copies<D: Device>(
    dispatcher: &Dispatcher<D>,
    largest: usize,
    share: Duration,
) -> Result<Curve, DispatchError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| DispatchError::Engine {
        engine: Engine::Cuda,
        source,
    };
    let mut points = Vec::new();
    for size in sizes(4096, 8, largest.saturating_mul(4)) {
        let mut bytes = vec![1; size];
        let seconds = timed(share, Duration::ZERO, || {
            dispatcher
                .with_device(|device| device.copy(&mut bytes).map_err(|it| it.to_string().into()))
                .unwrap_or_else(|| Err("closed".into()))
                .map_err(failed)
        })?;
        // Copied there and back.
        points.push((2 * size as u64, seconds));
    }
    Curve::new(points).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_up_to_the_largest() {
        assert_eq!(sizes(64, 4, 5000), [64, 256, 1024, 4096]);
        assert_eq!(sizes(64, 4, 10), [64]);
        assert_eq!(sizes(64, 4, usize::MAX).len(), 29);
    }
}
