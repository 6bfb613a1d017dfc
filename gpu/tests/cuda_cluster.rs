//! Clustering on a device gives what the reference engine gives, to the bit: by every driver, over awkward shapes, by dp4a and by tensor cores.
#![cfg(all(feature = "cuda", target_os = "linux"))]

mod support;

use std::fmt::Debug;

use support::emulator::{Device, device, emulated};
use tercet_core::cluster::{
    ClusterError, Init, Kmeans, Lloyd, Outcome, Points, Steps, Update, kmeans, normalize,
};
use tercet_core::engine::{Assigned, Buffers, ClusterEngine, ClusterProblem, Farthest};
use tercet_core::number::Random;
use tercet_core::scalar::Scalar;
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions};

/// Families of points.
#[derive(Clone, Copy, Debug)]
enum Cloud {
    /// All int8 values, spread evenly.
    Even,
    /// Tight groups: clusters fall empty.
    Groups,
    /// Coordinates −128, 0 and 127.
    Ends,
    /// Few values, so that distances tie.
    Ties,
    /// One point, many times.
    Same,
}

const CLOUDS: [Cloud; 5] = [
    Cloud::Even,
    Cloud::Groups,
    Cloud::Ends,
    Cloud::Ties,
    Cloud::Same,
];

fn points(cloud: Cloud, n: usize, dims: usize, seed: u64) -> Vec<i8> {
    let mut random = Random::new(seed);
    let mut values = Vec::with_capacity(n * dims);
    for _ in 0..n {
        let group = random.below(5) as i64;
        for _ in 0..dims {
            let draw = random.next_u64() >> 32;
            values.push(match cloud {
                Cloud::Even => draw as i8,
                Cloud::Groups => (group * 50 - 100 + (draw % 5) as i64) as i8,
                Cloud::Ends => [-128, 0, 127][(draw % 3) as usize],
                Cloud::Ties => (draw % 4) as i8,
                Cloud::Same => -77,
            });
        }
    }
    values
}

/// Weights with zeros and large ones among them.
fn weights(n: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed ^ 99);
    let mut weights: Vec<u32> = (0..n)
        .map(|_| [0, 1, 2, 3, 1000, 70_000][random.below(6) as usize])
        .collect();
    weights[n / 2] = 5;
    weights
}

/// What a clustering leaves, and what it told on the way.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    outcome: Outcome,
    curve: Vec<(u32, u32, u64)>,
    labels: Vec<u32>,
    distances: Vec<u32>,
    centroids: Vec<i8>,
    sums: Vec<i64>,
    counts: Vec<u64>,
}

fn run<P: ClusterProblem<Error: Debug>>(problem: &mut P, options: &Kmeans, batch: usize) -> Run {
    let shape = problem.shape();
    let mut curve = Vec::new();
    let mut observe = |restart, step, inertia| curve.push((restart, step, inertia));
    let mut scratch = vec![0; batch];
    let mut steps = match batch {
        0 => Steps::Full,
        _ => Steps::Batches {
            batch: &mut scratch,
            cap: 40,
        },
    };
    let outcome = kmeans(problem, options, &mut steps, &mut observe).unwrap();
    read(
        problem,
        outcome,
        curve,
        shape.points,
        shape.dims,
        shape.clusters,
    )
}

fn read<P: ClusterProblem<Error: Debug>>(
    problem: &mut P,
    outcome: Outcome,
    curve: Vec<(u32, u32, u64)>,
    n: usize,
    dims: usize,
    k: usize,
) -> Run {
    let mut run = Run {
        outcome,
        curve,
        labels: vec![0; n],
        distances: vec![0; n],
        centroids: vec![0; k * dims],
        sums: vec![0; k * dims],
        counts: vec![0; k],
    };
    problem.read_labels(&mut run.labels).unwrap();
    problem.read_distances(&mut run.distances).unwrap();
    problem.read_centroids(&mut run.centroids).unwrap();
    problem.read_sums(&mut run.sums, &mut run.counts).unwrap();
    run
}

/// Lends the reference engine's problem over memory of its own.
fn with_scalar<R>(
    points: Points<'_>,
    k: usize,
    update: Update,
    use_it: impl FnOnce(&mut tercet_core::scalar::Clusters<'_>) -> R,
) -> R {
    let (n, table) = (points.len(), k * points.dims());
    let buffers = Buffers {
        labels: &mut vec![0; n],
        distances: &mut vec![0; n],
        centroids: &mut vec![0; table],
        kept: &mut vec![0; table],
        norms: &mut vec![0; k],
        sums: &mut vec![0; table],
        counts: &mut vec![0; k],
    };
    use_it(&mut Scalar.clusters(points, k, update, buffers).unwrap())
}

const NOTHING: fn() -> Buffers<'static> = || Buffers {
    labels: &mut [],
    distances: &mut [],
    centroids: &mut [],
    kept: &mut [],
    norms: &mut [],
    sums: &mut [],
    counts: &mut [],
};

/// Small slots, so that points take many copies, and kernels of a capability.
fn cuda(capability: (u32, u32)) -> Cuda {
    let options = CudaOptions {
        slot: 4096,
        capability: Some(capability),
        ..CudaOptions::default()
    };
    Cuda::new(&options).unwrap()
}

/// dp4a, and tensor cores.
const CAPABILITIES: [(u32, u32); 2] = [(7, 5), (8, 0)];

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

fn options(init: Init, seed: u64) -> Kmeans {
    Kmeans {
        init,
        seed,
        lloyd: Lloyd {
            max_iter: 12,
            tol_ppm: 0,
        },
        ..Kmeans::default()
    }
}

/// Points, coordinates, clusters: around tiles of 64 and 128, parts of 64 bytes, rows of 16 and 32, shares of 1024.
const SHAPES: [(usize, usize, usize); 18] = [
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
    (2500, 4, 35),
    (140, 500, 34),
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
        for capability in CAPABILITIES {
            let mut cuda = cuda(capability);
            let init = [Init::Greedy, Init::PlusPlus, Init::Random][index % 3];
            compare(&mut cuda, points, k, Update::Mean, &options(init, seed), 0);
            let weighted = Points::weighted(&values, dims, &weights).unwrap();
            let k = k.min(weighted.counted());
            compare(
                &mut cuda,
                weighted,
                k,
                Update::Mean,
                &options(init, seed + 7),
                0,
            );
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
            let values = points(cloud, 200, 19, 3);
            let points = Points::new(&values, 19).unwrap();
            let mut options = options(Init::Greedy, 5);
            options.restarts = 3;
            compare(&mut cuda, points, 36, Update::Mean, &options, 0);
            // To the end, by recorded steps.
            options.restarts = 1;
            options.lloyd = Lloyd::default();
            compare(&mut cuda, points, 9, Update::Mean, &options, 0);
            options.lloyd.tol_ppm = 20_000;
            compare(&mut cuda, points, 9, Update::Mean, &options, 0);
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

/// Every method alone, in an order that no driver has, gives what the reference gives.
#[test]
fn every_method_gives_what_the_reference_gives() {
    let Some(device) = device() else { return };
    for seed in 0..6 {
        device.set(&format!("seed={seed}"));
        let mut cuda = cuda(CAPABILITIES[seed as usize % 2]);
        let (n, dims, k) = [(1500, 3, 5), (70, 33, 40), (1024, 20, 2)][seed as usize % 3];
        let values = points(CLOUDS[seed as usize % 4], n, dims, seed);
        let weights = weights(n, seed);
        let points = if seed % 2 == 0 {
            Points::new(&values, dims).unwrap()
        } else {
            Points::weighted(&values, dims, &weights).unwrap()
        };
        let expected = with_scalar(points, k, Update::Mean, |problem| trace(problem, seed));
        let resident = cuda.points(&points).unwrap();
        assert_eq!((resident.len(), resident.dims()), (n, dims));
        // Twice: the points stay.
        for _ in 0..2 {
            let mut problem = cuda.clusters_of(&resident, k, Update::Mean).unwrap();
            assert_eq!(trace(&mut problem, seed), expected, "seed {seed}");
        }
    }
}

/// What a problem answers to some hundred calls drawn by `seed`.
fn trace<P: ClusterProblem<Error: Debug>>(problem: &mut P, seed: u64) -> Vec<String> {
    let shape = problem.shape();
    let (n, dims, k) = (shape.points, shape.dims, shape.clusters);
    let mut random = Random::new(seed + 1000);
    let mut told = vec![format!("{shape:?}")];
    problem.fill(1).unwrap();
    let mut last: Option<Farthest> = None;
    for _ in 0..120 {
        let point = random.below(n as u64) as usize;
        let cluster = random.below(k as u64) as usize;
        let line = match random.below(16) {
            0 => {
                let distance = [1, 0, 7, u32::MAX][random.below(4) as usize];
                format!("fill {:?}", problem.fill(distance).unwrap())
            }
            1 => {
                let r = random.next_u64() >> random.below(50);
                format!("pick {r} {:?}", problem.pick(r).unwrap())
            }
            2 => format!("unlabelled {:?}", problem.lowest_unlabelled().unwrap()),
            3 => format!("seed {:?}", problem.seed(cluster, point).unwrap()),
            4 => format!("shorten {:?}", problem.shorten(cluster).unwrap()),
            5 => {
                let count = random.below(25) as usize;
                let candidates: Vec<usize> = (0..count)
                    .map(|_| random.below(n as u64) as usize)
                    .collect();
                let mut totals = vec![0; count];
                problem.potentials(&candidates, &mut totals).unwrap();
                format!("potentials {totals:?}")
            }
            6 => {
                let centroids: Vec<i8> = (0..k * dims).map(|_| random.next_u64() as i8).collect();
                format!("set {:?}", problem.set_centroids(&centroids).unwrap())
            }
            7 => format!("measure {:?}", problem.measure().unwrap()),
            8 => format!("assign {:?}", problem.assign().unwrap()),
            9 => format!("update {:?}", problem.update().unwrap()),
            10 | 11 => {
                let steps: [Assigned; 3] = [(); 3].map(|()| problem.assign_update().unwrap());
                format!("steps {steps:?}")
            }
            12 => {
                // A trace over all empty clusters.
                let mut empty = Vec::new();
                let mut first = 0;
                while let Some(cluster) = problem.next_empty(first).unwrap() {
                    empty.push(cluster);
                    first = cluster + 1;
                }
                format!("empty {empty:?} {:?}", problem.next_empty(k).unwrap())
            }
            13 => {
                last = problem.farthest(last).unwrap();
                format!("farthest {last:?}")
            }
            14 => format!("place {:?}", problem.place(cluster, point).unwrap()),
            _ => {
                problem.keep().unwrap();
                problem.place(cluster, point).unwrap();
                problem.restore().unwrap();
                problem.start_batches().unwrap();
                let batch: Vec<u32> = (0..random.below(90))
                    .map(|_| random.below(n as u64) as u32)
                    .collect();
                problem.batch(&batch, 3 + cluster as u32).unwrap();
                format!("batch {:?}", problem.next_empty(cluster).unwrap())
            }
        };
        told.push(line);
        let outcome = Outcome {
            inertia: 0,
            iterations: 0,
            stop: tercet_core::cluster::Stop::Iterations,
            reseeded: 0,
            empty: 0,
        };
        if random.below(4) == 0 {
            told.push(format!(
                "{:?}",
                read(problem, outcome, Vec::new(), n, dims, k)
            ));
        }
    }
    told
}

#[test]
fn what_the_reference_refuses_is_refused() {
    let Some(_device) = device() else { return };
    let mut cuda = cuda((9, 0));
    let values = [1, 2, 3, 4, 5, 6];
    let points = Points::new(&values, 2).unwrap();
    let refused = |cuda: &mut Cuda, points, k, update| {
        let refused = cuda.clusters(points, k, update, NOTHING()).map(|_| ());
        refused.unwrap_err()
    };
    let clusters = |clusters| {
        CudaError::from(ClusterError::Clusters {
            clusters,
            points: 3,
        })
    };
    assert_eq!(refused(&mut cuda, points, 0, Update::Mean), clusters(0));
    assert_eq!(refused(&mut cuda, points, 4, Update::Mean), clusters(4));
    assert_eq!(
        refused(&mut cuda, points, 4, Update::Mean).to_string(),
        ClusterError::Clusters {
            clusters: 4,
            points: 3
        }
        .to_string()
    );
    let heavy = [u32::MAX, u32::MAX, 2];
    let mut normal = values;
    let sphere = Update::Sphere(normalize(&mut normal, 2).unwrap());
    let weighted = Points::weighted(&normal, 2, &heavy).unwrap();
    assert!(cuda.clusters(weighted, 1, sphere, NOTHING()).is_ok());
    let heavy = [u32::MAX, u32::MAX, 3];
    let weighted = Points::weighted(&normal, 2, &heavy).unwrap();
    let limit = tercet_core::cluster::MAX_SPHERE_WEIGHT;
    let total = limit + 1;
    assert_eq!(
        refused(&mut cuda, weighted, 1, sphere),
        ClusterError::Weight { total, limit }.into()
    );

    let mut problem = cuda.clusters(points, 2, Update::Mean, NOTHING()).unwrap();
    let index = |index, count| Err(CudaError::from(ClusterError::Index { index, count }));
    let length = |expected, found| Err(CudaError::from(ClusterError::Length { expected, found }));
    assert_eq!(problem.seed(2, 0).map(|_| ()), index(2, 2));
    assert_eq!(problem.seed(0, 3).map(|_| ()), index(3, 3));
    assert_eq!(problem.place(0, 3), index(3, 3));
    assert_eq!(problem.shorten(2).map(|_| ()), index(2, 2));
    assert_eq!(problem.potentials(&[1, 3], &mut [0; 2]), index(3, 3));
    assert_eq!(problem.potentials(&[1], &mut [0; 2]), length(1, 2));
    assert_eq!(problem.set_centroids(&[0; 3]), length(4, 3));
    assert_eq!(problem.batch(&[0, 3], 9), index(3, 3));
    assert_eq!(problem.restore(), length(4, 0));
    assert_eq!(problem.read_labels(&mut [0; 2]), length(3, 2));
    assert_eq!(problem.read_distances(&mut [0; 4]), length(3, 4));
    assert_eq!(problem.read_centroids(&mut [0; 5]), length(4, 5));
    assert_eq!(problem.read_sums(&mut [0; 4], &mut [0; 3]), length(2, 3));
    assert_eq!(problem.read_sums(&mut [0; 3], &mut [0; 2]), length(4, 3));
}

/// A run that fails anywhere fails with an error, and the next one gives the reference's bits.
#[test]
fn every_fault_in_a_run_is_an_error() {
    let Some(device) = emulated() else { return };
    let values = points(Cloud::Groups, 150, 9, 1);
    let points = Points::new(&values, 9).unwrap();
    let options = options(Init::Greedy, 2);
    let expected = with_scalar(points, 34, Update::Mean, |problem| {
        run(problem, &options, 0)
    });
    let clustered = |cuda: &mut Cuda| -> Result<Outcome, CudaError> {
        let mut problem = cuda.clusters(points, 34, Update::Mean, NOTHING())?;
        kmeans(&mut problem, &options, &mut Steps::Full, &mut |_, _, _| ())
    };
    let mut injected = 0;
    for kind in [
        "alloc",
        "copy",
        "memset",
        "launch",
        "module",
        "capture",
        "instantiate",
        "graph",
        "lost",
        "sync",
    ] {
        // Thousands of launches: some of them.
        for nth in (1..9).chain([17, 40, 111, 200, 333]) {
            let spec = if kind == "lost" {
                String::new()
            } else {
                ":801".to_owned()
            };
            let mut cuda = cuda((8, 0));
            device.set(&format!("fail=none,fail={kind}:{nth}{spec}"));
            let faults = device.count("faults");
            let result = clustered(&mut cuda);
            device.set("fail=none");
            if device.count("faults") == faults {
                assert_eq!(result, Ok(expected.outcome));
                break;
            }
            injected += 1;
            let error = result.unwrap_err();
            if kind == "lost" {
                assert!(matches!(error, CudaError::Lost { .. }), "{error}");
                assert_eq!(clustered(&mut cuda), Err(error));
            } else {
                assert_eq!(clustered(&mut cuda), Ok(expected.outcome), "{kind}:{nth}");
            }
        }
    }
    println!("{injected} faults injected");
    assert!(injected > 60, "{injected}");
}

/// Repeated steps are one graph, not four launches and a fill.
#[test]
fn settled_steps_are_recorded() {
    let Some(device) = emulated() else { return };
    launches(&device, 6);
}

fn launches(_device: &Device, steps: u32) {
    let values = points(Cloud::Even, 100, 4, 8);
    let points = Points::new(&values, 4).unwrap();
    let mut cuda = cuda((8, 0));
    let mut problem = cuda.clusters(points, 7, Update::Mean, NOTHING()).unwrap();
    let mut options = options(Init::Random, 3);
    options.lloyd.max_iter = steps;
    run(&mut problem, &options, 0);
}
