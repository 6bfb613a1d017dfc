//! The memory of a clustering, for engines without their own.

use tercet_core::cluster::{ClusterError, Points};
use tercet_core::engine::{BufferLengths, Buffers, ClusterEngine, ClusterProblem};

/// Labels and distances of points, clusters and their sums.
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
    /// Returns the memory for an engine: empty if it has its own.
    pub(crate) fn of<E: ClusterEngine>(
        engine: &E,
        points: &Points<'_>,
        k: usize,
        keeps: bool,
    ) -> Result<Self, ClusterError> {
        // Before anything is allocated for it.
        points.check_clusters(k)?;
        if !engine.needs_buffers() {
            return Ok(Self::default());
        }
        let lengths = BufferLengths::of(points.len(), points.dims(), k, keeps);
        Ok(Self {
            labels: vec![0; lengths.labels],
            distances: vec![0; lengths.distances],
            centroids: vec![0; lengths.centroids],
            kept: vec![0; lengths.kept],
            norms: vec![0; lengths.norms],
            sums: vec![0; lengths.sums],
            counts: vec![0; lengths.counts],
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

    /// Reads the results of a problem, wherever they are.
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
