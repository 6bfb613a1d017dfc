//! What stays on several devices: points for many clusterings, and steps that are recorded.

use crate::support;
use crate::support::cluster::{
    CLOUDS, Cloud, NOTHING, calls, options, points, run, weights, with_scalar,
};
use crate::support::cudas::{cudas, devices_with_nccl};
use crate::support::emulator::{Device, checked};
use tercet_core::cluster::{ClusterError, Init, Points, Update, normalize};
use tercet_core::engine::{ClusterEngine, ClusterProblem, Refused};
use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix};
use tercet_core::palette::{self, Palette, PaletteError, Width};
use tercet_gpu::engine::cluster::CudasClusters;
use tercet_gpu::engine::{CudaError, Exchange};

/// Ways for sums to cross, and whether devices reach each other.
const WAYS: [(Exchange, &str); 3] = [
    (Exchange::Peer, "peers=1"),
    (Exchange::Nccl, "peers=1"),
    (Exchange::Host, "peers=0"),
];

/// Fewer where all accesses are checked.
fn few<T>(cases: &[T]) -> &[T] {
    &cases[..if checked() { 1 } else { cases.len() }]
}

fn copied(device: &Device) -> u64 {
    device.count("bytes copied")
}

/// One set of points, clustered again and again: seeds, weights, mini-batches, spheres. As the reference does it with
/// points of its own.
#[test]
fn points_that_stay_cluster_as_on_the_reference() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let shapes = [(61, 33, 5), (2, 3, 2), (100, 16, 9), (57, 1, 4)];
    for &(exchange, peers) in few(&WAYS) {
        for (index, &(n, dims, k)) in few(&shapes).iter().enumerate() {
            device.set(&format!("seed={index},{peers}"));
            let mut values = points(CLOUDS[index], n, dims, 3);
            let weights = weights(n, 3);
            let sphere =
                Update::Sphere(normalize(&mut points(Cloud::Even, n, dims, 3), dims).unwrap());
            if index == 0 {
                // Points of one length for the sphere.
                values = points(Cloud::Even, n, dims, 3);
                normalize(&mut values, dims).unwrap();
            }
            let plain = Points::new(&values, dims).unwrap();
            let weighted = Points::weighted(&values, dims, &weights).unwrap();
            for (points, devices) in [(plain, 3), (weighted, 2), (plain, 1)] {
                let mut cudas = cudas(devices).with_exchange(exchange);
                let there = cudas.points(&points).unwrap();
                assert_eq!((there.len(), there.dims()), (n, dims));
                assert_eq!(there.devices(), devices.min(n));
                let k = k.min(points.counted());
                let mut cases = vec![
                    (Init::Greedy, Update::Mean, 0),
                    (Init::Random, Update::Mean, 6),
                ];
                if index == 0 {
                    cases.push((Init::PlusPlus, sphere, 0));
                }
                for (init, update, batch) in cases {
                    let options = options(init, 7);
                    let expected =
                        with_scalar(points, k, update, |problem| run(problem, &options, batch));
                    let mut problem = cudas.clusters_of(&there, k, update).unwrap();
                    assert_eq!(
                        run(&mut problem, &options, batch),
                        expected,
                        "{exchange}, {n} x {dims}, {init:?}, {devices} devices"
                    );
                }
            }
        }
    }
}

#[test]
fn every_call_of_a_problem_gives_what_the_reference_gives() {
    let Some(_device) = devices_with_nccl() else {
        return;
    };
    let values = points(Cloud::Ties, 40, 2, 5);
    let weights: Vec<u32> = (0..40).map(|i| [0, 3, 1][i % 3]).collect();
    let points = Points::weighted(&values, 2, &weights).unwrap();
    let expected = with_scalar(points, 3, Update::Mean, |problem| calls(problem));
    let mut cudas = cudas(3);
    let there = cudas.points(&points).unwrap();
    for _ in 0..2 {
        let mut problem = cudas.clusters_of(&there, 3, Update::Mean).unwrap();
        assert_eq!(calls(&mut problem), expected);
    }
}

/// Once points are there, clustering them and assigning them copies less than they are: centroids, sums, a few
/// numbers a step.
#[test]
fn points_that_stay_are_not_brought_again() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let values = points(Cloud::Even, 1200, 32, 1);
    let all = Points::new(&values, 32).unwrap();
    let mut cudas = cudas(3);
    let centroids: Vec<i8> = (0..128).map(|i| (i - 64) as i8).collect();
    let before = copied(&device);
    let there = cudas.points(&all).unwrap();
    let measure = |problem: &mut CudasClusters<'_>| {
        problem.set_centroids(&centroids).unwrap();
        problem.measure().unwrap()
    };
    let first = measure(&mut cudas.clusters_of(&there, 4, Update::Mean).unwrap());
    assert!(copied(&device) - before >= 1200 * 32);
    let before = copied(&device);
    let mut problem = cudas.clusters_of(&there, 4, Update::Mean).unwrap();
    let measured = measure(&mut problem);
    assert_eq!(measured, first);
    for _ in 0..3 {
        problem.assign_update().unwrap();
    }
    problem.seed(0, 1199).unwrap();
    problem.potentials(&[0, 300, 1199], &mut [0; 3]).unwrap();
    let moved = copied(&device) - before;
    assert!(moved < 1200 * 32 / 2, "{moved}");
    let expected = with_scalar(all, 4, Update::Mean, |problem| {
        problem.set_centroids(&centroids).unwrap();
        problem.measure().unwrap()
    });
    assert_eq!(measured, expected);
}

#[test]
fn points_of_others_and_too_many_clusters_are_refused() {
    let Some(_device) = devices_with_nccl() else {
        return;
    };
    let values = points(Cloud::Even, 30, 3, 1);
    let points = Points::weighted(&values, 3, &[u32::MAX; 30]).unwrap();
    let (mut one, mut three) = (cudas(1), cudas(3));
    let there = three.points(&points).unwrap();
    let length = |result: Result<_, CudaError>| {
        let error = result.err().unwrap();
        assert!(matches!(error.cause(), CudaError::Length { .. }), "{error}");
    };
    length(one.clusters_of(&there, 2, Update::Mean).map(|_| ()));
    length(cudas(3).clusters_of(&there, 2, Update::Mean).map(|_| ()));
    for clusters in [0, 31] {
        let refused = three.clusters_of(&there, clusters, Update::Mean);
        let points = 30;
        assert_eq!(
            refused.err(),
            Some(ClusterError::Clusters { clusters, points }.into())
        );
    }
    let sphere = Update::Sphere(normalize(&mut values.clone(), 3).unwrap());
    let heavy = three.clusters_of(&there, 2, sphere).map(|_| ());
    assert!(
        matches!(
            heavy,
            Err(CudaError::Refused(Refused::Cluster(
                ClusterError::Weight { .. }
            )))
        ),
        "{heavy:?}"
    );
}

/// From the second step on every device replays what it did: before its sums cross, and after, where copies bring the
/// others'.
#[test]
fn steps_are_recorded_on_every_device() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let values = points(Cloud::Even, 200, 7, 4);
    let points = Points::new(&values, 7).unwrap();
    let centroids: Vec<i8> = (0..35).map(|i| (i * 7 % 256) as u8 as i8).collect();
    for &(exchange, peers) in few(&WAYS) {
        device.set(peers);
        for devices in 1..4_u64 {
            let expected = with_scalar(points, 5, Update::Mean, |problem| {
                problem.set_centroids(&centroids).unwrap();
                [(); 6].map(|()| problem.assign_update().unwrap())
            });
            let mut cudas = cudas(devices as usize).with_exchange(exchange);
            let mut problem = cudas.clusters(points, 5, Update::Mean, NOTHING()).unwrap();
            problem.set_centroids(&centroids).unwrap();
            let (graphs, launches) = (device.count("graphs"), device.count("launches"));
            let found = [(); 6].map(|()| problem.assign_update().unwrap());
            assert_eq!(found, expected, "{exchange}, {devices} devices");
            let by_nccl = exchange == Exchange::Nccl && devices > 1;
            let each = if by_nccl { 1 } else { 2 };
            assert_eq!(
                device.count("graphs") - graphs,
                5 * each * devices,
                "{exchange}, {devices} devices"
            );
            // Other launches than of the first step, and of the recording, are those that follow NCCL.
            let launched = device.count("launches") - launches;
            let most = if by_nccl { 4 * 2 + 6 } else { 8 * 2 };
            assert!(launched <= most * devices, "{launched}");
            // An assignment without a step is one as well, and a seed in between is not forgotten.
            problem.seed(2, 100).unwrap();
            let again = problem.assign().unwrap();
            let graphs = device.count("graphs");
            let settled = problem.assign().unwrap();
            assert_eq!(settled.inertia, again.inertia);
            assert_eq!(settled.changed, 0);
            assert_eq!(device.count("graphs") - graphs, devices);
        }
    }
}

/// A layer that stays gives the reference's sums (with every other operation, in `cuda_cudas_operations`), copies
/// weights once, and refuses what does not fit it.
#[test]
fn a_layer_that_stays_is_brought_once() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let bytes: Vec<u8> = (0..64 * 96).map(|i| (i * 91 % 251) as u8).collect();
    let layer = Layer::new(Matrix::new(Layout::Int8, 64, 96, &bytes).unwrap());
    let values = [1_i8; 97];
    let x = I8Sym::new(&values[..96]).unwrap_or_else(|_| panic!("-128 among them"));
    let mut cudas = cudas(3);
    let there = cudas.layer(&layer).unwrap();
    assert_eq!((there.rows(), there.cols(), there.devices()), (64, 96, 3));
    let mut out = [0; 64];
    cudas.row_sums(&there, x, &mut out).unwrap();
    let before = copied(&device);
    cudas.row_sums(&there, x, &mut out).unwrap();
    let moved = copied(&device) - before;
    assert!(moved < bytes.len() as u64 / 4, "{moved}");
    let sums = bytes
        .chunks(96)
        .map(|row| row.iter().map(|&x| i64::from(x as i8)).sum());
    assert_eq!(out.to_vec(), sums.collect::<Vec<i64>>());
    let refused = |found: Result<(), CudaError>| match found {
        Err(CudaError::Refused(Refused::Linear(LinearError::Length { expected, found }))) => {
            (expected, found)
        }
        other => panic!("{other:?}"),
    };
    let crooked = I8Sym::new(&values).unwrap_or_else(|_| panic!("-128 among them"));
    assert_eq!(refused(cudas.row_sums(&there, crooked, &mut out)), (96, 97));
    assert_eq!(refused(cudas.row_sums(&there, x, &mut out[1..])), (64, 63));
    let floats = &mut [0.0; 64];
    assert_eq!(
        refused(cudas.multiply(&there, x, &[1.0; 2], floats)),
        (1, 2)
    );
    // Of another engine, with fewer devices or other ones.
    let (expected, found) = (3, 2);
    let fewer = support::cudas::cudas(2).row_sums(&there, x, &mut out);
    assert_eq!(fewer, Err(CudaError::Length { expected, found }));
    let other = support::cudas::cudas(3).row_sums(&there, x, &mut out);
    let other = other.unwrap_err();
    assert!(
        matches!(other.cause(), CudaError::Argument { .. }),
        "{other}"
    );
}

/// As of layers, for palettes.
#[test]
fn a_palette_that_stays_is_brought_once() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let layout = palette::IndexMatrix::new(Width::new(4).unwrap(), 60, 64, 10).unwrap();
    let indices: Vec<u8> = (0..layout.index_bytes()).map(|i| i as u8).collect();
    let codebooks: Vec<i8> = (0..layout.codebook_len()).map(|i| i as i8).collect();
    let scales = vec![0.5; layout.groups()];
    let palette = Palette {
        layout,
        indices: &indices,
        codebooks: &codebooks,
        scales: &scales,
    };
    let mut cudas = cudas(3);
    let there = cudas.palette(&palette).unwrap();
    assert_eq!((there.layout(), there.devices()), (layout, 3));
    let (x, mut out) = ([1_i8; 64], [0.0; 60]);
    cudas
        .multiply_resident_palette(&there, &x, 2.0, &mut out)
        .unwrap();
    let before = copied(&device);
    cudas
        .multiply_resident_palette(&there, &x, 2.0, &mut out)
        .unwrap();
    let moved = copied(&device) - before;
    assert!(moved < layout.index_bytes() as u64 / 2, "{moved}");
    let mut back = [0.0; 60 * 64];
    cudas.decode_resident_palette(&there, &mut back).unwrap();
    // All are small whole numbers of halves, whose sums are exact in any order.
    let sums = back.chunks(64).map(|row| row.iter().sum::<f32>() * 2.0);
    assert_eq!(out.to_vec(), sums.collect::<Vec<_>>());
    let refused = |found: Result<(), CudaError>| match found {
        Err(CudaError::Refused(Refused::Palette(PaletteError::Length { expected, found }))) => {
            (expected, found)
        }
        other => panic!("{other:?}"),
    };
    let out = &mut out[1..];
    assert_eq!(
        refused(cudas.multiply_resident_palette(&there, &x, 1.0, out)),
        (60, 59)
    );
    assert_eq!(
        refused(cudas.decode_resident_palette(&there, out)),
        (3840, 59)
    );
    let (expected, found) = (3, 1);
    let fewer = support::cudas::cudas(1).decode_resident_palette(&there, &mut back);
    assert_eq!(fewer, Err(CudaError::Length { expected, found }));
    let other = support::cudas::cudas(3).decode_resident_palette(&there, &mut back);
    let other = other.unwrap_err();
    assert!(
        matches!(other.cause(), CudaError::Argument { .. }),
        "{other}"
    );
}
