//! A weight of w is w points.

use proptest::prelude::*;
use tercet_core::cluster::{Init, Kmeans, Points, Steps, Update};

use super::support::{cases, clouds, run};

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn weights_equal_copies(
        (values, dims, k) in clouds(),
        weights in prop::collection::vec(0u32..5, 40),
        seed: u64,
        init in prop_oneof![Just(Init::Greedy), Just(Init::PlusPlus)],
    ) {
        let count = values.len() / dims;
        let weights = &weights[..count];
        prop_assume!(weights.iter().filter(|&&w| w > 0).count() >= k);
        let copies: Vec<usize> = (0..count).flat_map(|i| vec![i; weights[i] as usize]).collect();
        let copied: Vec<i8> = copies.iter().flat_map(|&i| values[i * dims..][..dims].to_vec()).collect();
        let options = Kmeans { init, seed, ..Kmeans::default() };
        let one = |points| run(points, k, Update::Mean, &options, None, &mut Steps::Full).unwrap();
        let weighted = one(Points::weighted(&values, dims, weights).unwrap());
        let plain = one(Points::new(&copied, dims).unwrap());
        // Copies of one point can all be seeds or far points where distinct ones run out; weights cannot.
        prop_assume!(plain.outcome.empty == 0 && weighted.outcome.empty == 0);
        prop_assume!(plain.outcome.reseeded == 0 && weighted.outcome.reseeded == 0);
        prop_assert_eq!(weighted.outcome, plain.outcome);
        prop_assert_eq!(weighted.centroids, plain.centroids);
        prop_assert_eq!(weighted.sums, plain.sums);
        prop_assert_eq!(weighted.counts, plain.counts);
        for (place, &i) in copies.iter().enumerate() {
            prop_assert_eq!(plain.labels[place], weighted.labels[i]);
        }
    }

    #[test]
    fn weights_of_one_change_nothing((values, dims, k) in clouds(), seed: u64) {
        let options = Kmeans { seed, ..Kmeans::default() };
        let one = |points| run(points, k, Update::Mean, &options, None, &mut Steps::Full).unwrap();
        let ones = vec![1; values.len() / dims];
        prop_assert_eq!(
            one(Points::new(&values, dims).unwrap()),
            one(Points::weighted(&values, dims, &ones).unwrap())
        );
    }
}

#[test]
fn points_without_weight_get_labels_and_move_nothing() {
    let (values, weights) = ([0i8, 2, 100, 50, -128], [1, 1, 1, 0, 0]);
    let points = Points::weighted(&values, 1, &weights).unwrap();
    let found = run(
        points,
        2,
        Update::Mean,
        &Kmeans::default(),
        None,
        &mut Steps::Full,
    )
    .unwrap();
    let mut centroids = found.centroids.clone();
    centroids.sort();
    assert_eq!((centroids, found.outcome.inertia), (vec![1, 100], 2));
    assert_eq!(found.labels[0], found.labels[4]);
    assert_eq!(found.distances[4], 129 * 129);
}
