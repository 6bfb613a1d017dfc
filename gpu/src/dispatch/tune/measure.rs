//! Each operation on each engine, over a grid of sizes, within a budget.

use std::time::{Duration, Instant};

use tercet_host::measure::date;

use super::case::{Case, Shape};
use super::{Key, Tuning};
use crate::dispatch::engine::Device;
use crate::dispatch::{Cost, Costs, Curve, DispatchError, Dispatcher, Engine, Operation, Sample};

/// How to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TuneOptions {
    /// About how long it may take in all.
    pub budget: Duration,
    /// The largest case, in elements: values, coordinates or weights.
    pub largest: usize,
}

impl Default for TuneOptions {
    /// Four seconds, up to 4 Mi elements.
    fn default() -> Self {
        Self {
            budget: Duration::from_secs(4),
            largest: 4 << 20,
        }
    }
}

impl TuneOptions {
    /// A second, up to 1 Mi elements.
    pub const fn quick() -> Self {
        Self {
            budget: Duration::from_secs(1),
            largest: 1 << 20,
        }
    }
}

/// Elements of the smallest case, and from case to case.
const SMALLEST: usize = 64;
const STEP: usize = 4;
/// The same of cases with much work a byte. They begin larger: what engines prepare for each query or row of activations is no work of theirs,
/// and would pass for a low rate of it.
const SMALLEST_BUSY: usize = 1024;
const STEP_BUSY: usize = 8;
/// Larger cases are left out where one took so many times its share of the budget: rates hold beyond the last point.
const LONG: u32 = 12;
/// Times that a case has at least.
const TIMES: usize = 3;
/// Calls that are shorter are timed several together.
const SHORT: Duration = Duration::from_micros(20);

/// Measures every operation on every engine that `dispatcher` can open, and hears each operation as it begins.
///
/// A time is the lower quartile of several: what else runs shows in the upper ones. Memory: some 40 bytes an element of the largest case.
///
/// # Errors
/// [`DispatchError`] of an engine that failed: a device, for the processor's refuse nothing that is asked here.
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
    let streaming = sizes(SMALLEST, STEP, options.largest);
    let busy = sizes(SMALLEST_BUSY, STEP_BUSY, options.largest);
    let cases = |operation| match Shape::busy(operation, 1) {
        Some(_) => streaming.len() + busy.len(),
        None => streaming.len(),
    };
    let cases: usize = Operation::ALL.into_iter().map(cases).sum();
    let share = options.budget / u32::try_from(cases * engines.len()).unwrap_or(u32::MAX);
    let copies = match device {
        Some(_) => Some(copies(dispatcher, options.largest, share)?),
        None => None,
    };
    let mut costs = Costs::none();
    for operation in Operation::ALL {
        progress(operation);
        // An input serves all engines.
        let mut samples = vec![[Vec::new(), Vec::new()]; engines.len()];
        let streaming = streaming
            .iter()
            .map(|&it| (0, Shape::streaming(operation, it)));
        let busy = busy
            .iter()
            .filter_map(|&it| Some((1, Shape::busy(operation, it)?)));
        let mut full = vec![[false; 2]; engines.len()];
        for (sweep, shape) in streaming.chain(busy) {
            if full.iter().all(|full| full[sweep]) {
                continue;
            }
            let mut case = Case::new(operation, shape).map_err(|error| DispatchError::Engine {
                engine: Engine::Scalar,
                source: error.to_string().into(),
            })?;
            for (index, &engine) in engines.iter().enumerate() {
                if full[index][sweep] {
                    continue;
                }
                let on = dispatcher.on(engine);
                let seconds = lower_quartile(share, || case.call(&on))?;
                full[index][sweep] = seconds > (share * LONG).as_secs_f64();
                let sample = Sample {
                    bytes: case.job.bytes(),
                    work: case.job.work,
                    seconds,
                };
                let all: &mut Vec<Sample> = &mut samples[index][sweep];
                // Small cases of whole rows may be alike.
                if all
                    .last()
                    .is_none_or(|last| last.work < sample.work && last.bytes < sample.bytes)
                {
                    all.push(sample);
                }
            }
        }
        for (&engine, [streaming, busy]) in engines.iter().zip(&samples) {
            let copies = copies.as_ref().filter(|_| engine == Engine::Cuda);
            let cost = Cost::fit(streaming, busy, copies);
            let cost = cost.map_err(|error| DispatchError::Engine {
                engine,
                source: error.into(),
            })?;
            costs.set(operation, engine, cost);
        }
    }
    Ok(Tuning {
        key: Key::here(),
        device,
        made: date(),
        costs,
    })
}

/// From the smallest on, up to the largest.
fn sizes(smallest: usize, step: usize, largest: usize) -> Vec<usize> {
    let next = |&size: &usize| size.checked_mul(step);
    let sizes = std::iter::successors(Some(smallest), next);
    sizes
        .take_while(|&size| size <= largest.max(smallest))
        .collect()
}

/// Seconds by bytes that cross to the device or back.
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
        let seconds = lower_quartile(share, || {
            dispatcher
                .with_device(|device| device.copy(&mut bytes).map_err(|it| it.to_string().into()))
                .unwrap_or_else(|| Err("closed".into()))
                .map_err(failed)
        })?;
        // There and back again.
        points.push((2 * size as u64, seconds));
    }
    Curve::new(points).map_err(|error| failed(error.into()))
}

/// The lower quartile of a call's times, of as many as fit the share, and three at least.
pub(super) fn lower_quartile<E>(
    share: Duration,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<f64, E> {
    // Faults pages in, and fills caches as calls one after another find them.
    call()?;
    let begin = Instant::now();
    let (mut times, mut calls) = (Vec::new(), 1u32);
    loop {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        let spent = start.elapsed();
        if spent < SHORT && calls < 1 << 10 {
            calls *= 2;
            continue;
        }
        times.push(spent.as_secs_f64() / f64::from(calls));
        if begin.elapsed() >= share && times.len() >= TIMES {
            break;
        }
        // One long call says what there is to say.
        if spent >= 4 * share {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 4])
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

    #[test]
    fn a_quartile_is_of_times_and_errors_pass() {
        let seconds = lower_quartile(Duration::ZERO, || {
            std::thread::sleep(Duration::from_millis(2));
            Ok::<_, ()>(())
        });
        assert!(seconds.unwrap() >= 2e-3);
        assert_eq!(lower_quartile(Duration::ZERO, || Err("no")), Err("no"));
    }
}
