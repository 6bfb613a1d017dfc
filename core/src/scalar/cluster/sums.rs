//! From members to centroids: sums, counts, and centroids from them.

use super::Accumulator;
use crate::cluster::{Update, round};

/// Adds a point to its cluster's sum and count.
pub fn accumulate<S: Accumulator>(
    row: &[i8],
    weight: u32,
    label: u32,
    sums: &mut [S],
    counts: &mut [u64],
) {
    let dims = row.len();
    let Some(sums) = sums.get_mut(label as usize * dims..) else {
        return;
    };
    for (sum, &x) in sums.iter_mut().zip(row) {
        sum.add(x, weight);
    }
    if let Some(count) = counts.get_mut(label as usize) {
        *count += u64::from(weight);
    }
}

/// Moves the centroids of clusters with a positive count by the update rule.
pub fn update<S: Accumulator>(
    rule: Update,
    dims: usize,
    sums: &[S],
    counts: &[u64],
    centroids: &mut [i8],
) {
    mover(rule)(rule, dims, sums, counts, centroids);
}

/// [`update`] for one rule.
pub(super) type Mover<S> = fn(Update, usize, &[S], &[u64], &mut [i8]);

/// Returns [`update`] for one kind of rule. If all rules of a firmware image are known to be means, the image
/// contains no code for spheres.
#[inline]
pub(super) fn mover<S: Accumulator>(rule: Update) -> Mover<S> {
    match rule {
        Update::Mean => |_, dims, sums, counts, centroids| {
            each(dims, sums, counts, centroids, |sums, count, centroid| {
                for (c, &sum) in centroid.iter_mut().zip(sums) {
                    *c = sum.mean(count);
                }
            });
        },
        Update::Sphere(_) => |rule, dims, sums, counts, centroids| {
            let Update::Sphere(sphere) = rule else {
                return;
            };
            each(dims, sums, counts, centroids, |sums, _, centroid| {
                sphere.centroid(sums.iter().map(|sum| sum.get()), centroid);
            });
        },
    }
}

/// Calls `place` with sums, count and centroid of each cluster with a positive count.
#[inline]
fn each<S>(
    dims: usize,
    mut sums: &[S],
    counts: &[u64],
    mut centroids: &mut [i8],
    place: impl Fn(&[S], u64, &mut [i8]),
) {
    for &count in counts {
        let rests = (
            sums.split_at_checked(dims),
            core::mem::take(&mut centroids).split_at_mut_checked(dims),
        );
        let (Some((sum, rest)), Some((centroid, others))) = rests else {
            return;
        };
        if count > 0 {
            place(sum, count, centroid);
        }
        (sums, centroids) = (rest, others);
    }
}

/// Halves counts, and sums with them so that means stay the same, while a count is `cap` or more.
pub fn fade<S: Accumulator>(dims: usize, cap: u32, sums: &mut [S], counts: &mut [u64]) {
    // A cap of 0 would never be reached.
    let cap = u64::from(cap.max(1));
    for (sums, count) in sums.chunks_exact_mut(dims.max(1)).zip(counts) {
        while *count >= cap {
            for sum in sums.iter_mut() {
                sum.set(round::halved(sum.get(), *count));
            }
            *count /= 2;
        }
    }
}
