//! A seeded random sample without replacement.

use super::Points;
use crate::number::Random;

/// Fills `out` with the indices of that many points of positive weight, in ascending order. Every subset of that size
/// is equally likely.
///
/// Selection sampling of Fan, Muller and Rezucha (1962; Knuth's Algorithm S): each point in turn is chosen with the
/// probability of the points still needed over the points still to come. One draw per point. There must be at least
/// as many points as `out` has elements.
pub(super) fn sample(points: &Points<'_>, seed: u64, out: &mut [u64]) {
    let mut random = Random::new(seed);
    let mut to_come = points.counted() as u64;
    let mut wanted = out.len() as u64;
    let mut out = out.iter_mut();
    for (index, (_, weight)) in points.rows().enumerate() {
        if weight == 0 {
            continue;
        }
        if random.below(to_come.max(1)) < wanted {
            let Some(out) = out.next() else {
                return;
            };
            *out = index as u64;
            wanted -= 1;
        }
        to_come -= 1;
    }
}
