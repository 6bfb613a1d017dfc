//! One search: rows in their storage, hits, re-ranking and recall.

use std::marker::PhantomData;
use std::ops::Range;

use tercet_core::arch::plain::norm;
use tercet_core::engine::{BaseQuery, BaseScore, SearchBase};
use tercet_core::number::sum_of_squares;
use tercet_core::search::{
    FloatRows, Hit, Int8Rows, Metric, Rows, Score, SearchError, TernaryRows, rerank,
};
use tracing::trace_span;

use super::codes::Floats;
use super::{Find, Neighbour, SearchOptions, SearchReport, Storage, refuse};
use crate::engine::{DoneBy, EngineError, FlowEngine};
use crate::parallel::Threads;
use crate::parallel::each::{chunks, chunks_mut, items_mut};
use crate::points::Points;
use crate::points::TILE;
use crate::{Error, Progress};

/// Queries between two reports of progress.
const QUERIES: usize = 256;
/// Initial room for the rows of a range. A query with more rows searches twice.
const ROOM: usize = 1024;

pub(super) fn search<M: Metric, E: FlowEngine>(
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
    // After the points' own checks, these fail only for the reasons that their messages give.
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
        found.map_err(|fault| fault.of_flow(engine.name(), |refusal| refuse(base, refusal)))?;
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

/// Returns the squared length of each row.
fn norms<T: Sync, N: Clone + Default + Send>(
    values: &[T],
    dims: usize,
    norm: impl Fn(&[T]) -> N + Sync,
) -> Vec<N> {
    let mut norms = vec![N::default(); values.len() / dims];
    (chunks(values, dims).zip(items_mut(&mut norms))).each(|_, (row, out)| *out = norm(row));
    norms
}

/// The results of all queries.
struct SearchHits {
    hits: Vec<Vec<Neighbour>>,
    recall: Option<f64>,
}

/// The inputs that the search by every storage needs.
struct Run<'a> {
    truth: FloatRows<'a, f32>,
    floats: Floats<'a>,
    options: &'a SearchOptions,
    progress: &'a dyn Progress,
}

/// Returns true if recall needs a second search. `f32` rows are the reference themselves.
fn measures(options: &SearchOptions) -> bool {
    options.recall && options.storage != Storage::F32
}

impl Run<'_> {
    /// Searches. `units` holds the value of a score of 1, one per query.
    fn hits<M: Metric, R: Rows, E: FlowEngine>(
        &self,
        engine: &mut E,
        rows: R,
        queries: &[R::Query],
        units: &[f64],
    ) -> Result<(SearchHits, DoneBy), EngineError> {
        let done = self.hits_by::<M, R, E>(engine, rows, queries, units);
        DoneBy::or_threads(engine.name(), done, |threads| {
            // Progress that was reported already is not reported again.
            let progress = &();
            Run { progress, ..*self }.hits_by::<M, R, Threads>(threads, rows, queries, units)
        })
    }

    fn hits_by<M: Metric, R: Rows, E: FlowEngine>(
        &self,
        engine: &mut E,
        rows: R,
        queries: &[R::Query],
        units: &[f64],
    ) -> Result<SearchHits, EngineError> {
        let base = engine.base(rows).map_err(Into::into)?;
        let mut asked = Asked::<M, _>::new(base, queries, units);
        let hits = self.found(&mut asked)?;
        drop(asked);
        let recall = match (self.options.recall, self.options.find) {
            (true, Find::Nearest(k)) if measures(self.options) => {
                let base = engine.base(self.truth).map_err(Into::into)?;
                let mut asked = Asked::<M, _>::new(base, self.floats.queries, units);
                Some(self.recall(&mut asked, &hits, k)?)
            }
            (true, _) => Some(1.0),
            (false, _) => None,
        };
        Ok(SearchHits { hits, recall })
    }

    /// Returns the hits of all queries, block by block.
    fn found(&self, asked: &mut dyn Answering) -> Result<Vec<Vec<Neighbour>>, EngineError> {
        let (rows, dims) = (self.truth.len(), self.floats.dims);
        let count = self.floats.queries.len() / dims;
        let mut found = Vec::with_capacity(count);
        for first in (0..count).step_by(QUERIES) {
            let block = first..count.min(first + QUERIES);
            let exact = &self.floats.queries[block.start * dims..block.end * dims];
            match self.options.find {
                Find::Within(threshold) => {
                    for query in block {
                        found.push(asked.within(query, threshold)?);
                    }
                }
                Find::Nearest(k) => {
                    let candidates = self.options.rerank.unwrap_or(k).min(rows);
                    let mut best = asked.nearest(block, candidates)?;
                    if self.options.rerank.is_some() {
                        best = asked.rerank(self, exact, &best, k)?;
                    }
                    found.extend(best.chunks(k).map(<[_]>::to_vec));
                }
            }
            self.progress.advance(size_of_val(exact) as u64);
        }
        Ok(found)
    }

    /// Returns the part of the true nearest `k` of all queries, found by `asked`, that is among their hits.
    fn recall(
        &self,
        asked: &mut dyn Answering,
        hits: &[Vec<Neighbour>],
        k: usize,
    ) -> Result<f64, EngineError> {
        let (mut shared, mut sought) = (0, 0);
        for first in (0..hits.len()).step_by(QUERIES) {
            let block = first..hits.len().min(first + QUERIES);
            let truth = asked.nearest(block.clone(), k)?;
            sought += truth.len();
            for (truth, hits) in truth.chunks(k).zip(&hits[block.clone()]) {
                shared += recall(hits, truth);
            }
            let values = block.len() * self.floats.dims;
            self.progress.advance((values * size_of::<f32>()) as u64);
        }
        Ok(shared as f64 / sought as f64)
    }
}

/// Rows of any kind that answer queries of their kind.
trait Answering {
    /// Returns the best `k` rows of some queries, one query after the other. There are at least `k` rows.
    fn nearest(&mut self, queries: Range<usize>, k: usize) -> Result<Vec<Neighbour>, EngineError>;

    /// Returns the rows that reach a threshold.
    fn within(&mut self, query: usize, threshold: f32) -> Result<Vec<Neighbour>, EngineError>;

    /// Returns the best `k` of each query's candidates, scored by floats. All queries have the same number of
    /// candidates.
    fn rerank(
        &self,
        run: &Run<'_>,
        queries: &[f32],
        candidates: &[Neighbour],
        k: usize,
    ) -> Result<Vec<Neighbour>, EngineError>;
}

/// Implements [`Answering::rerank`].
fn reranked<M: Metric>(
    run: &Run<'_>,
    queries: &[f32],
    candidates: &[Neighbour],
    k: usize,
) -> Result<Vec<Neighbour>, EngineError> {
    let dims = run.floats.dims;
    let count = queries.len() / dims;
    let mut hits = vec![Hit::default(); count * k];
    chunks(queries, dims)
        .zip(chunks(candidates, candidates.len() / count))
        .zip(chunks_mut(&mut hits, k))
        .try_each(|_, ((query, candidates), hits)| {
            let rows = candidates.iter().map(|hit| Hit {
                index: hit.index,
                score: (),
            });
            let rows: Vec<_> = rows.collect();
            rerank::<M, _, _>(&run.truth, query, &rows, hits).map(drop)
        })?;
    let mut found = Vec::with_capacity(hits.len());
    neighbours(&hits, 1.0, &mut found);
    Ok(found)
}

/// A base with all queries, and the value of a score of 1 for each of them.
struct Asked<'a, M, B: SearchBase> {
    base: B,
    queries: &'a [BaseQuery<B>],
    units: &'a [f64],
    metric: PhantomData<M>,
}

impl<'a, M: Metric, B: SearchBase> Asked<'a, M, B> {
    const fn new(base: B, queries: &'a [BaseQuery<B>], units: &'a [f64]) -> Self {
        Self {
            base,
            queries,
            units,
            metric: PhantomData,
        }
    }

    fn of(&self, queries: Range<usize>) -> &'a [BaseQuery<B>] {
        let dim = self.base.dim();
        &self.queries[queries.start * dim..queries.end * dim]
    }
}

impl<M: Metric, B: SearchBase<Error: Into<EngineError>>> Answering for Asked<'_, M, B> {
    fn nearest(&mut self, queries: Range<usize>, k: usize) -> Result<Vec<Neighbour>, EngineError> {
        let mut hits: Vec<Hit<BaseScore<B, M>>> = vec![Hit::default(); queries.len() * k];
        let asked = self.of(queries.clone());
        let found = self.base.top_k_all::<M>(asked, k, &mut hits);
        found.map_err(Into::into)?;
        let mut all = Vec::with_capacity(hits.len());
        for (hits, &unit) in hits.chunks(k).zip(&self.units[queries]) {
            neighbours(hits, unit, &mut all);
        }
        Ok(all)
    }

    fn within(&mut self, query: usize, threshold: f32) -> Result<Vec<Neighbour>, EngineError> {
        let (asked, unit) = (self.of(query..query + 1), self.units[query]);
        // If codes stand for floats, the threshold is rounded to their grid's f32.
        let threshold = (f64::from(threshold) / unit) as f32;
        let mut hits = vec![Hit::default(); ROOM];
        let range = |base: &mut B, hits: &mut [_]| base.range::<M>(asked, threshold, hits);
        let mut total = range(&mut self.base, &mut hits).map_err(Into::into)?;
        if total > hits.len() {
            hits.resize(total, Hit::default());
            total = range(&mut self.base, &mut hits).map_err(Into::into)?;
        }
        let mut all = Vec::with_capacity(total);
        neighbours(&hits[..total], unit, &mut all);
        Ok(all)
    }

    fn rerank(
        &self,
        run: &Run<'_>,
        queries: &[f32],
        candidates: &[Neighbour],
        k: usize,
    ) -> Result<Vec<Neighbour>, EngineError> {
        reranked::<M>(run, queries, candidates, k)
    }
}

/// Counts the rows of `truth` that are among those `found`, as [`tercet_core::search::recall`] does.
fn recall(found: &[Neighbour], truth: &[Neighbour]) -> usize {
    let hit = |row: &&Neighbour| found.iter().any(|hit| hit.index == row.index);
    truth.iter().filter(hit).count()
}

/// Adds hits. A score of 1 stands for `unit`.
pub(super) fn neighbours<S: Score>(hits: &[Hit<S>], unit: f64, all: &mut Vec<Neighbour>) {
    for hit in hits {
        all.push(Neighbour {
            index: hit.index,
            score: (f64::from(hit.score.value()) * unit) as f32,
        });
    }
}
