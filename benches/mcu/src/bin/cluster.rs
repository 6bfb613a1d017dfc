//! Clustering: the nearest centroids of int8 points.

#![no_std]
#![no_main]

use tercet_benches_mcu::memory::Memory;
use tercet_benches_mcu::program;
use tercet_benches_mcu::run::{Bench, Case, Name, Shape};
use tercet_core::arch::plain::nearest;
use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{Buffers, ClusterProblem};
use tercet_core::number::Random;
use tercet_core::scalar::Clusters;
use tercet_core::scalar::cluster::norms;

program!(main);

const DIMS: usize = 64;
const CLUSTERS: usize = 16;
const POINTS: usize = 64;

/// One pass that finds every point's nearest centroid: norms of the centroids, dot products, distances.
struct Measure<'a> {
    clusters: Clusters<'a, i32>,
    data: Data<'a>,
}

/// The same pass with the plain loops.
struct Plain<'a> {
    data: Data<'a>,
    norms: &'a mut [i32],
    labels: &'a mut [u32],
    distances: &'a mut [u32],
}

#[derive(Clone, Copy)]
struct Data<'a> {
    points: &'a [i8],
    centroids: &'a [i8],
}

impl Data<'_> {
    fn check(self, labels: &[u32], distances: &[u32]) -> bool {
        let points = self.points.chunks_exact(DIMS);
        let found = labels.iter().zip(distances);
        points.zip(found).all(|(point, (&label, &distance))| {
            let centroids = self.centroids.chunks_exact(DIMS);
            let distances = centroids.map(|centroid| squared_distance(point, centroid));
            distances.zip(0..).min() == Some((distance, label))
        })
    }
}

const fn name(code: &'static str) -> Name {
    Name {
        operation: "measure",
        layout: "int8",
        shape: Shape(CLUSTERS, DIMS),
        code,
    }
}

impl Case for Measure<'_> {
    fn name(&self) -> Name {
        name("kernel")
    }

    fn work(&self) -> usize {
        POINTS * CLUSTERS * DIMS
    }

    fn run(&mut self) {
        // The sizes were checked when it was made.
        let _ = self.clusters.measure();
    }

    fn check(&mut self) -> bool {
        let (labels, distances) = (self.clusters.labels(), self.clusters.distances());
        self.data.check(labels, distances)
    }
}

impl Case for Plain<'_> {
    fn name(&self) -> Name {
        name("plain")
    }

    fn work(&self) -> usize {
        POINTS * CLUSTERS * DIMS
    }

    fn run(&mut self) {
        norms(self.data.centroids, DIMS, self.norms);
        let out = self.labels.iter_mut().zip(self.distances.iter_mut());
        for (point, (label, distance)) in self.data.points.chunks_exact(DIMS).zip(out) {
            let found = nearest(point, self.data.centroids, self.norms);
            (*label, *distance) = (found.label, found.distance);
        }
    }

    fn check(&mut self) -> bool {
        self.data.check(self.labels, self.distances)
    }
}

fn squared_distance(a: &[i8], b: &[i8]) -> u32 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2))
        .sum()
}

fn main(bench: &mut Bench, mut memory: Memory<'static>) {
    let mut random = Random::new(4);
    let points = memory.slice::<i8>(POINTS * DIMS);
    let start = memory.slice::<i8>(CLUSTERS * DIMS);
    for value in points.iter_mut().chain(start.iter_mut()) {
        *value = (random.below(255) as i16 - 127) as i8;
    }
    let buffers = Buffers::<i32> {
        labels: memory.slice(POINTS),
        distances: memory.slice(POINTS),
        centroids: memory.slice(CLUSTERS * DIMS),
        kept: &mut [],
        norms: memory.slice(CLUSTERS),
        sums: memory.slice(CLUSTERS * DIMS),
        counts: memory.slice(CLUSTERS),
    };
    let mut clusters = Points::new(points, DIMS)
        .and_then(|points| Clusters::new(points, CLUSTERS, Update::Mean, buffers))
        .expect("sizes fit");
    clusters.set_centroids(start).expect("sizes fit");
    let data = Data {
        points,
        centroids: start,
    };
    bench.case(&mut Measure { clusters, data });
    bench.case(&mut Plain {
        data,
        norms: memory.slice(CLUSTERS),
        labels: memory.slice(POINTS),
        distances: memory.slice(POINTS),
    });
}
