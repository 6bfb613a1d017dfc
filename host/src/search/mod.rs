//! Similarity search over points from files: which rows of a base are nearest to each query.
//!
//! The table shows how much recall codes lose and re-ranking regains: recall@10 against NumPy's ten nearest in f64. The
//! data are wordllama's 32,000 × 256 word embeddings, every 160th row a query and the others the base
//! (`cargo test -p tercet-host --features full --test reference reference_search -- --nocapture` prints it):
//!
//! | metric | int8 | of 20 candidates | of 50 | ternary | of 50 candidates | of 400 |
//! |---|---|---|---|---|---|---|
//! | cosine | 0.9940 | 1.0000 | 1.0000 | 0.7885 | 0.9780 | 1.0000 |
//! | dot | 0.9875 | 1.0000 | 1.0000 | 0.7300 | 0.9745 | 0.9995 |
//! | l2 | 0.9100 | 0.9915 | 0.9995 | 0.6590 | 0.9340 | 0.9975 |
//!
//! ```
//! use tercet_host::parallel::Threads;
//! use tercet_host::points::{Points, Values};
//! use tercet_host::search::{Find, SearchOptions, search};
//!
//! let base = Points::new("base", 3, 2, Values::F32(vec![1.0, 0.1, -0.5, 2.0, 3.0, 0.2]))?;
//! let queries = Points::new("queries", 1, 2, Values::F32(vec![2.0, 0.1]))?;
//! let options = SearchOptions { find: Find::Nearest(2), ..SearchOptions::default() };
//! let report = search(&mut Threads::default(), &base, &queries, &options, &())?;
//! // By cosine in int8; the same two rows as in floats.
//! assert_eq!(report.hits[0].iter().map(|hit| hit.index).collect::<Vec<_>>(), [2, 0]);
//! assert_eq!(report.recall, Some(1.0));
//! # Ok::<(), tercet_host::Error>(())
//! ```

mod codes;
mod index;
mod run;
#[cfg(feature = "files")]
mod write;

use tercet_core::search::{Cosine, Dot, MAX_DIM, MetricKind, SquaredL2};

use crate::engine::FlowEngine;
use crate::points::Points;
use crate::{Error, Progress};

pub use index::Index;
#[cfg(feature = "files")]
pub use write::HitsFile;

/// How the rows of the base are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storage {
    /// One byte per value, compared in exact integers with queries in int8.
    #[default]
    Int8,
    /// Two bits per value and one magnitude per row, compared in exact integers with queries in int8.
    Ternary,
    /// Two bytes per value, rounded to nearest even; queries in f32.
    F16,
    /// Four bytes per value: the exact reference.
    F32,
}

impl Storage {
    /// Every storage, the smallest first.
    pub const ALL: [Self; 4] = [Self::Ternary, Self::Int8, Self::F16, Self::F32];

    /// Returns `ternary`, `int8`, `f16` or `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Ternary => "ternary",
            Self::F16 => "f16",
            Self::F32 => "f32",
        }
    }
}

/// The rows to look for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Find {
    /// This many best rows, best first.
    Nearest(usize),
    /// Every row whose score is at least this good, in index order.
    Within(f32),
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchOptions {
    /// The rows to look for.
    pub find: Find,
    /// The measure of nearness.
    pub metric: MetricKind,
    /// The storage of the base.
    pub storage: Storage,
    /// Number of candidates per query to score again with the base's `f32` rows. The best of them are kept.
    pub rerank: Option<usize>,
    /// Search by `f32` rows too, and report the part of their hits that was found.
    pub recall: bool,
}

/// Finds the 10 nearest by cosine in int8, with their recall.
impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            find: Find::Nearest(10),
            metric: MetricKind::Cosine,
            storage: Storage::Int8,
            rerank: None,
            recall: true,
        }
    }
}

/// A row that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Neighbour {
    /// The row of the base, counted from 0.
    pub index: usize,
    /// Its score in the data's own units, computed from the codes or floats that found it: a dot product, a cosine or a
    /// squared distance.
    pub score: f32,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SearchReport {
    /// Rows of the base.
    pub rows: usize,
    /// Values per row.
    pub dims: usize,
    /// Number of queries.
    pub queries: usize,
    /// The metric's name.
    pub metric: &'static str,
    /// The storage's name.
    pub storage: &'static str,
    /// Bytes of the base in its storage.
    pub storage_bytes: u64,
    /// True if the storage holds base and queries without rounding.
    pub exact: bool,
    /// Number of candidates per query that were scored again.
    pub reranked: Option<usize>,
    /// The part of the hits of an exact search by `f32` rows that was found, over all queries.
    pub recall: Option<f64>,
    /// The engine that searched: an instruction set of the processor, or [`crate::engine::FlowEngine::name`].
    pub engine: String,
    /// Reason why another engine than the requested one searched; `None` if the requested one did.
    pub engine_note: Option<String>,
    /// The hits of each query.
    pub hits: Vec<Vec<Neighbour>>,
}

/// Finds the rows of `base` that are nearest to each of `queries`, on an engine, or on the processor's threads if the
/// engine has no room. The processor converts the rows to their storage and re-ranks the candidates.
///
/// Floats become codes as follows:
/// - If base and queries hold only integers from −128 to 127 (for squared distance in int8 also from 0 to 255), they
///   are taken as they are; in ternary only if the base holds only −1, 0 and 1.
/// - int8 by cosine: one scale per row, largest magnitude / 127, since lengths do not matter.
/// - int8 by dot product: one scale for the base, so that rows are comparable, and one per query.
/// - int8 by squared distance: one affine grid for base and queries, since distances are between values on one grid.
/// - Ternary: each row becomes its optimal ternary code with its least-squares scale. The scale becomes the row's
///   magnitude, an integer up to 127, on the grid of the queries. Queries are coded as in int8.
///
/// Hits, scores and recall do not depend on the number of threads. O(queries · rows · dims); memory: the storage, the
/// base as `f32`, and the hits. Progress counts the bytes of queries, twice if recall needs a second search.
///
/// # Errors
/// [`Error::Differ`] if queries and rows differ in length; [`Error::Unsupported`] if k exceeds the rows, rows are
/// longer than [`MAX_DIM`] for integers, or a value overflows f16; [`Error::Options`] for k = 0, fewer candidates than
/// k, a threshold that is NaN, and candidates or recall with a threshold; [`Error::Engine`].
pub fn search<E: FlowEngine>(
    engine: &mut E,
    base: &Points,
    queries: &Points,
    options: &SearchOptions,
    progress: &dyn Progress,
) -> Result<SearchReport, Error> {
    check(base, queries, options)?;
    match options.metric {
        MetricKind::Dot => run::search::<Dot, E>(engine, base, queries, options, progress),
        MetricKind::Cosine => run::search::<Cosine, E>(engine, base, queries, options, progress),
        MetricKind::SquaredL2 => {
            run::search::<SquaredL2, E>(engine, base, queries, options, progress)
        }
    }
}

fn check(base: &Points, queries: &Points, options: &SearchOptions) -> Result<(), Error> {
    match options.find {
        Find::Nearest(0) => return Err(Error::options("k must be at least 1")),
        Find::Nearest(k) => {
            if let Some(candidates) = options.rerank.filter(|&candidates| candidates < k) {
                return Err(Error::options(format!(
                    "{candidates} candidates are fewer than the {k} hits to keep"
                )));
            }
            if k > base.rows() {
                let reason = format!("k is {k}, but it has {} rows", base.rows());
                return Err(refuse(base, reason));
            }
        }
        Find::Within(threshold) => {
            if threshold.is_nan() {
                return Err(Error::options("the threshold is not a number"));
            }
            if options.rerank.is_some() || options.recall {
                let reason = "candidates and recall are for the nearest k, not for a threshold";
                return Err(Error::options(reason));
            }
        }
    }
    if base.dims() != queries.dims() {
        let reason = format!(
            "rows of {} values cannot be compared with queries of {}",
            base.dims(),
            queries.dims()
        );
        return Err(Error::Differ {
            left: base.path().to_path_buf(),
            right: queries.path().to_path_buf(),
            reason,
        });
    }
    let integer = matches!(options.storage, Storage::Int8 | Storage::Ternary);
    if integer && base.dims() > MAX_DIM {
        let reason = format!(
            "rows of {} values are too long for {} storage, which takes up to {MAX_DIM}; f16 and f32 take any",
            base.dims(),
            options.storage.name()
        );
        return Err(refuse(base, reason));
    }
    Ok(())
}

fn refuse(points: &Points, reason: impl ToString) -> Error {
    Error::tensor(points.path(), points.name(), reason)
}
