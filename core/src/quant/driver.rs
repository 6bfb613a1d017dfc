//! The one loop that quantizes: stats, plan and apply for every group.

use super::rule::{BLOCK_LEN, Rule, ScaleRule};
use super::{Grid, Plan, QuantError, optimal, search, ternary};
use crate::engine::{MagnitudeBin, QuantizeProblem};
use crate::number::Stats;

/// Method of quantization, used for each group.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Method {
    /// Codes −1, 0, +1 and a scale.
    Ternary {
        /// The rule that chooses which values become ±1.
        rule: Rule,
        /// The source of the scale.
        scale_rule: ScaleRule,
    },
    /// Codes `−limit..=limit` on a grid with its ends at ±max|x|: limit 127 for int8, 7 for int4.
    Symmetric {
        /// The largest code.
        limit: i8,
    },
    /// int8 codes with a zero point, over min..=max widened to hold 0.
    Affine,
    /// One given grid for every group, such as calibration finds. Values beyond its ends are clipped.
    Fixed(Grid),
}

impl Method {
    /// Returns the ternary method with these rules: codes −1, 0, +1 and a scale.
    pub const fn ternary(rule: Rule, scale_rule: ScaleRule) -> Self {
        Self::Ternary { rule, scale_rule }
    }

    /// Returns the largest number of [`MagnitudeBin`]s that [`quantize`] asks for as scratch; see
    /// [`ternary::scratch_len`].
    pub const fn scratch_len(&self, group_len: usize) -> usize {
        match *self {
            Self::Ternary { rule, .. } => ternary::scratch_len(rule, group_len),
            _ => 0,
        }
    }

    /// Returns two flags: true if the mean of all magnitudes is needed, and true if the mean of the coded ones is the
    /// scale.
    const fn means(self) -> (bool, bool) {
        let Self::Ternary { rule, scale_rule } = self else {
            return (false, false);
        };
        match (rule, scale_rule) {
            (Rule::AbsMax, ScaleRule::Rule) => (false, false),
            (Rule::AbsMax, ScaleRule::LeastSquares) => (false, true),
            (Rule::AbsMean, ScaleRule::Rule) => (true, false),
            _ => (true, true),
        }
    }
}

/// Counts over the groups of a quantized tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Report {
    /// Groups quantized.
    pub groups: u64,
    /// Groups that held only zeros: scale 0, codes at the zero point.
    pub zero: u64,
    /// Groups that became zeros because their scale does not fit `f32`, although some value was not 0.
    pub flushed: u64,
    /// Codes other than the zero point.
    pub coded: u64,
    /// Values that the grid's ends clipped by at least half a step.
    pub clipped: u64,
}

impl Report {
    /// Adds the counts of other groups.
    pub fn merge(&mut self, other: &Self) {
        self.groups += other.groups;
        self.zero += other.zero;
        self.flushed += other.flushed;
        self.coded += other.coded;
        self.clipped += other.clipped;
    }
}

/// Quantizes every group of a problem.
///
/// `bins` is scratch of at least [`Method::scratch_len`] bins. Its previous content does not matter, and more bins
/// mean fewer passes. The cost is two passes over the values, plus those of [`optimal`] for [`Rule::Optimal`].
///
/// # Errors
/// [`QuantError::NotFinite`] with the lowest index in the tensor; it is unspecified which groups are done by then.
/// [`QuantError::Empty`] without values; [`QuantError::Scratch`] with too few bins; [`QuantError::Range`] for a
/// symmetric limit that is not positive or for an invalid fixed grid. Otherwise the engine's own errors.
pub fn quantize<P: QuantizeProblem>(
    problem: &mut P,
    method: Method,
    bins: &mut [MagnitudeBin],
) -> Result<Report, P::Error> {
    let groups = problem.groups();
    if groups.count == 0 || groups.len == 0 {
        return Err(QuantError::Empty.into());
    }
    let needed = method.scratch_len(groups.len);
    if bins.len() < needed {
        return Err(QuantError::Scratch { needed }.into());
    }
    problem.quantize_groups(method, bins)
}

/// Runs the loop of [`quantize`] without its checks: stats, plan and apply, group after group.
///
/// [`QuantizeProblem::quantize_groups`] calls this function unless the engine has a faster way.
pub fn quantize_in_order<P: QuantizeProblem>(
    problem: &mut P,
    method: Method,
    bins: &mut [MagnitudeBin],
) -> Result<Report, P::Error> {
    let mut report = Report::default();
    for group in 0..problem.groups().count {
        report.merge(&quantize_group(problem, group, method, bins)?);
    }
    Ok(report)
}

fn quantize_group<P: QuantizeProblem>(
    problem: &mut P,
    group: usize,
    method: Method,
    bins: &mut [MagnitudeBin],
) -> Result<Report, P::Error> {
    let (mean_of_all, mean_of_coded) = method.means();
    let stats = if mean_of_all {
        problem.stats(group)?
    } else {
        problem.extremes(group)?
    };
    if let Some(index) = stats.first_bad {
        let before = group as u64 * problem.groups().len as u64;
        return Err(QuantError::NotFinite {
            index: before + index,
        }
        .into());
    }
    let plan = match method {
        Method::Ternary { rule, .. } => Plan::Ternary {
            threshold: match ternary::plan(rule, &stats) {
                Some(threshold) => threshold,
                None => optimal_threshold(problem, group, &stats, bins)?,
            },
            sum: mean_of_coded,
        },
        Method::Symmetric { limit } => Plan::Affine(Grid::symmetric(stats.abs_max(), limit)?),
        Method::Affine => Plan::Affine(Grid::affine(stats.min, stats.max)?),
        Method::Fixed(grid) => Plan::Affine(grid.checked()?),
    };
    let applied = problem.apply(group, &plan)?;
    let (scale, zero_point) = match (method, plan) {
        (Method::Ternary { .. }, _) if applied.coded == 0 => (0.0, 0),
        (Method::Ternary { .. }, _) => {
            let scale = match (mean_of_all, mean_of_coded) {
                (_, true) => applied.coded_sum.mean(applied.coded),
                (true, false) => stats.abs_mean(),
                (false, false) => Some(stats.abs_max()),
            };
            (scale.unwrap_or(0.0), 0)
        }
        (_, Plan::Affine(grid)) => (grid.scale, grid.zero_point),
        (_, Plan::Ternary { .. }) => (0.0, 0),
    };
    problem.set_scale(group, scale, zero_point)?;
    let all_zero = stats.abs_max() == 0.0;
    Ok(Report {
        groups: 1,
        zero: u64::from(all_zero),
        flushed: u64::from(scale == 0.0 && !all_zero),
        coded: applied.coded,
        clipped: applied.clipped,
    })
}

/// Sorts a small group; searches a large one with bins.
fn optimal_threshold<P: QuantizeProblem>(
    problem: &mut P,
    group: usize,
    stats: &Stats,
    bins: &mut [MagnitudeBin],
) -> Result<u32, P::Error> {
    let len = problem.groups().len;
    if len > BLOCK_LEN {
        return search::threshold(problem, group, stats, bins);
    }
    sorted_threshold(problem, group, len)
}

/// Not inlined, so that the search does not need the patterns' KiB of stack.
#[inline(never)]
fn sorted_threshold<P: QuantizeProblem>(
    problem: &mut P,
    group: usize,
    len: usize,
) -> Result<u32, P::Error> {
    let mut patterns = [0; BLOCK_LEN];
    if let Some(used) = patterns.get_mut(..len) {
        problem.read_magnitudes(group, used)?;
    }
    Ok(optimal::of_patterns(&mut patterns, len))
}
