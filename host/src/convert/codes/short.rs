//! Groups that fit a thread's cache: statistics and codes in one read.

use tercet_core::engine::Output;
use tercet_core::quant::Groups;

use super::TensorConversion;
use crate::Error;
use crate::convert::group_plans::{GroupScale, restore};
use crate::convert::span::Span;
use crate::convert::stream::{Encoder, Parts};
use crate::source::{CHUNK, signed_mut};

/// A tensor of short groups.
pub(super) struct Short<'a, 's> {
    pub(super) job: TensorConversion<'a, 's>,
    /// Scales of the chunk's groups.
    scales: Vec<f32>,
    /// Zero points of the chunk's groups, or empty.
    zero_points: Vec<i8>,
}

impl<'a, 's> Short<'a, 's> {
    pub(super) fn new(job: TensorConversion<'a, 's>) -> Self {
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
        self.scales.resize(count, 0.0);
        let points = if self.job.has_zero_points() { count } else { 0 };
        self.zero_points.resize(points, 0);
        let chunk = Span {
            source: self.job.source,
            first,
            len: count * len,
        };
        let codes = signed_mut(out.room(0, chunk.len));
        let output = Output {
            codes: &mut *codes,
            scales: &mut self.scales,
            zero_points: &mut self.zero_points,
        };
        let job = &mut self.job;
        job.flushed += (job.steps).groups(chunk, Groups { count, len }, job.method, output)?;
        let (scales, zero_points) = (&self.scales, &self.zero_points);
        let step = |number: usize| GroupScale {
            scale: scales[number - group],
            zero_point: zero_points.get(number - group).copied().unwrap_or(0),
        };
        let codes: &[i8] = codes;
        job.loss.chunk(chunk, |at, _, out| {
            restore(len, step, at, &codes[at - first..][..out.len()], out);
            Ok(())
        })?;
        out.extend(1, scales.iter().flat_map(|scale| scale.to_le_bytes()));
        out.extend(2, zero_points.iter().flat_map(|point| point.to_le_bytes()));
        Ok(chunk.end())
    }
}
