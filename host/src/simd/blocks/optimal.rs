//! Finds the least squared error of one block, without sorting it.
//!
//! In terms of [`tercet_core::quant::optimal`]: let K be the best set, S its sum of magnitudes, k its size and s = S/k.
//! Dropping its smallest magnitude v does not raise f, which gives `v ≥ s/2 + v²/(2S)`; nor does adding the next one,
//! v', which gives v' < s/2. So K is exactly the values with |x| ≥ t for t = s/2: a fixed point of G(t) = half the mean
//! of the |x| ≥ t. G never falls as t grows (what it leaves out lies below the mean of the rest). So from a bound below
//! every fixed point, G leads to a better one, and likewise from above. Three or four steps from both ends leave few or
//! no values between, and only sets that end among those are compared, by `S_a²·k_b > S_b²·k_a`.

use super::{Cut, Values};

/// The values that get a code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    /// No coded magnitude is below it, and no other magnitude is at or above it.
    pub(super) least: f32,
    /// Their sum.
    pub(super) sum: f64,
    /// Their number.
    pub(super) count: u32,
}

/// More steps do not pay off: the bounds no longer move, or hardly.
const STEPS: usize = 12;
/// If there are more values between the bounds, core's sorting network is used.
const BETWEEN: usize = 64;
/// Relative amount by which the bounds are widened: more than the at most 70 roundings of a step, each 2⁻²⁴.
const SLACK: f32 = 1.0 / 65_536.0;

/// Returns the best set of the values of a block with a largest magnitude between 2⁻¹⁰⁰ and 2¹⁰⁰; `None` if f64 cannot
/// decide.
pub(super) fn of(kernels: &Values, values: &[f32], largest: f32) -> Option<Best> {
    // Every mean is between 0 and the largest magnitude.
    let mut bounds = [0.0, largest / 2.0];
    let mut counts = [u32::MAX; 2];
    for _ in 0..STEPS {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        let [(low_sum, low), (high_sum, high)] = unsafe { (kernels.tails)(values, bounds) };
        if low == high || counts == [low, high] {
            counts = [low, high];
            break;
        }
        counts = [low, high];
        bounds = [
            bounds[0].max(low_sum / low as f32 * (0.5 - SLACK)),
            bounds[1].min(high_sum / high as f32 * (0.5 + SLACK)),
        ];
    }
    let [low, high] = bounds;
    // SAFETY: as above.
    let (sum, count) = unsafe { (kernels.coded)(values, Cut::from(high)) };
    let base = Best {
        least: high,
        sum,
        count,
    };
    if counts[0] == counts[1] {
        return Some(base);
    }
    let mut between = [0.0; BETWEEN + 16];
    if (counts[0] - count) as usize > BETWEEN {
        return None;
    }
    // SAFETY: as above.
    let len = unsafe { (kernels.between)(values, [low, high], &mut between) };
    best(base, &mut between[..len])
}

/// Returns the best of a set and its extensions by the largest of `next`, all of which are finite and not zero.
///
/// A coded magnitude is at least half the mean of 256 and so 2⁻⁹ of the largest; a sum of these takes 24 + 9 + 8 bits,
/// and is exact. Each side of a comparison has two rounding errors.
fn best(base: Best, next: &mut [f32]) -> Option<Best> {
    const MARGIN: f64 = 1.0 + 1.0 / (1u64 << 48) as f64;
    next.sort_unstable_by_key(|x| std::cmp::Reverse(x.to_bits()));
    let (mut best, mut set) = (base, base);
    for (index, &magnitude) in next.iter().enumerate() {
        set.least = magnitude;
        set.sum += f64::from(magnitude);
        set.count += 1;
        // Equal magnitudes share a code.
        if next.get(index + 1) == Some(&magnitude) {
            continue;
        }
        let ours = set.sum * set.sum * f64::from(best.count);
        let theirs = best.sum * best.sum * f64::from(set.count);
        if ours > theirs * MARGIN {
            best = set;
        } else if ours * MARGIN >= theirs {
            return None;
        }
    }
    Some(best)
}
