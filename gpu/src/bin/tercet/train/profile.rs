//! `--bottlenecks` of a training run: the time of its steps by operation.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;
use tercet_host::measure::{Ceilings, Peak};
use tercet_host::simd::Backend;
use tercet_host::train::{Profile, StepOperation, StepShare};

use crate::bottlenecks;
use crate::format::{counted, significant};

/// Time for each measured peak.
const BUDGET: Duration = Duration::from_millis(20);

#[derive(Serialize)]
struct Report<'p> {
    steps: u64,
    workers: usize,
    seconds: f64,
    shares: Vec<Share<'p>>,
    change: Option<Change>,
}

#[derive(Serialize)]
struct Share<'p> {
    #[serde(flatten)]
    share: &'p StepShare,
    multiply_adds_per_second: Option<f64>,
    /// The same as a part of the peak of the workers' threads.
    of_peak: Option<f64>,
}

/// The operation whose acceleration would help most.
#[derive(Serialize)]
struct Change {
    operation: StepOperation,
    /// Factor of the speed of steps, with the operation twice as fast.
    gain: f64,
}

/// Adds the report of a run to those of `--bottlenecks`.
pub(super) fn report(profile: &Profile) {
    if profile.steps == 0 {
        return;
    }
    let peak = Ceilings::new(BUDGET).peak(Backend::default(), profile.workers);
    let change = profile.most().map(|share| Change {
        operation: share.operation,
        gain: share.gain(),
    });
    let shares = profile.shares.iter().map(|share| compared(share, &peak));
    let report = Report {
        steps: profile.steps,
        workers: profile.workers,
        seconds: profile.seconds,
        shares: shares.collect(),
        change,
    };
    let json = serde_json::to_string(&report).unwrap_or_default();
    bottlenecks::add(text(&report), json);
}

/// Returns a share with its rate beside the peak. Only products have one.
fn compared<'p>(share: &'p StepShare, peak: &Peak) -> Share<'p> {
    let rate = (share.multiply_adds > 0).then(|| share.multiply_adds as f64 / share.seconds);
    let most = match share.operation {
        StepOperation::Products => peak.ternary,
        _ => peak.int8,
    };
    Share {
        share,
        multiply_adds_per_second: rate,
        of_peak: rate.map(|rate| rate / most),
    }
}

fn text(report: &Report<'_>) -> String {
    let mut text = format!(
        "in {} s: {}, {} ms each, by {}",
        significant(report.seconds),
        counted(report.steps, "step"),
        significant(1e3 * report.seconds / report.steps as f64),
        counted(report.workers as u64, "worker"),
    );
    for it in &report.shares {
        let StepShare {
            operation,
            seconds,
            share,
            ..
        } = it.share;
        let percent = 100.0 * share;
        let name = operation.name();
        let _ = write!(text, "\n  {percent:5.1} %  {name}: {seconds:.3} s");
        if let (Some(rate), Some(part)) = (it.multiply_adds_per_second, it.of_peak) {
            let (rate, part) = (significant(rate * 1e-9), 100.0 * part);
            let _ = write!(text, ", {rate} G multiply-adds/s, {part:.0} % of the peak");
        }
    }
    if let Some(change) = &report.change {
        let (name, gain) = (change.operation.name(), change.gain);
        let _ = write!(
            text,
            "\n  would help most: {name}; twice as fast, they would make steps {gain:.2} times as fast"
        );
    }
    text
}
