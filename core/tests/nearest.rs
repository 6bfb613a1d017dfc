//! The nearest centroid by every code that finds one.

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::arch::portable;
use tercet_core::scalar::cluster::{Nearest, nearest, norms};

fn by_distances(point: &[i8], centroids: &[i8]) -> Nearest {
    let squares = |centroid: &[i8]| -> u32 {
        let pairs = point.iter().zip(centroid);
        pairs.map(|(&x, &c)| u32::from(x.abs_diff(c)).pow(2)).sum()
    };
    let distances = centroids.chunks_exact(point.len()).map(squares);
    let (distance, label) = distances.zip(0..).min().unwrap();
    Nearest { label, distance }
}

proptest! {
    #[test]
    fn nearest_is_the_lowest_of_the_least_distances(
        (point, centroids) in (1usize..70, 1usize..7).prop_flat_map(|(dims, k)| {
            // Few values, so that distances are often equal; or the extremes.
            let value = || prop_oneof![any::<i8>(), 0i8..2, Just(-128i8), Just(127)];
            (vec(value(), dims), vec(value(), k * dims))
        }),
    ) {
        let mut lengths = vec![0; centroids.len() / point.len()];
        norms(&centroids, point.len(), &mut lengths);
        let expected = by_distances(&point, &centroids);
        prop_assert_eq!(nearest(&point, &centroids, &lengths), expected);
        prop_assert_eq!(portable::nearest(&point, &centroids, &lengths), expected);
    }
}
