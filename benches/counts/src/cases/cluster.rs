//! Steps over points and clusters.

use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{Buffers, ClusterEngine, ClusterProblem};
use tercet_host::parallel::{Clusters, Threads};

use super::{Case, codes};

/// Points, coordinates, clusters: few clusters, as many as a tile of centroids, and a number of coordinates that no register
/// divides.
const SHAPES: [(usize, usize, usize); 3] = [(512, 32, 16), (256, 64, 64), (256, 100, 10)];

pub(super) fn cases() -> Vec<Case> {
    let shapes = SHAPES.into_iter();
    shapes
        .flat_map(|(n, dims, k)| {
            let on = format!("{n}x{dims},k={k}");
            let mut lloyd = started(n, dims, k);
            let mut measured = started(n, dims, k);
            let mut seeding = started(n, dims, k);
            [
                // Labels that change, then labels that mostly stay: what a run of Lloyd's loop is made of.
                Case::new("assign_update", on.clone(), n * dims * k, move || {
                    lloyd.assign_update().expect("sizes that fit");
                }),
                Case::new("measure", on.clone(), n * dims * k, move || {
                    measured.measure().expect("sizes that fit");
                }),
                Case::new("shorten", on, n * dims, move || {
                    seeding.fill(u32::MAX).expect("sizes that fit");
                    seeding.shorten(k / 2).expect("a cluster");
                }),
            ]
        })
        .collect()
}

/// A problem whose first centroids are the first points. Its memory is never freed: it borrows it.
fn started(n: usize, dims: usize, k: usize) -> Clusters<'static> {
    let points: &'static [i8] = codes(n * dims, -127, 127).leak();
    let engine: &'static mut Threads = Box::leak(Box::default());
    let buffers = Buffers {
        labels: vec![0; n].leak(),
        distances: vec![0; n].leak(),
        centroids: vec![0; k * dims].leak(),
        kept: &mut [],
        norms: vec![0; k].leak(),
        sums: vec![0; k * dims].leak(),
        counts: vec![0; k].leak(),
    };
    let held = Points::new(points, dims).expect("whole points");
    let mut problem = engine
        .clusters(held, k, Update::Mean, buffers)
        .expect("sizes that fit");
    problem
        .set_centroids(&points[..k * dims])
        .expect("sizes that fit");
    problem
}
