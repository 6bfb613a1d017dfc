//! A step of Lloyd's loop.

use crate::guest;
use crate::peers::naive::{self, Means};
use tercet_host::measure::{Guest, input};

/// Returns the guests that do the same with f32 copies of the codes.
pub(crate) fn guests(operation: &str, points: usize, dims: usize, k: usize) -> Vec<Guest> {
    if operation != "k-means step" {
        return Vec::new();
    }
    let codes = input::points(points, dims, k);
    let floats: Vec<f32> = codes.iter().map(|&code| f32::from(code)).collect();
    let mut means = Means::new(&floats, dims, k);
    vec![guest("naive", move || {
        naive::lloyd_step(&floats, &mut means)
    })]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tercet_core::cluster::{Points, Update};
    use tercet_core::engine::{Buffers, ClusterProblem};
    use tercet_core::scalar::Clusters;

    #[test]
    fn naive_loop_does_the_same_work() {
        let (n, dims, k) = (5_000, 24, 16);
        let codes = input::points(n, dims, k);
        let floats: Vec<f32> = codes.iter().map(|&code| f32::from(code)).collect();
        let (mut labels, mut distances) = (vec![0; n], vec![0; n]);
        let (mut centroids, mut norms) = (vec![0; k * dims], vec![0; k]);
        let (mut sums, mut counts) = (vec![0i64; k * dims], vec![0; k]);
        let buffers = Buffers {
            labels: &mut labels,
            distances: &mut distances,
            centroids: &mut centroids,
            kept: &mut [],
            norms: &mut norms,
            sums: &mut sums,
            counts: &mut counts,
        };
        let points = Points::new(&codes, dims).unwrap();
        let mut problem = Clusters::new(points, k, Update::Mean, buffers).unwrap();
        problem.set_centroids(&codes[..k * dims]).unwrap();
        problem.assign_update().unwrap();
        let mut means = Means::new(&floats, dims, k);
        naive::lloyd_step(&floats, &mut means);
        // Squared distances and sums of these integers stay below 2²⁴, so the floats are exact.
        assert_eq!(problem.labels(), means.labels);
        for (&ours, &theirs) in problem.centroids().iter().zip(&means.centroids) {
            assert!((f32::from(ours) - theirs).abs() <= 0.5, "{ours}, {theirs}");
        }
    }
}
