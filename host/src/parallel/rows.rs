//! Whole groups that one thread quantizes, each while it is in the nearest cache.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, Output, QuantizeProblem};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::{self, Applied, Groups, Method, Plan, QuantError, Report};

use crate::simd::{Ahead, Backend, Staging, Stores};

/// For groups of up to this many values (16 KiB as `f32`), the next group is surveyed in advance: two of them fit the
/// nearest cache, or one of them and its codes on their way around the caches.
const SHORT: usize = 4096;

/// Some groups of a tensor.
#[derive(Debug)]
pub(crate) struct Rows<'a, T> {
    values: &'a [T],
    groups: Groups,
    out: Output<'a>,
    backend: Backend,
    stores: Stores,
    /// For short groups whose codes bypass the caches.
    staging: Option<Staging>,
    /// The extremes of a group that was surveyed while the codes of the one before were computed.
    next: Option<(usize, Stats)>,
}

impl<'a, T: Element> Rows<'a, T> {
    /// Makes rows from slices whose lengths [`tercet_core::scalar::Tensor::new`] would accept.
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

    fn ahead(&self) -> Ahead {
        match self.groups.len {
            len if len <= SHORT => Ahead::GROUPS,
            _ => Ahead::STREAM,
        }
    }
}

impl<T: Element> QuantizeProblem for Rows<'_, T> {
    type Error = QuantError;

    fn groups(&self) -> Groups {
        self.groups
    }

    fn stats(&mut self, group: usize) -> Result<Stats, QuantError> {
        Ok(self.backend.stats(self.values(group), self.ahead()))
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, QuantError> {
        Ok(match self.next.take() {
            Some((number, extremes)) if number == group => extremes,
            _ => self.backend.extremes(self.values(group), self.ahead()),
        })
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

    /// Computes the codes of a group, and the extremes of the next one if it is short. Loads of the next group wait for
    /// memory, and the end of its extremes waits for each step before it; the codes need neither, so they run at the
    /// same time.
    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, QuantError> {
        let (start, len) = (group * self.groups.len, self.groups.len);
        let (backend, ahead) = (self.backend, self.ahead());
        let (values, after) = self.values[start..].split_at(len);
        let after = after.get(..len).filter(|_| len <= SHORT);
        let next = &mut self.next;
        let mut write = |codes: &mut [i8], stores: Stores| {
            let both = after.filter(|_| stores == Stores::Cached);
            match both.and_then(|after| backend.apply_and_next(plan, values, codes, after, ahead)) {
                Some((applied, extremes)) => {
                    *next = Some((group + 1, extremes));
                    Ok(applied)
                }
                None => backend.apply(plan, values, codes, stores, Ahead::NONE),
            }
        };
        let codes = &mut *self.out.codes;
        match &mut self.staging {
            Some(staging) => staging.group(backend, codes, start, len, |codes| {
                write(codes, Stores::Cached)
            }),
            None => write(&mut codes[start..][..len], self.stores),
        }
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), QuantError> {
        self.out.scales[group] = scale;
        if let Some(slot) = self.out.zero_points.get_mut(group) {
            *slot = zero_point;
        } else if zero_point != 0 {
            // Without the zero point the codes cannot be read back.
            return Err(QuantError::Length {
                expected: self.groups.count,
                found: 0,
            });
        }
        Ok(())
    }
}
