//! Runs cases with Criterion.

use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
use tercet_host::measure::{Ceilings, Clock, Contender, catalogue};
use tercet_host::simd::Backend;

/// The environment variable that sets another number of values than a million: a number, or `all` for the catalogue's
/// sizes.
const SIZE: &str = "TERCET_BENCH_SIZE";
/// The environment variable that selects every backend of this machine with the value `all`.
const BACKENDS: &str = "TERCET_BENCH_BACKENDS";

/// Runs the operations of an area as Criterion benches with the command line's options. Each operation is a group,
/// with a bench for each contender and guest, named after it and after the size.
///
/// # Panics
/// If `TERCET_BENCH_SIZE` is neither a number of values nor `all`.
pub fn run(area: &str) {
    let size = match std::env::var(SIZE).as_deref() {
        Err(_) | Ok("") => Some(1 << 20),
        Ok("all") => None,
        Ok(values) => Some(values.parse().unwrap_or_else(|_| panic!("{SIZE}={values}"))),
    };
    let contenders = contenders();
    let mut criterion = Criterion::default().configure_from_args().without_plots();
    let mut pools = Ceilings::new(Duration::ZERO);
    for entry in catalogue(size).filter(|entry| entry.area == area) {
        let case = entry.build();
        let mut group = criterion.benchmark_group(&entry.operation);
        group.sample_size(10).sampling_mode(SamplingMode::Flat);
        group
            .warm_up_time(Duration::from_millis(100))
            .measurement_time(Duration::from_millis(500));
        group.throughput(Throughput::ElementsAndBytes {
            elements: case.work.values as u64,
            bytes: case.work.bytes() as u64,
        });
        let steps = case.work.steps;
        for &by in &contenders {
            if !case.work.is_for(by) {
                continue;
            }
            bench(&mut group, &by.to_string(), &entry.size, |runs| {
                let mut clock = Runs::new(runs);
                pools.install(by.threads(), || case.run(by, &mut clock));
                clock.spent / steps
            });
        }
        for mut guest in crate::guests(&entry) {
            bench(&mut group, guest.name, &entry.size, |runs| {
                let mut clock = Runs::new(runs);
                clock.time(&mut guest.run);
                clock.spent
            });
        }
    }
    criterion.final_summary();
}

/// Returns those of [`crate::contenders`], or one per backend.
fn contenders() -> Vec<Contender> {
    if std::env::var(BACKENDS).as_deref() != Ok("all") {
        return crate::contenders();
    }
    let threads = [1, rayon::current_num_threads()];
    let mut all = vec![Contender::Scalar];
    all.extend(Backend::all().flat_map(|backend| {
        let of = move |threads| Contender::Threads { backend, threads };
        threads.map(of)
    }));
    all.dedup();
    all
}

fn bench(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    size: &str,
    mut time: impl FnMut(u64) -> Duration,
) {
    group.bench_function(BenchmarkId::new(name, size), |bencher| {
        bencher.iter_custom(&mut time);
    });
}

/// Runs as often as Criterion requests, after a call that faults the pages in.
struct Runs {
    runs: u64,
    spent: Duration,
}

impl Runs {
    fn new(runs: u64) -> Self {
        let spent = Duration::ZERO;
        Self { runs, spent }
    }
}

impl Clock for Runs {
    fn time(&mut self, work: &mut (dyn FnMut() + Send)) {
        work();
        let start = Instant::now();
        for _ in 0..self.runs {
            work();
        }
        self.spent = start.elapsed();
    }
}
