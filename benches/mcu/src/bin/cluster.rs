//! Clustering: the nearest centroids of int8 points.

#![no_std]
#![no_main]

use tercet_benches_mcu::memory::Memory;
use tercet_benches_mcu::program;
use tercet_benches_mcu::run::{Bench, Case, Name, Shape};
use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{Buffers, ClusterProblem};
use tercet_core::number::Random;
use tercet_core::scalar::Clusters;

program!(main);

const DIMS: usize = 64;
const CLUSTERS: usize = 16;
const POINTS: usize = 64;

/// One pass that finds every point's nearest centroid: norms of the centroids, dot products, distances.
struct Measure<'a> {
    clusters: Clusters<'a, i32>,
    points: &'a [i8],
    centroids: &'a [i8],
}

impl Case for Measure<'_> {
    fn name(&self) -> Name {
        Name {
            operation: "measure",
            layout: "int8",
            shape: Shape(CLUSTERS, DIMS),
            code: "kernel",
        }
    }

    fn work(&self) -> usize {
        POINTS * CLUSTERS * DIMS
    }

    fn run(&mut self) {
        // Sizes were checked when it was made.
        let _ = self.clusters.measure();
    }

    fn check(&mut self) -> bool {
        let points = self.points.chunks_exact(DIMS);
        let found = self.clusters.labels().iter().zip(self.clusters.distances());
        points.zip(found).all(|(point, (&label, &distance))| {
            let centroids = self.centroids.chunks_exact(DIMS);
            let distances = centroids.map(|centroid| squared_distance(point, centroid));
            distances.zip(0..).min() == Some((distance, label))
        })
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
    bench.case(&mut Measure {
        clusters,
        points,
        centroids: start,
    });
}
