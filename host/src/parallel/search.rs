//! Search on rayon's threads: blocks of queries and parts of the rows side by side.

use std::ops::Range;

use rayon::prelude::*;
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::search::{Hit, Metric, Rows, Score, SearchError, TopK, Within, check_many};

use super::{TILE, Threads};

/// Queries that one pass over a tile of rows serves, so that the tile is read from memory once for all of them.
const QUERIES: usize = 16;
/// Tasks for each thread, so that none waits long for the last.
const TASKS: usize = 4;

impl SearchEngine for Threads {
    type Error = SearchError;
    type Base<'a, R: Rows + 'a> = Base<R>;

    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<Base<R>, SearchError> {
        Ok(Base::new(rows).with_tile(self.tile))
    }
}

/// The threads' [`SearchBase`]: borrowed rows.
///
/// A search allocates k hits for each query and part of the rows that a task has, [`SearchBase::range`] what it finds.
#[derive(Clone, Copy, Debug)]
pub struct Base<R> {
    rows: R,
    tile: usize,
}

impl<R: Rows> Base<R> {
    /// Takes up rows.
    pub fn new(rows: R) -> Self {
        Self { rows, tile: TILE }
    }

    /// Sets how many values of rows are scanned in one go, at least a row's, instead of 65,536; it does not show in a bit.
    pub fn with_tile(mut self, values: usize) -> Self {
        self.tile = values.max(1);
        self
    }

    /// Rows of a tile.
    fn tile_rows(&self) -> usize {
        (self.tile / self.rows.dim()).max(1)
    }

    /// The rows cut into about `parts` ranges of whole tiles.
    fn parts(&self, parts: usize) -> Vec<Range<usize>> {
        let (rows, tile) = (self.rows.len(), self.tile_rows());
        let step = rows.div_ceil(parts.max(1)).div_ceil(tile).max(1) * tile;
        let starts = (0..rows).step_by(step);
        starts
            .map(|start| start..rows.min(start.saturating_add(step)))
            .collect()
    }

    /// The best `k` of a range of at least as many rows for each query, best first, k places a query.
    fn best_of<M: Metric>(
        &self,
        queries: &[R::Query],
        k: usize,
        rows: &Range<usize>,
    ) -> Vec<Hit<R::Score<M>>> {
        let queries: Vec<_> = queries.chunks(self.rows.dim()).collect();
        let mut room = vec![Hit::default(); queries.len() * k];
        let mut best: Vec<_> = room.chunks_mut(k).map(TopK::new).collect();
        for start in rows.clone().step_by(self.tile_rows()) {
            let tile = start..rows.end.min(start.saturating_add(self.tile_rows()));
            for (query, best) in queries.iter().zip(&mut best) {
                self.rows.scan::<M>(query, tile.clone(), |index, score| {
                    best.push(index, score);
                });
            }
        }
        best.into_iter().for_each(|best| {
            best.into_sorted();
        });
        room
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
        let block = QUERIES * base.rows.dim();
        let blocks = queries.len().div_ceil(block);
        let tasks = TASKS * rayon::current_num_threads();
        let parts = base.parts(tasks.div_ceil(blocks));
        queries
            .par_chunks(block)
            .zip(hits.par_chunks_mut(QUERIES * k))
            .for_each(|(queries, hits)| {
                let of_parts: Vec<_> = parts
                    .par_iter()
                    .map(|rows| {
                        let k = k.min(rows.len());
                        (k, base.best_of::<M>(queries, k, rows))
                    })
                    .collect();
                for (query, hits) in hits.chunks_mut(k).enumerate() {
                    let mut best = TopK::new(hits);
                    for (k, of_part) in &of_parts {
                        let found = &of_part[query * k..][..*k];
                        found.iter().for_each(|hit| best.push(hit.index, hit.score));
                    }
                    best.into_sorted();
                }
            });
        Ok(found)
    }

    fn range<M: Metric>(
        &mut self,
        query: &[R::Query],
        threshold: f32,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, SearchError> {
        self.rows.check_query(query)?;
        // Refuses a threshold that is none.
        Within::new(threshold, &mut hits[..0])?;
        let base = *self;
        let room = hits.len();
        let of_parts: Vec<_> = base
            .parts(TASKS * rayon::current_num_threads())
            .into_par_iter()
            .map(|rows| {
                let (mut found, mut total) = (Vec::new(), 0);
                base.rows.scan::<M>(query, rows, |index, score| {
                    if score.reaches(threshold) {
                        total += 1;
                        if found.len() < room {
                            found.push(Hit { index, score });
                        }
                    }
                });
                (found, total)
            })
            .collect();
        let found = of_parts.iter().flat_map(|(found, _)| found);
        hits.iter_mut()
            .zip(found)
            .for_each(|(place, hit)| *place = *hit);
        Ok(of_parts.iter().map(|(_, total)| total).sum())
    }
}
