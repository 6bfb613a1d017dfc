//! Whole groups that one thread quantizes, each while it lies in the nearest cache.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, Output, QuantizeProblem};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::{self, Applied, Groups, Method, Plan, QuantError, Report};

use crate::simd::{Ahead, Backend, Staging, Stores};

/// Groups of up to this many values (16 KiB as `f32`) are looked at one ahead: two of them fit the nearest cache.
const SHORT: usize = 4096;

/// Some groups of a tensor.
#[derive(Debug)]
pub(crate) struct Rows<'a, T> {
    values: &'a [T],
    groups: Groups,
    out: Output<'a>,
    backend: Backend,
    stores: Stores,
    /// Of short groups whose codes go past the caches.
    staging: Option<Staging>,
    /// The statistics of a group, and what they were taken for, where it was looked at already.
    next: Option<(usize, Facts, Stats)>,
}

/// Which statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Facts {
    All,
    Extremes,
}

impl<'a, T: Element> Rows<'a, T> {
    /// Takes slices whose lengths [`tercet_core::scalar::Tensor::new`] would accept.
    pub(crate) fn new(
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
        backend: Backend,
        stores: Stores,
    ) -> Self {
        let staged = stores == Stores::Streaming && groups.len <= SHORT;
        Self {
            staging: staged.then(|| Staging::new(out.codes, groups.len)),
            values,
            groups,
            out,
            backend,
            stores,
            next: None,
        }
    }

    /// Quantizes every group on the calling thread.
    pub(crate) fn quantize(
        mut self,
        method: Method,
        bins: &mut [MagnitudeBin],
    ) -> Result<Report, QuantError> {
        let report = quant::quantize_in_order(&mut self, method, bins);
        if let (Some(staging), Ok(_)) = (&self.staging, &report) {
            staging.finish(self.out.codes);
        }
        self.stores.finish();
        report
    }

    fn values(&self, group: usize) -> &[T] {
        &self.values[group * self.groups.len..][..self.groups.len]
    }

    /// The statistics of a group. Those of the next are taken on the way: the end of that, which waits for what comes before
    /// it at every step, then runs beside the codes of this group, which do not need it.
    fn facts(&mut self, group: usize, facts: Facts) -> Stats {
        let ahead = match self.groups.len {
            len if len <= SHORT => Ahead::GROUPS,
            _ => Ahead::STREAM,
        };
        let of = |group| match facts {
            Facts::All => self.backend.stats(self.values(group), ahead),
            Facts::Extremes => self.backend.extremes(self.values(group), ahead),
        };
        let stats = match self.next {
            Some((number, of, stats)) if (number, of) == (group, facts) => stats,
            _ => of(group),
        };
        let next = group + 1;
        let looked = self.groups.len <= SHORT && next < self.groups.count;
        self.next = looked.then(|| (next, facts, of(next)));
        stats
    }
}

impl<T: Element> QuantizeProblem for Rows<'_, T> {
    type Error = QuantError;

    fn groups(&self) -> Groups {
        self.groups
    }

    fn stats(&mut self, group: usize) -> Result<Stats, QuantError> {
        Ok(self.facts(group, Facts::All))
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, QuantError> {
        Ok(self.facts(group, Facts::Extremes))
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
        let (start, len, ahead) = (group * self.groups.len, self.groups.len, Ahead::NONE);
        let (backend, values) = (self.backend, &self.values[start..][..len]);
        let codes = &mut *self.out.codes;
        match &mut self.staging {
            Some(staging) => staging.group(backend, codes, start, len, |codes| {
                backend.apply(plan, values, codes, Stores::Cached, ahead)
            }),
            None => backend.apply(plan, values, &mut codes[start..][..len], self.stores, ahead),
        }
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), QuantError> {
        self.out.scales[group] = scale;
        if let Some(slot) = self.out.zero_points.get_mut(group) {
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
