//! Lloyd's loop and mini-batches.

use proptest::prelude::*;
use tercet_core::cluster::{Init, Kmeans, Lloyd, Points, Steps, Stop, Update, means};
use tercet_core::engine::{ClusterProblem, Farthest};
use tercet_core::number::Random;
use tercet_core::scalar::cluster::Accumulator;

use super::support::{Memory, Run, cases, clouds, distance, run};

const GIVEN: Kmeans = Kmeans {
    init: Init::Given,
    restarts: 1,
    lloyd: Lloyd {
        max_iter: 100,
        tol_ppm: 0,
    },
    seed: 0,
};

fn lloyd(values: &[i8], dims: usize, k: usize, seed: u64) -> Run {
    let options = Kmeans {
        seed,
        ..Kmeans::default()
    };
    let points = Points::new(values, dims).unwrap();
    run(points, k, Update::Mean, &options, None, &mut Steps::Full).unwrap()
}

/// The nearest rounding of sum / count, halves away from zero, in rationals of 128 bits.
fn rounded(sum: i64, count: u64) -> i8 {
    let (sum, count) = (i128::from(sum), i128::from(count));
    let doubled = (2 * sum.abs() + count) / (2 * count);
    i8::try_from(doubled * sum.signum()).unwrap()
}

proptest! {
    /// Sums of 32 bits are divided by a function of their own.
    #[test]
    fn sums_of_both_widths_have_one_mean(
        count in 1..1_u64 << 24,
        thousandth in -128_000..=127_000_i64,
    ) {
        let sum = thousandth * count as i64 / 1000;
        prop_assert_eq!(Accumulator::mean(sum, count), rounded(sum, count));
        prop_assert_eq!(Accumulator::mean(sum as i32, count), rounded(sum, count));
    }
}

#[test]
fn means_at_the_ends_of_their_range() {
    let most = (1_u64 << 24) - 1;
    for (mean, count) in [(-128, 1), (127, 1), (-128, most), (127, most)] {
        let sum = i64::from(mean) * count as i64;
        assert_eq!(Accumulator::mean(sum, count), mean);
        assert_eq!(Accumulator::mean(sum as i32, count), mean);
    }
    assert_eq!(Accumulator::mean(5_i32, 0), 0);
    assert_eq!(Accumulator::mean(5_i64, 0), 0);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn labels_are_the_true_argmin((values, dims, k) in clouds(), seed: u64) {
        let found = lloyd(&values, dims, k, seed);
        let mut inertia = 0;
        for (i, row) in values.chunks(dims).enumerate() {
            let all: Vec<i64> = found.centroids.chunks(dims).map(|c| distance(row, c)).collect();
            let least = *all.iter().min().unwrap();
            prop_assert_eq!(all.iter().position(|&d| d == least), Some(found.labels[i] as usize));
            prop_assert_eq!(i64::from(found.distances[i]), least);
            inertia += least as u64;
        }
        prop_assert_eq!(found.outcome.inertia, inertia);
    }

    #[test]
    fn inertia_never_rises((values, dims, k) in clouds(), seed: u64) {
        let found = lloyd(&values, dims, k, seed);
        prop_assert!(found.curve.is_sorted_by(|a, b| a >= b), "{:?}", found.curve);
        prop_assert!(found.outcome.inertia <= *found.curve.last().unwrap());
        prop_assert!(found.outcome.stop != Stop::Iterations);
    }

    #[test]
    fn sums_and_counts_are_those_of_the_labels((values, dims, k) in clouds(), seed: u64) {
        let found = lloyd(&values, dims, k, seed);
        let (mut sums, mut counts) = (vec![0i64; k * dims], vec![0u64; k]);
        for (row, &label) in values.chunks(dims).zip(&found.labels) {
            counts[label as usize] += 1;
            for (j, &x) in row.iter().enumerate() {
                sums[label as usize * dims + j] += i64::from(x);
            }
        }
        prop_assert_eq!(&found.sums, &sums);
        prop_assert_eq!(&found.counts, &counts);
        prop_assert_eq!(found.outcome.empty, counts.iter().filter(|&&n| n == 0).count());
        // At a fixed point centroids are the rounded means, and the float means round alike but for exact halves.
        if found.outcome.stop == Stop::Labels {
            for c in 0..k {
                for j in (0..dims).filter(|_| counts[c] > 0) {
                    let expected = rounded(sums[c * dims + j], counts[c]);
                    prop_assert_eq!(found.centroids[c * dims + j], expected);
                }
            }
        }
        let mut floats = vec![0.0; k * dims];
        means(&found.sums, &found.counts, &mut floats).unwrap();
        for (i, mean) in floats.into_iter().enumerate() {
            let exact = match counts[i / dims] {
                0 => 0.0,
                n => (sums[i] as f64 / n as f64) as f32,
            };
            // Small integers: their quotient in f64 is no tie of f32, so rounding twice is rounding once.
            prop_assert_eq!(mean, exact);
        }
    }

    #[test]
    fn permuted_points_get_permuted_labels((values, dims, k) in clouds(), seed: u64) {
        let first: Vec<i8> = values[..k * dims].to_vec();
        let points = Points::new(&values, dims).unwrap();
        let straight = run(points, k, Update::Mean, &GIVEN, Some(&first), &mut Steps::Full).unwrap();
        // Empty clusters take far points by index where distances tie, so only runs without any are free of order.
        prop_assume!(straight.outcome.reseeded == 0);
        let mut order: Vec<usize> = (0..values.len() / dims).collect();
        let mut random = Random::new(seed);
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i as u64 + 1) as usize);
        }
        let shuffled: Vec<i8> = order.iter().flat_map(|&i| values[i * dims..][..dims].to_vec()).collect();
        let points = Points::new(&shuffled, dims).unwrap();
        let other = run(points, k, Update::Mean, &GIVEN, Some(&first), &mut Steps::Full).unwrap();
        prop_assert_eq!(straight.outcome, other.outcome);
        prop_assert_eq!(&straight.centroids, &other.centroids);
        for (place, &i) in order.iter().enumerate() {
            prop_assert_eq!(other.labels[place], straight.labels[i]);
        }
    }

    #[test]
    fn split_and_merged_a_step_is_the_same((values, dims, k) in clouds(), cut in 0usize..41) {
        let count = values.len() / dims;
        let first = &values[..k * dims];
        let mut whole = Memory::<i64>::new(count, dims, k);
        let mut clusters = whole.clusters(Points::new(&values, dims).unwrap(), k).unwrap();
        clusters.set_centroids(first).unwrap();
        let together = clusters.assign().unwrap();
        let (mut sums, mut counts) = (vec![0; k * dims], vec![0; k]);
        clusters.read_sums(&mut sums, &mut counts).unwrap();

        let cut = cut.min(count) * dims;
        let mut parts = tercet_core::engine::Assigned::default();
        let (mut added, mut members) = (vec![0i64; k * dims], vec![0u64; k]);
        for part in [&values[..cut], &values[cut..]].into_iter().filter(|part| !part.is_empty()) {
            // A part may have fewer points than clusters, so the engine's passes are called as an engine calls them.
            use tercet_core::scalar::cluster as passes;
            let points = Points::new(part, dims).unwrap();
            let (mut labels, mut distances) = (vec![u32::MAX; points.len()], vec![0; points.len()]);
            let mut norms = vec![0; k];
            passes::norms(first, dims, &mut norms);
            parts.merge(&passes::measure(&points, first, &norms, &mut labels, &mut distances));
            for ((row, weight), &label) in points.rows().zip(&labels) {
                passes::accumulate(row, weight, label, &mut added, &mut members);
            }
        }
        prop_assert_eq!(together, parts);
        prop_assert_eq!(sums, added);
        prop_assert_eq!(counts, members);
    }

    #[test]
    fn the_same_seed_gives_the_same_bits((values, dims, k) in clouds(), seed: u64) {
        prop_assert_eq!(lloyd(&values, dims, k, seed), lloyd(&values, dims, k, seed));
    }

    #[test]
    fn sums_of_32_bits_give_the_same((values, dims, k) in clouds()) {
        let count = values.len() / dims;
        let (mut wide, mut narrow) = (Memory::<i64>::new(count, dims, k), Memory::<i32>::new(count, dims, k));
        let points = Points::new(&values, dims).unwrap();
        let options = Kmeans::default();
        let mut nothing = |_, _, _| ();
        let a = tercet_core::cluster::kmeans(
            &mut wide.clusters(points, k).unwrap(), &options, &mut Steps::Full, &mut nothing).unwrap();
        let b = tercet_core::cluster::kmeans(
            &mut narrow.clusters(points, k).unwrap(), &options, &mut Steps::Full, &mut nothing).unwrap();
        prop_assert_eq!(a, b);
        prop_assert_eq!(wide.labels, narrow.labels);
        prop_assert_eq!(wide.centroids, narrow.centroids);
    }

    #[test]
    fn more_restarts_are_never_worse((values, dims, k) in clouds(), seed: u64) {
        let points = Points::new(&values, dims).unwrap();
        let mut last = u64::MAX;
        for restarts in [1, 2, 5] {
            let options = Kmeans { restarts, seed, ..Kmeans::default() };
            let found = run(points, k, Update::Mean, &options, None, &mut Steps::Full).unwrap();
            prop_assert!(found.outcome.inertia <= last);
            last = found.outcome.inertia;
        }
    }

    #[test]
    fn mini_batches_follow_their_definition((values, dims, k) in clouds(), seed: u64, cap in 2u32..20) {
        const BATCH: usize = 5;
        let count = values.len() / dims;
        let points = Points::new(&values, dims).unwrap();
        let options = Kmeans {
            init: Init::Given,
            seed,
            lloyd: Lloyd { max_iter: 1, tol_ppm: 0 },
            restarts: 1,
        };
        let first = values[..k * dims].to_vec();
        let mut batch = [0; BATCH];
        let mut steps = Steps::Batches { batch: &mut batch, cap };
        let found = run(points, k, Update::Mean, &options, Some(&first), &mut steps).unwrap();

        let (mut centroids, mut random) = (first.clone(), Random::new(seed));
        let (mut sums, mut members) = (vec![0i64; k * dims], vec![0u64; k]);
        for _ in 0..count.div_ceil(BATCH) {
            let drawn: Vec<usize> = (0..BATCH).map(|_| random.below(count as u64) as usize).collect();
            let labels: Vec<usize> = drawn.iter().map(|&i| {
                let row = &values[i * dims..][..dims];
                let all = centroids.chunks(dims).map(|c| distance(row, c));
                all.enumerate().min_by_key(|&(c, d)| (d, c)).unwrap().0
            }).collect();
            for (&i, &label) in drawn.iter().zip(&labels) {
                members[label] += 1;
                for j in 0..dims {
                    sums[label * dims + j] += i64::from(values[i * dims + j]);
                }
            }
            for c in 0..k {
                while members[c] >= u64::from(cap) {
                    let half = members[c] / 2;
                    for sum in &mut sums[c * dims..][..dims] {
                        // Half of the members at the same mean, halves away from zero.
                        let doubled = 2 * sum.abs() * half as i64 + members[c] as i64;
                        *sum = doubled / (2 * members[c] as i64) * sum.signum();
                    }
                    members[c] = half;
                }
                for j in (0..dims).filter(|_| members[c] > 0) {
                    centroids[c * dims + j] = rounded(sums[c * dims + j], members[c]);
                }
            }
        }
        let inertia: i64 = values.chunks(dims)
            .map(|row| centroids.chunks(dims).map(|c| distance(row, c)).min().unwrap())
            .sum();
        prop_assert_eq!(found.curve, vec![inertia as u64]);
        // What is returned is the epoch's end, or better where a cluster that no batch reached was moved.
        prop_assert!(found.outcome.inertia <= inertia as u64);
        if found.outcome.reseeded == 0 {
            prop_assert_eq!(found.centroids, centroids);
        }
    }

    #[test]
    fn the_farthest_come_in_order((values, dims, k) in clouds()) {
        let count = values.len() / dims;
        let mut memory = Memory::<i64>::new(count, dims, k);
        let mut clusters = memory.clusters(Points::new(&values, dims).unwrap(), k).unwrap();
        clusters.set_centroids(&values[..k * dims]).unwrap();
        clusters.measure().unwrap();
        let mut expected: Vec<(u32, usize)> =
            clusters.distances().iter().copied().zip(0..).filter(|far| far.0 > 0).collect();
        expected.sort_by_key(|&(distance, index)| (core::cmp::Reverse(distance), index));
        let mut last: Option<Farthest> = None;
        for (distance, index) in expected {
            last = clusters.farthest(last).unwrap();
            prop_assert_eq!(last, Some(Farthest { distance, index }));
        }
        prop_assert_eq!(clusters.farthest(last).unwrap(), None);
    }
}

#[test]
fn empty_clusters_take_the_farthest_points() {
    // Two centroids far from everything stay without points; they go to 100 and then 90.
    let values = [0i8, 1, 2, 90, 100];
    let points = Points::new(&values, 1).unwrap();
    let mut one = GIVEN;
    one.lloyd.max_iter = 1;
    let given = [1, -128, -127];
    let found = run(
        points,
        3,
        Update::Mean,
        &one,
        Some(&given),
        &mut Steps::Full,
    )
    .unwrap();
    assert_eq!(found.outcome.reseeded, 2);
    assert_eq!(found.centroids, [39, 100, 90]); // 193 / 5 = 38.6
    let found = run(
        points,
        3,
        Update::Mean,
        &GIVEN,
        Some(&given),
        &mut Steps::Full,
    )
    .unwrap();
    assert_eq!(
        (found.centroids, found.outcome.inertia),
        (vec![1, 100, 90], 2)
    );
    assert_eq!(found.outcome.stop, Stop::Labels);
}

#[test]
fn one_point_many_times_leaves_clusters_empty() {
    let values = [7i8; 10];
    let points = Points::new(&values, 2).unwrap();
    let found = run(
        points,
        4,
        Update::Mean,
        &Kmeans::default(),
        None,
        &mut Steps::Full,
    )
    .unwrap();
    assert_eq!((found.outcome.inertia, found.outcome.empty), (0, 3));
    assert_eq!(found.labels, [0; 5]);
    assert_eq!(found.outcome.reseeded, 0);
}

#[test]
fn tolerance_and_step_limit_end_a_run_and_the_labels_fit_the_centroids() {
    let mut values = [0i8; 600];
    let mut random = Random::new(3);
    values.fill_with(|| random.next_u64() as i8);
    let points = Points::new(&values, 3).unwrap();
    for (max_iter, tol_ppm, stop) in [
        (2, 0, Stop::Iterations),
        (100, 30_000, Stop::Tolerance),
        (0, 0, Stop::Iterations),
    ] {
        let options = Kmeans {
            lloyd: Lloyd { max_iter, tol_ppm },
            ..Kmeans::default()
        };
        let found = run(points, 9, Update::Mean, &options, None, &mut Steps::Full).unwrap();
        assert_eq!(found.outcome.stop, stop);
        assert_eq!(found.curve.len() as u32, found.outcome.iterations);
        let inertia: i64 = values
            .chunks(3)
            .zip(&found.labels)
            .map(|(row, &label)| distance(row, &found.centroids[label as usize * 3..][..3]))
            .sum();
        assert_eq!(found.outcome.inertia, inertia as u64);
    }
}
