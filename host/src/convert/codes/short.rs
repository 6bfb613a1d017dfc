//! Groups that fit a thread's cache: statistics and codes in one read.

use std::ops::Range;

use rayon::prelude::*;
use tercet_core::engine::{MagnitudeBin, Output};
use tercet_core::quant::Groups;

use super::{Encoder, Job, Parts, Step, refuse, restore};
use crate::Error;
use crate::parallel::Rows;
use crate::simd::{Backend, Stores};
use crate::source::{CHUNK, TILE, signed_mut};

/// A tensor of short groups.
pub(super) struct Short<'a, 's> {
    pub(super) job: Job<'a, 's>,
    /// Those of the chunk's groups.
    scales: Vec<f32>,
    /// Likewise, or none.
    zero_points: Vec<i8>,
}

impl<'a, 's> Short<'a, 's> {
    pub(super) fn new(job: Job<'a, 's>) -> Self {
        Self {
            job,
            scales: Vec::new(),
            zero_points: Vec::new(),
        }
    }
}

impl Encoder for Short<'_, '_> {
    fn end(&self) -> usize {
        self.job.source.values()
    }

    fn chunk(&mut self, first: usize, out: &mut Parts) -> Result<usize, Error> {
        let len = self.job.groups.len;
        let group = first / len;
        let count = (CHUNK / len).max(1).min(self.job.groups.count - group);
        let end = first + count * len;
        self.scales.resize(count, 0.0);
        let points = if self.job.has_zero_points() { count } else { 0 };
        self.zero_points.resize(points, 0);
        let codes = signed_mut(out.room(0, count * len));
        self.quantize(first..end, codes)?;
        let (scales, zero_points) = (&self.scales, &self.zero_points);
        let step = |number: usize| Step {
            scale: scales[number - group],
            zero_point: zero_points.get(number - group).copied().unwrap_or(0),
        };
        let codes: &[i8] = codes;
        let job = &mut self.job;
        job.loss.chunk(job.source, first..end, |at, _, out| {
            restore(len, step, at, &codes[at - first..][..out.len()], out);
        })?;
        out.extend(1, scales.iter().flat_map(|scale| scale.to_le_bytes()));
        out.extend(2, zero_points.iter().flat_map(|point| point.to_le_bytes()));
        Ok(end)
    }
}

impl Short<'_, '_> {
    /// Quantizes whole groups, some at a time a thread.
    fn quantize(&mut self, values: Range<usize>, codes: &mut [i8]) -> Result<(), Error> {
        let Job {
            source,
            method,
            groups: Groups { len, .. },
            ..
        } = self.job;
        let count = (TILE / len).max(1);
        let codes = codes.par_chunks_mut(count * len);
        let scales = self.scales.par_chunks_mut(count);
        // A tile without zero points gets an empty slice.
        let mut zero_points: Vec<&mut [i8]> = self.zero_points.chunks_mut(count).collect();
        zero_points.resize_with(scales.len(), Default::default);
        let tiles = codes.zip(scales).zip(zero_points).enumerate();
        let scratch = || {
            let bins = vec![MagnitudeBin::EMPTY; method.scratch_len(len)];
            (Vec::new(), bins)
        };
        let results: Vec<Result<u64, Error>> = tiles
            .map_init(
                scratch,
                |(buffer, bins), (tile, ((codes, scales), zero_points))| {
                    let first = values.start + tile * count * len;
                    let groups = Groups {
                        count: scales.len(),
                        len,
                    };
                    let values = source.view(first, codes.len(), buffer)?;
                    let out = Output {
                        codes,
                        scales,
                        zero_points,
                    };
                    Rows::new(values, groups, out, Backend::default(), Stores::Cached)
                        .quantize(method, bins)
                        .map(|report| report.flushed)
                        .map_err(|error| refuse(source, first, error))
                },
            )
            .collect();
        // In order, so that the lowest index is the one reported.
        for result in results {
            self.job.flushed += result?;
        }
        Ok(())
    }
}
