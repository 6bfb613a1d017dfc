//! Requests of a clustering to all its devices, and to the device of a point.

use tercet_core::cluster::ClusterError;
use tercet_core::engine::Assigned;

use super::{CudasClusters, Shard};
use crate::engine::CudaError;
use crate::engine::cluster::problem::{length, padded};
use crate::engine::cluster::state::PassResult;
use crate::engine::cudas::cut;

impl CudasClusters<'_> {
    /// Returns the number of coordinates of all clusters.
    pub(super) fn table(&self) -> usize {
        self.k * self.whole.dims
    }

    /// Returns the coordinates and weight of a point: from the host if it has them, otherwise from the point's device.
    pub(super) fn row(&mut self, point: usize) -> Result<(Vec<i8>, u32), CudaError> {
        if let Some(points) = &self.points {
            let weight = points.weights().map_or(1, |weights| weights[point]);
            return Ok((points.row(point).to_vec(), weight));
        }
        let mut shards = self.shards.iter_mut();
        let owner = shards.find(|shard| shard.range.contains(&point));
        let Some(Shard {
            clusters, range, ..
        }) = owner
        else {
            let (index, count) = (point, self.whole.len);
            return Err(ClusterError::Index { index, count }.into());
        };
        let (cuda, points) = (&mut *clusters.cuda, clusters.points.get());
        let (mut row, mut weight) = (vec![0; points.dims], [1]);
        let at = point - range.start;
        let read = cuda.read_at(&points.rows, at * points.stride, &mut row);
        let read = read.and_then(|()| match &points.weights {
            Some(weights) => cuda.read_at(weights, at, &mut weight),
            None => Ok(()),
        });
        cuda.named(read)?;
        Ok((row, weight[0]))
    }

    /// Returns the results of the last pass on every device. Waits for all of them.
    pub(super) fn found(&mut self) -> Result<Vec<PassResult>, CudaError> {
        let found = self.shards.iter_mut().map(|shard| {
            let clusters = &mut shard.clusters;
            let found = clusters.state.found(clusters.cuda);
            clusters.cuda.named(found)
        });
        found.collect()
    }

    /// Runs a pass that finds a number on each device: first queued on all, then waited for.
    pub(super) fn numbers(
        &mut self,
        pass: impl FnMut(&mut Shard<'_>) -> Result<(), CudaError>,
    ) -> Result<Vec<u64>, CudaError> {
        self.queue(pass)?;
        let found = self.found()?;
        Ok(found.into_iter().map(|found| found.number).collect())
    }

    pub(super) fn assigned(&mut self) -> Result<Assigned, CudaError> {
        let mut all = Assigned::default();
        for found in self.found()? {
            all.merge(&Assigned {
                inertia: found.inertia,
                changed: found.changed,
            });
        }
        Ok(all)
    }

    /// Queues labels, distances, sums and counts on every device.
    pub(super) fn assign_queued(&mut self) -> Result<(), CudaError> {
        self.masses = None;
        self.empty = None;
        self.totalled = false;
        self.queue(|shard| {
            let clusters = &mut shard.clusters;
            clusters.state.massed = false;
            let queued = clusters.assigned_again();
            // As on one device.
            clusters.state.settled = queued.is_ok();
            queued
        })
    }

    /// Gives a centroid a point's coordinates on every device. With `seed`, the point's own device also gives the point
    /// the label and D² = 0.
    pub(super) fn placed(
        &mut self,
        row: &[i8],
        cluster: usize,
        point: usize,
        seed: bool,
    ) -> Result<(), CudaError> {
        self.queue(|shard| {
            let (clusters, range) = (&mut shard.clusters, &shard.range);
            if range.contains(&point) {
                return clusters.placed(cluster, point - range.start, seed);
            }
            let (dims, stride) = (row.len(), clusters.points.get().stride);
            let row = padded(row, dims, stride);
            let centroids = &mut clusters.state.centroids;
            clusters.cuda.write_at(&row, centroids, cluster * stride)
        })
    }

    /// Returns Σ w·D² of each device's points.
    pub(super) fn weigh(&mut self) -> Result<Vec<u64>, CudaError> {
        if let Some(masses) = &self.masses {
            return Ok(masses.clone());
        }
        self.queue(|shard| shard.clusters.weigh())?;
        let mut all = Vec::with_capacity(self.shards.len());
        for Shard { clusters, .. } in &mut self.shards {
            let mut masses = vec![0_u64; clusters.state.masses.len()];
            let read = clusters.cuda.read(&clusters.state.masses, &mut masses);
            clusters.cuda.named(read)?;
            all.push(masses.iter().sum());
        }
        self.masses = Some(all.clone());
        Ok(all)
    }

    /// Reads a value of each device's points into its part of `out`.
    pub(super) fn read_points(
        &mut self,
        out: &mut [u32],
        read: impl Fn(&mut Shard<'_>, &mut [u32]) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        length(self.whole.len, out.len())?;
        let parts = cut(out, self.shards.iter().map(|shard| shard.range.len()));
        for (shard, part) in self.shards.iter_mut().zip(parts) {
            let done = read(shard, part);
            shard.clusters.cuda.named(done)?;
        }
        Ok(())
    }
}
