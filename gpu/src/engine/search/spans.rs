//! Selection among candidates on the host, for queries that more rows fit than the device has room for.

use super::scan::{Scan, Search, Wanted};
use crate::engine::device::{bytes_of, bytes_of_mut};
use crate::engine::error::CudaError;

impl<S: Scan> Search<'_, S> {
    /// Reads so many candidates of a query.
    pub(super) fn found(&mut self, query: usize, count: usize) -> Result<Vec<u64>, CudaError> {
        let mut found = vec![0_u64; count];
        let place = self.places.found + 8 * query * self.places.capacity;
        self.cuda
            .read_at(self.memory, place, bytes_of_mut(&mut found))?;
        Ok(found)
    }

    /// Keeps the candidates that may be wanted, as `search_keep` does.
    pub(super) fn select(&self, found: &mut Vec<u64>) {
        if let Wanted::Best(k, slack) = self.wanted
            && k < found.len()
        {
            // Keys are the upper halves.
            let (_, &mut last, _) = found.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
            let bar = key_of(last).saturating_sub(slack);
            found.retain(|&candidate| key_of(candidate) >= bar);
        }
    }

    /// Fills in the lists that had no room: reads all candidates, for as many rows at a time as there is room for. This
    /// is slow if nearly all rows fit equally well, but always correct.
    pub(super) fn in_spans(&mut self) -> Result<(), CudaError> {
        let most = self.over() as u64;
        if most == 0 {
            return Ok(());
        }
        let lists = self.lists.iter().enumerate();
        let without = lists.filter(|(_, list)| list.is_none());
        let mut gathered: Vec<_> = without.map(|(query, _)| (query, Vec::new())).collect();
        let capacity = self.places.capacity;
        // Half of the rows that have room if the candidates are spread evenly. At least the capacity: so many rows
        // always have room.
        let even = self.rows as u64 * capacity as u64 / 2 / most;
        let mut span = (even as usize).max(capacity);
        let mut first = 0;
        while first < self.rows {
            let count = span.min(self.rows - first);
            self.counts.fill(0);
            self.cuda
                .write_at(bytes_of(&self.counts), self.memory, self.places.counts)?;
            self.scan_part(first, count)?;
            let counts = bytes_of_mut(&mut self.counts);
            self.cuda.read_at(self.memory, self.places.counts, counts)?;
            let over = self.over() as usize;
            if over > capacity {
                span = (span / 2).max(capacity);
                continue;
            }
            for (query, gathered) in &mut gathered {
                let more = self.found(*query, self.counts[*query] as usize)?;
                gathered.extend(more);
                if gathered.len() > 2 * capacity {
                    self.select(gathered);
                }
            }
            first += count;
            if over < capacity / 4 {
                span *= 2;
            }
        }
        for (query, mut gathered) in gathered {
            self.select(&mut gathered);
            self.lists[query] = Some(rows_of(&gathered));
        }
        Ok(())
    }
}

/// Returns the key of a candidate.
const fn key_of(candidate: u64) -> u32 {
    (candidate >> 32) as u32
}

/// Returns the rows of candidates.
pub(super) fn rows_of(candidates: &[u64]) -> Vec<u32> {
    candidates
        .iter()
        .map(|&candidate| candidate as u32)
        .collect()
}
