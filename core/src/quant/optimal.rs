//! The ternary codes of least squared error.
//!
//! Coding a set K of values with scale s costs Σx² − 2s·S + s²·k, with S = Σ|x| over K and k = |K|. The best s is
//! S/k, which leaves Σx² − S²/k. For a given k, the k largest magnitudes give the largest S. So the optimum is the k
//! with the largest f(k) = S_k²/k, where S_k is the sum of the k largest |x|. Ties go to the smaller k.
//!
//! Two facts shorten the search:
//!
//! 1. **Equal magnitudes share a code.** Along a run of equal magnitudes v, f is (S + j·v)²/(k + j), which is convex
//!    in j. So its maximum over the run is at an end, and only thresholds need comparing.
//! 2. **The smallest coded magnitude v is at least half the scale.** Dropping it changes f from S²/k to (S − v)²/(k −
//!    1), which is larger if 2·S·v·k < S² + v²·k, in particular if v < S/(2k) = s/2. And s is at least the mean of
//!    all |x|, and at least max/n.
//!
//! Comparisons are of exact integers: `S_a²·k_b > S_b²·k_a`.

use super::rule::BLOCK_LEN;
use super::{sort, threshold};
use crate::number::{Element, bits};

pub use super::search::MIN_BINS;

/// Returns the threshold of up to [`BLOCK_LEN`] finite values. Sorts on the stack: 1 KiB, O(n log² n).
pub(super) fn of_block<T: Element>(values: &[T]) -> u32 {
    let mut patterns = [0; BLOCK_LEN];
    for (pattern, value) in patterns.iter_mut().zip(values) {
        *pattern = bits::magnitude(value.to_f32());
    }
    of_patterns(&mut patterns, values.len())
}

/// Returns the threshold of `len` patterns of finite magnitudes; the patterns after them are 0.
///
/// With n ≤ 2⁸, fact 2 gives v ≥ max/(2n) ≥ max·2⁻⁹. So every value that may be coded is an integer below 2²⁴⁺⁹, in
/// units of the last place nine exponents below the maximum's. Then S < 2⁴¹ and S²·k < 2⁹⁰, so u64 and u128 hold them
/// exactly.
pub(super) fn of_patterns(patterns: &mut [u32; BLOCK_LEN], len: usize) -> u32 {
    sort::descending(patterns, len);
    let [max, ..] = *patterns;
    let unit = bits::shift(max).saturating_sub(9);
    let (mut sum, mut count) = (0u64, 0u64);
    let (mut best_sum, mut best_count, mut best) = (0u64, 1u64, threshold::NONE);
    let mut descending = patterns.iter().copied().peekable();
    while let Some(pattern) = descending.next() {
        if pattern == 0 || bits::shift(pattern) < unit {
            break;
        }
        sum += u64::from(bits::mantissa(pattern)) << (bits::shift(pattern) - unit);
        count += 1;
        let run_ends = descending.peek() != Some(&pattern);
        if run_ends && square(sum) * u128::from(best_count) > square(best_sum) * u128::from(count) {
            (best_sum, best_count, best) = (sum, count, pattern);
        }
    }
    best
}

fn square(x: u64) -> u128 {
    u128::from(x) * u128::from(x)
}
