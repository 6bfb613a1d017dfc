//! Search on rayon's threads: blocks of queries and parts of the rows in parallel.

mod floats;
mod integers;

use std::ops::Range;

use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::number::Element;
use tercet_core::search::{
    FloatRows, Hit, Int8Rows, Metric, Rows, SearchError, TernaryRows, TopK, Visitor, Within,
    check_many,
};
use tracing::trace_span;

use self::integers::MANY;
use super::each::{chunks, chunks_mut, items, items_mut};
use super::{TILE, Threads};
use crate::simd::Backend;
use crate::simd::search::BLOCK;

/// Queries per task: enough that packing rows for them costs little.
const QUERIES: usize = 96;
/// Tasks per thread, so that no thread waits long for the last.
const TASKS: usize = 4;
/// A search of up to this many tiles, of rows times queries, wakes no threads: it takes some ten microseconds on one.
const SMALL: usize = 16;
/// Minimum number of rows of a part if there are many queries: each query of a part begins without a bar, and its first
/// hits cost as much as the products of some hundred rows.
const ROWS: usize = 8192;

impl SearchEngine for Threads {
    type Error = SearchError;
    type Base<'a, R: Rows + 'a> = Base<R>;

    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<Base<R>, SearchError> {
        Ok(Base::new(rows)
            .with_tile(self.tile)
            .with_backend(self.backend)
            .on(self.alone))
    }
}

/// The threads' [`SearchBase`]: borrowed rows.
///
/// A search allocates k hits for each query and part of the rows in a task; [`SearchBase::range`] allocates its
/// results.
#[derive(Clone, Copy, Debug)]
pub struct Base<R> {
    rows: R,
    tile: usize,
    backend: Backend,
    alone: bool,
}

impl<R: Rows> Base<R> {
    /// Makes a base of rows, for the backend of [`Threads`].
    pub fn new(rows: R) -> Self {
        Self {
            rows,
            tile: TILE,
            backend: Backend::default(),
            alone: false,
        }
    }

    /// Sets how many values of rows are scanned at a time, at least those of a row, instead of 65,536; no bit depends
    /// on it.
    pub fn with_tile(mut self, values: usize) -> Self {
        self.tile = values.max(1);
        self
    }

    /// Uses another backend; no bit depends on it.
    pub const fn with_backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Sets whether all work stays on the calling thread.
    const fn on(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    /// Returns the number of threads that may share work.
    fn threads(&self) -> usize {
        if self.alone {
            1
        } else {
            rayon::current_num_threads()
        }
    }

    /// Returns the rows per tile.
    fn tile_rows(&self) -> usize {
        (self.tile / self.rows.dim()).max(1)
    }

    /// Returns the number of threads that are worth waking for so many queries.
    fn workers(&self, queries: usize) -> usize {
        let products = (self.rows.len() * self.rows.dim()).saturating_mul(queries);
        if products / SMALL <= self.tile {
            1
        } else {
            self.threads()
        }
    }

    /// Returns the number of parts of the rows for so many tasks of `queries` queries each.
    fn tasks(&self, queries: usize, tasks: usize) -> usize {
        match self.workers(queries) {
            1 => 1,
            threads => (TASKS * threads).div_ceil(tasks),
        }
    }

    /// Returns the rows split into about `parts` ranges of whole tiles, for so many queries each.
    fn parts(&self, parts: usize, queries: usize) -> Vec<Range<usize>> {
        let (rows, tile) = (self.rows.len(), self.tile_rows());
        let least = if queries < MANY { 1 } else { ROWS };
        let step = rows.div_ceil(parts.max(1)).max(least).div_ceil(tile) * tile;
        let starts = (0..rows).step_by(step);
        starts
            .map(|start| start..rows.min(start.saturating_add(step)))
            .collect()
    }

    /// Writes the best `k` rows of a range for each query, best first, with k places per query.
    // Called for whole tasks, and large: one copy is enough.
    #[inline(never)]
    fn best_of<M: Metric>(
        &self,
        queries: &[R::Query],
        k: usize,
        rows: Range<usize>,
        hits: &mut [Hit<R::Score<M>>],
    ) {
        let _span = trace_span!("scan", first = rows.start, rows = rows.len()).entered();
        let mut best = Best {
            backend: self.backend,
            rows,
            tile: self.tile_rows(),
            k,
        };
        self.rows.visit::<M, _>(queries, hits, &mut best);
    }

    /// Does [`Base::best_of`] for parts that together are all rows, in parallel.
    fn merged<M: Metric>(
        &self,
        queries: &[R::Query],
        k: usize,
        parts: &[Range<usize>],
        hits: &mut [Hit<R::Score<M>>],
    ) {
        let count = queries.len() / self.rows.dim();
        let mut of_parts = vec![Vec::new(); parts.len()];
        let rooms = items(parts).zip(items_mut(&mut of_parts));
        rooms.each(|_, (rows, room)| {
            let k = k.min(rows.len());
            room.resize(count * k, Hit::default());
            self.best_of::<M>(queries, k, rows.clone(), room);
        });
        for (query, hits) in hits.chunks_mut(k).enumerate() {
            let mut best = TopK::new(hits);
            for (rows, of_part) in parts.iter().zip(&of_parts) {
                let k = k.min(rows.len());
                for hit in &of_part[query * k..][..k] {
                    best.push(hit.index, hit.score);
                }
            }
            best.into_sorted();
        }
    }
}

/// Writes the best k of some rows for each query.
struct Best {
    backend: Backend,
    rows: Range<usize>,
    /// Rows that all queries process before the next rows.
    tile: usize,
    k: usize,
}

impl Visitor for Best {
    type Output = ();

    fn int8<M: Metric>(
        &mut self,
        rows: Int8Rows<'_>,
        queries: &[i8],
        hits: &mut [Hit<M::Integer>],
    ) {
        let (search, range) = (self.backend.search(), self.rows.clone());
        integers::best::<M, _>(search, rows, range, self.tile, queries, self.k, hits);
    }

    fn ternary<M: Metric>(
        &mut self,
        rows: TernaryRows<'_>,
        queries: &[i8],
        hits: &mut [Hit<M::Integer>],
    ) {
        let (search, range) = (self.backend.search(), self.rows.clone());
        integers::best::<M, _>(search, rows, range, self.tile, queries, self.k, hits);
    }

    fn float<M: Metric, T: Element>(
        &mut self,
        rows: FloatRows<'_, T>,
        queries: &[f32],
        hits: &mut [Hit<M::Float>],
    ) {
        let (backend, range) = (self.backend, self.rows.clone());
        floats::best::<M, T>(backend, rows, range, self.tile, queries, self.k, hits);
    }
}

/// Writes those of some rows that reach a threshold, as many as there is room for, and returns their number.
struct Near {
    backend: Backend,
    rows: Range<usize>,
    threshold: f32,
}

impl Visitor for Near {
    type Output = usize;

    fn int8<M: Metric>(
        &mut self,
        rows: Int8Rows<'_>,
        query: &[i8],
        hits: &mut [Hit<M::Integer>],
    ) -> usize {
        let (search, range) = (self.backend.search(), self.rows.clone());
        integers::near::<M, _>(search, rows, range, query, self.threshold, hits)
    }

    fn ternary<M: Metric>(
        &mut self,
        rows: TernaryRows<'_>,
        query: &[i8],
        hits: &mut [Hit<M::Integer>],
    ) -> usize {
        let (search, range) = (self.backend.search(), self.rows.clone());
        integers::near::<M, _>(search, rows, range, query, self.threshold, hits)
    }

    fn float<M: Metric, T: Element>(
        &mut self,
        rows: FloatRows<'_, T>,
        query: &[f32],
        hits: &mut [Hit<M::Float>],
    ) -> usize {
        let (backend, range) = (self.backend, self.rows.clone());
        floats::near::<M, T>(backend, rows, range, query, self.threshold, hits)
    }
}

impl<R: Rows> SearchBase for Base<R> {
    type Rows = R;
    type Error = SearchError;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn dim(&self) -> usize {
        self.rows.dim()
    }

    fn top_k<M: Metric>(
        &mut self,
        query: &[R::Query],
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, SearchError> {
        self.rows.check_query(query)?;
        self.top_k_all::<M>(query, hits.len(), hits)
    }

    fn top_k_all<M: Metric>(
        &mut self,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, SearchError> {
        check_many(&self.rows, queries, k, hits.len())?;
        let found = k.min(self.rows.len());
        if found == 0 || queries.is_empty() {
            return Ok(found);
        }
        let base = *self;
        let count = queries.len() / base.rows.dim();
        // If there are too few rows to share, the queries are shared, if there is enough work.
        let threads = base.workers(count);
        let block = if base.parts(TASKS * threads, count).len() < threads {
            count.div_ceil(threads).min(QUERIES)
        } else {
            count.min(QUERIES)
        };
        let blocks = count.div_ceil(block);
        let parts = base.parts(base.tasks(count, blocks), block);
        let search = |queries: &[R::Query], hits: &mut [Hit<R::Score<M>>]| match parts.as_slice() {
            [all] => base.best_of::<M>(queries, k, all.clone(), hits),
            parts => base.merged::<M>(queries, k, parts, hits),
        };
        match (parts.len(), blocks) {
            (1, 1) => search(queries, hits),
            _ if threads == 1 => queries
                .chunks(block * base.rows.dim())
                .zip(hits.chunks_mut(block * k))
                .for_each(|(queries, hits)| search(queries, hits)),
            _ => chunks(queries, block * base.rows.dim())
                .zip(chunks_mut(hits, block * k))
                .each(|_, (queries, hits)| search(queries, hits)),
        }
        Ok(found)
    }

    fn range<M: Metric>(
        &mut self,
        query: &[R::Query],
        threshold: f32,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, SearchError> {
        self.rows.check_query(query)?;
        // Refuses an invalid threshold.
        Within::new(threshold, &mut hits[..0])?;
        let base = *self;
        let room = hits.len();
        let search = |_, (rows, (found, total)): (&Range<usize>, &mut (Vec<_>, usize))| {
            let tile = base.tile_rows().next_multiple_of(BLOCK);
            let mut of_tile = vec![Hit::default(); tile.min(rows.len())];
            for start in rows.clone().step_by(tile) {
                let mut near = Near {
                    backend: base.backend,
                    rows: start..rows.end.min(start + tile),
                    threshold,
                };
                let count = base.rows.visit::<M, _>(query, &mut of_tile, &mut near);
                let kept = count.min(room - found.len());
                found.extend_from_slice(&of_tile[..kept]);
                *total += count;
            }
        };
        let parts = base.parts(base.tasks(1, 1), 1);
        let mut of_parts = vec![(Vec::new(), 0); parts.len()];
        (items(&parts).zip(items_mut(&mut of_parts))).each(search);
        let found = of_parts.iter().flat_map(|(found, _)| found);
        hits.iter_mut()
            .zip(found)
            .for_each(|(place, hit)| *place = *hit);
        Ok(of_parts.iter().map(|(_, total)| total).sum())
    }
}
