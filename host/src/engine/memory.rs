//! The memory of a clustering, where the engine has none of its own.

use tercet_core::cluster::{ClusterError, Points, Update};
use tercet_core::engine::{Buffers, ClusterProblem};

use super::{Fault, Worker};

/// Points' labels and distances, clusters and their sums.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) labels: Vec<u32>,
    pub(crate) distances: Vec<u32>,
    pub(crate) centroids: Vec<i8>,
    kept: Vec<i8>,
    norms: Vec<i32>,
    pub(crate) sums: Vec<i64>,
    pub(crate) counts: Vec<u64>,
}

impl Memory {
    /// What `E` works in: nothing where it has memory of its own.
    pub(crate) fn of<E: Worker>(
        points: &Points<'_>,
        k: usize,
        keeps: bool,
    ) -> Result<Self, ClusterError> {
        // Before anything is allocated for it.
        points.check_clusters(k)?;
        if E::OWN_MEMORY {
            return Ok(Self::default());
        }
        let table = k * points.dims();
        Ok(Self {
            labels: vec![0; points.len()],
            distances: vec![0; points.len()],
            centroids: vec![0; table],
            kept: vec![0; if keeps { table } else { 0 }],
            norms: vec![0; k],
            sums: vec![0; table],
            counts: vec![0; k],
        })
    }

    pub(crate) fn buffers(&mut self) -> Buffers<'_> {
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

    /// What an engine has in memory of its own; `None` where it worked in the caller's.
    pub(crate) fn brought<E: Worker, P: ClusterProblem>(
        problem: &mut P,
    ) -> Result<Option<Self>, P::Error> {
        E::OWN_MEMORY.then(|| Self::read(problem)).transpose()
    }

    /// What a problem has found, wherever it lies.
    pub(crate) fn read<P: ClusterProblem>(problem: &mut P) -> Result<Self, P::Error> {
        let shape = problem.shape();
        let table = shape.clusters * shape.dims;
        let mut memory = Self {
            labels: vec![0; shape.points],
            distances: vec![0; shape.points],
            centroids: vec![0; table],
            sums: vec![0; table],
            counts: vec![0; shape.clusters],
            ..Self::default()
        };
        problem.read_labels(&mut memory.labels)?;
        problem.read_distances(&mut memory.distances)?;
        problem.read_centroids(&mut memory.centroids)?;
        problem.read_sums(&mut memory.sums, &mut memory.counts)?;
        Ok(memory)
    }
}

/// [`Worker::nearest`] through the steps of clustering, which take no more clusters than points: as many centroids at a time.
pub(super) fn nearest_in_parts<E: Worker>(
    engine: &mut E,
    points: Points<'_>,
    centroids: &[i8],
    labels: &mut [u32],
    distances: &mut [u32],
) -> Result<(), Fault> {
    let (n, dims) = (points.len(), points.dims());
    let all = Points::new(centroids, dims)?.len();
    let (mut part_labels, mut part_distances) = (vec![0; n], vec![0; n]);
    for first in (0..all).step_by(n) {
        let k = n.min(all - first);
        let mut memory = Memory::of::<E>(&points, k, false)?;
        let clusters = engine.clusters(points, k, Update::Mean, memory.buffers());
        let mut clusters = clusters.map_err(Into::into)?;
        let mut measured = || {
            clusters.set_centroids(&centroids[first * dims..(first + k) * dims])?;
            clusters.measure()?;
            clusters.read_labels(&mut part_labels)?;
            clusters.read_distances(&mut part_distances)
        };
        measured().map_err(Into::into)?;
        let found = part_labels.iter().zip(&part_distances);
        for ((label, distance), (&part, &near)) in labels.iter_mut().zip(&mut *distances).zip(found)
        {
            // The lowest of equals is of an earlier part.
            if first == 0 || near < *distance {
                // There are fewer than 2³² centroids: a label fits.
                (*label, *distance) = (first as u32 + part, near);
            }
        }
    }
    Ok(())
}
