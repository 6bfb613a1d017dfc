//! The nearest centroid, alone and in a pass over points.

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::arch::plain::{Nearest, dot, nearest, norm};
use tercet_core::arch::portable;
use tercet_core::cluster::Points;
use tercet_core::scalar::cluster::{measure, norms};

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
        (point, centroids) in (1usize..70, 1usize..14).prop_flat_map(|(dims, k)| {
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
        // More points than a kernel takes at once, and no multiple.
        let points = point.repeat(6);
        let (mut labels, mut distances) = ([u32::MAX; 6], [0; 6]);
        let points = Points::new(&points, point.len()).unwrap();
        let found = measure(&points, &centroids, &lengths, &mut labels, &mut distances);
        prop_assert_eq!(labels, [expected.label; 6]);
        prop_assert_eq!(distances, [expected.distance; 6]);
        prop_assert_eq!((found.changed, found.inertia), (6, 6 * u64::from(expected.distance)));
    }

    #[test]
    fn portable_dot_products_are_the_plain_ones(
        (x, rows) in (0usize..70, 0usize..5).prop_flat_map(|(len, rows)| {
            let value = || prop_oneof![any::<i8>(), Just(-128i8), Just(127)];
            (vec(value(), len), vec(value(), len * rows))
        }),
    ) {
        let mut expected = [0; 4];
        for (expected, row) in expected.iter_mut().zip(rows.chunks_exact(x.len().max(1))) {
            *expected = dot(row, &x);
        }
        prop_assert_eq!(portable::dots(&rows, &x), expected);
        let bytes: Vec<u8> = rows.iter().map(|&value| value as u8).collect();
        prop_assert_eq!(portable::dots(&bytes, &x), expected);
        prop_assert_eq!(portable::dot(&rows, &x), dot(&rows, &x));
        prop_assert_eq!(portable::norm(&rows), norm(&rows));
    }
}
