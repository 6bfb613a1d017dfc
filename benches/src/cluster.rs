//! One step of Lloyd's loop.

use crate::peers::naive::{self, Means};
use crate::{Case, Traffic, Who, codes, short};
use std::rc::Rc;
use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{Buffers, ClusterEngine, ClusterProblem};
use tercet_core::scalar;
use tercet_host::parallel::Threads;

/// Points, coordinates, clusters: the first has eight times as much arithmetic a byte as the second.
const SHAPES: [(usize, usize, usize); 2] = [(100_000, 64, 64), (1_000_000, 32, 16)];

/// The cases, each built when it is asked for. A problem borrows its memory, so a case's stays allocated.
pub fn cluster() -> impl Iterator<Item = Case> {
    SHAPES.into_iter().map(|(n, dims, k)| {
        let codes: &'static [i8] = codes(n * dims).leak();
        let floats: Rc<[f32]> = codes.iter().map(|&code| f32::from(code)).collect();
        let means = Means::new(&floats, dims, k);
        let points = Rc::new(Points::new(codes, dims).expect("whole points"));
        let threads: &'static mut Threads = Box::leak(Box::default());
        let threads = threads.clusters(*points, k, Update::Mean, buffers(*points, k));
        let scalar = scalar::Clusters::new(*points, k, Update::Mean, buffers(*points, k));
        // Points and centroids in; a label and a distance a point and new centroids out.
        let bytes = n * dims + n * 8 + 2 * k * dims;
        let name = format!("lloyd step, {} × {dims}, k = {k}", short(n));
        Case::new(name, n * dims, bytes, Traffic::Narrow)
            .with(
                Who::Scalar,
                &points,
                started(scalar, *points, k),
                |_, it| step(it),
            )
            .with(
                Who::Threads,
                &points,
                started(threads, *points, k),
                |_, it| step(it),
            )
            .with(Who::Naive, &floats, means, naive::lloyd_step)
    })
}

/// The memory of a problem.
fn buffers(points: Points<'_>, k: usize) -> Buffers<'static> {
    let table = k * points.dims();
    Buffers {
        labels: vec![0; points.len()].leak(),
        distances: vec![0; points.len()].leak(),
        centroids: vec![0; table].leak(),
        kept: &mut [],
        norms: vec![0; k].leak(),
        sums: vec![0; table].leak(),
        counts: vec![0; k].leak(),
    }
}

/// A problem whose first centroids are the first points.
fn started<P: ClusterProblem>(problem: Result<P, P::Error>, points: Points<'_>, k: usize) -> P {
    let start = &points.values()[..k * points.dims()];
    let started = problem.and_then(|mut problem| {
        problem.set_centroids(start)?;
        Ok(problem)
    });
    started.unwrap_or_else(|_| panic!("sizes fit"))
}

/// The next step: assigns every point, then moves the centroids.
fn step(problem: &mut impl ClusterProblem) {
    let Ok(_) = problem.assign_update() else {
        panic!("an engine on the CPU does not fail");
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naive_loop_does_the_same_work() {
        let (n, dims, k) = (5_000, 24, 16);
        let codes = codes(n * dims);
        let floats: Vec<f32> = codes.iter().map(|&code| f32::from(code)).collect();
        let points = Points::new(&codes, dims).unwrap();
        let problem = scalar::Clusters::new(points, k, Update::Mean, buffers(points, k));
        let mut problem = started(problem, points, k);
        let mut means = Means::new(&floats, dims, k);

        step(&mut problem);
        naive::lloyd_step(&floats, &mut means);
        // Squared distances and sums of these integers stay below 2²⁴, so the floats are exact.
        assert_eq!(problem.labels(), means.labels);
        for (&ours, &theirs) in problem.centroids().iter().zip(&means.centroids) {
            assert!((f32::from(ours) - theirs).abs() <= 0.5, "{ours}, {theirs}");
        }
    }
}
