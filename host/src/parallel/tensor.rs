//! A tensor that rayon's threads quantize.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, Output, QuantizeProblem};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::{self, Applied, Groups, Method, Plan, QuantError, Report};
use tercet_core::scalar;
use tracing::trace_span;

use super::each::{chunks, chunks_mut, items_mut};
use super::rows::Rows;
use super::{TILE, merged, moved};
use crate::simd::{Ahead, Backend, Stores};

/// Bins for the optimal ternary rule: 64 KiB for each thread.
const BINS: usize = 4096;

/// A tensor to quantize: values in, codes, scales and zero points out, all borrowed.
#[derive(Debug)]
pub struct Tensor<'a, T> {
    values: &'a [T],
    groups: Groups,
    codes: &'a mut [i8],
    scales: &'a mut [f32],
    zero_points: &'a mut [i8],
    tile: usize,
    backend: Backend,
}

impl<'a, T: Element> Tensor<'a, T> {
    /// Borrows a tensor's slices, with lengths and errors as for [`scalar::Tensor::new`].
    pub fn new(
        values: &'a [T],
        groups: Groups,
        codes: &'a mut [i8],
        scales: &'a mut [f32],
        zero_points: &'a mut [i8],
    ) -> Result<Self, QuantError> {
        scalar::Tensor::new(values, groups, codes, scales, zero_points)?;
        Ok(Self {
            values,
            groups,
            codes,
            scales,
            zero_points,
            tile: TILE,
            backend: Backend::default(),
        })
    }

    /// Sets the values per task, at least 1, instead of 65,536; no bit depends on it.
    pub fn with_tile(mut self, values: usize) -> Self {
        self.tile = values.max(1);
        self
    }

    /// Uses another backend; no bit depends on it.
    pub const fn with_backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Quantizes every group, as [`tercet_core::quant::quantize`] does and with its errors.
    ///
    /// Allocates scratch only for the optimal ternary rule with groups of more than 256 values: up to 64 KiB per
    /// thread.
    pub fn quantize(mut self, method: Method) -> Result<Report, QuantError> {
        let mut bins = self.scratch(method);
        quant::quantize(&mut self, method, &mut bins)
    }

    fn scratch(&self, method: Method) -> Vec<MagnitudeBin> {
        let bins = match method.scratch_len(self.groups.len) {
            0 => 0,
            least => least.max(BINS),
        };
        vec![MagnitudeBin::EMPTY; bins]
    }

    /// Returns the tensor split between groups.
    fn parts(&mut self, groups: usize) -> Vec<Rows<'_, T>> {
        let len = self.groups.len;
        let (backend, stores) = (self.backend, Stores::of(self.codes.len()));
        let mut zero_points = self.zero_points.chunks_mut(groups);
        let slices = self.values.chunks(groups * len);
        let outputs = (self.codes.chunks_mut(groups * len)).zip(self.scales.chunks_mut(groups));
        slices
            .zip(outputs)
            .map(|(values, (codes, scales))| {
                let groups = Groups {
                    count: scales.len(),
                    len,
                };
                let zero_points = zero_points.next().unwrap_or_default();
                let out = Output {
                    codes,
                    scales,
                    zero_points,
                };
                Rows::new(values, groups, out, backend, stores)
            })
            .collect()
    }

    /// Returns the statistics of a group, merged from those of its tiles.
    fn reduce(
        &self,
        group: usize,
        of: fn(Backend, &[T], Ahead) -> Stats,
    ) -> Result<Stats, QuantError> {
        let values = &self.values[self.range(group)?];
        if values.len() <= self.tile {
            return Ok(of(self.backend, values, Ahead::STREAM));
        }
        let stats = |_, tile: &[T]| {
            trace_span!("stats", len = tile.len())
                .in_scope(|| of(self.backend, tile, Ahead::STREAM))
        };
        // In order, so the first bad index is the lowest.
        let all = chunks(values, self.tile).reduce(stats, merged);
        Ok(all.unwrap_or(Stats::EMPTY))
    }

    fn range(&self, group: usize) -> Result<core::ops::Range<usize>, QuantError> {
        if group >= self.groups.count {
            return Err(QuantError::NoGroup {
                group,
                count: self.groups.count,
            });
        }
        let start = group * self.groups.len;
        Ok(start..start + self.groups.len)
    }
}

impl<T: Element> QuantizeProblem for Tensor<'_, T> {
    type Error = QuantError;

    fn groups(&self) -> Groups {
        self.groups
    }

    fn stats(&mut self, group: usize) -> Result<Stats, QuantError> {
        self.reduce(group, Backend::stats)
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, QuantError> {
        self.reduce(group, Backend::extremes)
    }

    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), QuantError> {
        let values = &self.values[self.range(group)?];
        self.backend.read_magnitudes(values, out)
    }

    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), QuantError> {
        span.check(bins)?;
        let (values, backend) = (&self.values[self.range(group)?], self.backend);
        if values.len() <= self.tile {
            return backend.magnitudes(values, span, bins);
        }
        // A table per job, so jobs should be few: each as large as possible while keeping every thread busy.
        let share = values.len().div_ceil(rayon::current_num_threads() * 4);
        let len = bins.len();
        let tables = chunks(values, share.max(self.tile)).gather(|_, tile| {
            let mut table = vec![MagnitudeBin::EMPTY; len];
            backend.magnitudes(tile, span, &mut table).map(|()| table)
        });
        for table in tables {
            for (bin, part) in bins.iter_mut().zip(&table?) {
                bin.merge(part);
            }
        }
        Ok(())
    }

    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, QuantError> {
        let range = self.range(group)?;
        let backend = self.backend;
        let stores = Stores::of(self.codes.len());
        let (values, codes) = (&self.values[range.clone()], &mut self.codes[range]);
        let apply = |(values, codes): (&[T], &mut [i8])| {
            let _span = trace_span!("apply", len = values.len()).entered();
            let applied = backend.apply(plan, values, codes, stores, Ahead::STREAM);
            stores.finish();
            applied
        };
        if values.len() <= self.tile {
            return apply((values, codes));
        }
        // From the end, which is still in the caches from the pass before.
        (chunks(values, self.tile).zip(chunks_mut(codes, self.tile)))
            .backwards()
            .try_fold(
                Applied::default,
                |all, _, tile| apply(tile).map(|applied| all.merge(&applied)),
                |left, right| left.merge(&right),
            )
    }

    /// Groups smaller than a tile are distributed to threads as a whole; larger ones are processed one after another,
    /// split into tiles.
    fn quantize_groups(
        &mut self,
        method: Method,
        bins: &mut [MagnitudeBin],
    ) -> Result<Report, QuantError> {
        if self.groups.len >= self.tile {
            return quant::quantize_in_order(self, method, bins);
        }
        let scratch = self.scratch(method);
        let groups = self.tile / self.groups.len;
        let values = (groups * self.groups.len) as u64;
        let mut parts = self.parts(groups);
        if parts.len() <= 1 {
            let part = parts.pop();
            return part.map_or(Err(QuantError::Empty), |part| part.quantize(method, bins));
        }
        let mut parts: Vec<_> = parts.into_iter().map(Some).collect();
        let results = items_mut(&mut parts).gather_with(
            || scratch.clone(),
            |bins, _, part| {
                let part = part.take();
                part.map_or(Err(QuantError::Empty), |part| part.quantize(method, bins))
            },
        );
        let mut report = Report::default();
        // In order, so the first error is that of the lowest index.
        for (part, result) in (0u64..).zip(results) {
            report.merge(&result.map_err(|error| moved(error, part * values))?);
        }
        Ok(report)
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), QuantError> {
        self.range(group)?;
        self.scales[group] = scale;
        if let Some(slot) = self.zero_points.get_mut(group) {
            *slot = zero_point;
        } else if zero_point != 0 {
            return Err(QuantError::Length {
                expected: self.groups.count,
                found: 0,
            });
        }
        Ok(())
    }
}
