//! Clustering on a device gives what the reference engine gives, to the bit: by every driver, over awkward shapes, by
//! dp4a and by tensor cores.

use crate::support::cluster::{
    CAPABILITIES, CLOUDS, Cloud, NOTHING, cuda, options, points, run, weights, with_scalar,
};
use crate::support::emulator::{checked, device};
use tercet_core::cluster::{Init, Kmeans, Lloyd, Points, Update, normalize};
use tercet_core::engine::{ClusterEngine, ClusterProblem};
use tercet_gpu::engine::Cuda;

#[track_caller]
fn compare(
    cuda: &mut Cuda,
    points: Points<'_>,
    k: usize,
    update: Update,
    options: &Kmeans,
    batch: usize,
) {
    let expected = with_scalar(points, k, update, |problem| run(problem, options, batch));
    let mut problem = cuda.clusters(points, k, update, NOTHING()).unwrap();
    let found = run(&mut problem, options, batch);
    assert_eq!(
        found,
        expected,
        "{} points of {}, {k} clusters, {options:?}, batches of {batch}",
        points.len(),
        points.dims()
    );
}

/// Points, coordinates, clusters: around tiles of 64 and 128, parts of 64 bytes, rows of 16 and 32, shares of 1024,
/// and the longest rows whose scores leave room for a column.
const SHAPES: [(usize, usize, usize); 20] = [
    (1, 1, 1),
    (2, 1, 2),
    (31, 3, 8),
    (63, 16, 5),
    (64, 17, 33),
    (65, 15, 64),
    (127, 32, 65),
    (128, 33, 128),
    (129, 64, 129),
    (255, 65, 32),
    (257, 2, 40),
    (300, 100, 31),
    (513, 128, 3),
    (1000, 5, 7),
    (1023, 1, 50),
    (1025, 8, 12),
    (2100, 4, 3),
    (129, 500, 33),
    (40, 2720, 33),
    (40, 2721, 34),
];

#[test]
fn every_shape_clusters_as_the_reference() {
    let Some(device) = device() else { return };
    for (index, (n, dims, k)) in SHAPES.into_iter().enumerate() {
        let seed = index as u64;
        device.set(&format!("seed={}", seed + 1));
        let values = points(CLOUDS[index % 4], n, dims, seed);
        let points = Points::new(&values, dims).unwrap();
        let weights = weights(n, seed);
        for (which, capability) in CAPABILITIES.into_iter().enumerate() {
            if checked() && which != index % CAPABILITIES.len() {
                continue;
            }
            let mut cuda = cuda(capability);
            let init = [Init::Greedy, Init::PlusPlus, Init::Random][index % 3];
            let mut options = options(init, seed);
            options.lloyd.max_iter = 5;
            compare(&mut cuda, points, k, Update::Mean, &options, 0);
            let weighted = Points::weighted(&values, dims, &weights).unwrap();
            let k = k.min(weighted.counted());
            // Draws of another kind; k-means++ from thousands of points is the emulated device's longest work.
            options.init = [Init::PlusPlus, Init::Random, Init::Random][index % 3];
            compare(&mut cuda, weighted, k, Update::Mean, &options, 0);
        }
    }
}

/// Each kernel with its centroids in registers, with fewer clusters and shorter rows than it has room for, and with
/// as many as it has.
#[test]
fn few_centroids_of_every_size_cluster_as_the_reference() {
    let Some(device) = device() else { return };
    for (index, (clusters, dims)) in [16, 64, 128]
        .into_iter()
        .flat_map(|clusters| [32, 64, 128].map(|dims| (clusters, dims)))
        .enumerate()
    {
        device.set(&format!("seed={}", index + 1));
        let mut cuda = cuda((8, 0));
        for (k, dims) in [(clusters, dims), (clusters - 7, dims - 13)] {
            let values = points(CLOUDS[index % 4], 150, dims, index as u64);
            let points = Points::new(&values, dims).unwrap();
            let mut options = options(Init::Random, index as u64);
            options.lloyd.max_iter = 3;
            compare(&mut cuda, points, k, Update::Mean, &options, 0);
        }
    }
}

#[test]
fn every_cloud_and_restart_clusters_as_the_reference() {
    let Some(device) = device() else { return };
    for (index, cloud) in CLOUDS.into_iter().enumerate() {
        for (seed, capability) in CAPABILITIES.into_iter().enumerate() {
            device.set(&format!("seed={}", 10 * index + seed));
            let mut cuda = cuda(capability);
            let values = points(cloud, 130, 19, 3);
            let points = Points::new(&values, 19).unwrap();
            let mut options = options(Init::PlusPlus, 5);
            options.restarts = 2;
            compare(&mut cuda, points, 33, Update::Mean, &options, 0);
            // To the end, by recorded steps.
            options.restarts = 1;
            options.lloyd = Lloyd::default();
            compare(&mut cuda, points, 4, Update::Mean, &options, 0);
            options.lloyd.tol_ppm = 20_000;
            compare(&mut cuda, points, 4, Update::Mean, &options, 0);
        }
    }
}

#[test]
fn mini_batches_cluster_as_the_reference() {
    let Some(device) = device() else { return };
    for (seed, capability) in [(1, (7, 5)), (2, (8, 0)), (3, (9, 0))] {
        device.set(&format!("seed={seed}"));
        let mut cuda = cuda(capability);
        for (n, dims, k, batch) in [
            (300, 5, 7, 30),
            (129, 40, 33, 64),
            (100, 1, 4, 1),
            (70, 16, 20, 500),
        ] {
            let mut options = options(Init::PlusPlus, seed);
            options.lloyd.max_iter = 3;
            if batch == 1 {
                options.lloyd.max_iter = 1;
            }
            let values = points(Cloud::Groups, n, dims, seed);
            let points = Points::new(&values, dims).unwrap();
            compare(&mut cuda, points, k, Update::Mean, &options, batch);
            let weights: Vec<u32> = (0..n as u32).map(|i| i % 4).collect();
            let points = Points::weighted(&values, dims, &weights).unwrap();
            compare(&mut cuda, points, k, Update::Mean, &options, batch);
        }
    }
}

#[test]
fn spheres_cluster_as_the_reference() {
    let Some(device) = device() else { return };
    for (seed, capability) in [(1, (7, 5)), (2, (8, 0))] {
        device.set(&format!("seed={seed}"));
        let mut cuda = cuda(capability);
        for (cloud, n, dims, k) in [
            (Cloud::Even, 200, 3, 9),
            (Cloud::Groups, 129, 20, 40),
            (Cloud::Ends, 90, 300, 5),
            (Cloud::Ties, 64, 2, 6),
        ] {
            let mut values = points(cloud, n, dims, seed);
            let sphere = Update::Sphere(normalize(&mut values, dims).unwrap());
            let points = Points::new(&values, dims).unwrap();
            compare(
                &mut cuda,
                points,
                k,
                sphere,
                &options(Init::Greedy, seed),
                0,
            );
            let weights: Vec<u32> = (0..n as u32)
                .map(|i| [1, 0, 4_000_000][i as usize % 3])
                .collect();
            let points = Points::weighted(&values, dims, &weights).unwrap();
            let k = k.min(points.counted());
            compare(
                &mut cuda,
                points,
                k,
                sphere,
                &options(Init::Random, seed),
                0,
            );
            compare(
                &mut cuda,
                points,
                k,
                sphere,
                &options(Init::PlusPlus, seed),
                0,
            );
        }
    }
}

/// The sum of the four axes, scaled to 127, has coordinates of 63.5.
#[test]
fn a_half_on_a_sphere_is_rounded_away_from_zero() {
    let Some(_device) = device() else { return };
    let mut values: Vec<i8> = [[9, 0, 0, 0], [0, -9, 0, 0], [0, 0, 9, 0], [0, 0, 0, -9]].concat();
    let sphere = Update::Sphere(normalize(&mut values, 4).unwrap());
    let points = Points::new(&values, 4).unwrap();
    let mut cuda = cuda((9, 0));
    let mut problem = cuda.clusters(points, 1, sphere, NOTHING()).unwrap();
    problem.assign_update().unwrap();
    let mut centroid = [0; 4];
    problem.read_centroids(&mut centroid).unwrap();
    assert_eq!(centroid, [64, -64, 64, -64]);
}
