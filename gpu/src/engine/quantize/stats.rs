//! Statistics of values on the device.

use tercet_core::number::{Element, Stats};

use crate::engine::{Cuda, CudaError, DeviceBuffer};

impl Cuda {
    /// Computes [`Stats::of`] for values on the device: extremes, the first value that is not finite, and the exact
    /// Σ|x|. O(n), one pass.
    ///
    /// # Errors
    /// [`CudaError::Length`] if the buffer belongs to another engine; [`CudaError::OutOfMemory`], [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn stats<T: Element>(&mut self, values: &DeviceBuffer<T>) -> Result<Stats, CudaError> {
        self.stats_of(values, true)
    }

    /// Computes [`Stats::extremes_of`] for values on the device, which [`tercet_core::quant::fp8::Fp8::scale`] needs.
    /// O(n), one pass.
    ///
    /// # Errors
    /// As [`Cuda::stats`].
    pub fn extremes<T: Element>(&mut self, values: &DeviceBuffer<T>) -> Result<Stats, CudaError> {
        self.stats_of(values, false)
    }

    fn stats_of<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        with_sum: bool,
    ) -> Result<Stats, CudaError> {
        values.check(&self.pool, values.len())?;
        if values.is_empty() {
            return Ok(Stats::EMPTY);
        }
        self.group_stats(values, 0, values.len(), with_sum)
    }
}
