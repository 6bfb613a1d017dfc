//! Finds the clipping range of least cost among a fixed set of shrunken ranges.
//!
//! Ends move by bit patterns: 2²⁰ patterns are an eighth of an octave, 2¹⁶ are a 128th.

use super::{Grid, Range, Scheme};
use crate::number::bits;

const COARSE: u32 = 1 << 20;
const FINE: u32 = 1 << 16;
/// 16 octaves in eighths.
const COARSE_STEPS: u32 = 128;
/// Rounds of shrinking each end in turn; more rounds rarely change an end.
const ROUNDS: u32 = 3;

/// Returns the range of least `cost`; ties go to the wider range.
pub(super) fn least(full: Range, scheme: Scheme, cost: impl Fn(&Grid) -> f64) -> Range {
    let cost_of = |low: u32, high: u32| match shrink(full, low, high).grid(scheme) {
        Ok(grid) if grid.scale > 0.0 => cost(&grid),
        _ => f64::INFINITY,
    };
    let both = line(|drop| cost_of(drop, drop));
    let (mut low, mut high, mut best) = (both.drop, both.drop, both.cost);
    let two_sided = scheme == Scheme::Affine && full.low < 0.0 && full.high > 0.0;
    if two_sided {
        for _ in 0..ROUNDS {
            let start = best;
            let upper = line(|drop| cost_of(low, drop));
            if upper.cost < best {
                (high, best) = (upper.drop, upper.cost);
            }
            let lower = line(|drop| cost_of(drop, high));
            if lower.cost < best {
                (low, best) = (lower.drop, lower.cost);
            }
            if best == start {
                break;
            }
        }
    }
    shrink(full, low, high)
}

/// Returns `full` with its ends moved inwards by the given numbers of bit patterns.
fn shrink(full: Range, low: u32, high: u32) -> Range {
    Range {
        // Not `-x`, which would turn 0 into −0.
        low: 0.0 - f32::from_bits(bits::magnitude(full.low).saturating_sub(low)),
        high: f32::from_bits(bits::magnitude(full.high).saturating_sub(high)),
    }
}

/// Number of patterns to drop, and the cost there.
struct BestDrop {
    drop: u32,
    cost: f64,
}

/// Searches all of the line in coarse steps, then the range between the best step's neighbours in fine ones.
fn line(cost: impl Fn(u32) -> f64) -> BestDrop {
    let mut best = BestDrop {
        drop: 0,
        cost: cost(0),
    };
    let try_drop = |best: &mut BestDrop, drop| {
        let cost = cost(drop);
        if cost < best.cost || (cost == best.cost && drop < best.drop) {
            *best = BestDrop { drop, cost };
        }
    };
    for step in 1..=COARSE_STEPS {
        try_drop(&mut best, step * COARSE);
    }
    let centre = best.drop;
    for step in 1..COARSE / FINE {
        if let Some(drop) = centre.checked_sub(step * FINE) {
            try_drop(&mut best, drop);
        }
        try_drop(&mut best, centre + step * FINE);
    }
    best
}
