//! `tercet assign`: finds the nearest of given centroids for every point.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use tercet_host::points::write_labels;

use crate::clustering::{Data, LABELS, Outputs, describe};
use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::{engine, format, output};

const EXAMPLES: &str = "\
Examples:
  tercet kmeans train.npy -k 16 --centroids centroids.safetensors
  tercet assign test.npy --centroids centroids.safetensors --labels labels.npy
  tercet assign sensors.csv --centroids centroids.csv --labels labels.csv

Points from which the centroids were computed get the labels that they had. Centroids from a .safetensors file bring \
the int8 grid on which they were computed. Other centroids (.npy, .csv) are put on one new grid together with the \
points.

JSON (--json): data, points, dims, k, engine (that compared), engine_note (null, or why it is not the one asked \
for), inertia, grid (scale, zero_point), clipped, counts[], files[], seconds.";

/// Give every point the label of its nearest centroid
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: Data,
    /// Centroids in the data's own units, as written by `tercet kmeans --centroids`
    #[arg(long, value_name = "FILE")]
    centroids: String,
    /// Compare directions (cosine), for centroids of a spherical run
    #[arg(long)]
    spherical: bool,
    /// Write each point's label: int32 (.npy) or one number per line (.csv)
    #[arg(long, value_name = "OUT")]
    labels: Option<PathBuf>,
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

#[derive(Debug, Serialize)]
struct Summary {
    data: String,
    points: usize,
    dims: usize,
    k: usize,
    engine: String,
    engine_note: Option<String>,
    inertia: f64,
    grid: GridReport,
    clipped: u64,
    counts: Vec<u64>,
    files: Vec<PathBuf>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct GridReport {
    scale: f32,
    zero_point: i8,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let points = arguments.data.open()?;
    let centroids = arguments.data.open_other(&arguments.centroids)?;
    let inputs = std::iter::once(centroids.path().to_owned());
    let outputs = Outputs::new(&points, inputs, arguments.force);
    if let Some(path) = &arguments.labels {
        outputs.check(&[(path, LABELS)])?;
    }
    let mut engine = arguments.engine.open_on(arguments.devices)?;
    let found = engine.assign(&points, &centroids, arguments.spherical)?;
    if let Some(path) = &arguments.labels {
        outputs.with(path, |to| write_labels(to, &found.assignment.labels))?;
    }
    let summary = Summary {
        data: arguments.data.name(),
        points: points.rows(),
        dims: points.dims(),
        k: centroids.rows(),
        engine: found.by.engine,
        engine_note: found.by.note,
        inertia: found.inertia,
        grid: GridReport {
            scale: found.grid.scale,
            zero_point: found.grid.zero_point,
        },
        clipped: found.clipped,
        counts: found.assignment.counts,
        files: arguments.labels.iter().cloned().collect(),
        seconds: start.elapsed().as_secs_f64(),
    };
    if arguments.json {
        return output::json(&summary);
    }
    output::text(&people(&summary, &describe(&points)))
}

fn people(summary: &Summary, points: &str) -> String {
    let mut table = Table::new(&[("cluster", Align::Right), ("points", Align::Right)]);
    for (index, count) in summary.counts.iter().enumerate() {
        table.row([index.to_string(), count.to_string()]);
    }
    let clipped = match summary.clipped {
        0 => String::new(),
        count => format!(
            "{} outside the centroids' grid, moved to its ends\n",
            format::counted(count, "value")
        ),
    };
    let written: String = summary
        .files
        .iter()
        .map(|path| format!("wrote {}\n", path.display()))
        .collect();
    format!(
        "{}: {points}\ninertia {}\nengine {}\n{clipped}\n{}\n{written}{} s\n",
        summary.data,
        format::significant(summary.inertia),
        engine::words(&summary.engine, summary.engine_note.as_deref()),
        table.render(),
        format::significant(summary.seconds),
    )
}
