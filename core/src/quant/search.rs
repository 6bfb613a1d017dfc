//! [`super::Rule::Optimal`] over any number of values, in bounded memory: branch and bound over bins of magnitudes.
//!
//! A pass cuts a range of bit patterns into bins and gets each bin's count and exact sum from the engine. Adding them
//! from the top down gives S and k, and so f = S²/k, exactly at every edge between bins. Inside a bin, f has an upper
//! bound ([`Front::bound`]). A bin whose bound does not exceed the best known f is done. The range that holds the
//! other bins is cut finer, until bins are single patterns.
//!
//! A bin's bound exceeds f by about the square of the bin's width, and f falls from its maximum with the square of
//! the distance. So few bins stay open: a million normal values take two passes with 4,096 bins and three with 256.
//! If f is nearly constant, all bins stay open, and the number of passes grows with the number of distinct values:
//! 20,000 values constructed this way take 228 passes with 256 bins.

use core::cmp::Ordering;

use super::QuantError;
use super::threshold::NONE;
use crate::engine::{MagnitudeBin, MagnitudeSpan, QuantizeProblem};
use crate::number::{ExactSum, Stats, bits};

/// Smallest number of bins for the search: 2 KiB of scratch. If the values span more exponents than there are bins,
/// the first pass takes the topmost exponents.
pub const MIN_BINS: usize = 128;

/// Returns the smallest pattern that the optimum codes, or `u32::MAX` if all values are 0. Fails with
/// [`QuantError::Scratch`] if there are fewer bins than [`MIN_BINS`].
pub(super) fn threshold<P: QuantizeProblem>(
    problem: &mut P,
    group: usize,
    stats: &Stats,
    bins: &mut [MagnitudeBin],
) -> Result<u32, P::Error> {
    if bins.len() < MIN_BINS {
        return Err(QuantError::Scratch { needed: MIN_BINS }.into());
    }
    // Walking a table larger than the group costs more than the pass it saves.
    let useful = (problem.groups().len / 16)
        .next_power_of_two()
        .max(MIN_BINS);
    let len = bins.len().min(useful);
    // Patterns in limit..edge are open; `front` is the sum of the values at `edge` and above.
    let mut limit = lowest_candidate(stats);
    let mut edge = bits::magnitude(stats.abs_max()) + 1;
    let mut front = Front::EMPTY;
    let mut best = Best::NONE;
    let mut coarsest = 23;
    while limit < edge {
        let span = window(limit, edge, coarsest, len);
        let Some(table) = bins.get_mut(..span.bins()) else {
            break;
        };
        table.fill(MagnitudeBin::EMPTY);
        problem.magnitudes(group, span, table)?;

        let mut walk = front;
        for (first, bin) in descending(span, table) {
            walk.add(first, bin);
            best.offer(&walk, first);
        }
        let mut open: Option<(u32, u32, Front)> = None;
        let mut walk = front;
        for (first, bin) in descending(span, table) {
            let last = (first + (1 << span.shift)).min(span.end) - 1;
            if walk.bound(first, last, bin) > best.value {
                open = match open {
                    Some((_, top, above)) => Some((first, top, above)),
                    None => Some((first, last + 1, walk)),
                };
            }
            walk.add(first, bin);
        }
        let reached = span.first <= limit;
        match open {
            Some((lowest, top, above)) => {
                (edge, front) = (top, above);
                if reached {
                    limit = lowest;
                }
                // Strictly finer here, so the search ends; a single pattern is never open.
                let fitting = window(lowest, top, 23, len).shift;
                coarsest = fitting.min(span.shift.saturating_sub(1));
            }
            None if reached => break,
            None => {
                (edge, front) = (span.first, walk);
                coarsest = 23;
            }
        }
    }
    Ok(best.threshold)
}

/// Returns a pattern that is not above any coded magnitude: half the mean (see [`super::optimal`], fact 2).
fn lowest_candidate(stats: &Stats) -> u32 {
    // The mean was rounded to nearest, so the float before it is below the true mean.
    let below = bits::magnitude(stats.abs_mean().unwrap_or(0.0)).saturating_sub(1);
    // One exponent less is half, if both are normal.
    below.saturating_sub(1 << 23).max(1)
}

/// Returns the finest span over `limit..edge` that `len` bins hold. At `coarsest`, only the top of that range if they
/// do not hold all of it.
fn window(limit: u32, edge: u32, coarsest: u32, len: usize) -> MagnitudeSpan {
    let covering = (0..=coarsest).map(|shift| MagnitudeSpan {
        first: limit >> shift << shift,
        end: edge,
        shift,
    });
    for span in covering {
        if span.bins() <= len {
            return span;
        }
    }
    let tops = edge.div_ceil(1 << coarsest);
    MagnitudeSpan {
        first: tops.saturating_sub(len as u32) << coarsest,
        end: edge,
        shift: coarsest,
    }
}

/// Returns the bins that are not empty, from the top, each with its first pattern.
fn descending(
    span: MagnitudeSpan,
    table: &[MagnitudeBin],
) -> impl Iterator<Item = (u32, &MagnitudeBin)> {
    let len = table.len() as u32;
    (0..len)
        .rev()
        .zip(table.iter().rev())
        .filter(|(_, bin)| bin.count > 0)
        .map(move |(index, bin)| (span.first + (index << span.shift), bin))
}

/// The sum and the count of all values from some pattern up.
#[derive(Clone, Copy)]
struct Front {
    sum: ExactSum,
    count: u64,
}

impl Front {
    const EMPTY: Self = Self {
        sum: ExactSum::ZERO,
        count: 0,
    };

    fn add(&mut self, first: u32, bin: &MagnitudeBin) {
        self.sum.add_mantissas(bin.mantissas, first);
        self.count += bin.count;
    }

    /// Returns an upper bound of f strictly inside the next bin; 0 if nothing is inside.
    ///
    /// Let the bin hold c values in [L, U] with the sum B. The j largest of them sum to at most j·U, and to at most B
    /// − (c − j)·L. On the lines (S + j·U)²/(k + j) and (S + B − (c − j)·L)²/(k + j), f is convex in j. So the lower
    /// of the two is largest at its ends: either the bin's edges, at which f is known, or the point at which the
    /// lines cross: j = (B − c·L) / (U − L).
    fn bound(&self, first: u32, last: u32, bin: &MagnitudeBin) -> f64 {
        if bin.count < 2 || first == last {
            return 0.0;
        }
        let (low, high) = (bits::mantissa(first), bits::mantissa(last));
        // A sum of `count` mantissas, each at least `low`.
        let above_low = (bin.mantissas).saturating_sub(bin.count.saturating_mul(u64::from(low)));
        let crossing = above_low as f64 / f64::from(high - low);
        let largest = f64::from(f32::from_bits(last));
        let sum = self.sum.to_f64() + crossing * largest;
        sum * sum / (self.count as f64 + crossing) * (1.0 + SLACK)
    }

    /// Returns a lower bound of f = S²/k.
    fn value(&self) -> f64 {
        let sum = self.sum.to_f64();
        sum * sum / self.count as f64 * (1.0 - SLACK)
    }
}

/// 2⁻⁴⁸: more than the relative error of the f64 steps above, which are fewer than 20 roundings of 2⁻⁵³ each among
/// positive terms. Sums lie within 2⁻¹⁴⁹ to 2¹⁹², so no step leaves f64's normal range.
const SLACK: f64 = 1.0 / (1u64 << 48) as f64;

/// The best threshold so far.
struct Best {
    front: Front,
    threshold: u32,
    /// A lower bound of its f.
    value: f64,
}

impl Best {
    const NONE: Self = Self {
        front: Front::EMPTY,
        threshold: NONE,
        value: 0.0,
    };

    /// Takes the threshold if its f is larger, or if it is equal with fewer codes. Exact.
    fn offer(&mut self, front: &Front, threshold: u32) {
        // Most are clearly worse; only the others need the exact comparison.
        let value = front.value();
        if value * (1.0 + 4.0 * SLACK) < self.value {
            return;
        }
        let Front { sum, count } = &self.front;
        let better = match front.sum.cmp_squares(*count, sum, front.count) {
            // Before the first offer, both sides are 0.
            _ if *count == 0 => true,
            Ordering::Greater => true,
            Ordering::Equal => front.count < *count,
            Ordering::Less => false,
        };
        if better {
            *self = Self {
                front: *front,
                threshold,
                value,
            };
        }
    }
}
