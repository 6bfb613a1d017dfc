//! What the commands that cluster share: options, progress, words.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::TypedValueParser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tercet_core::cluster::{Init, Stop};
use tercet_core::quant::calibrate::Method;
use tercet_host::cluster::{KMeans, KMeansFit};
use tercet_host::points::{Codes, Destination, Points, ReadOptions, Values, read_weights};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::format;
use crate::words::words;

/// Where the points come from.
#[derive(Debug, clap::Args)]
pub(crate) struct Data {
    /// Points: FILE.npy, FILE.csv, FILE.safetensors:TENSOR or FILE.gguf:TENSOR; n x d, images n x h x w
    #[arg(value_name = "DATA")]
    data: String,
    /// What parts the fields of text files [default: tab, semicolon or comma, whichever the first line has]
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

    /// Opens another file as this one is.
    pub(crate) fn open_other(&self, spec: &str) -> Result<Points, Failure> {
        Ok(Points::open(spec, &self.reading())?)
    }

    fn reading(&self) -> ReadOptions {
        ReadOptions {
            delimiter: self.delimiter,
        }
    }

    /// The data as it was named.
    pub(crate) fn name(&self) -> String {
        format::printable(&self.data)
    }
}

/// How to cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Seeds every draw; the same seed gives the same result on every machine
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// First centroids: k-means++ (greedy, as scikit-learn's), random points, or FILE with k points in the data's own units
    #[arg(long, value_name = "HOW", default_value = "k-means++")]
    init: String,
    /// Restarts, of which the best is kept
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    n_init: u32,
    /// The most iterations of a restart (passes over all points, with --mini-batch)
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    max_iter: u32,
    /// Stop where an iteration lowers inertia by no more than this part of it; to a millionth
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    tol: f64,
    /// Mini-batches of so many points instead of all
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..))]
    mini_batch: Option<u32>,
    /// Cluster by direction (cosine): every point is scaled to one length first
    #[arg(long)]
    spherical: bool,
    /// One weight a point: whole numbers in an npy file, a tensor or a CSV column
    #[arg(long, value_name = "FILE")]
    weights: Option<String>,
    /// Per cent of the values within the int8 grid, for floats with outliers [default: 100]
    #[arg(long, value_name = "PERCENT", conflicts_with = "spherical")]
    percent: Option<f64>,
}

/// Options with the files that they name read.
#[derive(Debug)]
pub(crate) struct Ready<'a> {
    options: &'a Options,
    tol_ppm: u32,
    range: Method,
    weights: Option<Vec<u32>>,
    centroids: Option<Points>,
}

impl Options {
    /// Checks the options and reads the files that they name.
    pub(crate) fn ready(&self, data: &Data, points: &Points) -> Result<Ready<'_>, Failure> {
        if !(0.0..=1.0).contains(&self.tol) {
            return Err(Failure::usage("--tol is a part of the inertia: 0 to 1"));
        }
        let range = match self.percent {
            None => Method::MinMax,
            Some(percent) if percent > 0.0 && percent <= 100.0 => Method::Percentile {
                ppm: (percent * 10_000.0).round().max(1.0) as u32,
            },
            Some(_) => return Err(Failure::usage("--percent lies above 0 and at most at 100")),
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

    /// The files that are read beside the data.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        let init = Some(&self.init).filter(|init| !matches!(init.as_str(), "k-means++" | "random"));
        init.into_iter().chain(&self.weights).map(PathBuf::from)
    }

    /// The first centroids and the seed, in words.
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

    /// What inertia is measured in.
    pub(crate) fn spherical(&self) -> bool {
        self.spherical
    }

    /// The number that seeds every draw.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }
}

impl Ready<'_> {
    /// The weights, where some were given.
    pub(crate) fn weights(&self) -> Option<&[u32]> {
        self.weights.as_deref()
    }

    /// Clusters with these options, telling progress.
    pub(crate) fn run(
        &self,
        engine: &mut Engine,
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

/// A line on stderr that says how far a run is; nothing where stderr is no terminal. It goes away when dropped.
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

    /// Says something else.
    pub(crate) fn tell(&self, message: String) {
        self.0.set_message(message);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Why a run ended, as `--json` says it and as people read it.
pub(crate) fn stop(stop: Stop) -> (&'static str, &'static str) {
    match stop {
        Stop::Labels => ("labels", "no label changed"),
        Stop::Inertia => ("inertia", "inertia stayed"),
        Stop::Tolerance => ("tolerance", "within the tolerance"),
        Stop::Iterations => ("iterations", "the iterations ran out"),
    }
}

/// The int8 grid that values were put on.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Grid {
    scale: f32,
    zero_point: i8,
    exact: bool,
    clipped: u64,
    /// The squared error of the codes over the values' squared distance from their mean.
    relative_error: f64,
}

impl Grid {
    pub(crate) fn new(codes: &Codes, relative_error: f64) -> Self {
        Self {
            scale: codes.grid.scale,
            zero_point: codes.grid.zero_point,
            exact: codes.exact,
            clipped: codes.clipped,
            relative_error,
        }
    }

    /// One line for people.
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
        // Past this, clusters may be those of the grid; values far from 0 and columns of other sizes are the causes.
        if self.relative_error > 0.01 {
            words +=
                ": coarse for this data; subtract each column's mean, or scale the columns alike";
        }
        words
    }
}

/// What the points are: `1797 points of 64 values (uint8)`.
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

/// Files to write, which must differ from each other and from all that is read.
#[derive(Debug)]
pub(crate) struct Outputs {
    inputs: Vec<PathBuf>,
    force: bool,
}

impl Outputs {
    pub(crate) fn new(points: &Points, others: impl Iterator<Item = PathBuf>, force: bool) -> Self {
        let mut inputs = vec![points.path().to_owned()];
        // A tensor's name after a colon makes no file; such an entry stops nothing.
        inputs.extend(others);
        Self { inputs, force }
    }

    /// Calls `work` with where `path` is to go.
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

    /// Refuses what cannot be written before anything is computed: each path with its allowed extensions.
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
