//! The model follows engines with made-up times, and on request those of this machine.

use std::time::Duration;
use tercet_core::number::Random;

use super::with_costs;
use crate::dispatch::tune::{TuneOptions, agreement, check, check_up_to, tune};
use crate::dispatch::{Cost, Costs, Curve, Engine, Job, Operation, Sample, Settings, Sweeps};

/// An engine with a made-up time: caches that end, a rate of arithmetic, copies.
#[derive(Clone, Copy, Debug)]
struct MadeUp {
    launch: f64,
    near: f64,
    far: f64,
    cache: f64,
    rate: f64,
    each: f64,
    copies: f64,
}

impl MadeUp {
    fn seconds(&self, job: &Job) -> f64 {
        let bytes = job.bytes() as f64;
        let near = bytes.min(self.cache) / self.near;
        let memory = near + (bytes - self.cache).max(0.0) / self.far;
        self.launch
            + job.items as f64 * self.each
            + bytes / self.copies
            + memory.max(job.work as f64 / self.rate)
    }
}

fn job(elements: u64, work: u64) -> Job {
    Job {
        work: elements * work,
        ..Job::each(Operation::Matmul, elements, elements, elements)
    }
}

fn with_items(job: Job, items: u64) -> Job {
    Job { items, ..job }
}

/// One core, all cores, and a device, each slightly varied.
fn engines(random: &mut Random) -> [MadeUp; 3] {
    // Between half and twice, as often below 1 as above.
    let [a, b, c, d, e, f] =
        [(); 6].map(|()| 2.0f64.powf(random.below(2001) as f64 / 1000.0 - 1.0));
    let simd = MadeUp {
        launch: 2e-7 * a,
        near: 4e10 * b,
        far: 1e10 * c,
        cache: 1e6 * d,
        rate: 4e10 * e,
        each: 1e-8 * f,
        copies: f64::INFINITY,
    };
    let threads = MadeUp {
        launch: 2e-5 * f,
        near: 2e11 * b,
        far: 4e10 * c,
        cache: 3e7 * d,
        rate: 3e11 * e,
        each: 2e-9 * a,
        ..simd
    };
    let device = MadeUp {
        launch: 1e-4 * f,
        near: 2e12 * b,
        far: 1e12 * c,
        cache: 5e7,
        rate: 2e13 * e,
        each: 1e-10 * b,
        copies: 1e10 * a,
    };
    [simd, threads, device]
}

/// Returns how many choices by the fitted costs of the engines are near the best, and the number of choices.
fn near_the_best(engines: [MadeUp; 3], random: &mut Random) -> (u32, u32) {
    // Up to 3 % of noise, which only adds.
    let mut noisy = |seconds: f64| seconds * (1.0 + random.below(30) as f64 / 1000.0);
    let mut costs = Costs::none();
    let of = [Engine::Simd, Engine::Threads, Engine::Cuda];
    for (engine, made_up) in of.into_iter().zip(&engines) {
        let mut sample = |job: Job| Sample {
            bytes: job.bytes(),
            work: job.work,
            items: job.items,
            seconds: noisy(made_up.seconds(&job)),
        };
        let sizes =
            |powers: std::ops::Range<u32>, step| powers.step_by(step).map(|power| 1u64 << power);
        let streaming: Vec<_> = sizes(6..28, 2)
            .map(|size| sample(with_items(job(size, 1), size >> 7)))
            .collect();
        let busy: Vec<_> = sizes(8..26, 3)
            .map(|size| sample(job(size, 1000)))
            .collect();
        let many: Vec<_> = sizes(10..20, 3)
            .map(|size| sample(with_items(job(size, 1), size >> 3)))
            .collect();
        let copies = Curve::constant(made_up.copies);
        let copies = made_up.copies.is_finite().then_some(&copies);
        let sweeps = Sweeps {
            streaming: &streaming,
            busy: &busy,
            many: &many,
        };
        costs.set(
            Operation::Matmul,
            engine,
            Cost::fit(sweeps, copies).unwrap(),
        );
    }
    let (dispatcher, _) = with_costs(Settings::default(), costs);
    dispatcher.open().unwrap();
    let (mut good, mut all) = (0, 0);
    // Sizes and intensities between the measured ones, and beyond them.
    for elements in (0..24).map(|step| (100.0 * 2.1f64.powi(step)) as u64) {
        for (work, width) in [(1, 100), (4, 100), (1, 9), (1000, 100), (4000, 100)] {
            let job = with_items(job(elements, work), elements / width);
            let chosen = dispatcher.choice(&job).unwrap();
            let times = engines.map(|made_up| made_up.seconds(&job));
            let best = times.into_iter().fold(f64::INFINITY, f64::min);
            let index = of.iter().position(|&engine| engine == chosen).unwrap();
            good += u32::from(times[index] <= 1.15 * best);
            all += 1;
        }
    }
    (good, all)
}

#[test]
fn choices_by_fitted_costs_are_near_the_best_of_engines_made_up() {
    let mut random = Random::new(8);
    let (mut good, mut all) = (0, 0);
    for _ in 0..500 {
        let engines = engines(&mut random);
        let (near, points) = near_the_best(engines, &mut random);
        // At least this share for any set of engines, and nearly all in total.
        assert!(near * 100 >= points * 85, "{near} of {points}: {engines:?}");
        (good, all) = (good + near, all + points);
    }
    assert!(good * 100 >= all * 95, "{good} of {all}");
}

/// Uses times of this machine, which should run nothing else:
/// `cargo test --release -p tercet-gpu --lib -- --ignored regret --nocapture`.
#[test]
#[ignore = "times this machine"]
fn choices_on_this_machine_are_near_the_best() {
    let settings = || Settings {
        profile: crate::dispatch::Profile::Cpu,
        ..Settings::default()
    };
    let (rough, _) = super::without_device(settings());
    let options = TuneOptions::default();
    let tuned = tune(&rough, &options, &mut |_| ()).unwrap();
    let again = tune(&rough, &options, &mut |_| ()).unwrap();
    let (dispatcher, _) = with_costs(settings(), tuned.costs);
    let (second, _) = with_costs(settings(), again.costs);
    let found = check(&dispatcher, Duration::from_millis(30), &mut |_| ()).unwrap();
    for point in &found.points {
        println!(
            "{:18} {:8} {:>10} {:8} {:8} {:.2}",
            point.operation.name(),
            point.elements,
            point.work,
            point.chosen,
            point.best,
            point.regret
        );
    }
    let alike = agreement(&dispatcher, &second);
    println!(
        "{} of {} within 15 %; {} of {} chosen alike by a second tuning",
        found.good,
        found.points.len(),
        alike.alike,
        alike.points
    );
    assert!(found.share >= 0.95 && alike.share >= 0.95);
}

#[test]
fn tuning_measures_every_operation_on_every_engine_there_is() {
    let (rough, _) = super::with_device(Settings::default());
    let options = TuneOptions {
        budget: Duration::from_millis(100),
        largest: 1 << 12,
    };
    let mut heard = Vec::new();
    let tuned = tune(&rough, &options, &mut |operation| heard.push(operation)).unwrap();
    assert_eq!(heard, Operation::ALL);
    assert_eq!(tuned.device.as_deref(), Some("scalar"));
    let several = rayon::current_num_threads() > 1;
    for operation in Operation::ALL {
        for engine in Engine::ALL {
            let cost = tuned.costs.get(operation, engine);
            let there = engine != Engine::Threads || several;
            assert_eq!(cost.is_some(), there, "{operation} {engine}");
            if let Some(cost) = cost {
                assert_eq!(cost.transfer.is_some(), engine == Engine::Cuda);
                assert!(cost.predict(&job(1000, 1)).total() > 0.0);
            }
        }
    }
    let (dispatcher, _) = with_costs(Settings::default(), tuned.costs);
    // Larger sizes take long in builds without optimization.
    let share = Duration::from_micros(10);
    let found = check_up_to(&dispatcher, 20_000, share, &mut |_| ()).unwrap();
    assert!(found.points.len() > 120 && found.good <= found.points.len());
    assert!(
        found
            .points
            .iter()
            .all(|point| point.regret >= 0.0 && point.best_seconds > 0.0)
    );
    let alike = agreement(&dispatcher, &dispatcher.clone());
    assert_eq!((alike.alike, alike.share), (alike.points, 1.0));
    assert!(alike.points > found.points.len());
    let other = agreement(&dispatcher, &dispatcher.on(Engine::Cuda));
    assert_eq!(other.others.len(), other.points - other.alike);
    assert!(
        other
            .others
            .iter()
            .all(|it| it.chosen[1] == Some(Engine::Cuda))
    );
}
