//! k-means: steps of Lloyd's loop, and k-means++ seeding.

use tercet_core::cluster::{ClusterError, Init, Points, Update, seed};
use tercet_core::engine::{Assigned, Buffers, ClusterEngine, ClusterProblem};
use tercet_core::number::Random;

use super::{Bits, Operation, legal};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::task::Task;
use crate::measure::work::{Arithmetic, LeastWork};
use crate::measure::{Traffic, input};

/// Steps per run: this shows if an engine learns in one step what it need not compute in the next.
pub(in crate::measure) const STEPS: u32 = 8;

/// Points to cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::measure) struct Shape {
    /// Number of points.
    pub(in crate::measure) points: usize,
    /// Coordinates per point.
    pub(in crate::measure) dims: usize,
    /// Clusters.
    pub(in crate::measure) k: usize,
}

/// Steps of Lloyd's loop from the same first centroids, without a stopping rule.
pub(in crate::measure) struct Lloyd {
    points: Vec<i8>,
    shape: Shape,
    steps: u32,
}

impl Lloyd {
    /// The work is that of a step: points and centroids in, a label and a distance per point and new centroids out.
    pub(in crate::measure) fn new(shape: Shape, steps: u32) -> (LeastWork, Self) {
        let Shape { points, dims, k } = shape;
        let values = points * dims;
        let mut work = LeastWork::pass(values, Traffic::Narrow, values + points * 8 + 2 * k * dims)
            .with_products((values * k) as u64, Arithmetic::Int8);
        work.steps = steps;
        let points = input::points(points, dims, k);
        let body = Self {
            points,
            shape,
            steps,
        };
        (work, body)
    }
}

impl Operation for Lloyd {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let start = &self.points[..self.shape.k * self.shape.dims];
        let memory = &mut Memory::new(self.shape);
        with_engine!(by, engine => {
            let mut problem = taken_up(&mut engine, &self.points, self.shape, memory);
            let mut last = Assigned::default();
            clock.time(&mut || {
                legal(problem.set_centroids(start));
                for _ in 0..self.steps {
                    last = legal(problem.assign_update());
                }
            });
            result(&mut problem, self.shape, last.inertia)
        })
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Lloyd {
            points: &self.points,
            dims: self.shape.dims,
            clusters: self.shape.k,
            steps: self.steps,
        })
    }
}

/// Assignment of points to the nearest of given centroids.
pub(in crate::measure) struct Nearest {
    points: Vec<i8>,
    centroids: Vec<i8>,
    shape: Shape,
}

impl Nearest {
    /// Points and centroids in, a label and a distance per point out.
    pub(in crate::measure) fn new(shape: Shape) -> (LeastWork, Self) {
        let Shape { points, dims, k } = shape;
        let values = points * dims;
        let work = LeastWork::pass(values, Traffic::Narrow, values + points * 8 + k * dims)
            .with_products((values * k) as u64, Arithmetic::Int8);
        let body = Self {
            points: input::points(points, dims, k),
            centroids: input::codes(k * dims),
            shape,
        };
        (work, body)
    }
}

impl Operation for Nearest {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let count = self.shape.points;
        let (mut labels, mut distances) = (vec![0; count], vec![0; count]);
        let points = legal(Points::new(&self.points, self.shape.dims));
        clock.time(&mut || {
            with_engine!(by, engine => {
                legal(engine.nearest(points, &self.centroids, &mut labels, &mut distances));
            });
        });
        Bits::default().with(&labels).with(&distances).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Nearest {
            points: &self.points,
            dims: self.shape.dims,
            centroids: &self.centroids,
        })
    }
}

/// k-means++ as published: a draw by D² for each centroid.
pub(in crate::measure) struct Seed {
    points: Vec<i8>,
    shape: Shape,
}

impl Seed {
    /// The work is that of a centroid: a pass over points and distances.
    pub(in crate::measure) fn new(shape: Shape) -> (LeastWork, Self) {
        let Shape { points, dims, k } = shape;
        let values = points * dims;
        let mut work = LeastWork::pass(values, Traffic::Narrow, values + points * 8)
            .with_products(values as u64, Arithmetic::Int8);
        work.steps = k as u32;
        let points = input::points(points, dims, k);
        (work, Self { points, shape })
    }
}

impl Operation for Seed {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let memory = &mut Memory::new(self.shape);
        with_engine!(by, engine => {
            let mut problem = taken_up(&mut engine, &self.points, self.shape, memory);
            clock.time(&mut || {
                legal(seed(&mut problem, Init::PlusPlus, &mut Random::new(1)));
            });
            result(&mut problem, self.shape, 0)
        })
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Seed {
            points: &self.points,
            dims: self.shape.dims,
            clusters: self.shape.k,
        })
    }
}

/// The memory of a problem.
struct Memory {
    labels: Vec<u32>,
    distances: Vec<u32>,
    centroids: Vec<i8>,
    norms: Vec<i32>,
    sums: Vec<i64>,
    counts: Vec<u64>,
}

impl Memory {
    fn new(shape: Shape) -> Self {
        let table = shape.k * shape.dims;
        Self {
            labels: vec![0; shape.points],
            distances: vec![0; shape.points],
            centroids: vec![0; table],
            norms: vec![0; shape.k],
            sums: vec![0; table],
            counts: vec![0; shape.k],
        }
    }
}

fn taken_up<'a, E: ClusterEngine<Error = ClusterError>>(
    engine: &'a mut E,
    points: &'a [i8],
    shape: Shape,
    memory: &'a mut Memory,
) -> E::Clusters<'a> {
    let buffers = Buffers {
        labels: &mut memory.labels,
        distances: &mut memory.distances,
        centroids: &mut memory.centroids,
        kept: &mut [],
        norms: &mut memory.norms,
        sums: &mut memory.sums,
        counts: &mut memory.counts,
    };
    let points = legal(Points::new(points, shape.dims));
    legal(engine.clusters(points, shape.k, Update::Mean, buffers))
}

fn result(
    problem: &mut impl ClusterProblem<Error = ClusterError>,
    shape: Shape,
    inertia: u64,
) -> u64 {
    let (mut labels, mut centroids) = (vec![0; shape.points], vec![0; shape.k * shape.dims]);
    legal(problem.read_labels(&mut labels));
    legal(problem.read_centroids(&mut centroids));
    let bits = Bits::default().with(&labels).with(&centroids);
    bits.with(&[inertia]).finish()
}
