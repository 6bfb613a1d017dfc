//! What cannot be clustered is refused, with the bound in the message.

use tercet_core::cluster::float::{Labelled, inertia};
use tercet_core::cluster::{
    ClusterError, Kmeans, MAX_DIMS, MAX_SPHERE_WEIGHT, Points, Steps, Update, means, normalize,
};
use tercet_core::engine::Buffers;
use tercet_core::scalar::Clusters;

use super::support::{Memory, run};

fn refusal(points: Points<'_>, k: usize) -> ClusterError {
    run(
        points,
        k,
        Update::Mean,
        &Kmeans::default(),
        None,
        &mut Steps::Full,
    )
    .unwrap_err()
}

#[test]
fn shapes_without_sense_are_refused() {
    assert_eq!(Points::new(&[], 3).unwrap_err(), ClusterError::Empty);
    assert_eq!(Points::new(&[1], 0).unwrap_err(), ClusterError::Empty);
    assert_eq!(
        Points::new(&[1, 2, 3, 4], 3).unwrap_err().to_string(),
        "4 coordinates do not divide into points of 3"
    );
    let long = vec![0; MAX_DIMS + 1];
    assert!(Points::new(&long[1..], MAX_DIMS).is_ok());
    assert_eq!(
        Points::new(&long, MAX_DIMS + 1).unwrap_err().to_string(),
        "points of 43691 coordinates; scores fit 32 bits up to 43690"
    );
}

#[test]
fn scores_hold_at_the_longest_point() {
    // The extremes of ‖c‖² − 2·x·c and of ‖x − c‖² at d = 43,690.
    let mut values = vec![-128i8; MAX_DIMS];
    values.extend(vec![127; MAX_DIMS]);
    values.extend(vec![-128; MAX_DIMS]);
    let points = Points::new(&values, MAX_DIMS).unwrap();
    let found = run(
        points,
        1,
        Update::Mean,
        &Kmeans::default(),
        None,
        &mut Steps::Full,
    )
    .unwrap();
    assert_eq!(found.centroids[0], -43);
    let squares = 2 * 85u64.pow(2) + 170u64.pow(2);
    assert_eq!(found.outcome.inertia, squares * MAX_DIMS as u64);
    let two = run(
        points,
        2,
        Update::Mean,
        &Kmeans::default(),
        None,
        &mut Steps::Full,
    )
    .unwrap();
    assert_eq!(two.outcome.inertia, 0);
    let given = [vec![127; MAX_DIMS], vec![126; MAX_DIMS]].concat();
    let mut memory = Memory::<i64>::new(3, MAX_DIMS, 2);
    let mut clusters = memory.clusters(points, 2).unwrap();
    use tercet_core::engine::ClusterProblem;
    clusters.set_centroids(&given).unwrap();
    clusters.measure().unwrap();
    assert_eq!(clusters.labels(), [1, 0, 1]);
    assert_eq!(clusters.distances()[0], 254 * 254 * MAX_DIMS as u32);
}

#[test]
fn clusters_must_be_one_to_the_number_of_points() {
    let values = [1, 2, 3];
    let points = Points::new(&values, 1).unwrap();
    for clusters in [0, 4] {
        let expected = ClusterError::Clusters {
            clusters,
            points: 3,
        };
        assert_eq!(refusal(points, clusters), expected);
    }
    // Points without weight do not count.
    let points = Points::weighted(&values, 1, &[5, 0, 1]).unwrap();
    let expected = ClusterError::Clusters {
        clusters: 3,
        points: 2,
    };
    assert_eq!(refusal(points, 3), expected);
}

#[test]
fn weights_that_could_wrap_are_refused() {
    let values = [1i8; 8];
    assert_eq!(
        Points::weighted(&values, 2, &[1; 3]).unwrap_err(),
        ClusterError::Length {
            expected: 4,
            found: 3
        }
    );
    assert_eq!(
        Points::weighted(&values, 2, &[0; 4]).unwrap_err(),
        ClusterError::Empty
    );
    // Σw · 65,025 · d reaches 2⁶⁴: one weight below it passes.
    let many = vec![0i8; 20_000 * 4];
    let limit = u64::MAX / (65_025 * 20_000);
    let share = (limit / 4) as u32;
    let mut weights = [share; 4];
    weights[0] += (limit - 4 * u64::from(share)) as u32;
    assert!(Points::weighted(&many, 20_000, &weights).is_ok());
    weights[1] += 1;
    assert_eq!(
        Points::weighted(&many, 20_000, &weights).unwrap_err(),
        ClusterError::Weight {
            total: limit + 1,
            limit
        }
    );
}

#[test]
fn narrow_sums_and_spheres_hold_less_weight() {
    let values = [-128i8, 1, 1, 1];
    let weights = [(1 << 24) - 4, 1, 1, 1];
    let heavy = [(1 << 24) - 3, 1, 1, 1];
    let mut memory = Memory::<i32>::new(4, 1, 1);
    let points = Points::weighted(&values, 1, &weights).unwrap();
    assert!(memory.clusters(points, 1).is_ok());
    let points = Points::weighted(&values, 1, &heavy).unwrap();
    assert_eq!(
        memory.clusters(points, 1).unwrap_err(),
        ClusterError::Weight {
            total: 1 << 24,
            limit: (1 << 24) - 1
        }
    );
    // The extreme sum fits.
    let all = [-128i8; 4];
    let points = Points::weighted(&all, 1, &weights).unwrap();
    let mut narrow = Memory::<i32>::new(4, 1, 1);
    let mut clusters = narrow.clusters(points, 1).unwrap();
    let outcome = tercet_core::cluster::kmeans(
        &mut clusters,
        &Kmeans::default(),
        &mut Steps::Full,
        &mut |_, _, _| (),
    )
    .unwrap();
    assert_eq!((outcome.inertia, clusters.centroids()), (0, &[-128i8][..]));

    let mut points = [1i8, 2, 3];
    let sphere = normalize(&mut points, 1).unwrap();
    let weights = [u32::MAX, u32::MAX, 3];
    let points = Points::weighted(&points, 1, &weights).unwrap();
    let mut memory = Memory::<i64>::new(3, 1, 1);
    assert_eq!(
        Clusters::new(points, 1, Update::Sphere(sphere), memory.buffers()).unwrap_err(),
        ClusterError::Weight {
            total: MAX_SPHERE_WEIGHT + 1,
            limit: MAX_SPHERE_WEIGHT
        }
    );
}

#[test]
fn every_buffer_must_fit() {
    let values = [1i8, 2, 3, 4, 5, 6];
    let points = Points::new(&values, 2).unwrap();
    for wrong in 0..7 {
        let length = |buffer, right| if buffer == wrong { right + 1 } else { right };
        let buffers = Buffers {
            labels: &mut vec![0; length(0, 3)],
            distances: &mut vec![0; length(1, 3)],
            centroids: &mut vec![0; length(2, 4)],
            kept: &mut vec![0; length(3, 4)],
            norms: &mut vec![0; length(4, 2)],
            sums: &mut vec![0i64; length(5, 4)],
            counts: &mut vec![0; length(6, 2)],
        };
        let error = Clusters::new(points, 2, Update::Mean, buffers).unwrap_err();
        assert!(matches!(error, ClusterError::Length { expected, found } if found == expected + 1));
    }
}

#[test]
fn restarts_without_room_to_keep_the_best_are_refused() {
    let values = [1i8, 2, 3];
    let points = Points::new(&values, 1).unwrap();
    let buffers = Buffers {
        labels: &mut [0; 3],
        distances: &mut [0; 3],
        centroids: &mut [0; 2],
        kept: &mut [],
        norms: &mut [0; 2],
        sums: &mut [0i64; 2],
        counts: &mut [0; 2],
    };
    let mut clusters = Clusters::new(points, 2, Update::Mean, buffers).unwrap();
    let options = Kmeans {
        restarts: 2,
        ..Kmeans::default()
    };
    let error =
        tercet_core::cluster::kmeans(&mut clusters, &options, &mut Steps::Full, &mut |_, _, _| ());
    assert_eq!(
        error.unwrap_err(),
        ClusterError::Length {
            expected: 2,
            found: 0
        }
    );
}

#[test]
fn batches_that_could_wrap_are_refused() {
    let values = [1i8, 2, 3];
    let weights = [1, 1 << 20, 1];
    let points = Points::weighted(&values, 1, &weights).unwrap();
    let try_batch = |len, cap| {
        let mut batch = vec![0; len];
        let mut steps = Steps::Batches {
            batch: &mut batch,
            cap,
        };
        run(
            points,
            1,
            Update::Mean,
            &Kmeans::default(),
            None,
            &mut steps,
        )
        .map(|_| ())
    };
    assert_eq!(try_batch(8, 1 << 23), Ok(()));
    let error = ClusterError::Batch {
        weight: 9 << 20,
        limit: (1 << 23) + 1,
    };
    assert_eq!(try_batch(9, 1 << 23), Err(error));
    assert_eq!(try_batch(0, 1 << 23), Err(ClusterError::Empty));
    assert_eq!(try_batch(1, 1), Err(ClusterError::Cap { cap: 1 }));
    assert_eq!(
        try_batch(1, 1 << 25),
        Err(ClusterError::Cap { cap: 1 << 25 })
    );
}

#[test]
fn means_round_once() {
    let (sums, counts) = ([1i64, -1, 2, i64::MIN + 1, 0, 7], [3u64, 0, u64::MAX]);
    let mut out = [9.0; 6];
    means(&sums, &counts, &mut out).unwrap();
    assert_eq!(
        out,
        [1.0 / 3.0, -1.0 / 3.0, 0.0, 0.0, 0.0, 7.0 / 1.844_674_4e19]
    );
    // A tie of f32 that f64 cannot see: (2²⁴ + 1)·2³⁸ + 1 over 2³⁸ rounds up, to 2²⁴ + 2.
    let just_above = ((1i64 << 24) + 1) * (1 << 38) + 1;
    means(
        &[just_above, just_above - 1],
        &[1 << 38, 1 << 38],
        &mut out[..2],
    )
    .unwrap();
    assert_eq!(out[..2], [16_777_218.0, 16_777_216.0]);
    let error = means(&sums, &counts, &mut out[..4]).unwrap_err();
    assert_eq!(
        error,
        ClusterError::Length {
            expected: 6,
            found: 4
        }
    );
    assert!(means(&sums[..5], &counts, &mut out[..5]).is_err());
}

#[test]
fn the_true_inertia_is_that_of_the_floats() {
    let values = [0.5f32, 1.5, -2.0, 4.0, 8.0, 1.0];
    let mut labelled = Labelled {
        values: &values,
        dims: 2,
        weights: None,
        labels: &[1, 0, 1],
        centroids: &[0.0, 0.0, 1.0, 1.0],
    };
    assert_eq!(inertia(&labelled), Ok(0.25 + 0.25 + 4.0 + 16.0 + 49.0));
    labelled.weights = Some(&[2, 0, 1]);
    assert_eq!(inertia(&labelled), Ok(1.0 + 49.0));
    labelled.labels = &[1, 0, 2];
    assert_eq!(
        inertia(&labelled),
        Err(ClusterError::Index { index: 2, count: 2 })
    );
    labelled.labels = &[1, 0];
    assert_eq!(
        inertia(&labelled),
        Err(ClusterError::Length {
            expected: 3,
            found: 2
        })
    );
    labelled.dims = 4;
    assert_eq!(
        inertia(&labelled),
        Err(ClusterError::Ragged { len: 6, dims: 4 })
    );
}
