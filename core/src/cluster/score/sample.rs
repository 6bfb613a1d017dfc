//! A seeded sample without replacement.

use super::Points;
use crate::number::Random;

/// Fills `out` with the indices of so many points of positive weight, rising, every subset of that size as likely.
///
/// Fan, Muller and Rezucha's selection sampling (1962; Knuth's Algorithm S): point by point, with the chance of those
/// still wanted among those still to come. One draw a point. There are at least as many points as `out` wants.
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
