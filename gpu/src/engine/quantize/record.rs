//! The records that the quantizer's kernels read and write, word by word: the structs of
//! `kernels/include/tercet/plan.cuh`, `stats.cuh` and `apply.cuh`, and of `kernels/cuda/quantize.cu` and
//! `histogram_ordered.cu`.

use tercet_core::engine::MagnitudeBin;
use tercet_core::number::{ExactSum, Stats, bits};
use tercet_core::quant::{Applied, Groups, Method, Plan, QuantError, Report, Rule, ScaleRule};

/// 64-bit words of a `StatsRecord`.
pub(super) const STATS: usize = 8;
/// 64-bit words of an `AppliedRecord`.
pub(super) const APPLIED: usize = 8;
/// 64-bit words of a `ReportRecord`.
pub(super) const REPORT: usize = 6;
/// 64-bit words of a `Bin`.
pub(super) const BIN: usize = 2;
/// 32-bit words of a `Found`.
pub(super) const FOUND: usize = 4;
/// 32-bit words of a `Plan`.
pub(super) const PLAN: usize = 5;

/// Returns the sum of 64-bit limbs, least significant first.
fn sum(limbs: &[u64]) -> ExactSum {
    let mut sum = ExactSum::ZERO;
    for (&limb, place) in limbs.iter().zip((0..).step_by(64)) {
        sum.add_shifted(limb, place);
    }
    sum
}

/// Returns the statistics in a record of `count` values from `start` on.
pub(super) fn stats(record: &[u64; STATS], start: usize, count: usize) -> Stats {
    let [limbs @ .., not_bad, keys] = record;
    let count = count as u64;
    if *not_bad != 0 {
        return Stats {
            count,
            first_bad: Some(!not_bad - start as u64),
            ..Stats::EMPTY
        };
    }
    // The two halves of a word, the lower half first.
    let (min, max) = extremes(*keys as u32, (*keys >> 32) as u32);
    Stats {
        count,
        min,
        max,
        sum: sum(limbs),
        first_bad: None,
    }
}

/// Returns the smallest and the largest value, from the complement of the smallest one's key and the key of the
/// largest.
fn extremes(not_low: u32, high: u32) -> (f32, f32) {
    (bits::from_ordered(!not_low), bits::from_ordered(high))
}

/// Interprets the result of counting values: the number of values before the first that is not finite, or their
/// extremes if all are finite.
pub(super) fn found(&[low, high, not_least, most]: &[u32; FOUND]) -> Result<(f32, f32), usize> {
    match u64::from(high) << 32 | u64::from(low) {
        0 => Ok(extremes(not_least, most)),
        // It fits `usize`, because it is an index.
        not_bad => Err(!not_bad as usize),
    }
}

pub(super) fn applied(record: &[u64; APPLIED]) -> Applied {
    let [coded, clipped, limbs @ ..] = record;
    Applied {
        coded: *coded,
        coded_sum: sum(limbs),
        clipped: *clipped,
    }
}

pub(super) fn bin(&[count, mantissas]: &[u64; BIN]) -> MagnitudeBin {
    MagnitudeBin { count, mantissas }
}

/// Encodes a plan for the kernels.
pub(super) fn plan(plan: &Plan) -> [u32; PLAN] {
    match *plan {
        Plan::Ternary { threshold, .. } => [threshold, 0, 0, word(-1), word(1)],
        Plan::Affine(grid) => [
            u32::MAX,
            grid.scale.to_bits(),
            word(grid.zero_point),
            word(grid.low),
            word(grid.high),
        ],
    }
}

fn word(code: i8) -> u32 {
    i32::from(code).cast_unsigned()
}

/// Encodes a method for the kernels: kind, rule and scale rule, the scale of a grid, and its zero point and ends.
pub(super) fn method(method: Method) -> (u32, f32, u32) {
    let bytes = |bytes: [i8; 3]| {
        let [zero_point, low, high] = bytes.map(i8::cast_unsigned);
        u32::from_le_bytes([zero_point, low, high, 0])
    };
    match method {
        Method::Ternary { rule, scale_rule } => {
            let rule = match rule {
                Rule::AbsMax => 0,
                Rule::AbsMean => 1,
                Rule::Twn => 2,
                Rule::Optimal => 3,
            };
            let least_squares = u32::from(scale_rule == ScaleRule::LeastSquares);
            (rule << 8 | least_squares << 16, 0.0, 0)
        }
        Method::Symmetric { limit } => (1, 0.0, bytes([0, limit.saturating_neg(), limit])),
        Method::Affine => (2, 0.0, 0),
        Method::Fixed(grid) => (3, grid.scale, bytes([grid.zero_point, grid.low, grid.high])),
    }
}

/// Returns the report or the error of a launch over all groups: the first error that a loop over groups would meet.
pub(super) fn report(record: &[u64; REPORT], groups: Groups) -> Result<Report, QuantError> {
    let &[zero, flushed, coded, clipped, not_bad, not_placed] = record;
    let placed = (not_placed != 0).then_some(!not_placed);
    let bad = (not_bad != 0).then_some(!not_bad);
    match (bad, placed) {
        (Some(index), placed) if placed.is_none_or(|group| index / groups.len as u64 <= group) => {
            Err(QuantError::NotFinite { index })
        }
        (_, Some(_)) => Err(QuantError::Length {
            expected: groups.count,
            found: 0,
        }),
        _ => Ok(Report {
            groups: groups.count as u64,
            zero,
            flushed,
            coded,
            clipped,
        }),
    }
}
