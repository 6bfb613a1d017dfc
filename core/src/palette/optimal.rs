//! The optimal k entries for weighted integers on a line: one-dimensional k-means, solved exactly.
//!
//! # The optimum
//! An entry is an int8, so the cost of a segment of neighbouring values is Σ w·(x − c)² with the best *integer* c.
//! This c is the mean rounded to nearest: the cost is Σw·(c − mean)² plus a constant. Entries divide the line into
//! segments of nearest values, and each segment costs least with its own c. So the least cost over all codebooks is
//! the least sum over all cuts into k segments, which dynamic programming finds. Nothing is rounded on the way.
//!
//! # Why few cuts are enough
//! For a ≤ b ≤ c ≤ d, cost(a, c) + cost(b, d) ≤ cost(a, d) + cost(b, c). Let p be the best entry of (a, d) and q the
//! best of (b, c), which is between the values b and c. If p ≤ q, assign (a, c) to p and (b, d) to q: only the values
//! after c change, from p to q, and they are above q. If p > q, assign (a, c) to q and (b, d) to p: the values before
//! b change from p to q, and they are below q. So the first best cut never moves left as the end moves right, and the
//! cut of a middle position bounds those on both sides: O(k · m · log m) costs for m = n − k + 1 instead of O(k ·
//! m²).
//!
//! Source: H. Wang and M. Song, "Ckmeans.1d.dp: Optimal k-means clustering in one dimension by dynamic programming",
//! The R Journal 3/2 (2011). The bound on cuts is theirs from version 3.4.6 on, here for integer entries.

use super::PaletteError;

/// Largest sum of weights: costs, at most Σw · 255², then fit 64 bits.
pub const MAX_WEIGHT: u64 = (1 << 48) - 1;

/// Result of [`optimal_1d`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Optimum {
    /// Number of different entries: all of them, or the number of values with a weight above 0.
    pub entries: usize,
    /// Σ w·(x − its nearest entry)², the least of any codebook of the same length.
    pub cost: u64,
}

/// Returns the number of `u64`s of scratch that [`optimal_1d`] needs for `points` values (256 are enough for any) and
/// `entries` entries.
///
/// 11.4 KiB for 16 entries, at most 22.1 KiB; none if every value gets an entry.
pub const fn scratch_len(points: usize, entries: usize) -> usize {
    let points = if points > 256 { 256 } else { points };
    if points <= entries || entries == 0 {
        return 0;
    }
    let cuts = points - entries + 1;
    2 * (points + 1) + 2 * cuts + ((entries - 1) * cuts).div_ceil(8)
}

/// Fills `codebook` with the entries of least cost for `values`, which must be strictly ascending, each counted as
/// often as its weight.
///
/// The entries are in ascending order. Of codebooks with equal cost, the result is the one whose last segment begins
/// first, then the second to last, and so on. A mean halfway between two integers is rounded away from zero. Values
/// of weight 0 count as absent. If there are no more values than entries, each value is an entry and the largest
/// fills the rest; without values, 0 does.
///
/// `scratch` holds at least [`scratch_len`]`(values.len(), codebook.len())` elements with any content. O(k · n · log
/// n).
///
/// # Errors
/// [`PaletteError::Length`] unless there is one weight per value; [`PaletteError::Empty`] for an empty codebook;
/// [`PaletteError::NotRising`]; [`PaletteError::Weight`] above [`MAX_WEIGHT`]; [`PaletteError::Scratch`].
///
/// # Example
/// ```
/// use tercet_core::palette::{optimal_1d, scratch_len};
///
/// let mut codebook = [0; 2];
/// let mut scratch = [0; scratch_len(4, 2)];
/// let best = optimal_1d(&[-9, -7, 3, 10], &[1, 1, 5, 1], &mut codebook, &mut scratch)?;
/// // −8 serves the first two at a cost of 1 + 1, 4 the others at 5·1 + 36.
/// assert_eq!((codebook, best.cost), ([-8, 4], 43));
/// # Ok::<(), tercet_core::palette::PaletteError>(())
/// ```
pub fn optimal_1d(
    values: &[i8],
    weights: &[u64],
    codebook: &mut [i8],
    scratch: &mut [u64],
) -> Result<Optimum, PaletteError> {
    check(values, weights, codebook.len())?;
    let points = || {
        values
            .iter()
            .zip(weights)
            .filter(|&(_, &weight)| weight > 0)
    };
    let (count, entries) = (points().count(), codebook.len());
    if count <= entries {
        let mut last = 0;
        let mut points = points();
        for entry in codebook {
            last = points.next().map_or(last, |(&value, _)| value);
            *entry = last;
        }
        return Ok(Optimum {
            entries: count,
            cost: 0,
        });
    }
    let needed = scratch_len(count, entries);
    let short = PaletteError::Scratch { needed };
    let cuts = count - entries + 1;
    let (weight_sums, rest) = scratch.split_at_mut_checked(count + 1).ok_or(short)?;
    let (moment_sums, rest) = rest.split_at_mut_checked(count + 1).ok_or(short)?;
    let (mut now, rest) = rest.split_at_mut_checked(cuts).ok_or(short)?;
    let (mut before, rest) = rest.split_at_mut_checked(cuts).ok_or(short)?;
    let words = ((entries - 1) * cuts).div_ceil(8);
    let mut splits = Splits {
        words: rest.get_mut(..words).ok_or(short)?,
        cuts,
    };

    let (mut weight, mut moment, mut squares) = (0u64, 0i64, 0u64);
    let sums = weight_sums.iter_mut().zip(moment_sums.iter_mut());
    // The sums before each point, and after the last.
    let each = points().map(Some).chain([None]);
    for ((weight_sum, moment_sum), point) in sums.zip(each) {
        (*weight_sum, *moment_sum) = (weight, moment as u64);
        let Some((&value, &w)) = point else { break };
        let x = i64::from(value);
        weight += w;
        moment += x * w as i64;
        squares += (x * x) as u64 * w;
    }
    let sums = Sums {
        weights: weight_sums,
        moments: moment_sums,
    };

    for (end, best) in now.iter_mut().enumerate() {
        *best = sums.segment(0, end + 1).gain;
    }
    for segment in 1..entries {
        (now, before) = (before, now);
        let layer = Layer {
            sums: &sums,
            before,
            segment,
        };
        layer.fill(now, &mut splits);
    }
    let cost = squares.saturating_sub(now.last().copied().unwrap_or(0));

    let mut end = cuts - 1;
    for (segment, entry) in codebook.iter_mut().enumerate().rev() {
        let start = if segment > 0 {
            splits.get(segment, end)
        } else {
            0
        };
        *entry = sums.segment(segment + start, segment + end + 1).entry as i8;
        end = start;
    }
    Ok(Optimum { entries, cost })
}

fn check(values: &[i8], weights: &[u64], entries: usize) -> Result<(), PaletteError> {
    if values.len() != weights.len() {
        return Err(PaletteError::Length {
            expected: values.len(),
            found: weights.len(),
        });
    }
    if entries == 0 {
        return Err(PaletteError::Empty);
    }
    let pairs = values.iter().zip(values.iter().skip(1));
    if let Some(index) = pairs.into_iter().position(|(a, b)| a >= b) {
        return Err(PaletteError::NotRising { index: index + 1 });
    }
    let total = weights.iter().fold(0u64, |sum, &w| sum.saturating_add(w));
    if total > MAX_WEIGHT {
        return Err(PaletteError::Weight { max: MAX_WEIGHT });
    }
    Ok(())
}

/// Σw and Σw·x of the points before each point.
struct Sums<'a> {
    weights: &'a [u64],
    /// Bits of an `i64`.
    moments: &'a [u64],
}

/// A segment with its best entry.
struct Segment {
    /// Best integer entry, within the segment's values.
    entry: i64,
    /// Reduction of the segment's cost compared to an entry of 0: Σ w·x² − Σ w·(x − c)². Not negative, since 0 is not
    /// better.
    gain: u64,
}

impl Sums<'_> {
    /// Returns the segment of the points from `from` up to, not including, `to`.
    ///
    /// With Σw < 2⁴⁸, |Σw·x| ≤ 2⁵⁵; |2·Σw·x − c·Σw| ≤ |Σw·x| + Σw / 2, so the gain stays below 2⁶³.
    #[inline]
    fn segment(&self, from: usize, to: usize) -> Segment {
        let between = |sums: &[u64]| match (sums.get(from), sums.get(to)) {
            (Some(from), Some(to)) => to.wrapping_sub(*from),
            _ => 0,
        };
        let (weight, moment) = (between(self.weights), between(self.moments) as i64);
        let size = divide(2 * moment.unsigned_abs() + weight, 2 * weight) as i64;
        let entry = if moment < 0 { -size } else { size };
        Segment {
            entry,
            gain: (entry * (2 * moment - entry * weight as i64)) as u64,
        }
    }
}

/// Returns `a / b`, or 0 for b = 0. Divides in 32 bits if both fit, which small machines have an instruction for.
#[inline]
fn divide(a: u64, b: u64) -> u64 {
    match (u32::try_from(a), u32::try_from(b)) {
        (Ok(a), Ok(b)) => u64::from(a.checked_div(b).unwrap_or(0)),
        _ => a.checked_div(b).unwrap_or(0),
    }
}

/// Computes the best gains with one segment more than `before`.
///
/// With s segments before this one, and k in all, it ends at one of m = n − k + 1 points, s + 1 + end, since every
/// segment contains a point. Likewise it begins at s + start, start ≤ end.
struct Layer<'a> {
    sums: &'a Sums<'a>,
    before: &'a [u64],
    segment: usize,
}

impl Layer<'_> {
    fn fill(&self, now: &mut [u64], splits: &mut Splits<'_>) {
        let cuts = now.len();
        // Every second of the remaining positions, each between two that are known: the recursion, level by level.
        let mut step = cuts.next_power_of_two();
        while step > 0 {
            let mut end = step - 1;
            while end < cuts {
                let first = match end.checked_sub(step) {
                    Some(left) => splits.get(self.segment, left),
                    None => 0,
                };
                let last = if end + step < cuts {
                    splits.get(self.segment, end + step).min(end)
                } else {
                    end
                };
                let (start, gain) = self.best(first, last, end);
                splits.set(self.segment, end, start);
                if let Some(slot) = now.get_mut(end) {
                    *slot = gain;
                }
                end += 2 * step;
            }
            step /= 2;
        }
    }

    /// Returns the first best start in `first..=last`, and the gain.
    fn best(&self, first: usize, last: usize, end: usize) -> (usize, u64) {
        let mut best = (first, 0);
        let before = self.before.get(first..=last).unwrap_or_default();
        for (start, gain) in (first..).zip(before) {
            let from = self.segment + start;
            let gain = gain + self.sums.segment(from, self.segment + end + 1).gain;
            if gain > best.1 {
                best = (start, gain);
            }
        }
        best
    }
}

/// The start of each segment except the first, for each place at which it may end: one byte each, since m ≤ 255.
struct Splits<'a> {
    words: &'a mut [u64],
    cuts: usize,
}

impl Splits<'_> {
    fn place(&self, segment: usize, end: usize) -> (usize, u32) {
        let byte = (segment - 1) * self.cuts + end;
        (byte / 8, byte as u32 % 8 * 8)
    }

    fn get(&self, segment: usize, end: usize) -> usize {
        let (word, shift) = self.place(segment, end);
        let word = self.words.get(word).copied().unwrap_or(0);
        usize::from((word >> shift) as u8)
    }

    fn set(&mut self, segment: usize, end: usize, start: usize) {
        let (word, shift) = self.place(segment, end);
        if let Some(word) = self.words.get_mut(word) {
            *word = *word & !(0xFF << shift) | (start as u64 & 0xFF) << shift;
        }
    }
}
