//! Silhouette, Davies–Bouldin, summaries, and what given centroids say about points.

use proptest::prelude::*;
use tercet_core::cluster::score::{
    MAX_SCORE_WEIGHT, SILHOUETTE_EXACT, Silhouette, SilhouettePart, SilhouetteScore,
    davies_bouldin, davies_bouldin_scratch, silhouette, silhouette_plan, silhouette_scratch,
};
use tercet_core::cluster::{
    ClusterError, MAX_DIMS, Points, Summary, inertia, nearest, predict, summarize, transform,
};
use tercet_core::number::Random;

use super::support::{cases, clouds, distance};

fn silhouette_of(
    points: Points<'_>,
    labels: &[u32],
    k: usize,
    seed: u64,
) -> Result<SilhouetteScore, ClusterError> {
    // Scratch starts as garbage, since its content must not matter.
    let mut scratch = vec![7; silhouette_scratch(points.len(), k)];
    silhouette(&points, labels, k, seed, &mut scratch)
}

fn davies_bouldin_of(points: Points<'_>, labels: &[u32], k: usize) -> Result<f64, ClusterError> {
    let mut scratch = vec![7; davies_bouldin_scratch(k, points.dims())];
    davies_bouldin(&points, labels, k, &mut scratch)
}

fn euclid(a: &[i8], b: &[i8]) -> f64 {
    (distance(a, b) as f64).sqrt()
}

/// Rousseeuw's definition in floats.
fn silhouette_by_the_book(values: &[i8], dims: usize, labels: &[u32], k: usize) -> f64 {
    let rows: Vec<&[i8]> = values.chunks(dims).collect();
    let mut total = 0.0;
    for (i, row) in rows.iter().enumerate() {
        let mean = |cluster: u32| {
            let others = (0..rows.len()).filter(|&j| j != i && labels[j] == cluster);
            let distances: Vec<f64> = others.map(|j| euclid(row, rows[j])).collect();
            (!distances.is_empty()).then(|| distances.iter().sum::<f64>() / distances.len() as f64)
        };
        let Some(a) = mean(labels[i]) else {
            continue;
        };
        let others = (0..k as u32).filter(|&cluster| cluster != labels[i]);
        let b = others.filter_map(mean).fold(f64::INFINITY, f64::min);
        if a.max(b) > 0.0 {
            total += (b - a) / a.max(b);
        }
    }
    total / rows.len() as f64
}

/// Davies and Bouldin's definition in floats; equal means are not compared.
/// The index, and the least distance of two means that are not the same.
fn davies_bouldin_by_the_book(values: &[i8], dims: usize, labels: &[u32], k: usize) -> (f64, f64) {
    let mut clusters = vec![];
    for cluster in 0..k as u32 {
        let members: Vec<&[i8]> = values
            .chunks(dims)
            .zip(labels)
            .filter(|&(_, &label)| label == cluster)
            .map(|(row, _)| row)
            .collect();
        if members.is_empty() {
            continue;
        }
        let count = members.len() as f64;
        let mean: Vec<f64> = (0..dims)
            .map(|i| members.iter().map(|row| f64::from(row[i])).sum::<f64>() / count)
            .collect();
        let from_mean = |row: &&[i8]| -> f64 {
            let squares = row
                .iter()
                .zip(&mean)
                .map(|(&x, m)| (f64::from(x) - m).powi(2));
            squares.sum::<f64>().sqrt()
        };
        let spread = members.iter().map(from_mean).sum::<f64>() / count;
        clusters.push((mean, spread));
    }
    let (mut total, mut closest) = (0.0, f64::INFINITY);
    for (i, (a, s)) in clusters.iter().enumerate() {
        let mut worst = 0f64;
        for (j, (b, t)) in clusters.iter().enumerate() {
            let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
            let apart = squares.sum::<f64>().sqrt();
            if i != j && apart > 0.0 {
                closest = closest.min(apart);
                worst = worst.max((s + t) / apart);
            }
        }
        total += worst;
    }
    (total / clusters.len() as f64, closest)
}

/// Points with labels below k, at least two of them in use.
fn labelled() -> impl Strategy<Value = (Vec<i8>, usize, usize, Vec<u32>)> {
    (clouds(), prop::collection::vec(any::<u32>(), 40)).prop_map(|((values, dims, k), draws)| {
        let k = k + 1;
        let count = values.len() / dims;
        let labels = draws[..count].iter().map(|draw| draw % k as u32);
        (values, dims, k, labels.collect())
    })
}

fn filled(labels: &[u32]) -> usize {
    let mut labels = labels.to_vec();
    labels.sort_unstable();
    labels.dedup();
    labels.len()
}

fn permuted<T: Copy>(items: &[T], width: usize, order: &[usize]) -> Vec<T> {
    order
        .iter()
        .flat_map(|&i| items[i * width..][..width].to_vec())
        .collect()
}

fn order(count: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn silhouette_is_by_the_book((values, dims, k, labels) in labelled()) {
        let points = Points::new(&values, dims).unwrap();
        let found = silhouette_of(points, &labels, k, 0);
        let clusters = filled(&labels);
        if clusters < 2 {
            prop_assert_eq!(found, Err(ClusterError::Score { clusters }));
        } else {
            let found = found.unwrap();
            let expected = silhouette_by_the_book(&values, dims, &labels, k);
            // A distance is at least 1 and off by at most 2⁻¹⁷: a and b are off by 2⁻¹⁷ of themselves.
            prop_assert!((found.score - expected).abs() < 2e-5, "{} {expected}", found.score);
            prop_assert_eq!((found.points, found.sampled, found.clusters), (points.len(), false, clusters));
        }
    }

    #[test]
    fn davies_bouldin_is_by_the_book((values, dims, k, labels) in labelled()) {
        let points = Points::new(&values, dims).unwrap();
        let found = davies_bouldin_of(points, &labels, k);
        let clusters = filled(&labels);
        if clusters < 2 {
            prop_assert_eq!(found, Err(ClusterError::Score { clusters }));
        } else {
            let (expected, closest) = davies_bouldin_by_the_book(&values, dims, &labels, k);
            let found = found.unwrap();
            // The float book takes means that differ by a rounding error for distinct ones.
            prop_assume!(expected < 1e6);
            // Each coordinate of a mean is off by 2⁻¹⁷ at most, so their distance by 2⁻¹⁶·√d.
            let part = 1e-4 + (dims as f64).sqrt() * 2f64.powi(-15) / closest;
            prop_assert!((found - expected).abs() <= part * expected.max(1.0), "{found} {expected}");
        }
    }

    #[test]
    fn scores_do_not_depend_on_the_order_of_points((values, dims, k, labels) in labelled(), seed: u64) {
        prop_assume!(filled(&labels) > 1);
        let points = Points::new(&values, dims).unwrap();
        let order = order(points.len(), seed);
        let (moved, moved_labels) = (permuted(&values, dims, &order), permuted(&labels, 1, &order));
        let moved = Points::new(&moved, dims).unwrap();
        prop_assert_eq!(silhouette_of(points, &labels, k, 0), silhouette_of(moved, &moved_labels, k, 1));
        prop_assert_eq!(davies_bouldin_of(points, &labels, k), davies_bouldin_of(moved, &moved_labels, k));
    }

    #[test]
    fn scores_of_weights_equal_those_of_copies(
        (values, dims, k, labels) in labelled(),
        weights in prop::collection::vec(0u32..5, 40),
    ) {
        let weights = &weights[..labels.len()];
        let copies: Vec<usize> = (0..labels.len()).flat_map(|i| vec![i; weights[i] as usize]).collect();
        let (copied, copied_labels) = (permuted(&values, dims, &copies), permuted(&labels, 1, &copies));
        prop_assume!(filled(&copied_labels) > 1);
        let (weighted, copied) = (Points::weighted(&values, dims, weights).unwrap(), Points::new(&copied, dims).unwrap());
        let a = silhouette_of(weighted, &labels, k, 0).unwrap();
        let b = silhouette_of(copied, &copied_labels, k, 0).unwrap();
        prop_assert_eq!((a.score, a.clusters, a.points), (b.score, b.clusters, weighted.counted()));
        prop_assert_eq!(davies_bouldin_of(weighted, &labels, k), davies_bouldin_of(copied, &copied_labels, k));
    }

    #[test]
    fn parts_merge_to_the_whole((values, dims, k, labels) in labelled(), size in 1usize..9) {
        prop_assume!(filled(&labels) > 1);
        let points = Points::new(&values, dims).unwrap();
        let mut plan = vec![3; silhouette_plan(points.len(), k)];
        let parts = Silhouette::new(points, &labels, k, 0, &mut plan).unwrap();
        let mut all = SilhouettePart::default();
        let mut sums = vec![3; parts.clusters()];
        let starts: Vec<usize> = (0..parts.len()).step_by(size).collect();
        for &start in starts.iter().rev() {
            all.merge(&parts.part(start..start + size, &mut sums));
        }
        prop_assert_eq!(parts.finish(&all), silhouette_of(points, &labels, k, 0).unwrap());

        let mut whole = vec![Summary::default(); k];
        let distances: Vec<u32> = labels.iter().map(|label| label * 7 % 5).collect();
        summarize(&points, &labels, &distances, &mut whole).unwrap();
        let mut merged = vec![Summary::default(); k];
        for start in starts.into_iter().rev() {
            let part = points.part(start, size).unwrap();
            let mut found = vec![Summary::default(); k];
            let end = (start + size).min(points.len());
            summarize(&part, &labels[start..end], &distances[start..end], &mut found).unwrap();
            for (merged, mut found) in merged.iter_mut().zip(found) {
                if let Some(point) = &mut found.representative {
                    point.index += start;
                }
                merged.merge(&found);
            }
        }
        prop_assert_eq!(merged, whole);
    }

    #[test]
    fn summaries_count_what_is_there((values, dims, k) in clouds(), weights in prop::collection::vec(0u32..4, 40)) {
        let count = values.len() / dims;
        let weights = &weights[..count];
        prop_assume!(weights.iter().any(|&w| w > 0));
        let points = Points::weighted(&values, dims, weights).unwrap();
        let centroids = &values[..k * dims];
        let (mut labels, mut distances) = (vec![9; count], vec![9; count]);
        let total = predict(&points, centroids, &mut labels, &mut distances).unwrap();
        let mut found = vec![Summary { count: 5, ..Summary::default() }; k];
        summarize(&points, &labels, &distances, &mut found).unwrap();
        for (cluster, found) in found.iter().enumerate() {
            let members: Vec<usize> =
                (0..count).filter(|&i| labels[i] as usize == cluster && weights[i] > 0).collect();
            prop_assert_eq!(found.count, members.len() as u64);
            prop_assert_eq!(found.weight, members.iter().map(|&i| u64::from(weights[i])).sum::<u64>());
            prop_assert_eq!(found.squared_radius, members.iter().map(|&i| distances[i]).max().unwrap_or(0));
            // `min_by_key` takes the first of equals.
            let nearest = members.iter().copied().min_by_key(|&i| distances[i]);
            prop_assert_eq!(found.representative.map(|point| point.index), nearest);
            prop_assert_eq!(found.representative.map(|point| point.distance), nearest.map(|i| distances[i]));
        }
        prop_assert_eq!(found.iter().map(|found| found.inertia).sum::<u64>(), total);
    }

    #[test]
    fn given_centroids_label_measure_and_miss_by_the_book((values, dims, k) in clouds()) {
        let points = Points::new(&values, dims).unwrap();
        let centroids = &values[..k * dims];
        let (mut labels, mut distances) = (vec![9; points.len()], vec![9; points.len()]);
        let total = predict(&points, centroids, &mut labels, &mut distances).unwrap();
        let mut table = vec![9; points.len() * k];
        transform(&points, centroids, &mut table).unwrap();
        prop_assert_eq!(inertia(&points, centroids, &labels).unwrap(), total);
        let mut sum = 0;
        for (i, row) in values.chunks(dims).enumerate() {
            let all: Vec<i64> = centroids.chunks(dims).map(|c| distance(row, c)).collect();
            prop_assert!(table[i * k..][..k].iter().map(|&d| i64::from(d)).eq(all.iter().copied()));
            let least = *all.iter().min().unwrap();
            prop_assert_eq!(all.iter().position(|&d| d == least), Some(labels[i] as usize));
            prop_assert_eq!(i64::from(distances[i]), least);
            let one = nearest(row, centroids).unwrap();
            prop_assert_eq!((one.label, one.distance), (labels[i], distances[i]));
            sum += least as u64;
        }
        prop_assert_eq!(total, sum);
    }
}

/// Two clusters on a line, far apart.
fn line(points: usize) -> (Vec<i8>, Vec<u32>) {
    let mut random = Random::new(3);
    let labels: Vec<u32> = (0..points).map(|_| random.below(2) as u32).collect();
    let values = labels
        .iter()
        .map(|&label| (label * 60) as i8 + random.below(20) as i8)
        .collect();
    (values, labels)
}

#[test]
fn a_silhouette_says_when_it_is_a_sample() {
    let (values, labels) = line(SILHOUETTE_EXACT + 1);
    let whole = silhouette_of(Points::new(&values[1..], 1).unwrap(), &labels[1..], 2, 5).unwrap();
    assert!(!whole.sampled);
    let points = Points::new(&values, 1).unwrap();
    let sampled = silhouette_of(points, &labels, 2, 5).unwrap();
    assert_eq!((sampled.points, sampled.sampled), (SILHOUETTE_EXACT, true));
    // One point of 4,097 is missing.
    assert!((sampled.score - whole.score).abs() < 1e-3);
    // Points without weight are none.
    let mut weights = vec![1; values.len()];
    weights[0] = 0;
    let weighted = Points::weighted(&values, 1, &weights).unwrap();
    assert_eq!(silhouette_of(weighted, &labels, 2, 5).unwrap(), whole);
}

#[test]
fn a_sample_follows_its_seed_and_is_fair() {
    let (values, labels) = line(3 * SILHOUETTE_EXACT);
    let points = Points::new(&values, 1).unwrap();
    let score = |seed| silhouette_of(points, &labels, 2, seed).unwrap().score;
    assert_eq!(score(1), score(1));
    assert_ne!(score(1), score(2));

    // Every third of the points gets its share: 4,096 / 3 each, a spread of 25 or so.
    let thirds: Vec<u32> = (0..values.len())
        .map(|i| (i / SILHOUETTE_EXACT) as u32)
        .collect();
    let mut scratch = vec![0; silhouette_plan(values.len(), 3)];
    Silhouette::new(points, &thirds, 3, 9, &mut scratch).unwrap();
    let (members, sample) = scratch.split_at(3);
    assert_eq!(members.iter().sum::<u64>(), SILHOUETTE_EXACT as u64);
    for &members in members {
        assert!((1200..1530).contains(&members), "{members}");
    }
    assert!(sample.is_sorted_by(|a, b| a < b));
    assert!(sample.iter().all(|&index| index < values.len() as u64));
}

#[test]
fn scores_hold_at_the_longest_and_heaviest_points() {
    // Distance √65,025 · 43,690 and the largest weights: nothing may wrap.
    let mut values = vec![-128i8; MAX_DIMS];
    values.extend(vec![127; MAX_DIMS]);
    values.extend(vec![126; MAX_DIMS]);
    let half = 1 << 30;
    let weights = [half, half - 1, 1];
    let points = Points::weighted(&values, MAX_DIMS, &weights).unwrap();
    assert_eq!(points.weight(), MAX_SCORE_WEIGHT);
    let found = silhouette_of(points, &[0, 1, 1], 2, 0).unwrap();
    assert!(found.score > 0.999_999, "{found:?}");
    // s₁ is 2·√d/2³⁰ and m is 255·√d.
    let index = davies_bouldin_of(points, &[0, 1, 1], 2).unwrap();
    assert!(index < 1e-7, "{index}");

    let heavy = [half, half, 1];
    let points = Points::weighted(&values, MAX_DIMS, &heavy).unwrap();
    let refused = ClusterError::Weight {
        total: MAX_SCORE_WEIGHT + 1,
        limit: MAX_SCORE_WEIGHT,
    };
    assert_eq!(silhouette_of(points, &[0, 1, 1], 2, 0), Err(refused));
    assert_eq!(davies_bouldin_of(points, &[0, 1, 1], 2), Err(refused));
}

#[test]
fn labels_and_buffers_that_do_not_fit_are_refused() {
    let values = [0, 1, 2, 3];
    let points = Points::new(&values, 2).unwrap();
    let length = |expected, found| ClusterError::Length { expected, found };
    let index = ClusterError::Index { index: 2, count: 2 };
    assert_eq!(silhouette_of(points, &[0, 2], 2, 0).unwrap_err(), index);
    assert_eq!(davies_bouldin_of(points, &[0, 2], 2).unwrap_err(), index);
    assert_eq!(inertia(&points, &values, &[0, 2]).unwrap_err(), index);
    let mut summaries = [Summary::default(); 2];
    assert_eq!(
        summarize(&points, &[0, 2], &[0, 0], &mut summaries).unwrap_err(),
        index
    );
    assert_eq!(
        summarize(&points, &[0, 1], &[0], &mut summaries).unwrap_err(),
        length(2, 1)
    );
    assert_eq!(silhouette_of(points, &[0], 2, 0).unwrap_err(), length(2, 1));
    assert_eq!(
        silhouette(&points, &[0, 1], 2, 0, &mut [0; 3]).unwrap_err(),
        length(4, 3)
    );
    assert_eq!(
        davies_bouldin(&points, &[0, 1], 2, &mut [0; 9]).unwrap_err(),
        length(8, 9)
    );
    let (labels, distances) = (&mut [0; 2], &mut [0; 2]);
    assert_eq!(
        predict(&points, &values, &mut [0; 3], distances).unwrap_err(),
        length(2, 3)
    );
    assert_eq!(
        predict(&points, &values, labels, &mut [0; 1]).unwrap_err(),
        length(2, 1)
    );
    assert_eq!(
        predict(&points, &[], labels, distances).unwrap_err(),
        ClusterError::Empty
    );
    let ragged = ClusterError::Ragged { len: 3, dims: 2 };
    assert_eq!(
        predict(&points, &values[..3], labels, distances).unwrap_err(),
        ragged
    );
    assert_eq!(
        transform(&points, &values, &mut [0; 3]).unwrap_err(),
        length(4, 3)
    );
    assert_eq!(nearest(&[], &values).unwrap_err(), ClusterError::Empty);
    assert_eq!(
        nearest(&[0; 3], &values).unwrap_err(),
        ClusterError::Ragged { len: 4, dims: 3 }
    );
}
