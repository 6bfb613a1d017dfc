//! Clustering by warpgroup products gives what the reference gives, over awkward shapes, and is given up where it
//! does not.

use std::path::Path;

use crate::support::child;
use crate::support::cluster::{CLOUDS, Cloud, NOTHING, cuda, points, weights, with_scalar};
use crate::support::emulator::{Device, checked, device, emulated};
use proptest::prelude::*;
use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{Assigned, ClusterEngine, ClusterProblem};
use tercet_core::number::Random;
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions, TensorCores, Wgmma};

/// What an assignment to given centroids leaves.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    found: [Assigned; 2],
    labels: Vec<u32>,
    distances: Vec<u32>,
    sums: Vec<i64>,
    counts: Vec<u64>,
}

/// Assigns twice, to one set of centroids and to another, so that labels change.
fn assigned<P: ClusterProblem<Error: std::fmt::Debug>>(problem: &mut P, seed: u64) -> Left {
    let shape = problem.shape();
    let table = shape.clusters * shape.dims;
    let mut random = Random::new(seed + 5);
    let found = [(); 2].map(|()| {
        let centroids: Vec<i8> = (0..table).map(|_| random.next_u64() as i8).collect();
        problem.set_centroids(&centroids).unwrap();
        problem.measure().unwrap();
        problem.assign().unwrap()
    });
    let mut left = Left {
        found,
        labels: vec![0; shape.points],
        distances: vec![0; shape.points],
        sums: vec![0; table],
        counts: vec![0; shape.clusters],
    };
    problem.read_labels(&mut left.labels).unwrap();
    problem.read_distances(&mut left.distances).unwrap();
    problem.read_sums(&mut left.sums, &mut left.counts).unwrap();
    left
}

/// Compares an engine of `multiprocessors`, which share the tiles of points, with the reference.
#[track_caller]
fn compare(
    device: &Device,
    (n, dims, k): (usize, usize, usize),
    cloud: Cloud,
    seed: u64,
    multiprocessors: u64,
) {
    device.set(&format!(
        "seed={},multiprocessors={multiprocessors}",
        seed + 1
    ));
    let values = points(cloud, n, dims, seed);
    let weights = weights(n, seed);
    let points = match seed % 2 {
        0 => Points::new(&values, dims).unwrap(),
        _ => Points::weighted(&values, dims, &weights).unwrap(),
    };
    let k = k.min(points.counted());
    let expected = with_scalar(points, k, Update::Mean, |problem| assigned(problem, seed));
    let mut cuda = cuda((9, 0));
    let mut problem = cuda.clusters(points, k, Update::Mean, NOTHING()).unwrap();
    let found = assigned(&mut problem, seed);
    drop(problem);
    // What was tried was found right, unless rows are too long or a real device has none.
    let known = known(&cuda);
    let tried = dims <= TensorCores::WGMMA_DIMS && known != Wgmma::Absent;
    assert!(!tried || known == Wgmma::Right, "{known:?}");
    drop(cuda);
    device.set("multiprocessors=4");
    assert!(
        found == expected,
        "{n} points of {dims}, {k} clusters, {cloud:?}, seed {seed}"
    );
}

/// Points, coordinates, clusters, multiprocessors: around tiles of 256 points and 128 centroids, parts of 128 bytes,
/// one to four of them and more than there are slots for, windows of 256 to 8192 centroids, blocks with one tile of
/// points and with many.
const SHAPES: [(usize, usize, usize, u64); 20] = [
    (1, 1, 1, 4),
    (3, 1, 2, 4),
    (255, 16, 127, 4),
    (256, 17, 128, 4),
    (257, 31, 129, 1),
    (300, 33, 64, 4),
    (1300, 3, 5, 1),
    (1400, 20, 140, 2),
    (700, 127, 300, 1),
    (600, 128, 257, 2),
    (530, 129, 200, 1),
    (400, 255, 260, 4),
    (330, 257, 140, 1),
    (540, 300, 40, 1),
    (300, 384, 200, 4),
    (280, 400, 129, 1),
    (290, 512, 280, 4),
    (800, 500, 3, 1),
    (200, 513, 40, 4),
    (2300, 5, 2200, 4),
];

#[test]
fn every_shape_is_assigned_as_by_the_reference() {
    let Some(device) = device() else { return };
    for (index, (n, dims, k, multiprocessors)) in SHAPES.into_iter().enumerate() {
        let cloud = CLOUDS[index % 5];
        // Checked accesses take long: those of the largest are of no other kind.
        if !checked() || n * k.next_multiple_of(128) * dims.next_multiple_of(32) < 20_000_000 {
            compare(&device, (n, dims, k), cloud, index as u64, multiprocessors);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if checked() { 4 } else { 24 }))]

    #[test]
    fn any_shape_is_assigned_as_by_the_reference(
        n in 1_usize..900,
        dims in prop_oneof![1_usize..40, 1_usize..520],
        k in 1_usize..300,
        cloud in 0_usize..5,
        seed in 0_u64..1000,
        multiprocessors in 1_u64..4,
    ) {
        let Some(device) = device() else { return Ok(()) };
        let n = if checked() { n % 300 + 1 } else { n };
        compare(&device, (n, dims, k.min(n)), CLOUDS[cloud], seed, multiprocessors);
    }
}

/// An engine, and what its device says of wgmma.
fn engine(tensor_cores: TensorCores, memory: Option<usize>) -> Cuda {
    let options = CudaOptions {
        slot: 4096,
        memory,
        tensor_cores,
        ..CudaOptions::default()
    };
    Cuda::new(&options).unwrap()
}

fn known(cuda: &Cuda) -> Wgmma {
    cuda.device_info().unwrap().wgmma
}

/// Clusters a few points, and compares with the reference.
fn small(cuda: &mut Cuda) -> Result<(), CudaError> {
    let values = points(Cloud::Even, 140, 20, 3);
    let points = Points::new(&values, 20).unwrap();
    let expected = with_scalar(points, 33, Update::Mean, |problem| assigned(problem, 1));
    let mut problem = cuda.clusters(points, 33, Update::Mean, NOTHING())?;
    assert_eq!(assigned(&mut problem, 1), expected);
    Ok(())
}

/// Runs a test of this binary by itself: what was found of a device is the process's.
fn alone(name: &str) {
    let told = child::run(module_path!(), name, Path::new("."), &[]);
    assert!(told.is_empty() || told == ["to the end"], "{told:?}");
}

#[test]
fn wrong_products_are_never_used() {
    alone("with_products_that_are_wrong");
}

#[test]
fn products_are_tried_where_they_were_asked_for() {
    alone("with_products_that_nobody_tried");
}

#[test]
fn an_old_driver_goes_without() {
    alone("with_a_driver_that_knows_none");
}

/// In a child: a driver of CUDA 11.8 reads the PTX of everything but warpgroup products.
#[test]
fn with_a_driver_that_knows_none() {
    if !child::is_one() {
        return;
    }
    let Some(device) = emulated() else { return };
    device.set("driver=11080");
    let mut cuda = engine(TensorCores::Wgmma, None);
    small(&mut cuda).unwrap();
    assert_eq!(known(&cuda), Wgmma::Absent);
    child::tell("to the end");
}

/// In a child: products that leave their sums elsewhere are found out, and everything goes on by mma.
#[test]
fn with_products_that_are_wrong() {
    if !child::is_one() {
        return;
    }
    let Some(device) = emulated() else { return };
    device.set("fragments=0");
    let mut cuda = engine(TensorCores::Wgmma, None);
    assert_eq!(known(&cuda), Wgmma::Untried);
    small(&mut cuda).unwrap();
    assert_eq!(known(&cuda), Wgmma::Wrong);
    let line = cuda.device_info().unwrap().to_string();
    assert!(
        line.ends_with("wgmma not used: it gives other results than mma") && !line.contains('\n')
    );
    // Not again, even if they came right: by this engine and by another.
    device.set("fragments=1");
    small(&mut cuda).unwrap();
    drop(cuda);
    let mut cuda = engine(TensorCores::Wgmma, None);
    small(&mut cuda).unwrap();
    assert_eq!(known(&cuda), Wgmma::Wrong);
    child::tell("to the end");
}

/// In a child: nobody tries them unasked; a trial that fails is no verdict; one that succeeds is.
#[test]
fn with_products_that_nobody_tried() {
    if !child::is_one() {
        return;
    }
    let Some(device) = emulated() else { return };
    for unasked in [TensorCores::Auto, TensorCores::Mma] {
        let mut cuda = engine(unasked, None);
        small(&mut cuda).unwrap();
        assert_eq!(known(&cuda), Wgmma::Untried, "{unasked:?}");
    }
    // No room for the trial, but for the work.
    let mut cuda = engine(TensorCores::Wgmma, Some(128 << 10));
    small(&mut cuda).unwrap();
    assert_eq!(known(&cuda), Wgmma::Untried);
    drop(cuda);
    let mut cuda = engine(TensorCores::Wgmma, None);
    // The third module is that of wgmma; two launches bring the points there, and those of the trial follow.
    for fault in [
        "module:3", "launch:3", "launch:6", "launch:9", "copy:9", "memset:4", "sync:2",
    ] {
        device.set(&format!("fail={fault}:801"));
        let faults = device.count("faults");
        assert!(small(&mut cuda).is_err(), "{fault}");
        device.set("fail=none");
        assert_eq!(device.count("faults"), faults + 1, "{fault}");
        assert_eq!(known(&cuda), Wgmma::Untried, "{fault}");
    }
    small(&mut cuda).unwrap();
    assert_eq!(known(&cuda), Wgmma::Right);
    drop(cuda);
    // A device of another capability has none.
    for capability in ["8.0", "10.0"] {
        device.set(&format!("capability={capability}"));
        let mut cuda = engine(TensorCores::Wgmma, None);
        small(&mut cuda).unwrap();
        assert_eq!(known(&cuda), Wgmma::Absent, "{capability}");
    }
    child::tell("to the end");
}
