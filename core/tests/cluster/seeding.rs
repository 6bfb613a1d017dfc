//! Where clustering starts.

use proptest::prelude::*;
use tercet_core::cluster::{Init, Points, greedy_candidates, seed};
use tercet_core::engine::ClusterProblem;
use tercet_core::number::Random;

use super::support::{Memory, cases, clouds, distance};

/// The seeds as rows of coordinates.
fn seeds(values: &[i8], dims: usize, k: usize, init: Init, stream: u64) -> Vec<Vec<i8>> {
    let mut memory = Memory::<i64>::new(values.len() / dims, dims, k);
    let mut clusters = memory
        .clusters(Points::new(values, dims).unwrap(), k)
        .unwrap();
    seed(&mut clusters, init, &mut Random::new(stream)).unwrap();
    memory.centroids.chunks(dims).map(<[i8]>::to_vec).collect()
}

/// k-means++ by the book, over vectors, in 128 bits.
fn by_the_book(values: &[i8], dims: usize, k: usize, tries: usize, stream: u64) -> Vec<Vec<i8>> {
    let mut random = Random::new(stream);
    let rows: Vec<&[i8]> = values.chunks(dims).collect();
    let first = random.below(rows.len() as u64) as usize;
    let mut chosen = vec![first];
    while chosen.len() < k {
        let nearest = |row: &[i8], chosen: &[usize]| -> u128 {
            chosen
                .iter()
                .map(|&c| distance(row, rows[c]) as u128)
                .min()
                .unwrap()
        };
        let distances: Vec<u128> = rows.iter().map(|row| nearest(row, &chosen)).collect();
        let total: u128 = distances.iter().sum();
        let mut candidates = Vec::new();
        if total == 0 {
            candidates.push((0..rows.len()).find(|i| !chosen.contains(i)).unwrap());
        } else {
            for _ in 0..tries {
                let r = u128::from(random.below(total as u64));
                let mut sum = 0;
                candidates.push(
                    distances
                        .iter()
                        .position(|d| {
                            sum += d;
                            sum > r
                        })
                        .unwrap(),
                );
            }
        }
        let left = |&candidate: &usize| -> u128 {
            let chosen = [&chosen[..], &[candidate]].concat();
            rows.iter().map(|row| nearest(row, &chosen)).sum()
        };
        // `min_by_key` takes the first of equals.
        chosen.push(candidates.into_iter().min_by_key(left).unwrap());
    }
    chosen.into_iter().map(|c| rows[c].to_vec()).collect()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn plus_plus_is_by_the_book((values, dims, k) in clouds(), stream: u64) {
        prop_assert_eq!(seeds(&values, dims, k, Init::PlusPlus, stream), by_the_book(&values, dims, k, 1, stream));
    }

    #[test]
    fn greedy_is_by_the_book((values, dims, k) in clouds(), stream: u64) {
        let tries = greedy_candidates(k);
        prop_assert_eq!(seeds(&values, dims, k, Init::Greedy, stream), by_the_book(&values, dims, k, tries, stream));
    }

    #[test]
    fn random_seeds_are_distinct_points((values, dims, _) in clouds(), stream: u64) {
        // As many clusters as points: every point is chosen once.
        let k = values.len() / dims;
        let mut found = seeds(&values, dims, k, Init::Random, stream);
        let mut rows: Vec<Vec<i8>> = values.chunks(dims).map(<[i8]>::to_vec).collect();
        found.sort();
        rows.sort();
        prop_assert_eq!(found, rows);
    }
}

#[test]
fn greedy_tries_two_and_the_logarithm() {
    for k in 1..100_000usize {
        assert_eq!(
            greedy_candidates(k),
            2 + (k as f64).ln().floor() as usize,
            "{k}"
        );
    }
    assert_eq!(greedy_candidates(u32::MAX as usize), 24);
}

#[test]
fn random_seeds_follow_the_weights() {
    // The heavy point is first nearly always: 2³⁰ to 3.
    let (values, weights) = ([1i8, 2, 3, 4], [1, 1, 1 << 30, 1]);
    let points = Points::weighted(&values, 1, &weights).unwrap();
    let mut first = [0; 5];
    for stream in 0..200 {
        let mut memory = Memory::<i64>::new(4, 1, 2);
        let mut clusters = memory.clusters(points, 2).unwrap();
        seed(&mut clusters, Init::Random, &mut Random::new(stream)).unwrap();
        first[clusters.centroids()[0] as usize] += 1;
        assert_ne!(clusters.centroids()[0], clusters.centroids()[1]);
    }
    assert_eq!(first[3], 200);
}

#[test]
fn draws_are_uniform_enough() {
    // Chi-square over 8 equal points; 99.99 % of fair generators stay below 29.9.
    let values: Vec<i8> = (0..8).collect();
    let mut first = [0f64; 8];
    for stream in 0..4000 {
        first[seeds(&values, 1, 1, Init::PlusPlus, stream)[0][0] as usize] += 1.0;
    }
    let chi: f64 = first.iter().map(|n| (n - 500.0).powi(2) / 500.0).sum();
    assert!(chi < 29.9, "{first:?}");
}

#[test]
fn given_centroids_stay() {
    let mut memory = Memory::<i64>::new(3, 1, 2);
    let values = [1i8, 2, 3];
    let mut clusters = memory
        .clusters(Points::new(&values, 1).unwrap(), 2)
        .unwrap();
    clusters.set_centroids(&[-5, 60]).unwrap();
    let mut random = Random::new(1);
    seed(&mut clusters, Init::Given, &mut random).unwrap();
    assert_eq!(clusters.centroids(), [-5, 60]);
    assert_eq!(random, Random::new(1));
}
