//! `tercet search`: finds the rows of a matrix that are nearest to each query.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use tercet_core::search::MetricKind;
use tercet_host::points::{Points, ReadOptions};
use tercet_host::search::{Find, HitsFile, Neighbour, SearchOptions, SearchReport, Storage};

use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::words::words;
use crate::{engine, format, output};

const EXAMPLES: &str = "\
Examples:
  tercet search embeddings.safetensors:weight queries.npy -k 10
  tercet search base.npy queries.npy --metric l2 --storage ternary --rerank 100
  tercet search base.npy queries.npy --metric cosine --storage f32 --threshold 0.8 --json
  tercet search base.npy queries.npy --indices hits.npy --scores scores.npy
  tercet search base.npy queries.npy -k 100 --backend cuda

BASE and QUERIES are npy, CSV, safetensors or GGUF files (FILE:TENSOR if there are several tensors), with one point \
per row. Every row is compared with every query, so the hits are the exact nearest rows in the chosen storage; of \
equal scores, the lower row comes first. recall is the share of the hits of an exact f32 search that were found; \
computing it takes that f32 search (--no-recall skips it).

int8 storage holds integers from -128 to 127 unchanged. int8 and ternary storage hold codes of other values: with \
one scale per row for cosine, one scale for the base for dot, and one grid for base and queries for l2.

JSON (--json): rows, dims, queries, metric, storage, storage_bytes, exact (no value was rounded), reranked \
(candidates a query, or null), recall (or null), engine (that searched), engine_note (null, or why it is not the one \
asked for), hits[][] (index, score). The score of l2 is the squared distance.";

/// Queries shown to people.
const SHOWN: usize = 20;
/// Hits per query shown to people.
const HITS: usize = 5;

/// Find the rows of BASE that are nearest to each of QUERIES
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The rows to search: FILE or FILE:TENSOR
    #[arg(value_name = "BASE")]
    base: String,
    /// The rows to search for: FILE or FILE:TENSOR
    #[arg(value_name = "QUERIES")]
    queries: String,
    /// Number of rows to find for each query
    #[arg(
        short,
        value_name = "K",
        default_value_t = 10,
        conflicts_with = "threshold"
    )]
    k: usize,
    /// Instead find every row at least as good as this: a dot product, a cosine or a squared distance
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    threshold: Option<f32>,
    /// Meaning of near: the largest cosine or dot product, or the smallest squared distance
    #[arg(long, value_name = "METRIC", value_parser = metric(), default_value = "cosine")]
    metric: MetricKind,
    /// How to store the base: 8, about 2, 16 or 32 bits per value
    #[arg(long, value_name = "STORAGE", value_parser = storage(), default_value = "int8")]
    storage: Storage,
    /// Take N candidates for each query, at least K, and keep the best of them by their f32 values
    #[arg(long, value_name = "N", conflicts_with = "threshold")]
    rerank: Option<usize>,
    /// Do not also search by f32 values, which the recall needs
    #[arg(long)]
    no_recall: bool,
    /// Write the rows found as int64, queries x K
    #[arg(long, value_name = "OUT.npy", conflicts_with = "threshold")]
    indices: Option<PathBuf>,
    /// Write their scores as float32, queries x K
    #[arg(long, value_name = "OUT.npy", conflicts_with = "threshold")]
    scores: Option<PathBuf>,
    /// Replace output files that exist
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

fn metric() -> impl TypedValueParser<Value = MetricKind> {
    words(&[
        ("cosine", MetricKind::Cosine),
        ("dot", MetricKind::Dot),
        ("l2", MetricKind::SquaredL2),
    ])
}

fn storage() -> impl TypedValueParser<Value = Storage> {
    words(&[
        ("int8", Storage::Int8),
        ("ternary", Storage::Ternary),
        ("f16", Storage::F16),
        ("f32", Storage::F32),
    ])
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = SearchOptions {
        find: match arguments.threshold {
            Some(threshold) => Find::Within(threshold),
            None => Find::Nearest(arguments.k),
        },
        metric: arguments.metric,
        storage: arguments.storage,
        rerank: arguments.rerank,
        recall: !arguments.no_recall && arguments.threshold.is_none(),
    };
    if arguments.indices.is_some() && arguments.indices == arguments.scores {
        return Err(Failure::usage(
            "--indices and --scores name the same file; name two",
        ));
    }
    let base = Points::open(&arguments.base, &ReadOptions::default())?;
    let queries = Points::open(&arguments.queries, &ReadOptions::default())?;
    let create =
        |path: &PathBuf| HitsFile::create(path, [base.path(), queries.path()], arguments.force);
    let indices = arguments.indices.as_ref().map(create).transpose()?;
    let scores = arguments.scores.as_ref().map(create).transpose()?;
    let mut engine = arguments.engine.open_on(arguments.devices)?;
    let report = engine.search(&base, &queries, &options)?;
    if let Some(file) = indices {
        file.write_indices(&report)?;
    }
    if let Some(file) = scores {
        file.write_scores(&report)?;
    }
    if arguments.json {
        output::json(&report)
    } else {
        output::text(&people(&report))
    }
}

fn people(report: &SearchReport) -> String {
    let exact = if report.exact {
        ", nothing rounded"
    } else {
        ""
    };
    let mut text = format!(
        "base      {}, {} in {}{exact}\nmetric    {}\n",
        format::shape(&[report.rows, report.dims]),
        report.storage,
        format::bytes(report.storage_bytes),
        report.metric,
    );
    if let Some(candidates) = report.reranked {
        text += &format!("reranked  {candidates} candidates per query, by f32\n");
    }
    if let Some(recall) = report.recall {
        text += &format!("recall    {recall:.4}\n");
    }
    let engine = engine::words(&report.engine, report.engine_note.as_deref());
    text += &format!("engine    {engine}\n");
    text.push('\n');
    let mut table = Table::new(&[("query", Align::Right), ("rows (scores)", Align::Left)]);
    for (query, hits) in report.hits.iter().enumerate().take(SHOWN) {
        table.row([query.to_string(), nearest(hits)]);
    }
    text += &table.render();
    if let Some(more) = report
        .hits
        .len()
        .checked_sub(SHOWN)
        .filter(|&more| more > 0)
    {
        let more = match more {
            1 => "1 more query".to_owned(),
            more => format!("{more} more queries"),
        };
        text += &format!("… {more}; --json and --indices give all of them\n");
    }
    text
}

/// Formats the first hits of a query, and the number of others.
fn nearest(hits: &[Neighbour]) -> String {
    if hits.is_empty() {
        return "none".to_owned();
    }
    let shown = hits.iter().take(HITS);
    let shown = shown.map(|hit| {
        let score = format::significant(f64::from(hit.score));
        format!("{} ({score})", hit.index)
    });
    let mut line = shown.collect::<Vec<_>>().join("  ");
    if hits.len() > HITS {
        line += &format!("  … {} more", hits.len() - HITS);
    }
    line
}
