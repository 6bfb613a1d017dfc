//! Points to cluster, and what a clustering leaves, by the reference engine and by others.

use std::fmt::Debug;

use tercet_core::cluster::{Init, Kmeans, Lloyd, Outcome, Points, Steps, Update, kmeans};
use tercet_core::engine::{Buffers, ClusterEngine, ClusterProblem};
use tercet_core::number::Random;
use tercet_core::scalar::Scalar;
use tercet_gpu::engine::{Cuda, CudaOptions, TensorCores};

/// Families of points.
#[derive(Clone, Copy, Debug)]
pub enum Cloud {
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

pub const CLOUDS: [Cloud; 5] = [
    Cloud::Even,
    Cloud::Groups,
    Cloud::Ends,
    Cloud::Ties,
    Cloud::Same,
];

pub fn points(cloud: Cloud, n: usize, dims: usize, seed: u64) -> Vec<i8> {
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
pub fn weights(n: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed ^ 99);
    let mut weights: Vec<u32> = (0..n)
        .map(|_| [0, 1, 2, 3, 1000, 70_000][random.below(6) as usize])
        .collect();
    weights[n / 2] = 5;
    weights
}

/// What a clustering leaves, and what it told on the way.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    pub outcome: Outcome,
    pub curve: Vec<(u32, u32, u64)>,
    pub labels: Vec<u32>,
    pub distances: Vec<u32>,
    pub centroids: Vec<i8>,
    pub sums: Vec<i64>,
    pub counts: Vec<u64>,
}

pub fn run<P: ClusterProblem<Error: Debug>>(
    problem: &mut P,
    options: &Kmeans,
    batch: usize,
) -> Run {
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

pub fn read<P: ClusterProblem<Error: Debug>>(
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
pub fn with_scalar<R>(
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

/// What calls of a problem give that drivers make rarely, one after another; of 40 or more points and three clusters.
pub fn calls<P: ClusterProblem<Error: Debug>>(problem: &mut P) -> Vec<u64> {
    let mut told = Vec::new();
    let mut tell = |value: Option<usize>| told.push(value.map_or(u64::MAX, |x| x as u64));
    problem.fill(1).unwrap();
    for r in [0, 1, 12, 13, 30, 52, 53] {
        tell(problem.pick(r).unwrap());
    }
    tell(problem.lowest_unlabelled().unwrap());
    problem.fill(u32::MAX).unwrap();
    tell(Some(problem.seed(0, 17).unwrap() as usize));
    tell(Some(problem.shorten(0).unwrap() as usize));
    let mut totals = [0; 11];
    let candidates = [0, 39, 17, 13, 14, 26, 27, 1, 2, 3, 38];
    problem.potentials(&candidates, &mut totals).unwrap();
    totals.iter().for_each(|&total| tell(Some(total as usize)));
    let mut last = None;
    while let Some(next) = problem.farthest(last).unwrap() {
        tell(Some(next.index));
        tell(Some(next.distance as usize));
        last = Some(next);
    }
    problem.place(1, 39).unwrap();
    problem.place(2, 39).unwrap();
    problem.keep().unwrap();
    let measured = problem.measure().unwrap();
    tell(Some(measured.inertia as usize));
    tell(Some(measured.changed as usize));
    problem.assign().unwrap();
    for first in 0..4 {
        tell(problem.next_empty(first).unwrap());
    }
    problem.update().unwrap();
    problem.assign_update().unwrap();
    for first in 0..4 {
        tell(problem.next_empty(first).unwrap());
    }
    problem.restore().unwrap();
    let shape = problem.shape();
    let mut centroids = vec![0; shape.clusters * shape.dims];
    problem.read_centroids(&mut centroids).unwrap();
    centroids.iter().for_each(|&x| tell(Some(x as usize)));
    told
}

pub const NOTHING: fn() -> Buffers<'static> = || Buffers {
    labels: &mut [],
    distances: &mut [],
    centroids: &mut [],
    kept: &mut [],
    norms: &mut [],
    sums: &mut [],
    counts: &mut [],
};

/// Small slots, so that points take many copies, and kernels of a capability, its newest instructions among them.
pub fn cuda(capability: (u32, u32)) -> Cuda {
    let options = CudaOptions {
        slot: 4096,
        capability: Some(capability),
        tensor_cores: TensorCores::Wgmma,
        ..CudaOptions::default()
    };
    Cuda::new(&options).unwrap()
}

/// dp4a, mma, and wgmma.
pub const CAPABILITIES: [(u32, u32); 3] = [(7, 5), (8, 0), (9, 0)];

pub fn options(init: Init, seed: u64) -> Kmeans {
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
