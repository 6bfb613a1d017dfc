//! Whole groups that one thread quantizes, each while it lies in the nearest cache.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, QuantizeProblem};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::{self, Applied, Groups, Method, Plan, QuantError, Report};

use crate::simd::{Backend, Stores};

/// Some groups of a tensor; lengths are those of [`tercet_core::scalar::Tensor`], checked before.
#[derive(Debug)]
pub(crate) struct Rows<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) groups: Groups,
    pub(crate) codes: &'a mut [i8],
    pub(crate) scales: &'a mut [f32],
    /// One a group, or none.
    pub(crate) zero_points: &'a mut [i8],
    pub(crate) backend: Backend,
    pub(crate) stores: Stores,
}

impl<T: Element> Rows<'_, T> {
    /// Quantizes every group on the calling thread.
    pub(crate) fn quantize(
        mut self,
        method: Method,
        bins: &mut [MagnitudeBin],
    ) -> Result<Report, QuantError> {
        let report = quant::quantize(&mut self, method, bins);
        self.stores.finish();
        report
    }

    fn values(&self, group: usize) -> &[T] {
        &self.values[group * self.groups.len..][..self.groups.len]
    }
}

impl<T: Element> QuantizeProblem for Rows<'_, T> {
    type Error = QuantError;

    fn groups(&self) -> Groups {
        self.groups
    }

    fn stats(&mut self, group: usize) -> Result<Stats, QuantError> {
        Ok(self.backend.stats(self.values(group)))
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, QuantError> {
        Ok(self.backend.extremes(self.values(group)))
    }

    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), QuantError> {
        self.backend.read_magnitudes(self.values(group), out)
    }

    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), QuantError> {
        self.backend.magnitudes(self.values(group), span, bins)
    }

    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, QuantError> {
        let (start, len) = (group * self.groups.len, self.groups.len);
        let (values, codes) = (
            &self.values[start..][..len],
            &mut self.codes[start..][..len],
        );
        self.backend.apply(plan, values, codes, self.stores)
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), QuantError> {
        self.scales[group] = scale;
        if let Some(slot) = self.zero_points.get_mut(group) {
            *slot = zero_point;
        } else if zero_point != 0 {
            // Without it the codes cannot be read back.
            return Err(QuantError::Length {
                expected: self.groups.count,
                found: 0,
            });
        }
        Ok(())
    }
}
