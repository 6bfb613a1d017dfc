//! Groups that all threads share: one after another is looked at whole, and then coded with what that decided.

use rayon::prelude::*;
use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, QuantizeProblem};
use tercet_core::number::{Stats, bits};
use tercet_core::quant::{self, Applied, Groups, Plan, QuantError};

use super::{Encoder, Job, Parts, Step, refuse, restore};
use crate::Error;
use crate::convert::runs::{self, Coder};
use crate::simd::{Ahead, Backend, Stores};
use crate::source::{CHUNK, Source, TILE, signed, signed_mut, tiles, windows};

/// Bins for the optimal ternary rule over a large group: 64 KiB, three passes on data of usual shape.
const BINS: usize = 4096;

/// Tiles that are counted into one table of bins, at the least: 262,144 values.
const TILES_A_TABLE: usize = 16;

/// A tensor of long groups.
pub(super) struct Long<'a, 's> {
    pub(super) job: Job<'a, 's>,
    bins: Vec<MagnitudeBin>,
    settled: Settled,
}

impl<'a, 's> Long<'a, 's> {
    pub(super) fn new(job: Job<'a, 's>) -> Self {
        // More bins than it must have: fewer passes over the values.
        let bins = match job.method.scratch_len(job.groups.len) {
            0 => 0,
            _ => BINS,
        };
        Self {
            bins: vec![MagnitudeBin::EMPTY; bins],
            settled: Settled {
                len: job.groups.len,
                first: 0,
                groups: Vec::new(),
            },
            job,
        }
    }

    /// Looks at a group and decides how it is coded.
    fn settle(&mut self, group: usize) -> Result<(Plan, Step), Error> {
        let Job { source, groups, .. } = self.job;
        let first = group * groups.len;
        let mut survey = Survey {
            source,
            first,
            len: groups.len,
            largest: 0,
            plan: None,
            step: Step::default(),
        };
        let report = quant::quantize(&mut survey, self.job.method, &mut self.bins);
        let report = report.map_err(|error| match error {
            SurveyError::Quant(error) => refuse(source, first, error),
            SurveyError::Host(error) => error,
        })?;
        self.job.flushed += report.flushed;
        let plan = survey.plan.expect("every group is given a plan");
        Ok((plan, survey.step))
    }
}

impl Encoder for Long<'_, '_> {
    fn end(&self) -> usize {
        self.job.source.values()
    }

    fn chunk(&mut self, first: usize, out: &mut Parts) -> Result<usize, Error> {
        let end = self.end().min(first + CHUNK);
        let (group, last) = (first / self.settled.len, (end - 1) / self.settled.len);
        let done = self.settled.groups.len().min(group - self.settled.first);
        self.settled.groups.drain(..done);
        self.settled.first = group;
        for group in group + self.settled.groups.len()..=last {
            let (plan, step) = self.settle(group)?;
            self.settled.groups.push((plan, step));
            out.extend(1, step.scale.to_le_bytes());
            if self.job.has_zero_points() {
                out.extend(2, step.zero_point.to_le_bytes());
            }
        }
        let job = &mut self.job;
        let codes = out.room(0, end - first);
        let chunk = (first, end - first);
        runs::encode(job.source, &self.settled, chunk, codes, Some(&mut job.loss))?;
        Ok(end)
    }
}

/// How the groups that a chunk has values of are coded.
struct Settled {
    /// Values of a group.
    len: usize,
    /// The number of the first one here.
    first: usize,
    groups: Vec<(Plan, Step)>,
}

impl Coder for Settled {
    fn bytes(&self, values: usize) -> usize {
        values
    }

    fn encode(&self, first: usize, values: &[f32], out: &mut [u8]) -> Result<u64, String> {
        let (mut at, mut values, mut codes) = (first, values, signed_mut(out));
        while !values.is_empty() {
            let (plan, _) = &self.groups[at / self.len - self.first];
            let left = (self.len - at % self.len).min(values.len());
            let (now, after) = values.split_at(left);
            let (out, codes_after) = codes.split_at_mut(left);
            Backend::default()
                .apply(plan, now, out, Stores::Cached, Ahead::STREAM)
                .map_err(|error| error.to_string())?;
            (values, codes) = (after, codes_after);
            at += left;
        }
        // Groups are counted, when they are looked at, not parts of them.
        Ok(0)
    }

    fn restore(&self, first: usize, bytes: &[u8], out: &mut [f32]) -> Result<(), String> {
        let step = |group: usize| self.groups[group - self.first].1;
        restore(self.len, step, first, signed(bytes), out);
        Ok(())
    }
}

/// One group that all threads look at. Nothing is coded: what is to be done with it, and its scale, are what remains.
struct Survey<'a, 's> {
    source: &'a Source<'s>,
    first: usize,
    len: usize,
    /// The pattern of the largest magnitude.
    largest: u32,
    plan: Option<Plan>,
    step: Step,
}

/// What stops work on a group.
enum SurveyError {
    Quant(QuantError),
    Host(Error),
}

impl From<QuantError> for SurveyError {
    fn from(error: QuantError) -> Self {
        Self::Quant(error)
    }
}

impl Survey<'_, '_> {
    fn reduce(
        &mut self,
        of: impl Fn(Backend, &[f32], Ahead) -> Stats + Sync + Send,
    ) -> Result<Stats, SurveyError> {
        let stats = super::reduce(self.source, (self.first, self.len), of);
        let stats = stats.map_err(SurveyError::Host)?;
        self.largest = bits::magnitude(stats.abs_max());
        Ok(stats)
    }

    /// What a plan would code, counted and summed exactly.
    fn count(&self, plan: &Plan) -> Result<Applied, SurveyError> {
        let applied = tiles(
            self.source,
            self.first,
            self.len,
            |values| {
                let mut codes = [0; TILE];
                let codes = &mut codes[..values.len()];
                Backend::default().apply(plan, values, codes, Stores::Cached, Ahead::STREAM)
            },
            |a, b| {
                let (mut a, b) = (a?, b?);
                a.merge(&b);
                Ok(a)
            },
        );
        let applied = applied.map_err(SurveyError::Host)?;
        Ok(applied.unwrap_or_else(|| Ok(Applied::default()))?)
    }
}

impl QuantizeProblem for Survey<'_, '_> {
    type Error = SurveyError;

    fn groups(&self) -> Groups {
        Groups {
            count: 1,
            len: self.len,
        }
    }

    fn stats(&mut self, _: usize) -> Result<Stats, SurveyError> {
        self.reduce(Backend::stats)
    }

    fn extremes(&mut self, _: usize) -> Result<Stats, SurveyError> {
        self.reduce(Backend::extremes)
    }

    fn read_magnitudes(&mut self, _: usize, out: &mut [u32]) -> Result<(), SurveyError> {
        // Groups this small never come here, yet the contract holds.
        let mut values = vec![0.0; out.len()];
        self.source
            .read(self.first, &mut values)
            .map_err(SurveyError::Host)?;
        Ok(tercet_core::scalar::read_magnitudes(&values, out)?)
    }

    fn magnitudes(
        &mut self,
        _: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), SurveyError> {
        span.check(bins)?;
        let empty = || vec![MagnitudeBin::EMPTY; span.bins()];
        for window in windows(self.first, self.len) {
            let table = (0..window.len().div_ceil(TILE))
                .into_par_iter()
                // A table a job, which takes as long to merge as a tile to count.
                .with_min_len(TILES_A_TABLE)
                .try_fold(
                    || (Vec::new(), empty()),
                    |(mut buffer, mut table), tile| {
                        let from = window.start + tile * TILE;
                        let values = (self.source)
                            .view(from, TILE.min(window.end - from), &mut buffer)
                            .map_err(SurveyError::Host)?;
                        Backend::default().magnitudes(values, span, &mut table)?;
                        Ok::<_, SurveyError>((buffer, table))
                    },
                )
                .map(|job| job.map(|(_, table)| table))
                .try_reduce(empty, |mut a, b| {
                    add(&mut a, &b);
                    Ok(a)
                })?;
            add(bins, &table);
        }
        Ok(())
    }

    /// Keeps the plan. What it codes is counted, at the cost of a read, where the scale is a mean over that; else the scale only
    /// depends on whether there is any, which the largest magnitude tells.
    fn apply(&mut self, _: usize, plan: &Plan) -> Result<Applied, SurveyError> {
        self.plan = Some(*plan);
        match *plan {
            Plan::Ternary { sum: true, .. } => self.count(plan),
            Plan::Ternary { threshold, .. } => Ok(Applied {
                coded: u64::from(self.largest >= threshold),
                ..Applied::default()
            }),
            Plan::Affine(_) => Ok(Applied::default()),
        }
    }

    fn set_scale(&mut self, _: usize, scale: f32, zero_point: i8) -> Result<(), SurveyError> {
        self.step = Step { scale, zero_point };
        Ok(())
    }
}

/// Adds what was counted elsewhere.
fn add(bins: &mut [MagnitudeBin], more: &[MagnitudeBin]) {
    for (bin, more) in bins.iter_mut().zip(more) {
        bin.merge(more);
    }
}
