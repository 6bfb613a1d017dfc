//! Memory for a problem, and clouds of points.

use proptest::prelude::*;
use tercet_core::cluster::{ClusterError, Kmeans, Outcome, Points, Steps, Update, kmeans};
use tercet_core::engine::{Buffers, ClusterProblem};
use tercet_core::scalar::Clusters;
use tercet_core::scalar::cluster::Accumulator;

pub(crate) struct Memory<S = i64> {
    pub(crate) labels: Vec<u32>,
    pub(crate) distances: Vec<u32>,
    pub(crate) centroids: Vec<i8>,
    kept: Vec<i8>,
    norms: Vec<i32>,
    sums: Vec<S>,
    counts: Vec<u64>,
}

impl<S: Accumulator> Memory<S> {
    pub(crate) fn new(points: usize, dims: usize, k: usize) -> Self {
        Self {
            labels: vec![0; points],
            distances: vec![0; points],
            centroids: vec![0; k * dims],
            kept: vec![0; k * dims],
            norms: vec![0; k],
            sums: vec![S::default(); k * dims],
            counts: vec![0; k],
        }
    }

    pub(crate) fn buffers(&mut self) -> Buffers<'_, S> {
        Buffers {
            labels: &mut self.labels,
            distances: &mut self.distances,
            centroids: &mut self.centroids,
            kept: &mut self.kept,
            norms: &mut self.norms,
            sums: &mut self.sums,
            counts: &mut self.counts,
        }
    }

    pub(crate) fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
    ) -> Result<Clusters<'a, S>, ClusterError> {
        Clusters::new(points, k, Update::Mean, self.buffers())
    }
}

/// What a run leaves behind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) labels: Vec<u32>,
    pub(crate) distances: Vec<u32>,
    pub(crate) centroids: Vec<i8>,
    pub(crate) sums: Vec<i64>,
    pub(crate) counts: Vec<u64>,
    pub(crate) curve: Vec<u64>,
}

/// Runs k-means, from `given` centroids where there are some.
pub(crate) fn run(
    points: Points<'_>,
    k: usize,
    update: Update,
    options: &Kmeans,
    given: Option<&[i8]>,
    steps: &mut Steps<'_>,
) -> Result<Run, ClusterError> {
    let mut memory = Memory::<i64>::new(points.len(), points.dims(), k);
    let mut clusters = Clusters::new(points, k, update, memory.buffers())?;
    if let Some(given) = given {
        clusters.set_centroids(given)?;
    }
    let mut curve = Vec::new();
    let outcome = kmeans(&mut clusters, options, steps, &mut |_, _, inertia| {
        curve.push(inertia);
    })?;
    let (mut sums, mut counts) = (vec![0; k * points.dims()], vec![0; k]);
    clusters.read_sums(&mut sums, &mut counts)?;
    Ok(Run {
        outcome,
        sums,
        counts,
        curve,
        labels: memory.labels,
        distances: memory.distances,
        centroids: memory.centroids,
    })
}

/// Points, their dims and k: spread, in few values (many ties), or at the ends of int8.
pub(crate) fn clouds() -> impl Strategy<Value = (Vec<i8>, usize, usize)> {
    let coordinate = prop_oneof![
        3 => any::<i8>().boxed(),
        2 => (-2i8..3).boxed(),
        1 => prop_oneof![Just(-128i8), Just(127), Just(0)].boxed(),
    ];
    (1usize..9, 1usize..40).prop_flat_map(move |(dims, points)| {
        (
            prop::collection::vec(coordinate.clone(), dims * points),
            Just(dims),
            1..=points.min(12),
        )
    })
}

/// ‖a − b‖² in 64 bits.
pub(crate) fn distance(a: &[i8], b: &[i8]) -> i64 {
    let square = |(&a, &b): (&i8, &i8)| (i64::from(a) - i64::from(b)).pow(2);
    a.iter().zip(b).map(square).sum()
}

/// So many cases, and no file of failures: a failure prints its input.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
