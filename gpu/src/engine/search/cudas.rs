//! Rows over several devices: each device finds the best of its own rows, and the host merges them.

use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::search::{Hit, Metric, Rows, TopK, check_many};

use super::Base;
use crate::engine::cudas::at_once;
use crate::engine::{CudaError, Cudas};

impl SearchEngine for Cudas {
    type Error = CudaError;
    type Base<'a, R: Rows + 'a> = CudasBase<'a, R>;

    /// Copies each device's share of the rows to it, where they stay. If a share does not fit, each call copies it part
    /// by part.
    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<CudasBase<'a, R>, CudaError> {
        let shares = self.shares(rows.len(), 1, rows.dim());
        let devices = self.devices.iter_mut().zip(shares);
        let shards = at_once(devices, |(cuda, range)| {
            let ordinal = cuda.context.ordinal();
            Base::new(cuda, rows, range).map_err(|error| error.on(ordinal))
        })?;
        Ok(CudasBase { rows, shards })
    }
}

/// The rows of a base over several devices.
#[derive(Debug)]
pub struct CudasBase<'a, R> {
    rows: R,
    shards: Vec<Base<'a, R>>,
}

impl<'a, R: Rows> CudasBase<'a, R> {
    /// True if all rows stay on the devices between calls.
    pub fn is_resident(&self) -> bool {
        self.shards.iter().all(Base::is_resident)
    }

    /// Calls `work` with every device's rows at the same time.
    fn each<T: Send>(
        &mut self,
        work: impl Fn(&mut Base<'a, R>) -> Result<T, CudaError> + Sync,
    ) -> Result<Vec<T>, CudaError> {
        at_once(&mut self.shards, |shard| {
            let done = work(shard);
            shard.cuda.named(done)
        })
    }
}

impl<R: Rows> SearchBase for CudasBase<'_, R> {
    type Rows = R;
    type Error = CudaError;

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
    ) -> Result<usize, CudaError> {
        self.rows.check_query(query)?;
        self.top_k_all::<M>(query, hits.len(), hits)
    }

    fn top_k_all<M: Metric>(
        &mut self,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, CudaError> {
        check_many(&self.rows, queries, k, hits.len())?;
        if k == 0 {
            return Ok(0);
        }
        let count = hits.len() / k;
        // The k best of all are among the k best of each share.
        let found = self.each(|shard| {
            let k = k.min(shard.range.len());
            let mut hits = vec![Hit::default(); k * count];
            shard.best::<M>(queries, k, &mut hits)?;
            Ok((k, hits))
        })?;
        for (query, hits) in hits.chunks_exact_mut(k).enumerate() {
            let mut best = TopK::new(hits);
            for (k, found) in &found {
                for hit in &found[query * k..][..*k] {
                    best.push(hit.index, hit.score);
                }
            }
            best.into_sorted();
        }
        Ok(k.min(self.rows.len()))
    }

    fn range<M: Metric>(
        &mut self,
        query: &[R::Query],
        threshold: f32,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, CudaError> {
        self.rows.check_query(query)?;
        let room = hits.len();
        let found = self.each(|shard| {
            let mut hits = vec![Hit::default(); room.min(shard.range.len())];
            let total = shard.within::<M>(query, threshold, &mut hits)?;
            hits.truncate(total);
            Ok((total, hits))
        })?;
        let mut total = 0;
        // Shares are in the order of rows.
        for (count, found) in found {
            let rest = hits.get_mut(total..).unwrap_or_default();
            for (place, hit) in rest.iter_mut().zip(found) {
                *place = hit;
            }
            total += count;
        }
        Ok(total)
    }
}
