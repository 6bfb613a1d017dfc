//! Shared parts of the clustering commands: options, progress, texts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::TypedValueParser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tercet_core::cluster::{Init, Stop};
use tercet_core::quant::calibrate::RangeRule;
use tercet_host::cluster::{KMeans, KMeansFit};
use tercet_host::points::{Codes, Destination, Points, ReadOptions, Values, read_weights};

use crate::engine::CommandEngine;
use crate::failure::Failure;
use crate::format;
use crate::words::{percentile, words};

/// Extensions of files for labels.
pub(crate) const LABELS: &[&str] = &["npy", "csv"];
/// Extensions of files for points.
pub(crate) const TABLES: &[&str] = &["npy", "csv", "safetensors"];

/// The source of the points.
#[derive(Debug, clap::Args)]
pub(crate) struct Data {
    /// Points: FILE.npy, FILE.csv, FILE.safetensors:TENSOR or FILE.gguf:TENSOR; n x d, images n x h x w
    #[arg(value_name = "DATA")]
    data: String,
    /// Separator of the fields of text files [default: tab, semicolon or comma, the first of these in the first line]
    #[arg(long, value_name = "WORD", value_parser = delimiter())]
    delimiter: Option<u8>,
}

fn delimiter() -> impl TypedValueParser<Value = u8> {
    words(&[("comma", b','), ("semicolon", b';'), ("tab", b'\t')])
}

impl Data {
    pub(crate) fn open(&self) -> Result<Points, Failure> {
        self.open_other(&self.data)
    }

    /// Opens another file with the same options.
    pub(crate) fn open_other(&self, spec: &str) -> Result<Points, Failure> {
        Ok(Points::open(spec, &self.reading())?)
    }

    fn reading(&self) -> ReadOptions {
        ReadOptions {
            delimiter: self.delimiter,
        }
    }

    /// Returns the name of the data as given.
    pub(crate) fn name(&self) -> String {
        format::printable(&self.data)
    }
}

/// Options of a clustering.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Seed of all random draws; the same seed gives the same result on every machine
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// First centroids: k-means++ (greedy, like scikit-learn), random points, or FILE with k points in the data's own
    /// units
    #[arg(long, value_name = "HOW", default_value = "k-means++")]
    init: String,
    /// Number of restarts, of which the best is kept
    #[arg(
        long,
        visible_alias = "restarts",
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    n_init: u32,
    /// Maximum iterations of a restart (passes over all points, with --mini-batch)
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    max_iter: u32,
    /// Stop when an iteration lowers the inertia by at most this part of it, rounded to millionths
    #[arg(
        long,
        visible_alias = "tolerance",
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    tol: f64,
    /// Use mini-batches of this many points instead of all points
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..))]
    mini_batch: Option<u32>,
    /// Cluster by direction (cosine): first scale every point to the same length
    #[arg(long)]
    spherical: bool,
    /// One weight per point: whole numbers in an npy file, a tensor or a CSV column
    #[arg(long, value_name = "FILE")]
    weights: Option<String>,
    /// Percentage of the values within the int8 grid, for floats with outliers [default: 100]
    #[arg(long, value_name = "PERCENT", conflicts_with = "spherical")]
    percent: Option<f64>,
}

/// Options, with the contents of the files that they name.
#[derive(Debug)]
pub(crate) struct Ready<'a> {
    options: &'a Options,
    tol_ppm: u32,
    range: RangeRule,
    weights: Option<Vec<u32>>,
    centroids: Option<Points>,
}

impl Options {
    /// Checks the options and reads the files that they name.
    pub(crate) fn ready(&self, data: &Data, points: &Points) -> Result<Ready<'_>, Failure> {
        if !(0.0..=1.0).contains(&self.tol) {
            return Err(Failure::usage(
                "--tol is a share of the inertia, from 0 to 1",
            ));
        }
        let range = match self.percent {
            None => RangeRule::MinMax,
            Some(percent) => percentile(percent)?,
        };
        let centroids = match self.init.as_str() {
            "k-means++" | "random" => None,
            file => Some(data.open_other(file)?),
        };
        let weights = match &self.weights {
            Some(file) => Some(read_weights(file, points.rows(), &data.reading())?),
            None => None,
        };
        Ok(Ready {
            options: self,
            tol_ppm: (self.tol * 1e6).round() as u32,
            range,
            weights,
            centroids,
        })
    }

    /// Iterates over the files that are read beside the data.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        let init = Some(&self.init).filter(|init| !matches!(init.as_str(), "k-means++" | "random"));
        init.into_iter().chain(&self.weights).map(PathBuf::from)
    }

    /// Describes the first centroids and the seed in words.
    pub(crate) fn start(&self) -> String {
        let init = format::printable(&self.init);
        let start = match self.init.as_str() {
            "k-means++" | "random" => format!("{init}, seed {}", self.seed),
            _ => format!("centroids of {init}"),
        };
        match (self.n_init, self.mini_batch) {
            (1, None) => start,
            (n, None) => format!("{start}, best of {n}"),
            (1, Some(b)) => format!("{start}, batches of {b}"),
            (n, Some(b)) => format!("{start}, batches of {b}, best of {n}"),
        }
    }

    /// True for spherical clustering, which sets the unit of inertia.
    pub(crate) fn spherical(&self) -> bool {
        self.spherical
    }

    /// Returns the seed of all random draws.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }
}

impl Ready<'_> {
    /// Returns the weights, if given.
    pub(crate) fn weights(&self) -> Option<&[u32]> {
        self.weights.as_deref()
    }

    /// Clusters with these options, and reports progress.
    pub(crate) fn run(
        &self,
        engine: &mut CommandEngine,
        points: &Points,
        k: usize,
        spinner: &Spinner,
    ) -> Result<KMeansFit, Failure> {
        let restarts = self.options.n_init;
        let mut kmeans = KMeans::new(k)
            .seed(self.options.seed)
            .restarts(restarts)
            .max_iter(self.options.max_iter)
            .tolerance_ppm(self.tol_ppm)
            .range(self.range)
            .spherical(self.options.spherical)
            .on_step(|step, inertia| {
                let restart = match restarts {
                    1 => String::new(),
                    n => format!("restart {} of {n}, ", step.restart + 1),
                };
                spinner.tell(format!(
                    "k = {k}, {restart}iteration {}, inertia {}",
                    step.step,
                    format::significant(inertia)
                ));
            });
        if self.options.init == "random" {
            kmeans = kmeans.init(Init::Random);
        }
        if let Some(batch) = self.options.mini_batch {
            kmeans = kmeans.batches(batch as usize);
        }
        if let Some(centroids) = &self.centroids {
            kmeans = kmeans.centroids(centroids);
        }
        if let Some(weights) = &self.weights {
            kmeans = kmeans.weights(weights);
        }
        Ok(engine.fit(&mut kmeans, points)?)
    }
}

/// A line on stderr that shows the progress of a run; nothing if stderr is no terminal. It disappears when dropped.
#[derive(Debug)]
pub(crate) struct Spinner(ProgressBar);

impl Spinner {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {elapsed}  {wide_msg}");
        let bar = match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Shows another message.
    pub(crate) fn tell(&self, message: String) {
        self.0.set_message(message);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Returns the reason why a run ended, for `--json` and for people.
pub(crate) fn stop(stop: Stop) -> (&'static str, &'static str) {
    match stop {
        Stop::Labels => ("labels", "no label changed"),
        Stop::Inertia => ("inertia", "inertia stayed the same"),
        Stop::Tolerance => ("tolerance", "within the tolerance"),
        Stop::Iterations => ("iterations", "the limit of iterations was reached"),
    }
}

/// The int8 grid of the quantized values.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct GridReport {
    scale: f32,
    zero_point: i8,
    exact: bool,
    clipped: u64,
    /// The squared error of the codes, divided by the values' squared distance from their mean.
    relative_error: f64,
}

impl GridReport {
    pub(crate) fn new(codes: &Codes, relative_error: f64) -> Self {
        Self {
            scale: codes.grid.scale,
            zero_point: codes.grid.zero_point,
            exact: codes.exact,
            clipped: codes.clipped,
            relative_error,
        }
    }

    /// Describes it in one line for people.
    pub(crate) fn words(&self) -> String {
        if self.exact {
            return "exact in int8".to_owned();
        }
        let mut words = format!(
            "int8 in steps of {}, {} % of the variance lost",
            format::significant(f64::from(self.scale)),
            format::significant(self.relative_error * 100.0)
        );
        if self.clipped > 0 {
            words += &format!(", {} clipped", format::counted(self.clipped, "value"));
        }
        // Above this, the clusters may be artefacts of the grid; causes are values far from 0 and columns of different
        // sizes.
        if self.relative_error > 0.01 {
            words +=
                ": coarse for this data; subtract each column's mean, or scale the columns alike";
        }
        words
    }
}

/// Describes the points: `1797 points of 64 values (uint8)`.
pub(crate) fn describe(points: &Points) -> String {
    let kind = match points.values() {
        Values::I8 { .. } => "int8",
        Values::U8(_) => "uint8",
        _ => "f32",
    };
    let shape = match points.shape() {
        [_] | [_, _] => String::new(),
        shape => format!(", from {}", format::shape(shape)),
    };
    format!(
        "{} of {} ({kind}{shape})",
        format::counted(points.rows() as u64, "point"),
        format::counted(points.dims() as u64, "value")
    )
}

/// Files to write, which must differ from each other and from all files that are read.
#[derive(Debug)]
pub(crate) struct Outputs {
    inputs: Vec<PathBuf>,
    force: bool,
}

impl Outputs {
    pub(crate) fn new(points: &Points, others: impl Iterator<Item = PathBuf>, force: bool) -> Self {
        let mut inputs = vec![points.path().to_owned()];
        // A tensor's name after a colon does not name a file; such an entry has no effect.
        inputs.extend(others);
        Self { inputs, force }
    }

    /// Calls `work` with the temporary path for `path`.
    pub(crate) fn with<T>(
        &self,
        path: &Path,
        work: impl FnOnce(Destination<'_>) -> Result<T, tercet_host::Error>,
    ) -> Result<T, Failure> {
        let inputs: Vec<&Path> = self.inputs.iter().map(PathBuf::as_path).collect();
        let to = Destination {
            path,
            inputs: &inputs,
            overwrite: self.force,
        };
        Ok(work(to)?)
    }

    /// Refuses paths that cannot be written before anything is computed. Each path comes with its allowed extensions.
    pub(crate) fn check(&self, paths: &[(&Path, &[&str])]) -> Result<(), Failure> {
        for (index, (path, extensions)) in paths.iter().enumerate() {
            self.with(path, |to| to.check(extensions))?;
            if paths[..index].iter().any(|(other, _)| other == path) {
                return Err(Failure::usage(format_args!(
                    "{}: named for two outputs",
                    path.display()
                )));
            }
        }
        Ok(())
    }
}
