//! Cases through Criterion.

use crate::{Case, HEAD, Row};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use std::time::{Duration, Instant};

/// Runs cases as Criterion benches with the command line's options, then prints their ratios, taken from
/// the same samples.
pub fn run(cases: impl Iterator<Item = Case>) {
    let mut criterion = Criterion::default().configure_from_args().without_plots();
    // `cargo test` and `--test` run each bench once, `--list` not at all: no times to speak of.
    let timed = std::env::args().any(|arg| arg == "--bench")
        && !std::env::args().any(|arg| ["--test", "--list"].contains(&&*arg));
    let mut rows = Vec::new();
    for mut case in cases {
        let times = bench(&mut criterion, &mut case);
        if timed && !times.is_empty() {
            rows.push(Row::new(&case, times));
        }
    }
    criterion.final_summary();
    if !rows.is_empty() {
        println!("{HEAD}");
    }
    for row in rows {
        println!("{row}");
    }
}

/// One group; returns each contender's best sample in seconds a run, leaving out those the filter left out.
fn bench(criterion: &mut Criterion, case: &mut Case) -> Vec<(crate::Who, f64)> {
    let mut group = criterion.benchmark_group(&case.name);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Bytes(case.bytes as u64));
    let mut times = Vec::new();
    for (who, work) in &mut case.contenders {
        let mut best = f64::INFINITY;
        group.bench_function(BenchmarkId::new(who.to_string(), case.values), |bencher| {
            bencher.iter_custom(|runs| {
                let start = Instant::now();
                for _ in 0..runs {
                    work();
                }
                let spent = start.elapsed();
                best = best.min(spent.as_secs_f64() / runs as f64);
                spent
            });
        });
        if best.is_finite() {
            times.push((*who, best));
        }
    }
    times
}
