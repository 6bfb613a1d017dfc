//! How the groups that a chunk has values of are coded.

use std::ops::Range;

use tercet_core::quant::Plan;

use super::{Step, restore};
use crate::convert::runs::Coder;
use crate::simd::{Ahead, Backend, Stores};
use crate::source::{signed, signed_mut};

/// Long groups, one after another, with what was decided for each.
pub(in crate::convert) struct Settled {
    /// Values of a group.
    pub(super) len: usize,
    /// The number of the first one here.
    pub(super) first: usize,
    pub(super) groups: Vec<(Plan, Step)>,
}

impl Settled {
    /// The runs of `len` values from `first` on that lie in one group, each with that group's plan.
    pub(in crate::convert) fn runs(
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

impl Coder for Settled {
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
        // Groups are counted, when they are looked at, not parts of them.
        Ok(0)
    }

    fn restore(&self, first: usize, bytes: &[u8], out: &mut [f32]) -> Result<(), String> {
        let step = |group: usize| self.groups[group - self.first].1;
        restore(self.len, step, first, signed(bytes), out);
        Ok(())
    }
}
