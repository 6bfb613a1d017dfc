//! Long groups: each is surveyed as a whole, and then encoded with the resulting decision.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, QuantizeProblem};
use tercet_core::number::{Stats, bits};
use tercet_core::quant::{self, Applied, Groups, Plan, QuantError};

use super::TensorConversion;
use crate::Error;
use crate::convert::group_plans::{GroupPlans, GroupScale};
use crate::convert::span::{Span, refuse};
use crate::convert::steps::ConversionSteps;
use crate::convert::stream::{Encoder, Parts};
use crate::source::CHUNK;

/// Bins for the optimal ternary rule over a large group: 64 KiB, three passes on data of usual shape.
const BINS: usize = 4096;

/// A tensor of long groups.
pub(super) struct Long<'a, 's> {
    pub(super) job: TensorConversion<'a, 's>,
    bins: Vec<MagnitudeBin>,
    settled: GroupPlans,
}

impl<'a, 's> Long<'a, 's> {
    pub(super) fn new(job: TensorConversion<'a, 's>) -> Self {
        // More bins than required, for fewer passes over the values.
        let bins = match job.method.scratch_len(job.groups.len) {
            0 => 0,
            _ => BINS,
        };
        Self {
            bins: vec![MagnitudeBin::EMPTY; bins],
            settled: GroupPlans {
                len: job.groups.len,
                first: 0,
                groups: Vec::new(),
            },
            job,
        }
    }

    /// Surveys a group and decides how it is encoded.
    fn settle(&mut self, group: usize) -> Result<(Plan, GroupScale), Error> {
        let job = &mut self.job;
        let group = Span {
            source: job.source,
            first: group * job.groups.len,
            len: job.groups.len,
        };
        let mut survey = Survey {
            steps: &mut *job.steps,
            group,
            largest: 0,
            plan: None,
            scale: GroupScale::default(),
        };
        let report = quant::quantize(&mut survey, job.method, &mut self.bins);
        let report = report.map_err(|error| match error {
            SurveyError::Quant(error) => refuse(group.source, group.first, error),
            SurveyError::Host(error) => error,
        })?;
        let plan = survey.plan.expect("every group is given a plan");
        let scale = survey.scale;
        job.flushed += report.flushed;
        Ok((plan, scale))
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
            let (plan, scale) = self.settle(group)?;
            self.settled.groups.push((plan, scale));
            out.extend(1, scale.scale.to_le_bytes());
            if self.job.has_zero_points() {
                out.extend(2, scale.zero_point.to_le_bytes());
            }
        }
        let job = &mut self.job;
        let chunk = Span {
            source: job.source,
            first,
            len: end - first,
        };
        let codes = out.room(0, chunk.len);
        job.steps
            .apply(chunk, &self.settled, codes, &mut job.loss)?;
        Ok(end)
    }
}

/// A group that is surveyed. Nothing is encoded: the results are the plan for it and its scale.
struct Survey<'a, 's> {
    steps: &'a mut dyn ConversionSteps,
    group: Span<'a, 's>,
    /// The pattern of the largest magnitude.
    largest: u32,
    plan: Option<Plan>,
    scale: GroupScale,
}

/// The reason why work on a group stops.
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
    fn look(&mut self, with_sum: bool) -> Result<Stats, SurveyError> {
        let stats = self.steps.stats(self.group, with_sum);
        let stats = stats.map_err(SurveyError::Host)?;
        self.largest = bits::magnitude(stats.abs_max());
        Ok(stats)
    }
}

impl QuantizeProblem for Survey<'_, '_> {
    type Error = SurveyError;

    fn groups(&self) -> Groups {
        Groups {
            count: 1,
            len: self.group.len,
        }
    }

    fn stats(&mut self, _: usize) -> Result<Stats, SurveyError> {
        self.look(true)
    }

    fn extremes(&mut self, _: usize) -> Result<Stats, SurveyError> {
        self.look(false)
    }

    fn read_magnitudes(&mut self, _: usize, out: &mut [u32]) -> Result<(), SurveyError> {
        // Groups this small never come here, but the contract holds.
        let mut values = vec![0.0; out.len()];
        let Span { source, first, .. } = self.group;
        source.read(first, &mut values).map_err(SurveyError::Host)?;
        Ok(tercet_core::scalar::read_magnitudes(&values, out)?)
    }

    fn magnitudes(
        &mut self,
        _: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), SurveyError> {
        span.check(bins)?;
        let done = self.steps.magnitudes(self.group, span, bins);
        done.map_err(SurveyError::Host)
    }

    /// Keeps the plan. If the scale is a mean over the nonzero codes, it counts these, which takes another read.
    /// Otherwise the scale only depends on whether there are any, which the largest magnitude shows.
    fn apply(&mut self, _: usize, plan: &Plan) -> Result<Applied, SurveyError> {
        self.plan = Some(*plan);
        match *plan {
            Plan::Ternary { sum: true, .. } => {
                let counted = self.steps.count(self.group, plan);
                counted.map_err(SurveyError::Host)
            }
            Plan::Ternary { threshold, .. } => Ok(Applied {
                coded: u64::from(self.largest >= threshold),
                ..Applied::default()
            }),
            Plan::Affine(_) => Ok(Applied::default()),
        }
    }

    fn set_scale(&mut self, _: usize, scale: f32, zero_point: i8) -> Result<(), SurveyError> {
        self.scale = GroupScale { scale, zero_point };
        Ok(())
    }
}
