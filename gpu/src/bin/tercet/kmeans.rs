//! `tercet kmeans`: clusters points.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use tercet_host::cluster::{KMeansFit, LloydStep};
use tercet_host::points::{
    Points, side_files, write_centroids, write_labels, write_representatives,
};
use tercet_host::report::{Clusters, Picture};

use crate::clustering::{self, Data, GridReport, LABELS, Options, Outputs, Spinner, TABLES};
use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::{engine, format, output};

const EXAMPLES: &str = "\
Examples:
  tercet kmeans images.npy -k 10 --labels labels.npy --centroids centroids.npy
  tercet kmeans model.safetensors:embed.weight -k 64 --spherical --report clusters.html
  tercet kmeans sensors.csv -k 8 --labels labels.csv --centroids centroids.csv
  tercet kmeans sensors.csv -k 8 --n-init 10 --json
  tercet kmeans big.npy -k 1000 --mini-batch 4096 --representatives small.npy
  tercet kmeans big.npy -k 1000 --backend cuda

Clustering uses exact integers: the same data, options and seed give the same labels and centroids on every machine \
and with any number of threads. int8 and uint8 data is used unchanged. Floats are first put on an int8 grid, which \
the report describes. The inertia is that of the original data.

--centroids OUT.npy and OUT.csv hold the centroids in the data's own units, on the int8 grid that clustering used. \
OUT.safetensors holds their int8 codes and scale, with which `tercet assign` labels other data in the same way. \
--representatives OUT.npy or OUT.csv holds the nearest real point of each cluster. OUT.weights.npy and \
OUT.indices.npy (or .csv) next to it hold how many points each one stands for (their weight) and its row in the data \
(.safetensors: one file). A .csv file has one point per line, after the header of the data if it had one, with the \
separator of the data or commas; labels are one number per line, without a header.

JSON (--json): data, points, dims, columns (null or names), k, seed, engine (that clustered), engine_note (null, or \
why it is not the one asked for), iterations, stop (labels, inertia, tolerance or iterations), inertia, \
inertia_codes, reseeded, empty, grid (scale, zero_point, exact, clipped, relative_error), clusters[] (points, \
weight, radius, representative: null or a row), curve[] (restart, step, inertia in codes), files[], seconds.";

/// Cluster points: exact integer k-means, the same on every machine
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: Data,
    /// Number of clusters
    #[arg(short, value_name = "K")]
    k: usize,
    #[command(flatten)]
    options: Options,
    /// Write each point's cluster: int32 (.npy) or one number per line (.csv)
    #[arg(long, value_name = "OUT")]
    labels: Option<PathBuf>,
    /// Write the centroids (.npy, .csv or .safetensors)
    #[arg(long, value_name = "OUT")]
    centroids: Option<PathBuf>,
    /// Write the point nearest to each centroid (.npy, .csv or .safetensors)
    #[arg(long, value_name = "OUT")]
    representatives: Option<PathBuf>,
    /// Write a report with pictures (.html or .svg)
    #[arg(long, value_name = "OUT")]
    report: Option<PathBuf>,
    /// Draw the centroids as images: WxH, WxHx3 or none [default: if the data looks like images]
    #[arg(long, value_name = "SIZE", requires = "report")]
    image: Option<String>,
    /// Replace outputs that exist
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
    columns: Option<Vec<String>>,
    k: usize,
    seed: u64,
    engine: String,
    engine_note: Option<String>,
    iterations: u32,
    stop: &'static str,
    inertia: f64,
    inertia_codes: u64,
    reseeded: u64,
    empty: usize,
    grid: GridReport,
    clusters: Vec<Cluster>,
    curve: Vec<LloydStep>,
    files: Vec<PathBuf>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Cluster {
    points: u64,
    weight: u64,
    radius: f64,
    representative: Option<usize>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let points = arguments.data.open()?;
    let outputs = Outputs::new(&points, arguments.options.inputs(), arguments.force);
    let files = files(arguments);
    let paths: Vec<(&Path, &[&str])> = files.iter().map(|(p, e)| (p.as_path(), *e)).collect();
    outputs.check(&paths)?;
    let picture = picture(arguments, &points)?;
    let ready = arguments.options.ready(&arguments.data, &points)?;
    let mut engine = arguments.engine.open_on(arguments.devices)?;
    let found = ready.run(&mut engine, &points, arguments.k, &Spinner::new())?;
    let summary = summary(arguments, &points, &found, start);

    if let Some(path) = &arguments.labels {
        outputs.with(path, |to| write_labels(to, &found.clustering.labels))?;
    }
    if let Some(path) = &arguments.centroids {
        let (codes, grid) = (&found.clustering.centroids, &found.codes.grid);
        outputs.with(path, |to| write_centroids(to, codes, grid, &points))?;
    }
    if let Some(path) = &arguments.representatives {
        let nearest = || {
            let clusters = found.clusters.iter();
            clusters.filter_map(|cluster| Some((cluster.representative?, cluster.weight)))
        };
        let rows: Vec<usize> = nearest().map(|(found, _)| found.index).collect();
        let weights: Vec<u64> = nearest().map(|(_, weight)| weight).collect();
        let indices: Vec<u64> = rows.iter().map(|&row| row as u64).collect();
        let chosen = points.select(&rows)?;
        outputs.with(path, |to| {
            write_representatives(to, &chosen, &weights, &indices)
        })?;
    }
    if let Some(path) = &arguments.report {
        let page = clusters(arguments, &points, &found, &summary, picture).page();
        outputs.with(path, |to| page.write(to))?;
    }
    if arguments.json {
        output::json(&summary)
    } else {
        let stop = clustering::stop(found.clustering.outcome.stop).1;
        output::text(&people(arguments, &points, &summary, stop))
    }
}

/// Returns all files to write, with their allowed extensions.
fn files(arguments: &Arguments) -> Vec<(PathBuf, &'static [&'static str])> {
    const PAGES: &[&str] = &["html", "htm", "svg"];
    let mut files = Vec::new();
    let mut add = |path: &Option<PathBuf>, extensions| {
        files.extend(path.iter().map(|path| (path.clone(), extensions)));
    };
    add(&arguments.labels, LABELS);
    add(&arguments.centroids, TABLES);
    add(&arguments.representatives, TABLES);
    add(&arguments.report, PAGES);
    if let Some(path) = &arguments.representatives {
        files.extend(side_files(path).into_iter().map(|side| (side, LABELS)));
    }
    files
}

fn picture(arguments: &Arguments, points: &Points) -> Result<Option<Picture>, Failure> {
    match arguments.image.as_deref() {
        None => Ok(Picture::guess(points)),
        Some("none") => Ok(None),
        Some(size) => {
            let picture: Picture = size.parse()?;
            if picture.values() != points.dims() {
                return Err(Failure::usage(format_args!(
                    "--image {size} has {} values but a point has {}",
                    picture.values(),
                    points.dims()
                )));
            }
            Ok(Some(picture))
        }
    }
}

fn summary(arguments: &Arguments, points: &Points, found: &KMeansFit, start: Instant) -> Summary {
    let outcome = found.clustering.outcome;
    let clusters = found.clusters.iter().zip(found.radii());
    let clusters = clusters.map(|(cluster, radius)| Cluster {
        points: cluster.count,
        weight: cluster.weight,
        radius,
        representative: cluster.representative.map(|found| found.index),
    });
    Summary {
        data: arguments.data.name(),
        points: points.rows(),
        dims: points.dims(),
        columns: points.header().map(<[String]>::to_vec),
        k: arguments.k,
        seed: arguments.options.seed(),
        engine: found.by.engine.clone(),
        engine_note: found.by.note.clone(),
        iterations: outcome.iterations,
        stop: clustering::stop(outcome.stop).0,
        inertia: found.inertia,
        inertia_codes: outcome.inertia,
        reseeded: outcome.reseeded,
        empty: outcome.empty,
        grid: GridReport::new(&found.codes, found.coding_error),
        clusters: clusters.collect(),
        curve: found.clustering.curve.clone(),
        files: files(arguments).into_iter().map(|(path, _)| path).collect(),
        seconds: start.elapsed().as_secs_f64(),
    }
}

/// Returns the figures at the start of the table and the report.
fn facts(
    arguments: &Arguments,
    points: &Points,
    summary: &Summary,
    stop: &str,
) -> Vec<(String, String)> {
    let of = if arguments.options.spherical() {
        "inertia (unit vectors)"
    } else {
        "inertia"
    };
    let mut facts = vec![
        (
            "data",
            format!(
                "{}: {}",
                arguments.data.name(),
                clustering::describe(points)
            ),
        ),
        ("values", summary.grid.words()),
        (
            "clusters",
            format!("{} by {}", summary.k, arguments.options.start()),
        ),
        (of, format::significant(summary.inertia)),
        ("iterations", format!("{}: {stop}", summary.iterations)),
        (
            "engine",
            engine::words(&summary.engine, summary.engine_note.as_deref()),
        ),
    ];
    if let Some(columns) = &summary.columns {
        facts.insert(1, ("columns", columns.join(", ")));
    }
    if summary.reseeded > 0 {
        facts.push((
            "re-seeded",
            format::counted(summary.reseeded, "empty cluster"),
        ));
    }
    if summary.empty > 0 {
        facts.push(("empty", format::counted(summary.empty as u64, "cluster")));
    }
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn clusters<'a>(
    arguments: &Arguments,
    points: &'a Points,
    found: &'a KMeansFit,
    summary: &Summary,
    picture: Option<Picture>,
) -> Clusters<'a> {
    let stop = clustering::stop(found.clustering.outcome.stop).1;
    Clusters {
        title: format!("k-means of {}", arguments.data.name()),
        line: format!(
            "{}, k = {}: inertia {} after {} ({stop})",
            clustering::describe(points),
            summary.k,
            format::significant(summary.inertia),
            format::counted(u64::from(summary.iterations), "iteration"),
        ),
        facts: facts(arguments, points, summary, stop),
        points,
        labels: &found.clustering.labels,
        centroids: &found.centroids,
        counts: &found.clustering.counts,
        radii: found.radii(),
        curve: found.curve(),
        picture,
    }
}

fn people(arguments: &Arguments, points: &Points, summary: &Summary, stop: &str) -> String {
    use Align::Right;
    let mut text = String::new();
    let facts = facts(arguments, points, summary, stop);
    let width = facts
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    for (name, value) in facts {
        text += &format!("{name:width$}  {value}\n");
    }
    let mut table = Table::new(&[
        ("cluster", Right),
        ("weight", Right),
        ("share", Right),
        ("radius", Right),
        ("nearest row", Right),
    ]);
    let total: u64 = summary.clusters.iter().map(|cluster| cluster.weight).sum();
    for (index, cluster) in summary.clusters.iter().enumerate() {
        table.row([
            index.to_string(),
            cluster.weight.to_string(),
            format!(
                "{:.2} %",
                cluster.weight as f64 / total.max(1) as f64 * 100.0
            ),
            format::significant(cluster.radius),
            cluster
                .representative
                .map_or_else(|| "-".to_owned(), |row| row.to_string()),
        ]);
    }
    let written: String = summary
        .files
        .iter()
        .map(|path| format!("wrote {}\n", path.display()))
        .collect();
    format!(
        "{text}\n{}\n{written}{} s\n",
        table.render(),
        format::significant(summary.seconds)
    )
}
