//! Groups on the host without room on the device: their values pass through it, with copies and kernels at the same
//! time.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::{Applied, Plan};

use super::launches::{ApplyKind, GroupRange};
use super::record;
use crate::engine::{Chunks, Cuda, CudaError, Item};

/// Values of a chunk of a tensor that passes through the device.
const CHUNK: usize = 16 << 20;
/// Values of the smallest chunk.
pub(super) const LEAST: usize = 16 << 10;

/// Values that come in, and codes or nothing that go out.
const CODED: Item = Item {
    input: 1,
    output: 1,
};
pub(super) const LOOKED_AT: Item = Item {
    input: 1,
    output: 0,
};

/// Returns chunks of items of `len` values.
pub(super) fn chunks(len: usize) -> Chunks {
    Chunks {
        most: (CHUNK / len).max(1),
        least: (LEAST / len).max(1),
    }
}

impl Cuda {
    /// Computes the statistics of one group.
    pub(super) fn stats_through<T: Element>(
        &mut self,
        values: &[T],
        with_sum: bool,
    ) -> Result<Stats, CudaError> {
        // A record for each chunk, however small chunks become: 64 bytes per 16,384 values.
        let mut records = self.zeros(values.len().div_ceil(LEAST) * record::STATS)?;
        let mut passed = Vec::new();
        let out: &mut [i8] = &mut [];
        self.stream_through(
            chunks(1),
            LOOKED_AT,
            values,
            out,
            |cuda, range, values, _| {
                let part = GroupRange::alone(range.len());
                let at = passed.len();
                passed.push(range.len());
                cuda.launch_stats(values, part, with_sum, &mut records, at)
            },
        )?;
        let mut words = vec![0; records.len()];
        self.read(&records, &mut words)?;
        let mut all = Stats::EMPTY;
        for (words, len) in words.as_chunks().0.iter().zip(passed) {
            all.merge(&record::stats(words, 0, len));
        }
        Ok(all)
    }

    /// Adds the magnitudes of one group to bins.
    pub(super) fn magnitudes_through<T: Element>(
        &mut self,
        values: &[T],
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), CudaError> {
        let mut table = self.zeros(bins.len() * record::BIN)?;
        let out: &mut [i8] = &mut [];
        self.stream_through(
            chunks(1),
            LOOKED_AT,
            values,
            out,
            |cuda, range, values, _| {
                cuda.launch_magnitudes(values, 0, range.len(), span, &mut table)
            },
        )?;
        self.read_bins(&table, bins)
    }

    /// Computes the codes of one group.
    pub(super) fn apply_through<T: Element>(
        &mut self,
        values: &[T],
        plan: &Plan,
        codes: &mut [i8],
    ) -> Result<Applied, CudaError> {
        let plans = self.upload(&record::plan(plan))?;
        let mut records = self.zeros(record::APPLIED)?;
        self.stream_through(
            chunks(1),
            CODED,
            values,
            codes,
            |cuda, range, values, codes| {
                let work = (ApplyKind::of_plan(plan), &plans);
                let part = GroupRange::alone(range.len());
                cuda.launch_apply(values, part, work, codes, &mut records)
            },
        )?;
        let mut words = [0; record::APPLIED];
        self.read(&records, &mut words)?;
        Ok(record::applied(&words))
    }
}
