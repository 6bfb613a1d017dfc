//! How to encode the groups that a chunk has values of.

use std::ops::Range;

use tercet_core::quant::Plan;

use super::runs::Coder;
use crate::simd::{Ahead, Backend, Stores};
use crate::source::{signed, signed_mut};

/// Long groups, one after another, with the decision for each.
pub(super) struct GroupPlans {
    /// Values per group.
    pub(super) len: usize,
    /// The number of the first one here.
    pub(super) first: usize,
    pub(super) groups: Vec<(Plan, GroupScale)>,
}

impl GroupPlans {
    /// Returns the runs of `len` values from `first` on that are in one group, each with that group's plan.
    pub(super) fn runs(
        &self,
        first: usize,
        len: usize,
    ) -> impl Iterator<Item = (&Plan, Range<usize>)> {
        let (mut at, end) = (first, first + len);
        std::iter::from_fn(move || {
            if at == end {
                return None;
            }
            let group = at / self.len;
            let (plan, _) = &self.groups[group - self.first];
            let run = at..end.min((group + 1) * self.len);
            at = run.end;
            Some((plan, run))
        })
    }
}

impl Coder for GroupPlans {
    fn bytes(&self, values: usize) -> usize {
        values
    }

    fn encode(&self, first: usize, values: &[f32], out: &mut [u8]) -> Result<u64, String> {
        let codes = signed_mut(out);
        for (plan, run) in self.runs(first, values.len()) {
            let run = run.start - first..run.end - first;
            let (values, codes) = (&values[run.clone()], &mut codes[run]);
            Backend::default()
                .apply(plan, values, codes, Stores::Cached, Ahead::STREAM)
                .map_err(|error| error.to_string())?;
        }
        // Groups are counted when they are surveyed, not in parts.
        Ok(0)
    }

    fn restore(&self, first: usize, bytes: &[u8], out: &mut [f32]) -> Result<(), String> {
        let step = |group: usize| self.groups[group - self.first].1;
        restore(self.len, step, first, signed(bytes), out);
        Ok(())
    }
}

/// The values of the codes of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupScale {
    pub(super) scale: f32,
    pub(super) zero_point: i8,
}

/// Restores codes that begin at value `at`, in groups of `len` values, with a `step` for each group.
pub(super) fn restore(
    len: usize,
    step: impl Fn(usize) -> GroupScale,
    mut at: usize,
    mut codes: &[i8],
    mut out: &mut [f32],
) {
    while !codes.is_empty() {
        let GroupScale { scale, zero_point } = step(at / len);
        let left = (len - at % len).min(codes.len());
        let (run, codes_after) = codes.split_at(left);
        let (restored, out_after) = out.split_at_mut(left);
        Backend::default().dequantize(run, zero_point, scale, restored, Stores::Cached);
        (codes, out) = (codes_after, out_after);
        at += left;
    }
}
