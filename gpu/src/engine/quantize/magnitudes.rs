//! Counts of magnitudes by their bit patterns.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan};
use tercet_core::number::{Element, Kind};

use super::launches::{PIECE, THREADS, check, kernel};
use super::record;
use crate::engine::{Argument, Cuda, CudaError, DeviceBuffer, LaunchGrid};

/// Maximum number of values that one block counts in bins of 32 bits.
const COUNTED: usize = 1 << 19;

impl Cuda {
    /// Adds the magnitudes of values `start..start + len` to bins.
    pub(super) fn magnitudes<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        start: usize,
        len: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), CudaError> {
        let mut table = self.zeros(bins.len() * record::BIN)?;
        self.launch_magnitudes(values, start, len, span, &mut table)?;
        self.read_bins(&table, bins)
    }

    /// Adds the magnitudes of values `start..start + len` to a table of bins, one for each step of the span.
    pub(super) fn launch_magnitudes<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        start: usize,
        len: usize,
        span: MagnitudeSpan,
        table: &mut DeviceBuffer<u64>,
    ) -> Result<(), CudaError> {
        let end = start.saturating_add(len);
        check(values.len(), end)?;
        check(table.len(), span.bins() * record::BIN)?;
        let most = self.most_blocks();
        let piece = len
            .div_ceil(most as usize)
            .clamp(PIECE, COUNTED)
            .next_multiple_of(16);
        let arguments = [
            Argument::from(values),
            start.into(),
            end.into(),
            piece.into(),
            span.first.into(),
            span.end.into(),
            span.shift.into(),
            // A span has at most 2³¹ patterns.
            (span.bins() as u32).into(),
            table.into(),
        ];
        let grid = LaunchGrid::strided(len, piece, THREADS, most);
        // SAFETY: the values lie in the buffer, which begins at a multiple of 16 bytes; there is a bin for each step of
        // the span, as `MagnitudeSpan::check` saw.
        unsafe { self.launch("histogram", kernel!("magnitudes", T), grid, &arguments) }
    }

    /// Adds a table of bins to the host's.
    pub(super) fn read_bins(
        &mut self,
        table: &DeviceBuffer<u64>,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), CudaError> {
        let mut words = vec![0; bins.len() * record::BIN];
        self.read(table, &mut words)?;
        for (bin, words) in bins.iter_mut().zip(words.as_chunks().0) {
            bin.merge(&record::bin(words));
        }
        Ok(())
    }
}
