//! Clustering on a device, call by call: in any order what the reference engine answers, refusals, faults, and
//! recorded steps.

use std::fmt::Debug;

use crate::support::cluster::{
    CAPABILITIES, CLOUDS, Cloud, NOTHING, cuda, options, points, read, run, weights, with_scalar,
};
use crate::support::emulator::{device, emulated};
use tercet_core::cluster::{
    ClusterError, Init, Outcome, Points, Steps, Stop, Update, kmeans, normalize,
};
use tercet_core::engine::{Assigned, ClusterEngine, ClusterProblem, Farthest};
use tercet_core::number::Random;
use tercet_gpu::engine::{Cuda, CudaError};

/// Every method alone, in an order that no driver has, gives what the reference gives.
#[test]
fn every_method_gives_what_the_reference_gives() {
    let Some(device) = device() else { return };
    for seed in 0..6 {
        device.set(&format!("seed={seed}"));
        let mut cuda = cuda(CAPABILITIES[seed as usize % 3]);
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
            stop: Stop::Iterations,
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
    let values = points(Cloud::Groups, 33, 9, 1);
    let points = Points::new(&values, 9).unwrap();
    let options = options(Init::Random, 2);
    let expected = with_scalar(points, 32, Update::Mean, |problem| {
        run(problem, &options, 0)
    });
    let clustered = |cuda: &mut Cuda| -> Result<Outcome, CudaError> {
        let mut problem = cuda.clusters(points, 32, Update::Mean, NOTHING())?;
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
        for nth in (1..6).chain([17, 40, 90]) {
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
    assert!(injected > 40, "{injected}");
}

/// A step that was queued in part leaves a problem that the next step sets right.
#[test]
fn a_problem_goes_on_after_a_step_that_failed() {
    let Some(device) = emulated() else { return };
    let values = points(Cloud::Even, 130, 7, 4);
    let points = Points::new(&values, 7).unwrap();
    for (k, kind) in [
        (5, "launch"),
        (33, "launch"),
        (5, "memset"),
        (5, "graph"),
        (33, "instantiate"),
        (5, "sync"),
    ] {
        for (nth, at) in (1..6).flat_map(|nth| (0..4).map(move |at| (nth, at))) {
            let mut cuda = cuda((8, 0));
            let mut problem = cuda.clusters(points, k, Update::Mean, NOTHING()).unwrap();
            problem.set_centroids(&values[..7 * k]).unwrap();
            for step in 0..4 {
                // The fourth is by the graph.
                let faults = device.count("faults");
                if step == at {
                    device.set(&format!("fail={kind}:{nth}:801"));
                }
                let result = if step % 2 == 0 {
                    problem.assign()
                } else {
                    problem.assign_update()
                };
                device.set("fail=none");
                assert!(result.is_ok() || device.count("faults") > faults);
            }
            let mut centroids = vec![0; 7 * k];
            problem.read_centroids(&mut centroids).unwrap();
            let found = problem.assign().unwrap().inertia;
            let (mut sums, mut counts) = (vec![0; 7 * k], vec![0; k]);
            problem.read_sums(&mut sums, &mut counts).unwrap();
            let (expected, expected_sums) = with_scalar(points, k, Update::Mean, |problem| {
                problem.set_centroids(&centroids).unwrap();
                let inertia = problem.assign().unwrap().inertia;
                let (mut sums, mut counts) = (vec![0; 7 * k], vec![0; k]);
                problem.read_sums(&mut sums, &mut counts).unwrap();
                (inertia, (sums, counts))
            });
            assert_eq!(found, expected, "{kind}:{nth} in {at}, {k}");
            assert_eq!((sums, counts), expected_sums, "{kind}:{nth} in {at}, {k}");
        }
    }
}

/// From the second on, a step of Lloyd's loop is one graph.
#[test]
fn settled_steps_are_recorded() {
    let Some(device) = emulated() else { return };
    let values = points(Cloud::Even, 100, 4, 8);
    let points = Points::new(&values, 4).unwrap();
    let mut cuda = cuda((8, 0));
    let mut problem = cuda.clusters(points, 7, Update::Mean, NOTHING()).unwrap();
    problem.set_centroids(&values[..28]).unwrap();
    problem.assign_update().unwrap();
    // Recording counts as launching.
    problem.assign_update().unwrap();
    let (launches, graphs) = (device.count("launches"), device.count("graphs"));
    for _ in 0..5 {
        problem.assign_update().unwrap();
    }
    assert_eq!(device.count("graphs") - graphs, 5);
    assert_eq!(device.count("launches"), launches);
    // Tensor cores have 32 clusters or more.
    drop(problem);
    let mut problem = cuda.clusters(points, 32, Update::Mean, NOTHING()).unwrap();
    problem.set_centroids(&values[..128]).unwrap();
    problem.assign_update().unwrap();
    device.set("fail=module:1+");
    problem.assign_update().unwrap();
}
