//! Clustering in the data's own units.

use proptest::prelude::*;
use tercet_core::cluster::ClusterError;
use tercet_core::number::Random;
use tercet_host::Error;
use tercet_host::cluster::{KMeans, KMeansFit, KmeansOptions, assign_points, kmeans, silhouette};
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, Values};

fn plain(points: &Points, k: usize) -> KMeansFit {
    KMeans::new(k).fit(points).unwrap()
}

/// The shortcut beside the function, and a fit without two clusters.
#[test]
fn a_fit_scores_itself() {
    let points = Points::from_rows(2, blobs(5, 400, 2, 640)).unwrap();
    let found = plain(&points, 4);
    let codes = found.points(None).unwrap();
    let direct = silhouette(&codes, found.labels(), 4, 0).unwrap();
    assert_eq!(found.silhouette().unwrap(), direct);
    assert!(direct.score > plain(&points, 9).silhouette().unwrap().score);
    let one = plain(&points, 1).silhouette();
    assert!(matches!(one, Err(Error::Options { .. })), "{one:?}");
}

/// Points around k centres, in 64ths.
fn blobs(seed: u64, n: usize, dims: usize, spread: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let centres: Vec<f32> = (0..4 * dims)
        .map(|_| random.below(400) as f32 - 200.0)
        .collect();
    (0..n)
        .flat_map(|i| {
            let centre = &centres[i % 4 * dims..][..dims];
            let noise: Vec<f32> = (0..dims)
                .map(|_| random.below(spread) as f32 / 64.0)
                .collect();
            centre
                .iter()
                .zip(noise)
                .map(|(c, x)| c + x)
                .collect::<Vec<f32>>()
        })
        .collect()
}

/// Σ‖x − c‖², one after another.
fn by_hand(values: &[f32], dims: usize, labels: &[u32], centroids: &[f32]) -> f64 {
    values
        .chunks(dims)
        .zip(labels)
        .map(|(row, &label)| {
            let centroid = &centroids[label as usize * dims..][..dims];
            row.iter()
                .zip(centroid)
                .map(|(x, c)| (f64::from(*x) - f64::from(*c)).powi(2))
                .sum::<f64>()
        })
        .sum()
}

#[test]
fn int8_data_is_clustered_as_it_is() {
    let mut random = Random::new(3);
    let values: Vec<i8> = (0..600).map(|_| random.below(256) as u8 as i8).collect();
    let points = Points::new("p", 200, 3, Values::int8(values.clone())).unwrap();
    let found = plain(&points, 7);
    let direct = kmeans(
        &mut Threads::default(),
        &values,
        3,
        None,
        &KmeansOptions::new(7),
        &mut |_| (),
    )
    .unwrap();
    assert_eq!(found.clustering, direct);
    assert_eq!(found.inertia, direct.outcome.inertia as f64);
    assert_eq!(found.coding_error, 0.0);
    let centroids: Vec<f32> = direct
        .centroids
        .iter()
        .map(|&code| f32::from(code))
        .collect();
    assert_eq!(found.centroids, centroids);
    assert_eq!(found.curve().len(), direct.outcome.iterations as usize);
    let radius = direct.distances.iter().max().copied().unwrap();
    let radii = found.radii();
    assert_eq!(
        radii.iter().fold(0.0, |a: f64, &b| a.max(b)),
        f64::from(radius).sqrt()
    );
}

/// Whole numbers keep their values on a finer grid, and their centroids come closer to the means.
#[test]
fn small_whole_numbers_have_fine_centroids() {
    let mut random = Random::new(5);
    for (low, high, step) in [
        (0, 16, 0.125),
        (0, 100, 0.5),
        (-7, 7, 0.0625),
        (0, 255, 1.0),
        (40, 60, 0.5),
    ] {
        let values: Vec<f32> = (0..800)
            .map(|_| (low + random.below((high - low + 1) as u64) as i32) as f32)
            .chain([low as f32, high as f32, low as f32, high as f32])
            .collect();
        let points = Points::new("p", 201, 4, Values::F32(values.clone())).unwrap();
        let found = plain(&points, 5);
        assert!(found.codes.exact);
        assert_eq!(found.codes.to_f32(), values);
        assert_eq!(found.codes.grid.scale, step, "{low}..{high}");
        assert_eq!(
            found.inertia,
            by_hand(&values, 4, &found.clustering.labels, &found.centroids)
        );
        assert_eq!(
            found.inertia,
            found.codes.squared(found.clustering.outcome.inertia)
        );
        let again = assign_points(
            &mut Threads::default(),
            &points,
            &Points::new("c", 5, 4, Values::F32(found.centroids.clone())).unwrap(),
            false,
        );
        assert_eq!(again.unwrap().assignment.labels, found.clustering.labels);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Centroids written as values are found again, and the same points get the same labels.
    #[test]
    fn assigning_to_what_was_found_changes_nothing(
        seed in any::<u64>(),
        dims in 1usize..6,
        spread in 1u64..5000,
        spherical in any::<bool>(),
    ) {
        let values = blobs(seed, 120, dims, spread);
        let points = Points::new("p", 120, dims, Values::F32(values.clone())).unwrap();
        // Fewer distinct points than clusters may be left.
        let Ok(found) = KMeans::new(4).spherical(spherical).fit(&points) else { return Ok(()) };
        prop_assert_eq!(&found.predict(&points).unwrap()[..], found.labels());
        let written = Points::new("c", 4, dims, Values::F32(found.centroids.clone())).unwrap();
        let again = assign_points(&mut Threads::default(), &points, &written, spherical).unwrap();
        prop_assert_eq!(&again.assignment.labels, &found.clustering.labels);
        prop_assert_eq!(again.inertia, found.inertia);
        if !spherical {
            let wanted = by_hand(&values, dims, &found.clustering.labels, &found.centroids);
            prop_assert!((found.inertia - wanted).abs() <= 1e-9 * wanted);
        }
    }
}

#[test]
fn directions_do_not_depend_on_lengths() {
    let values = blobs(9, 200, 8, 900);
    let points = Points::new("p", 200, 8, Values::F32(values.clone())).unwrap();
    // Powers of two scale exactly.
    let scaled: Vec<f32> = values
        .chunks(8)
        .enumerate()
        .flat_map(|(i, row)| {
            row.iter()
                .map(move |x| x * f32::powi(2.0, i as i32 % 9 - 4))
        })
        .collect();
    let scaled = Points::new("s", 200, 8, Values::F32(scaled)).unwrap();
    let fit = |points| KMeans::new(4).spherical(true).fit(points).unwrap();
    let (a, b) = (fit(&points), fit(&scaled));
    assert_eq!(a.clustering, b.clustering);
    for centroid in a.centroids.chunks(8) {
        let length: f32 = centroid.iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 0.02, "{length}");
    }
}

#[test]
fn what_cannot_be_clustered_is_refused_with_its_name() {
    let points = Points::new("few", 3, 1, Values::int8(vec![1, 2, 3])).unwrap();
    let refused = |k, weights: Option<&[u32]>| {
        let mut kmeans = KMeans::new(k);
        if let Some(weights) = weights {
            kmeans = kmeans.weights(weights);
        }
        kmeans.fit(&points).unwrap_err().to_string()
    };
    let told = ClusterError::Clusters {
        clusters: 4,
        points: 3,
    }
    .to_string();
    assert_eq!(refused(4, None), format!("few: {told}"));
    assert!(refused(3, Some(&[1, 0, 1])).contains("3 clusters asked for 2 points"));
    assert!(refused(1, Some(&[1, 1])).contains("2 elements where 3 are needed"));
    for (rows, dims, values) in [(0, 1, 0), (1, 0, 0), (2, 2, 3), (usize::MAX, 2, 4)] {
        assert!(Points::new("p", rows, dims, Values::F32(vec![0.0; values])).is_err());
    }
    assert!(Points::new("p", 2, 1, Values::F32(vec![0.0, f32::NAN])).is_err());
}
