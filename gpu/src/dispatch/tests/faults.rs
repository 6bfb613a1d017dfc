//! Engines that fail: the next one finishes the call, with the same bits and one warning.

use tercet_core::engine::Refused;
use tercet_core::scalar::Scalar;
use tercet_host::engine::EngineError;

use super::with_costs;
use crate::dispatch::{
    Cost, Costs, DispatchError, Dispatcher, Engine, Job, Notice, Operation, Settings,
};

/// Writes the squares of its input; the first engines to try write half of them and fail.
struct Squares<'a> {
    of: &'a [u64],
    out: &'a mut [u64],
    failures: Vec<EngineError>,
    asked: &'a mut u32,
}

impl Squares<'_> {
    fn run(mut self, dispatcher: &Dispatcher<Scalar>) -> Result<u64, DispatchError> {
        let n = self.of.len() as u64;
        let job = Job::each(Operation::Search, n, 8 * n, 8 * n);
        dispatcher.run(job, |_| self.square())
    }

    fn square(&mut self) -> Result<u64, EngineError> {
        *self.asked += 1;
        let failure = self.failures.pop();
        let half = match failure {
            Some(_) => self.of.len() / 2,
            None => self.of.len(),
        };
        for (of, out) in self.of.iter().zip(&mut *self.out).take(half) {
            *out = of * of + u64::from(failure.is_some());
        }
        failure.map_or(Ok(half as u64), Err)
    }
}

/// The device is best, then all threads, then one.
fn costs() -> Costs {
    let mut costs = Costs::none();
    for (engine, seconds) in [
        (Engine::Cuda, 1e-6),
        (Engine::Threads, 2e-6),
        (Engine::Simd, 4e-6),
    ] {
        costs.set(
            Operation::Search,
            engine,
            Cost::constant(seconds, 1e18, 1e18),
        );
    }
    costs
}

fn broken() -> EngineError {
    EngineError::Failed("it burns".into())
}

fn no_room() -> EngineError {
    EngineError::NoRoom("full".into())
}

#[test]
fn the_next_engine_finishes_with_the_same_bits_and_one_warning() {
    for (failures, next, warnings) in [
        (vec![broken()], Engine::Threads, 1),
        (vec![no_room()], Engine::Threads, 1),
        (vec![no_room(), broken()], Engine::Simd, 2),
    ] {
        let (dispatcher, told) = with_costs(Settings::default(), costs());
        dispatcher.open().unwrap();
        told.lock().unwrap().clear();
        let (mut out, mut asked) = ([0; 5], 0);
        let count = failures.len() as u32;
        let done = Squares {
            of: &[1, 2, 3, 4, 5],
            out: &mut out,
            failures,
            asked: &mut asked,
        }
        .run(&dispatcher);
        assert_eq!(done.unwrap(), 5);
        assert_eq!(out, [1, 4, 9, 16, 25]);
        assert_eq!(asked, count + 1);
        let told = told.lock().unwrap();
        assert_eq!(told.len(), warnings, "{told:?}");
        assert!(matches!(
            told[0],
            Notice::Failed {
                engine: Engine::Cuda,
                next: Engine::Threads,
                ..
            }
        ));
        let metrics = dispatcher.metrics();
        assert_eq!((metrics.calls, metrics.fallbacks), (1, 1));
        assert_eq!(metrics.of(Operation::Search, next).unwrap().finished, 1);
        assert_eq!(
            metrics
                .of(Operation::Search, Engine::Cuda)
                .unwrap()
                .failures,
            1
        );
        let advice: Vec<_> = dispatcher
            .recommend()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(
            advice
                .iter()
                .any(|it| it.contains("1 of 1 calls failed on cuda")),
            "{advice:?}"
        );
    }
}

#[test]
fn the_last_engine_left_is_the_reference() {
    let (dispatcher, _) = with_costs(Settings::default(), costs());
    dispatcher.open().unwrap();
    let (mut out, mut asked) = ([0; 3], 0);
    let done = Squares {
        of: &[1, 2, 3],
        out: &mut out,
        failures: vec![broken(), broken(), broken()],
        asked: &mut asked,
    }
    .run(&dispatcher);
    assert_eq!((done.unwrap(), out, asked), (3, [1, 4, 9], 4));
    let metrics = dispatcher.metrics();
    assert_eq!(
        metrics
            .of(Operation::Search, Engine::Scalar)
            .unwrap()
            .finished,
        1
    );
}

#[test]
fn a_device_that_fails_again_and_again_is_given_up_and_one_without_room_is_not() {
    for (fault, gives_up) in [(broken as fn() -> EngineError, true), (no_room, false)] {
        let (dispatcher, told) = with_costs(Settings::default(), costs());
        dispatcher.open().unwrap();
        let mut asked = 0;
        for _ in 0..5 {
            let done = Squares {
                of: &[7],
                out: &mut [0],
                failures: vec![fault()],
                asked: &mut asked,
            }
            .run(&dispatcher);
            // Once the device is given up, the first engine is one of the processor's; if that fails, the next
            // continues too.
            done.unwrap();
        }
        let failures = dispatcher.metrics();
        let failures = failures
            .of(Operation::Search, Engine::Cuda)
            .unwrap()
            .failures;
        assert_eq!(failures, if gives_up { 3 } else { 5 });
        let told = told.lock().unwrap();
        let given_up = told
            .iter()
            .filter(|it| matches!(it, Notice::Failed { given_up: true, .. }));
        assert_eq!(given_up.count(), usize::from(gives_up));
        // One notice for opening the device, and one for each call.
        assert_eq!(told.len(), 1 + 5);
    }
}

#[test]
fn what_every_engine_refuses_is_the_callers_and_asked_once() {
    let (dispatcher, told) = with_costs(Settings::default(), costs());
    dispatcher.open().unwrap();
    told.lock().unwrap().clear();
    let mut asked = 0;
    let refusal = tercet_core::search::SearchError::Threshold;
    let done = Squares {
        of: &[7],
        out: &mut [0],
        failures: vec![refusal.into()],
        asked: &mut asked,
    }
    .run(&dispatcher);
    assert!(
        matches!(done, Err(DispatchError::Refused(Refused::Search(found))) if found == refusal)
    );
    assert_eq!((asked, dispatcher.metrics().refused), (1, 1));
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn a_forced_engine_that_fails_is_an_error() {
    let (dispatcher, _) = with_costs(Settings::default(), costs());
    let mut asked = 0;
    let done = Squares {
        of: &[7],
        out: &mut [0],
        failures: vec![broken()],
        asked: &mut asked,
    }
    .run(&dispatcher.on(Engine::Cuda));
    assert_eq!(done.unwrap_err().to_string(), "cuda failed: it burns");
    assert_eq!(asked, 1);
}

#[test]
fn a_device_of_another_kind_than_was_measured_gets_built_in_costs() {
    use crate::dispatch::tune::{Key, Tuning};
    use crate::dispatch::{Builder, TuningFile};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuning.json");
    for (device, forgotten) in [("scalar", false), ("another", true)] {
        let tuning = Tuning {
            key: Key::here(),
            device: Some(device.into()),
            made: "2026-01-31".into(),
            costs: costs(),
        };
        tuning.write(&path).unwrap();
        let settings = Settings {
            tuning: TuningFile::At(path.clone()),
            ..Settings::default()
        };
        let dispatcher = Builder::new(settings).device(|| Ok(Scalar)).build();
        assert_eq!(dispatcher.origin(), "costs measured here on 2026-01-31");
        dispatcher.open().unwrap();
        let found = dispatcher
            .costs()
            .get(Operation::Search, Engine::Cuda)
            .unwrap();
        let builtin = Costs::builtin(1);
        let builtin = builtin.get(Operation::Search, Engine::Cuda).unwrap();
        assert_eq!(found == builtin, forgotten, "{device}");
        // Costs missing in the file are built in.
        assert!(
            dispatcher
                .costs()
                .get(Operation::Decode, Engine::Simd)
                .is_some()
        );
    }
}
