//! Scores and summaries of labelled points.

use super::Digest;
use crate::cluster::score::{
    Silhouette, SilhouettePart, davies_bouldin, davies_bouldin_scratch, silhouette,
    silhouette_scratch,
};
use crate::cluster::{Points, Summary, inertia, predict, summarize, transform};
use crate::number::Random;

const POINTS: usize = 48;
const DIMS: usize = 5;
const CLUSTERS: usize = 6;

/// Ranges of coordinates: one place, ties, and all of int8.
const SPREADS: [u64; 3] = [1, 3, 256];

pub(super) fn run(report: &mut dyn FnMut(&'static str, u64)) {
    report("cluster/silhouette", silhouettes());
    report("cluster/davies_bouldin", indices());
    report("cluster/summary", summaries());
}

/// Calls `each` with points of every range, without and with weights, and labels that leave one cluster empty.
fn for_each(each: &mut dyn FnMut(Points<'_>, &[u32])) {
    let (mut values, mut weights, mut labels) = ([0; POINTS * DIMS], [0; POINTS], [0; POINTS]);
    let mut random = Random::new(70);
    for spread in SPREADS {
        for value in &mut values {
            *value = (random.below(spread) as i64 - spread as i64 / 2) as i8;
        }
        for (weight, label) in weights.iter_mut().zip(&mut labels) {
            *weight = random.below(4) as u32;
            // All except cluster 3.
            *label = [0, 1, 2, 4, 5][random.below(5) as usize % 5];
        }
        if let Ok(points) = Points::new(&values, DIMS) {
            each(points, &labels);
        }
        if let Ok(points) = Points::weighted(&values, DIMS, &weights) {
            each(points, &labels);
        }
    }
}

#[inline(never)]
fn silhouettes() -> u64 {
    let mut digest = Digest::new();
    for_each(&mut |points, labels| {
        let mut scratch = [0; silhouette_scratch(POINTS, CLUSTERS)];
        for clusters in [CLUSTERS, CLUSTERS - 1] {
            let scratch = scratch.get_mut(..2 * clusters).unwrap_or_default();
            let found = silhouette(&points, labels, clusters, 0, scratch);
            if let Some(found) = digest.outcome(found) {
                digest.f64(found.score);
                digest.u64(found.points as u64);
                digest.u64(found.clusters as u64);
            }
        }
        digest.outcome(silhouette(
            &points,
            &[1; POINTS],
            2,
            0,
            scratch.get_mut(..4).unwrap_or_default(),
        ));
        // In parts, the last first.
        let (mut plan, mut sums) = ([0; CLUSTERS], [0; CLUSTERS]);
        if let Some(parts) = digest.outcome(Silhouette::new(points, labels, CLUSTERS, 0, &mut plan))
        {
            let mut all = SilhouettePart::default();
            for start in [31, 7, 0] {
                let end = [7, 31, POINTS]
                    .into_iter()
                    .find(|&end| end > start)
                    .unwrap_or(POINTS);
                all.merge(&parts.part(start..end, &mut sums));
            }
            digest.f64(parts.finish(&all).score);
        }
    });
    digest.value()
}

#[inline(never)]
fn indices() -> u64 {
    let mut digest = Digest::new();
    for_each(&mut |points, labels| {
        let mut scratch = [0; davies_bouldin_scratch(CLUSTERS, DIMS)];
        if let Some(found) = digest.outcome(davies_bouldin(&points, labels, CLUSTERS, &mut scratch))
        {
            digest.f64(found);
        }
        digest.outcome(davies_bouldin(&points, labels, 3, &mut scratch));
    });
    digest.value()
}

#[inline(never)]
fn summaries() -> u64 {
    let mut digest = Digest::new();
    for_each(&mut |points, labels| {
        let (mut labels_found, mut distances) = ([0; POINTS], [0; POINTS]);
        let centroids = points.values().get(..CLUSTERS * DIMS).unwrap_or_default();
        let found = predict(&points, centroids, &mut labels_found, &mut distances);
        if let Some(total) = digest.outcome(found) {
            digest.u64(total);
        }
        if let Some(total) = digest.outcome(inertia(&points, centroids, labels)) {
            digest.u64(total);
        }
        let mut table = [0; POINTS * CLUSTERS];
        digest.outcome(transform(&points, centroids, &mut table));
        for distance in table {
            digest.u64(distance.into());
        }
        let mut clusters = [Summary::default(); CLUSTERS];
        digest.outcome(summarize(&points, &labels_found, &distances, &mut clusters));
        for cluster in clusters {
            digest.u64(cluster.count);
            digest.u64(cluster.weight);
            digest.u64(cluster.inertia);
            digest.u64(cluster.squared_radius.into());
            digest.u64(
                cluster
                    .representative
                    .map_or(u64::MAX, |point| point.index as u64),
            );
        }
        digest.outcome(summarize(
            &points,
            &labels_found,
            &distances,
            clusters.get_mut(..2).unwrap_or_default(),
        ));
    });
    digest.value()
}
