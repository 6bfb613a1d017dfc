//! One search: rows in their storage, hits, re-ranking and recall.

use tercet_core::engine::{BaseQuery, BaseScore, SearchBase};
use tercet_core::number::sum_of_squares;
use tercet_core::scalar::norm;
use tercet_core::search::{
    FloatRows, Hit, Int8Rows, Metric, Rows, Score, SearchError, TernaryRows, rerank,
};
use tracing::trace_span;

use super::codes::Floats;
use super::{Find, Neighbour, SearchOptions, SearchReport, Storage, refuse};
use crate::engine::{By, Fault, Worker};
use crate::parallel::Threads;
use crate::parallel::each::{chunks, chunks_mut, items_mut};
use crate::points::Points;
use crate::source::TILE;
use crate::{Error, Progress};

/// Queries between two reports of progress.
const QUERIES: usize = 256;
/// Places for the rows of a range at first; a query with more searches twice.
const ROOM: usize = 1024;

pub(super) fn search<M: Metric, E: Worker>(
    engine: &mut E,
    base: &Points,
    queries: &Points,
    options: &SearchOptions,
    progress: &dyn Progress,
) -> Result<SearchReport, Error> {
    let (rows, asked) = (base.to_f32(), queries.to_f32());
    let _span = trace_span!("search", rows = base.rows(), queries = queries.rows()).entered();
    let floats = Floats {
        base: &rows,
        queries: &asked,
        dims: base.dims(),
        metric: M::KIND,
    };
    let passes = if measures(options) { 2 } else { 1 };
    progress.start((passes * asked.len() * size_of::<f32>()) as u64);
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
            let found = run.hits::<M, _, _>(engine, truth, &asked, &ones());
            (found, size_of_val(&rows[..]), true)
        }
        Storage::F16 => {
            let halves = floats.halves().map_err(|index| {
                let (row, column) = (index / dims, index % dims);
                let reason = format!("row {row}, column {column} (from 0) overflows f16");
                refuse(base, reason)
            })?;
            let both = chunks(&halves, TILE).zip(chunks(&rows, TILE));
            let exact = both.all(|(halves, values)| {
                let mut pairs = halves.iter().zip(values);
                pairs.all(|(half, &x)| half.to_f32() == x)
            });
            let mut held = FloatRows::new(&halves, dims).map_err(wrong)?;
            let row_norms;
            if M::FLOAT_NORMS {
                row_norms = norms(&halves, dims, sum_of_squares);
                held = held.with_norms(&row_norms).map_err(wrong)?;
            }
            let found = run.hits::<M, _, _>(engine, held, &asked, &ones());
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
            let found = run.hits::<M, _, _>(engine, held, &codes.queries, &codes.units);
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
            let found = run.hits::<M, _, _>(engine, held, &codes.queries, &codes.units);
            let bytes = codes.rows.len() + codes.magnitudes.len();
            (found, bytes, codes.exact)
        }
    };
    let (found, by) =
        found.map_err(|fault| fault.told(engine.name(), |refusal| refuse(base, refusal)))?;
    Ok(SearchReport {
        engine: by.engine,
        engine_note: by.note,
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
fn norms<T: Sync, N: Clone + Default + Send>(
    values: &[T],
    dims: usize,
    norm: impl Fn(&[T]) -> N + Sync,
) -> Vec<N> {
    let mut norms = vec![N::default(); values.len() / dims];
    (chunks(values, dims).zip(items_mut(&mut norms))).each(|_, (row, out)| *out = norm(row));
    norms
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

/// Whether recall takes a search of its own; `f32` rows are the truth themselves.
fn measures(options: &SearchOptions) -> bool {
    options.recall && options.storage != Storage::F32
}

impl Run<'_> {
    /// Searches; `units` has what a score of 1 stands for, for each query.
    fn hits<M: Metric, R: Rows, E: Worker>(
        &self,
        engine: &mut E,
        rows: R,
        queries: &[R::Query],
        units: &[f64],
    ) -> Result<(Found, By), Fault> {
        let done = self.hits_by::<M, R, E>(engine, rows, queries, units);
        By::or_threads(engine.name(), done, |threads| {
            // What was told of progress stays told.
            let progress = &();
            Run { progress, ..*self }.hits_by::<M, R, Threads>(threads, rows, queries, units)
        })
    }

    fn hits_by<M: Metric, R: Rows, E: Worker>(
        &self,
        engine: &mut E,
        rows: R,
        queries: &[R::Query],
        units: &[f64],
    ) -> Result<Found, Fault> {
        let hits = self.found::<M, _, _>(engine, rows, queries, units)?;
        let recall = match (self.options.recall, self.options.find) {
            (true, Find::Nearest(k)) if measures(self.options) => {
                Some(self.recall::<M, E>(engine, &hits, k)?)
            }
            (true, _) => Some(1.0),
            (false, _) => None,
        };
        Ok(Found { hits, recall })
    }

    /// The hits of all queries, block by block.
    fn found<M: Metric, R: Rows, E: Worker>(
        &self,
        engine: &mut E,
        rows: R,
        queries: &[R::Query],
        units: &[f64],
    ) -> Result<Vec<Vec<Neighbour>>, Fault> {
        let dims = self.floats.dims;
        let mut found = Vec::with_capacity(units.len());
        let mut searched = engine.base(rows).map_err(Into::into)?;
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
                        let near = within::<M, _>(&mut searched, query, threshold);
                        found.push(neighbours(&near.map_err(Into::into)?, unit));
                    }
                }
                Find::Nearest(k) => {
                    let candidates = self.options.rerank.unwrap_or(k).min(rows.len());
                    let best = nearest::<M, _>(&mut searched, queries, candidates);
                    let best = best.map_err(Into::into)?;
                    match self.options.rerank {
                        Some(_) => {
                            let hits = self.rerank::<M, _>(exact, &best, candidates, k)?;
                            found.extend(hits.chunks(k).map(|hits| neighbours(hits, 1.0)));
                        }
                        None => {
                            let hits = best.chunks(k).zip(units);
                            found.extend(hits.map(|(hits, &unit)| neighbours(hits, unit)));
                        }
                    }
                }
            }
            self.progress.advance(size_of_val(exact) as u64);
        }
        Ok(found)
    }

    /// The part of the true nearest `k` of all queries that is among their hits.
    fn recall<M: Metric, E: Worker>(
        &self,
        engine: &mut E,
        hits: &[Vec<Neighbour>],
        k: usize,
    ) -> Result<f64, Fault> {
        let (mut shared, mut sought) = (0, 0);
        let mut searched = engine.base(self.truth).map_err(Into::into)?;
        let blocks = self.floats.queries.chunks(QUERIES * self.floats.dims);
        for (queries, hits) in blocks.zip(hits.chunks(QUERIES)) {
            let truth = nearest::<M, _>(&mut searched, queries, k).map_err(Into::into)?;
            sought += truth.len();
            for (truth, hits) in truth.chunks(k).zip(hits) {
                shared += recall(hits, truth);
            }
            self.progress.advance(size_of_val(queries) as u64);
        }
        Ok(shared as f64 / sought as f64)
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
        chunks(queries, dims)
            .zip(chunks(best, candidates))
            .zip(chunks_mut(&mut hits, k))
            .try_each(|_, ((query, candidates), hits)| {
                rerank::<M, _, _>(&self.truth, query, candidates, hits).map(|_| ())
            })?;
        Ok(hits)
    }
}

/// The best `k` rows of each query, of at least as many.
fn nearest<M: Metric, B: SearchBase>(
    base: &mut B,
    queries: &[BaseQuery<B>],
    k: usize,
) -> Result<Vec<Hit<BaseScore<B, M>>>, B::Error> {
    let mut hits = vec![Hit::default(); queries.len() / base.dim() * k];
    base.top_k_all::<M>(queries, k, &mut hits)?;
    Ok(hits)
}

/// The rows that reach a threshold.
fn within<M: Metric, B: SearchBase>(
    base: &mut B,
    query: &[BaseQuery<B>],
    threshold: f32,
) -> Result<Vec<Hit<BaseScore<B, M>>>, B::Error> {
    let mut hits = vec![Hit::default(); ROOM];
    let mut total = base.range::<M>(query, threshold, &mut hits)?;
    if total > hits.len() {
        hits.resize(total, Hit::default());
        total = base.range::<M>(query, threshold, &mut hits)?;
    }
    hits.truncate(total);
    Ok(hits)
}

/// How many of the rows in `truth` are among those `found`, as [`tercet_core::search::recall`].
fn recall<S>(found: &[Neighbour], truth: &[Hit<S>]) -> usize {
    let hit = |row: &&Hit<S>| found.iter().any(|hit| hit.index == row.index);
    truth.iter().filter(hit).count()
}

fn neighbours<S: Score>(hits: &[Hit<S>], unit: f64) -> Vec<Neighbour> {
    let neighbour = |hit: &Hit<S>| Neighbour {
        index: hit.index,
        score: (f64::from(hit.score.value()) * unit) as f32,
    };
    hits.iter().map(neighbour).collect()
}
