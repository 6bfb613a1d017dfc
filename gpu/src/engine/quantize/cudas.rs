//! A tensor over several devices: each device has some of its groups, or a range of its only group.

use std::fmt;

use tercet_core::engine::{
    MagnitudeBin, MagnitudeSpan, Output, QuantizeEngine, QuantizeProblem, Refused,
};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::activations::{Activations, Norm};
use tercet_core::quant::{
    Applied, Groups, Histogram, Method, Plan, QuantError, Report, quantize_in_order,
};

use super::CudaTensor;
use super::histogram::Counted;
use super::output::{check, set_scale};
use crate::engine::cudas::{at_once, cut};
use crate::engine::{CudaError, Cudas};

/// A tensor while several devices quantize it.
///
/// With two or more groups, each device quantizes some of them as a tensor of its own. With one group, each device has
/// a range of the values, and the driver of [`tercet_core::quant`] runs over their results: statistics, sums of codes
/// and counts of magnitudes are exact, so merging them gives the bits of one pass.
pub struct CudasTensor<'a, T: Element> {
    groups: Groups,
    shards: Vec<Shard<'a, T>>,
    /// The target of the scale and the zero point of the only group; `None` if shards have groups of their own.
    alone: Option<(&'a mut [f32], &'a mut [i8])>,
}

/// A device's part of a tensor.
struct Shard<'a, T: Element> {
    tensor: CudaTensor<'a, T>,
    /// Its first group; for one split group, its first value.
    first: usize,
}

impl QuantizeEngine for Cudas {
    type Error = CudaError;
    type Tensor<'a, T: Element> = CudasTensor<'a, T>;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<CudasTensor<'a, T>, CudaError> {
        check(values.len(), groups, &out)?;
        let mut values = values;
        let mut take = |len| values.split_off(..len).unwrap_or_default();
        if groups.count == 1 {
            let shares = self.shares(groups.len, 1, 1);
            let codes = cut(out.codes, shares.iter().map(|range| range.len()));
            let devices = self.devices.iter_mut().zip(shares).zip(codes);
            let shards = devices.map(|((cuda, range), codes)| Shard {
                tensor: CudaTensor::of_range(cuda, take(range.len()), codes),
                first: range.start,
            });
            return Ok(CudasTensor {
                groups,
                shards: shards.collect(),
                alone: Some((out.scales, out.zero_points)),
            });
        }
        let shares = self.shares(groups.count, 1, groups.len);
        let lengths = || shares.iter().map(|share| share.len());
        let codes = cut(out.codes, lengths().map(|count| count * groups.len));
        let scales = cut(out.scales, lengths());
        let zero_points = cut(out.zero_points, lengths());
        let devices = self.devices.iter_mut().zip(&shares);
        let outs = codes.into_iter().zip(scales).zip(zero_points);
        let shards = devices
            .zip(outs)
            .map(|((cuda, share), ((codes, scales), zero_points))| {
                let count = share.len();
                let out = Output {
                    codes,
                    scales,
                    zero_points,
                };
                let part = Groups { count, ..groups };
                let tensor = CudaTensor::of_host(cuda, take(count * groups.len), part, out)?;
                let first = share.start;
                Ok(Shard { tensor, first })
            });
        Ok(CudasTensor {
            groups,
            shards: shards.collect::<Result<_, CudaError>>()?,
            alone: None,
        })
    }

    /// Each device counts a range of the values.
    fn histogram<T: Element, const B: u32>(
        &mut self,
        values: &[T],
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), CudaError> {
        let shares = self.shares(values.len(), 1, 1).into_iter();
        let parts = shares.map(|range| &values[range]);
        let found = self.each(parts, |cuda, values| cuda.counted(values, B))?;
        Ok(Counted::add_all(found.into_iter().flatten(), histogram)?)
    }

    /// Each device has a share of the rows.
    fn norm_quantize(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), CudaError> {
        super::activations::norm_quantize(self, x, norm, out, scales)
    }
}

impl<'a, T: Element> CudasTensor<'a, T> {
    /// Calls `work` with every shard at the same time; returns the results in order.
    fn each<R: Send>(
        &mut self,
        work: impl Fn(&mut Shard<'a, T>) -> Result<R, CudaError> + Sync,
    ) -> Result<Vec<R>, CudaError> {
        at_once(&mut self.shards, |shard| {
            let done = work(shard);
            shard.tensor.cuda.named(done)
        })
    }

    /// Returns the shard that has a group, and the group's number there; `None` if the group belongs to all shards.
    fn owner(&mut self, group: usize) -> Result<Option<(&mut Shard<'a, T>, usize)>, QuantError> {
        let count = self.groups.count;
        if group >= count {
            return Err(QuantError::NoGroup { group, count });
        }
        if self.alone.is_some() {
            return Ok(None);
        }
        let mut shards = self.shards.iter_mut().rev();
        let owner = shards.find(|shard| shard.first <= group);
        Ok(owner.map(|shard| {
            let group = group - shard.first;
            (shard, group)
        }))
    }

    /// Calls `work` with the shard that has a group; `None` if the group belongs to all shards.
    fn with_owner<R>(
        &mut self,
        group: usize,
        work: impl FnOnce(&mut CudaTensor<'a, T>, usize) -> Result<R, CudaError>,
    ) -> Result<Option<R>, CudaError> {
        let Some((Shard { tensor, .. }, group)) = self.owner(group)? else {
            return Ok(None);
        };
        let done = work(tensor, group);
        tensor.cuda.named(done).map(Some)
    }

    fn stats_of(&mut self, group: usize, with_sum: bool) -> Result<Stats, CudaError> {
        let of = |tensor: &mut CudaTensor<'a, T>, group| match with_sum {
            true => tensor.stats(group),
            false => tensor.extremes(group),
        };
        if let Some(stats) = self.with_owner(group, of)? {
            return Ok(stats);
        }
        let mut all = Stats::EMPTY;
        for stats in self.each(|shard| of(&mut shard.tensor, 0))? {
            all.merge(&stats);
        }
        Ok(all)
    }
}

impl<T: Element> QuantizeProblem for CudasTensor<'_, T> {
    type Error = CudaError;

    fn groups(&self) -> Groups {
        self.groups
    }

    fn stats(&mut self, group: usize) -> Result<Stats, CudaError> {
        self.stats_of(group, true)
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, CudaError> {
        self.stats_of(group, false)
    }

    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), CudaError> {
        let (expected, found) = (self.groups.len, out.len());
        if expected != found {
            return Err(QuantError::Length { expected, found }.into());
        }
        let read = self.with_owner(group, |tensor, group| tensor.read_magnitudes(group, out))?;
        if read.is_none() {
            let parts = cut(out, self.shards.iter().map(|shard| shard.tensor.groups.len));
            for (shard, part) in self.shards.iter_mut().zip(parts) {
                let read = shard.tensor.read_magnitudes(0, part);
                shard.tensor.cuda.named(read)?;
            }
        }
        Ok(())
    }

    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), CudaError> {
        span.check(bins)?;
        let counted = self.with_owner(group, |tensor, group| tensor.magnitudes(group, span, bins));
        if counted?.is_some() {
            return Ok(());
        }
        let len = bins.len();
        let found = self.each(|shard| {
            let mut bins = vec![MagnitudeBin::EMPTY; len];
            shard.tensor.magnitudes(0, span, &mut bins)?;
            Ok(bins)
        })?;
        for found in found {
            for (bin, found) in bins.iter_mut().zip(&found) {
                bin.merge(found);
            }
        }
        Ok(())
    }

    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, CudaError> {
        let applied = self.with_owner(group, |tensor, group| tensor.apply(group, plan))?;
        if let Some(applied) = applied {
            return Ok(applied);
        }
        let mut all = Applied::default();
        for applied in self.each(|shard| shard.tensor.apply(0, plan))? {
            all.merge(&applied);
        }
        Ok(all)
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), CudaError> {
        let expected = self.groups.count;
        let set = self.with_owner(group, |tensor, group| {
            tensor.set_scale(group, scale, zero_point)
        });
        let set = set.map_err(|error| of_all(error, 0, expected))?;
        if let (None, Some((scales, zero_points))) = (set, &mut self.alone) {
            set_scale(scales, zero_points, group, (scale, zero_point))?;
        }
        Ok(())
    }

    fn quantize_groups(
        &mut self,
        method: Method,
        bins: &mut [MagnitudeBin],
    ) -> Result<Report, CudaError> {
        if self.alone.is_some() {
            return quantize_in_order(self, method, bins);
        }
        let (groups, len) = (self.groups, bins.len());
        let reports = self.each(|Shard { tensor, first }| {
            // The host side of each device needs its own scratch.
            let mut bins = vec![MagnitudeBin::EMPTY; len];
            let report = tensor.quantize_groups(method, &mut bins);
            report.map_err(|error| of_all(error, *first * groups.len, groups.count))
        })?;
        let mut all = Report::default();
        for report in &reports {
            all.merge(report);
        }
        Ok(all)
    }

    fn finish(self) -> Result<(), CudaError> {
        at_once(self.shards, |Shard { tensor, .. }| {
            let ordinal = tensor.cuda.context.ordinal();
            tensor.finish().map_err(|error| error.on(ordinal))
        })?;
        Ok(())
    }
}

/// Converts an error of a shard to one of the tensor with `count` groups, with `before` values before the shard.
fn of_all(error: CudaError, before: usize, count: usize) -> CudaError {
    match error {
        CudaError::Refused(Refused::Quantize(QuantError::NotFinite { index })) => {
            let index = before as u64 + index;
            QuantError::NotFinite { index }.into()
        }
        // There are as many zero points as groups.
        CudaError::Refused(Refused::Quantize(QuantError::Length { found, .. })) => {
            let expected = count;
            QuantError::Length { expected, found }.into()
        }
        other => other,
    }
}

impl<T: Element> fmt::Debug for CudasTensor<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudasTensor")
            .field("groups", &self.groups)
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}
