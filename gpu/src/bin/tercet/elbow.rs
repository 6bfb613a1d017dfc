//! `tercet elbow`: helps to find the number of clusters in the data.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

use serde::Serialize;
use tercet_core::cluster::ClusterError;
use tercet_host::cluster::KMeansFit;
use tercet_host::cluster::{davies_bouldin, silhouette};
use tercet_host::report::{Elbow, Trial};

use crate::clustering::{self, Data, Options, Outputs, Ready, Spinner};
use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::{engine, format, output};

const EXAMPLES: &str = "\
Examples:
  tercet elbow images.npy --k 2..32 --report elbow.html
  tercet elbow embeddings.safetensors:weight --k 8..128:8 --spherical --json

Inertia always falls as k grows; beyond the bend of the curve (the elbow), more clusters gain little. Compact \
clusters that lie far apart have a high silhouette (-1 to 1) and a low Davies-Bouldin index. Both are computed from \
the int8 codes. For more than 4,096 points the silhouette is that of a sample drawn by --seed. Neither is defined \
for one cluster.

JSON (--json): data, points, dims, seed, engine (that was to cluster), engine_note (null, or why the processor did \
it for some k), best (the k of the highest silhouette, or null), trials[] (k, inertia, iterations, stop, silhouette, \
davies_bouldin), sampled (null or points that the silhouette is of), files[], seconds.";

/// Cluster with a range of k, and show the quality of each
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: Data,
    /// Numbers of clusters: FIRST..LAST or FIRST..LAST:STEP, including the last one
    #[arg(long = "k", value_name = "RANGE")]
    range: Range,
    #[command(flatten)]
    options: Options,
    /// Write a report with the curves (.html or .svg)
    #[arg(long, value_name = "OUT")]
    report: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(crate) engine: engine::Named,
    #[command(flatten)]
    devices: engine::Several,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// A range of numbers of clusters with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: usize,
    last: usize,
    step: usize,
}

impl Range {
    /// Iterates over all of them, the largest first.
    fn falling(self) -> impl Iterator<Item = usize> {
        let steps = 0..=(self.last - self.first) / self.step;
        steps.rev().map(move |step| self.first + step * self.step)
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (range, step) = text.split_once(':').unwrap_or((text, "1"));
            let (first, last) = range.split_once("..").unwrap_or((range, range));
            let last = last.strip_prefix('=').unwrap_or(last);
            let range = Self {
                first: first.trim().parse().ok()?,
                last: last.trim().parse().ok()?,
                step: step.trim().parse().ok()?,
            };
            (range.first > 0 && range.first <= range.last && range.step > 0).then_some(range)
        };
        parse()
            .ok_or_else(|| "not FIRST..LAST or FIRST..LAST:STEP with 1 <= FIRST <= LAST".to_owned())
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    data: String,
    points: usize,
    dims: usize,
    seed: u64,
    engine: String,
    engine_note: Option<String>,
    best: Option<usize>,
    trials: Vec<Row>,
    sampled: Option<usize>,
    files: Vec<PathBuf>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    k: usize,
    inertia: f64,
    iterations: u32,
    stop: &'static str,
    silhouette: Option<f64>,
    davies_bouldin: Option<f64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let points = arguments.data.open()?;
    let outputs = Outputs::new(&points, arguments.options.inputs(), arguments.force);
    if let Some(path) = &arguments.report {
        outputs.check(&[(path, &["html", "htm", "svg"])])?;
    }
    let ready = arguments.options.ready(&arguments.data, &points)?;
    let mut engine = arguments.engine.open_on(arguments.devices)?;
    let (mut trials, mut sampled, mut note) = (Vec::new(), None, None);
    {
        let spinner = Spinner::new();
        // The largest first, so that k > n is refused at once.
        for k in arguments.range.falling() {
            spinner.tell(format!("k = {k}"));
            let found = ready.run(&mut engine, &points, k, &spinner)?;
            let (row, sample) = trial(&ready, &found, k, arguments.options.seed(), &spinner)?;
            sampled = sampled.max(sample);
            note = note.or(found.by.note);
            trials.insert(0, row);
        }
    }
    let curve: Vec<Trial> = trials
        .iter()
        .map(|row| Trial {
            k: row.k,
            inertia: row.inertia,
            silhouette: row.silhouette,
        })
        .collect();
    let elbow = Elbow {
        title: format!("Elbow of {}", arguments.data.name()),
        line: format!(
            "{}, {}",
            clustering::describe(&points),
            arguments.options.start()
        ),
        facts: Vec::new(),
        trials: &curve,
    };
    if let Some(path) = &arguments.report {
        let page = elbow.page();
        outputs.with(path, |to| page.write(to))?;
    }
    let summary = Summary {
        data: arguments.data.name(),
        points: points.rows(),
        dims: points.dims(),
        seed: arguments.options.seed(),
        engine: engine.name(),
        engine_note: note,
        best: elbow.best(),
        trials,
        sampled,
        files: arguments.report.iter().cloned().collect(),
        seconds: start.elapsed().as_secs_f64(),
    };
    if arguments.json {
        output::json(&summary)
    } else {
        output::text(&people(&summary, &elbow.line))
    }
}

/// Runs one clustering and computes its scores; also returns the number of points for the silhouette if that uses a
/// sample.
fn trial(
    ready: &Ready<'_>,
    found: &KMeansFit,
    k: usize,
    seed: u64,
    spinner: &Spinner,
) -> Result<(Row, Option<usize>), Failure> {
    let outcome = found.clustering.outcome;
    let coded = found.points(ready.weights())?;
    let labels = &found.clustering.labels;
    spinner.tell(format!("k = {k}, scores"));
    let silhouette = scored(silhouette(&coded, labels, k, seed))?;
    let davies_bouldin = scored(davies_bouldin(&coded, labels, k))?;
    let row = Row {
        k,
        inertia: found.inertia,
        iterations: outcome.iterations,
        stop: clustering::stop(outcome.stop).0,
        silhouette: silhouette.map(|found| found.score),
        davies_bouldin,
    };
    let sample = silhouette
        .filter(|found| found.sampled)
        .map(|found| found.points);
    Ok((row, sample))
}

/// Returns a score, or `None` if fewer than two clusters have members.
fn scored<T>(score: Result<T, ClusterError>) -> Result<Option<T>, Failure> {
    match score {
        Ok(score) => Ok(Some(score)),
        Err(ClusterError::Score { .. }) => Ok(None),
        Err(error) => Err(Failure::new(error)),
    }
}

fn people(summary: &Summary, line: &str) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("k", Right),
        ("inertia", Right),
        ("iterations", Right),
        ("silhouette", Right),
        ("Davies-Bouldin", Right),
        ("", Left),
    ]);
    let score = |score: Option<f64>| score.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
    for row in &summary.trials {
        let best = summary.best == Some(row.k);
        table.row([
            row.k.to_string(),
            format::significant(row.inertia),
            row.iterations.to_string(),
            score(row.silhouette),
            score(row.davies_bouldin),
            if best { "highest silhouette" } else { "" }.to_owned(),
        ]);
    }
    let note = summary.engine_note.as_ref();
    let note = note.map_or_else(String::new, |note| {
        format!("the processor did part of the work: {note}\n")
    });
    let sampled = summary.sampled.map_or_else(String::new, |points| {
        format!("silhouette of a sample of {points} points\n")
    });
    let written: String = summary
        .files
        .iter()
        .map(|path| format!("wrote {}\n", path.display()))
        .collect();
    format!(
        "{}: {line}, by {}\n\n{}\n{note}{sampled}{written}{} s\n",
        summary.data,
        summary.engine,
        table.render(),
        format::significant(summary.seconds)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_their_last_number() {
        let range = |text: &str| {
            let range: Option<Range> = text.parse().ok();
            let mut all: Vec<usize> = range?.falling().collect();
            all.reverse();
            Some(all)
        };
        assert_eq!(range("2..5"), Some(vec![2, 3, 4, 5]));
        assert_eq!(range("2..=4"), Some(vec![2, 3, 4]));
        assert_eq!(range("8..20:4"), Some(vec![8, 12, 16, 20]));
        assert_eq!(range("7"), Some(vec![7]));
        for bad in [
            "", "0..3", "4..2", "2..8:0", "a..b", "2...4", "-1..2", "2..3:",
        ] {
            assert_eq!(range(bad), None, "{bad}");
        }
    }
}
