//! Cases, ceilings and runners of `measure`, and the report of what they gave.

use std::collections::HashSet;
use std::time::Duration;

use tercet_host::measure::{
    Arithmetic, Bound, Ceilings, Clock, Contender, Device, DeviceError, DeviceRun, Guest,
    LeastWork, Measured, Runner, Settings, Task, Traffic, catalogue, curve,
};
use tercet_host::report::Bench;
use tercet_host::simd::Backend;

/// Once, untimed.
struct Once;

impl Clock for Once {
    fn time(&mut self, work: &mut (dyn FnMut() + Send)) {
        work();
    }
}

#[test]
fn every_backend_gives_the_reference_engines_bits() {
    for entry in catalogue(Some(1 << 15)) {
        let case = entry.build();
        let right = case.run(Contender::Scalar, &mut Once);
        for backend in Backend::all() {
            let by = Contender::Threads {
                backend,
                threads: 1,
            };
            assert_eq!(case.run(by, &mut Once), right, "{case:?}, {by}");
        }
        // But for blocks of two bits, which are little beside their values and pass meanwhile.
        let left_out = case.work.set.saturating_sub(case.work.bytes());
        let two_bits = ["tq1_0", "tq2_0", "q2_0"].map(|name| case.operation.contains(name));
        assert!(left_out == 0 || two_bits.contains(&true), "{case:?}");
        assert!(left_out <= case.work.set / 14, "{case:?}");
    }
}

#[test]
fn no_two_cases_share_their_names() {
    for size in [None, Some(1 << 20)] {
        let mut seen = HashSet::new();
        for entry in catalogue(size) {
            assert!(seen.insert((entry.operation, entry.size)));
        }
        assert!(seen.len() > 30, "{}", seen.len());
    }
}

#[test]
fn much_arithmetic_on_few_bytes_is_bound_by_it() {
    let mut ceilings = Ceilings::new(Duration::ZERO);
    let reading = LeastWork::pass(1 << 20, Traffic::Read, 1 << 20);
    let products = reading.clone().with_products(1 << 40, Arithmetic::Int8);
    let (seconds, bound) = ceilings.attainable(&reading, Backend::best(), 1);
    assert!(seconds > 0.0 && bound == Bound::Memory);
    let (more, bound) = ceilings.attainable(&products, Backend::best(), 1);
    assert!(more > seconds && bound == Bound::Arithmetic);
    // Two passes over the same set take longer than one.
    let twice = reading.after_reading(1 << 20);
    assert_eq!(
        ceilings.attainable(&twice, Backend::best(), 1).0,
        2.0 * seconds
    );
}

#[test]
fn contenders_are_timed_beside_the_first() {
    let mut runner = Runner::new(Settings {
        budget: Duration::from_millis(2),
        rounds: 2,
        ceiling: Duration::ZERO,
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
        let mut guests = [Guest {
            name: "sleeper",
            run: Box::new(|| std::thread::sleep(Duration::from_millis(1))),
        }];
        let results = runner.run_beside(&case, &contenders, &mut guests);
        let results = results.expect("equal bits");
        assert_eq!(results.len(), 3);
        assert!((1e-3..1.0).contains(&results[2].seconds));
        assert_eq!(results[2].contender(), "sleeper");
        assert_eq!(results[0].speedup, 1.0);
        for found in &results {
            assert!(found.seconds > 0.0 && found.seconds <= found.median_seconds);
            assert!(found.roofline > 0.0 && found.samples >= 1, "{found:?}");
            let ratio = results[0].seconds / found.seconds;
            assert!((found.speedup - ratio).abs() < 1e-12);
        }
    }
}

/// Says what it is told to.
#[derive(Debug)]
struct Told(Result<DeviceRun, DeviceError>);

impl Device for Told {
    fn name(&self) -> &'static str {
        "told"
    }

    fn run(&mut self, _: &Task<'_>, _: Duration) -> Result<DeviceRun, DeviceError> {
        self.0.clone()
    }

    fn transfer_rates(&mut self, _: usize, _: Duration) -> Result<[f64; 2], DeviceError> {
        Err(DeviceError::NoKernel)
    }

    fn copy_rate(&mut self, set: usize, _: Duration) -> Result<f64, DeviceError> {
        Ok(set as f64)
    }

    fn run_otherwise(
        &mut self,
        _: &Task<'_>,
        _: Duration,
    ) -> Option<(&'static str, Result<DeviceRun, DeviceError>)> {
        // The same at half the time, where there is a time at all.
        let mut run = self.0.clone().ok()?;
        run.seconds.iter_mut().for_each(|seconds| *seconds /= 2.0);
        Some(("told otherwise", Ok(run)))
    }
}

#[test]
fn a_device_comes_last_and_is_held_against_the_first() {
    let mut runner = Runner::new(Settings {
        budget: Duration::from_millis(2),
        rounds: 1,
        ceiling: Duration::ZERO,
    });
    let entry = catalogue(Some(1 << 15)).find(|entry| entry.operation == "k-means step");
    let case = entry.expect("it is listed").build();
    let bits = case.run(Contender::Scalar, &mut Once);
    let mut run = |told| {
        let mut found = Vec::new();
        let done = runner.run_on_device(&case, &[Contender::Scalar], &mut Told(told), &mut found);
        (done, found)
    };
    let seconds = vec![4.0, 2.0, 3.0];
    let (done, found) = run(Ok(DeviceRun { bits, seconds }));
    assert_eq!(done, Ok(()));
    let [scalar, device, other] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((device.contender(), device.threads), ("told".to_owned(), 0));
    assert!(device.device && !scalar.device);
    // Eight steps a run; the working set takes a second.
    assert_eq!(
        (device.seconds, device.median_seconds),
        (2.0 / 8.0, 3.0 / 8.0)
    );
    assert_eq!(other.contender(), "told otherwise");
    assert!(other.device && other.seconds == device.seconds / 2.0);
    assert_eq!(device.roofline, 4.0);
    assert_eq!(device.speedup, scalar.seconds / device.seconds);

    let wrong = run(Ok(DeviceRun {
        bits: !bits,
        seconds: vec![1.0],
    }));
    let text = wrong.0.unwrap_err().to_string();
    assert!(
        text.ends_with("told gives other bits than scalar"),
        "{text}"
    );
    let reason = || "so it is".to_owned();
    for (told, stops) in [
        (DeviceError::NoKernel, None),
        (
            DeviceError::NoRoom(reason()),
            Some("left out on told: so it is"),
        ),
        (DeviceError::Failed(reason()), Some("told: so it is")),
    ] {
        let (done, found) = run(Err(told));
        assert_eq!(found.len(), 1);
        let text = done.err().map(|stopped| stopped.to_string());
        let expected = stops
            .map(|words| format!("{case:?}").split(':').next().unwrap().to_owned() + ": " + words);
        assert_eq!(text, expected);
    }
}

#[test]
fn every_section_is_drawn_of_what_there_is() {
    let mut runner = Runner::new(Settings {
        budget: Duration::from_millis(1),
        rounds: 1,
        ceiling: Duration::ZERO,
    });
    let threads = |threads| Contender::Threads {
        backend: Backend::best(),
        threads,
    };
    let contenders = [Contender::Scalar, threads(1), threads(2)];
    let results: Vec<Measured> = catalogue(Some(1))
        .filter(|entry| ["exact mean", "matvec q8_0"].contains(&entry.operation.as_str()))
        .flat_map(|entry| runner.run(&entry.build(), &contenders).unwrap())
        .collect();
    let bandwidths = curve(Backend::best(), &[1 << 16, 1 << 20], Duration::ZERO);
    let peaks = [runner.ceilings().named_peak(Backend::best(), 2)];
    let bench = |results, bandwidths, peaks| Bench {
        title: "Speed <of> this".to_owned(),
        line: "a machine".to_owned(),
        facts: vec![("processor".to_owned(), "one".to_owned())],
        results,
        bandwidths,
        peaks,
    };
    let whole = bench(&results[..], &bandwidths[..], &peaks[..]).page();
    for words in [
        "Speed &lt;of&gt; this",
        "exact mean",
        "Roofline",
        "Scaling",
        "Bandwidth",
    ] {
        assert!(whole.html().contains(words), "{words}");
    }
    assert!(!whole.svg().contains("NaN"), "{}", whole.svg());
    let bare = bench(&results[..1], &[], &[]).page();
    for words in ["Roofline<", "Scaling", "Bandwidth"] {
        assert!(!bare.svg().contains(words), "{words}");
    }
}
