//! Points and centroids of one length.

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;
use tercet_core::cluster::{
    ClusterError, Kmeans, Points, Sphere, Steps, Update, normalize, normalize_floats,
};

use super::support::{cases, clouds, run};

/// Whether `code` is |x|·√(r / n) rounded half away and clipped: (2c − 1)² ≤ 4·x²·r/n < (2c + 1)², in rationals.
fn is_rounded(code: i8, x: i64, n: i64, r: &BigRational) -> bool {
    let whole = |x: i64| BigRational::from(BigInt::from(x));
    let square = whole(4) * whole(x) * whole(x) * r / whole(n);
    let c = i64::from(code.unsigned_abs());
    let low = if c == 0 {
        whole(0)
    } else {
        whole((2 * c - 1).pow(2))
    };
    let sign = code == 0 || (code < 0) == (x < 0);
    sign && square >= low && (c == 127 || square < whole((2 * c + 1).pow(2)))
}

fn squared_length(row: &[i8]) -> i64 {
    row.iter().map(|&x| i64::from(x).pow(2)).sum()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn points_are_scaled_exactly((values, dims, _) in clouds()) {
        let mut scaled = values.clone();
        let sphere = normalize(&mut scaled, dims).unwrap();
        // R² = 127² / the largest x² / n, as a ratio.
        let ratio = |row: &[i8]| {
            let largest = row.iter().map(|&x| i64::from(x).pow(2)).max().unwrap();
            BigRational::new(largest.into(), squared_length(row).max(1).into())
        };
        let steepest = values.chunks(dims).map(ratio).max().unwrap();
        prop_assume!(steepest > BigRational::from(BigInt::from(0)));
        let r = BigRational::from(BigInt::from(127 * 127)) / steepest;
        let expected: f64 = sphere.squared_radius();
        let exact = r.numer().to_string().parse::<f64>().unwrap() / r.denom().to_string().parse::<f64>().unwrap();
        prop_assert!((expected - exact).abs() <= exact * 1e-15);
        for (row, scaled) in values.chunks(dims).zip(scaled.chunks(dims)) {
            let n = squared_length(row);
            for (&x, &code) in row.iter().zip(scaled) {
                prop_assert!(if n == 0 { code == 0 } else { is_rounded(code, x.into(), n, &r) }, "{x} {code} {row:?}");
            }
        }
    }

    #[test]
    fn floats_are_scaled_as_integers_but_for_rounding((values, dims, _) in clouds()) {
        let mut exact = values.clone();
        let a = normalize(&mut exact, dims).unwrap();
        let floats: Vec<f32> = values.iter().map(|&x| f32::from(x) * 0.125).collect();
        let mut codes = vec![0; values.len()];
        let b = normalize_floats(&floats, dims, &mut codes).unwrap();
        if values.iter().any(|&x| x != 0) {
            prop_assert!((a.squared_radius() / b.squared_radius() - 1.0).abs() < 1e-4);
        }
        let near = exact.iter().zip(&codes).all(|(&a, &b)| (i16::from(a) - i16::from(b)).abs() <= 1);
        prop_assert!(near);
        // A half can fall either way; little else.
        let apart = exact.iter().zip(&codes).filter(|(a, b)| a != b).count();
        prop_assert!(apart * 50 <= codes.len() + 100);
    }

    #[test]
    fn the_best_centroids_seen_are_returned((values, dims, k) in clouds(), seed: u64) {
        let mut values = values;
        let sphere = normalize(&mut values, dims).unwrap();
        let points = Points::new(&values, dims).unwrap();
        let options = Kmeans { seed, ..Kmeans::default() };
        let found = run(points, k, Update::Sphere(sphere), &options, None, &mut Steps::Full).unwrap();
        prop_assert_eq!(found.outcome.inertia, found.outcome.inertia.min(*found.curve.iter().min().unwrap()));
    }
}

#[test]
fn directions_cluster_whatever_their_length() {
    // Two directions, lengths from 5 to 120.
    let mut values = vec![];
    for length in [5i8, 20, 60, 120] {
        values.extend([length, length / 10, length / 10, length]);
    }
    let mut scaled = values.clone();
    let sphere: Sphere = normalize(&mut scaled, 2).unwrap();
    let points = Points::new(&scaled, 2).unwrap();
    let update = Update::Sphere(sphere);
    let found = run(
        points,
        2,
        update,
        &Kmeans::default(),
        None,
        &mut Steps::Full,
    )
    .unwrap();
    for (i, label) in found.labels.iter().enumerate() {
        assert_eq!(*label, found.labels[i % 2], "{:?}", found.labels);
    }
    assert_ne!(found.labels[0], found.labels[1]);
    // Centroids have the length of the points, to the rounding of their coordinates.
    for centroid in found.centroids.chunks(2) {
        let length = (squared_length(centroid) as f64).sqrt();
        assert!(
            (length - sphere.squared_radius().sqrt()).abs() < 1.0,
            "{centroid:?}"
        );
    }
}

#[test]
fn zeros_stay_and_bad_floats_are_refused() {
    let mut zeros = [0i8; 6];
    let sphere = normalize(&mut zeros, 3).unwrap();
    assert_eq!((zeros, sphere.squared_radius()), ([0; 6], 16129.0));
    let mut codes = [9i8; 4];
    normalize_floats(&[0.0f32, -0.0, 3.0e38, 3.0e38], 2, &mut codes).unwrap();
    assert_eq!(codes, [0, 0, 127, 127]);
    normalize_floats(&[1.0e-45f32, 0.0, 3.0e38, 0.0], 2, &mut codes).unwrap();
    assert_eq!(codes, [127, 0, 127, 0]);
    for (index, bad) in [(0, f32::NAN), (3, f32::NEG_INFINITY)] {
        let mut values = [1.0; 4];
        values[index] = bad;
        let error = normalize_floats(&values, 2, &mut codes).unwrap_err();
        assert_eq!(
            error,
            ClusterError::NotFinite {
                index: index as u64
            }
        );
    }
    let error = normalize_floats(&[1.0f32; 4], 2, &mut codes[..3]).unwrap_err();
    assert_eq!(
        error,
        ClusterError::Length {
            expected: 4,
            found: 3
        }
    );
}
