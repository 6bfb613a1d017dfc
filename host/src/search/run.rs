//! One search: rows in their storage, hits, re-ranking and recall.

use rayon::prelude::*;
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::number::sum_of_squares;
use tercet_core::scalar::norm;
use tercet_core::search::{
    FloatRows, Hit, Int8Rows, Metric, Rows, Score, SearchError, TernaryRows, recall, rerank,
};

use super::codes::Floats;
use super::{Find, Neighbour, SearchOptions, SearchReport, Storage, refuse};
use crate::parallel::Threads;
use crate::points::Points;
use crate::{Error, Progress};

/// Queries between two reports of progress.
const QUERIES: usize = 256;
/// Places for the rows of a range at first; a query with more searches twice.
const ROOM: usize = 1024;

pub(super) fn search<M: Metric>(
    base: &Points,
    queries: &Points,
    options: &SearchOptions,
    progress: &dyn Progress,
) -> Result<SearchReport, Error> {
    let (rows, asked) = (base.to_f32(), queries.to_f32());
    let floats = Floats {
        base: &rows,
        queries: &asked,
        dims: base.dims(),
        metric: M::KIND,
    };
    progress.start((asked.len() * size_of::<f32>()) as u64);
    progress.tensor(queries.name());
    let dims = base.dims();
    // The points' own checks leave nothing for these to refuse but what the messages say.
    let wrong = |error: SearchError| refuse(base, error);

    let mut truth = FloatRows::new(&rows, dims).map_err(wrong)?;
    let plain = options.storage == Storage::F32 || options.rerank.is_some();
    let row_norms;
    if M::FLOAT_NORMS && (plain || options.recall) {
        row_norms = norms(&rows, dims, sum_of_squares);
        truth = truth.with_norms(&row_norms).map_err(wrong)?;
    }
    let run = Run {
        truth,
        floats,
        options,
        progress,
    };
    let count = asked.len() / dims;
    let ones = || vec![1.0; count];
    let (found, storage_bytes, exact) = match options.storage {
        Storage::F32 => {
            let found = run.hits::<M, _>(truth, &asked, &ones());
            (found, size_of_val(&rows[..]), true)
        }
        Storage::F16 => {
            let halves = floats.halves().map_err(|index| {
                let (row, column) = (index / dims, index % dims);
                let reason = format!("row {row}, column {column} (from 0) overflows f16");
                refuse(base, reason)
            })?;
            let both = halves.par_iter().zip(&*rows);
            let exact = both.all(|(half, &x)| half.to_f32() == x);
            let mut held = FloatRows::new(&halves, dims).map_err(wrong)?;
            let row_norms;
            if M::FLOAT_NORMS {
                row_norms = norms(&halves, dims, sum_of_squares);
                held = held.with_norms(&row_norms).map_err(wrong)?;
            }
            let found = run.hits::<M, _>(held, &asked, &ones());
            (found, size_of_val(&halves[..]), exact)
        }
        Storage::Int8 => {
            let codes = floats.int8()?;
            let mut held = Int8Rows::new(&codes.rows, dims).map_err(wrong)?;
            let row_norms;
            if M::INTEGER_NORMS {
                row_norms = norms(&codes.rows, dims, norm);
                held = held.with_norms(&row_norms).map_err(wrong)?;
            }
            let found = run.hits::<M, _>(held, &codes.queries, &codes.units);
            (found, codes.rows.len(), codes.exact)
        }
        Storage::Ternary => {
            let codes = floats.ternary()?;
            let held = TernaryRows::new(&codes.rows, dims).map_err(wrong)?;
            let mut held = held.with_magnitudes(&codes.magnitudes).map_err(wrong)?;
            let mut row_norms = Vec::new();
            if M::INTEGER_NORMS {
                row_norms.resize(base.rows(), 0);
                held.write_norms(&mut row_norms).map_err(wrong)?;
                held = held.with_norms(&row_norms).map_err(wrong)?;
            }
            let found = run.hits::<M, _>(held, &codes.queries, &codes.units);
            let bytes = codes.rows.len() + codes.magnitudes.len();
            (found, bytes, codes.exact)
        }
    };
    let found = found.map_err(wrong)?;
    Ok(SearchReport {
        rows: base.rows(),
        dims,
        queries: count,
        metric: M::KIND.name(),
        storage: options.storage.name(),
        storage_bytes: storage_bytes as u64,
        exact,
        reranked: options.rerank.map(|candidates| candidates.min(base.rows())),
        recall: found.recall,
        hits: found.hits,
    })
}

/// The squared length of each row.
fn norms<T: Sync, N: Send>(
    values: &[T],
    dims: usize,
    norm: impl Fn(&[T]) -> N + Send + Sync,
) -> Vec<N> {
    values.par_chunks(dims).map(norm).collect()
}

/// What was found by all queries.
struct Found {
    hits: Vec<Vec<Neighbour>>,
    recall: Option<f64>,
}

/// What the search by every storage needs.
struct Run<'a> {
    truth: FloatRows<'a, f32>,
    floats: Floats<'a>,
    options: &'a SearchOptions,
    progress: &'a dyn Progress,
}

impl Run<'_> {
    /// Whether recall takes a search of its own; `f32` rows are the truth themselves.
    fn measures(&self) -> bool {
        self.options.recall && self.options.storage != Storage::F32
    }

    /// Searches block by block of queries; `units` has what a score of 1 stands for, for each query.
    fn hits<M: Metric, R: Rows>(
        &self,
        rows: R,
        queries: &[R::Query],
        units: &[f64],
    ) -> Result<Found, SearchError> {
        let dims = self.floats.dims;
        let mut found = Found {
            hits: Vec::with_capacity(units.len()),
            recall: None,
        };
        let (mut shared, mut sought) = (0, 0);
        let blocks = queries
            .chunks(QUERIES * dims)
            .zip(self.floats.queries.chunks(QUERIES * dims))
            .zip(units.chunks(QUERIES));
        for ((queries, exact), units) in blocks {
            match self.options.find {
                Find::Within(threshold) => {
                    for (query, &unit) in queries.chunks(dims).zip(units) {
                        // Where codes stand for floats the threshold is rounded to their grid's f32.
                        let threshold = (f64::from(threshold) / unit) as f32;
                        let near = within::<M, R>(rows, query, threshold)?;
                        found.hits.push(neighbours(&near, unit));
                    }
                }
                Find::Nearest(k) => {
                    let candidates = self.options.rerank.unwrap_or(k).min(rows.len());
                    let best = nearest::<M, R>(rows, queries, candidates)?;
                    let reranked = match self.options.rerank {
                        Some(_) => Some(self.rerank::<M, _>(exact, &best, candidates, k)?),
                        None => None,
                    };
                    if self.measures() {
                        let truth = nearest::<M, _>(self.truth, exact, k)?;
                        sought += truth.len();
                        for (query, truth) in truth.chunks(k).enumerate() {
                            shared += match &reranked {
                                Some(hits) => recall(&hits[query * k..][..k], truth),
                                None => recall(&best[query * k..][..k], truth),
                            };
                        }
                    }
                    match reranked {
                        Some(hits) => {
                            let hits = hits.chunks(k).map(|hits| neighbours(hits, 1.0));
                            found.hits.extend(hits);
                        }
                        None => {
                            let hits = best.chunks(k).zip(units);
                            let hits = hits.map(|(hits, &unit)| neighbours(hits, unit));
                            found.hits.extend(hits);
                        }
                    }
                }
            }
            self.progress.advance(size_of_val(exact) as u64);
        }
        if self.options.recall {
            found.recall = Some(if self.measures() {
                shared as f64 / sought as f64
            } else {
                1.0
            });
        }
        Ok(found)
    }

    /// The best `k` of each query's candidates by the floats.
    fn rerank<M: Metric, S: Score>(
        &self,
        queries: &[f32],
        best: &[Hit<S>],
        candidates: usize,
        k: usize,
    ) -> Result<Vec<Hit<M::Float>>, SearchError> {
        let dims = self.floats.dims;
        let mut hits = vec![Hit::default(); queries.len() / dims * k];
        queries
            .par_chunks(dims)
            .zip(best.par_chunks(candidates))
            .zip(hits.par_chunks_mut(k))
            .try_for_each(|((query, candidates), hits)| {
                rerank::<M, _, _>(&self.truth, query, candidates, hits).map(|_| ())
            })?;
        Ok(hits)
    }
}

/// The best `k` rows of each query, of at least as many.
fn nearest<M: Metric, R: Rows>(
    rows: R,
    queries: &[R::Query],
    k: usize,
) -> Result<Vec<Hit<R::Score<M>>>, SearchError> {
    let mut hits = vec![Hit::default(); queries.len() / rows.dim() * k];
    let mut engine = Threads::default();
    engine.base(rows)?.top_k_all::<M>(queries, k, &mut hits)?;
    Ok(hits)
}

/// The rows that reach a threshold.
fn within<M: Metric, R: Rows>(
    rows: R,
    query: &[R::Query],
    threshold: f32,
) -> Result<Vec<Hit<R::Score<M>>>, SearchError> {
    let mut hits = vec![Hit::default(); ROOM];
    let mut engine = Threads::default();
    let mut base = engine.base(rows)?;
    let mut total = base.range::<M>(query, threshold, &mut hits)?;
    if total > hits.len() {
        hits.resize(total, Hit::default());
        total = base.range::<M>(query, threshold, &mut hits)?;
    }
    hits.truncate(total);
    Ok(hits)
}

fn neighbours<S: Score>(hits: &[Hit<S>], unit: f64) -> Vec<Neighbour> {
    let neighbour = |hit: &Hit<S>| Neighbour {
        index: hit.index,
        score: (f64::from(hit.score.value()) * unit) as f32,
    };
    hits.iter().map(neighbour).collect()
}
