//! What a clustering keeps on the device.

use tercet_core::cluster::{ClusterError, MAX_SPHERE_WEIGHT, Update};
use tercet_core::scalar::cluster::Accumulator;

use super::points::DevicePoints;
use crate::engine::{Cuda, CudaError, DeviceBuffer, Graph};

/// A label that stands for none; there are fewer clusters.
pub(super) const UNLABELLED: u32 = u32::MAX;

/// Points whose w·D² are summed together; as in `kernels/cuda/seed.cu`.
pub(super) const SHARE: usize = 1024;

/// Candidates that one pass over the points tries; as there.
pub(super) const TRIED: usize = 8;

/// What passes leave, in the order of `kernels/include/tercet/cluster.cuh`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    pub(super) inertia: u64,
    pub(super) changed: u64,
    /// k less the lowest empty cluster; 0 for none.
    pub(super) empty: u64,
    pub(super) number: u64,
}

/// The device buffers of a clustering, and what is known of them.
#[derive(Debug)]
pub(super) struct State {
    /// n: each point's cluster.
    pub(super) labels: DeviceBuffer<u32>,
    /// n: the labels before the last assignment.
    pub(super) previous: DeviceBuffer<u32>,
    /// n: squared distances.
    pub(super) distances: DeviceBuffer<u32>,
    /// k rows as long as points' are; as sums and counts, with room for more where devices share them in equal parts.
    pub(super) centroids: DeviceBuffer<i8>,
    /// As `centroids`, once something was kept.
    pub(super) kept: Option<DeviceBuffer<i8>>,
    /// k: squared lengths of the centroids.
    pub(super) norms: DeviceBuffer<u32>,
    /// k · d.
    pub(super) sums: DeviceBuffer<i64>,
    /// k.
    pub(super) counts: DeviceBuffer<u64>,
    /// Σ w·D² of each share of points.
    pub(super) masses: DeviceBuffer<u64>,
    /// Candidates for a seed, and what each would leave.
    pub(super) candidates: DeviceBuffer<u32>,
    pub(super) totals: DeviceBuffer<u64>,
    /// Four numbers, as [`Found`].
    pub(super) result: DeviceBuffer<u64>,
    /// The points of a mini-batch and their clusters.
    pub(super) batch: Option<(DeviceBuffer<u32>, DeviceBuffer<u32>)>,
    /// Whether sums and counts are those of the labels, so that a step need only move the points that change theirs.
    pub(super) settled: bool,
    /// Whether `masses` are those of the distances.
    pub(super) massed: bool,
    /// The lowest empty cluster, where it is known.
    pub(super) empty: Option<Option<usize>>,
    /// A settled step of Lloyd's loop; of one device of several the assignment of it.
    pub(super) graph: Option<Graph>,
}

/// Refuses more weight than the sums of a rule may have.
pub(super) const fn check_weight(total: u64, update: Update) -> Result<(), ClusterError> {
    let limit = match update {
        Update::Mean => <i64 as Accumulator>::MAX_WEIGHT,
        Update::Sphere(_) => MAX_SPHERE_WEIGHT,
    };
    if total > limit {
        return Err(ClusterError::Weight { total, limit });
    }
    Ok(())
}

impl State {
    /// No centroids (all zeros) and no labels, for `k` clusters, and `room` of them, no fewer, in the tables of centroids and
    /// sums.
    pub(super) fn new(
        cuda: &mut Cuda,
        points: &DevicePoints,
        k: usize,
        room: usize,
    ) -> Result<Self, CudaError> {
        let n = points.len;
        let mut labels = cuda.room(n)?;
        cuda.fill(&mut labels, UNLABELLED)?;
        Ok(Self {
            labels,
            previous: cuda.room(n)?,
            distances: cuda.zeros(n)?,
            centroids: cuda.zeros(room * points.stride)?,
            kept: None,
            norms: cuda.room(k)?,
            sums: cuda.zeros(room * points.dims)?,
            counts: cuda.zeros(room)?,
            masses: cuda.room(n.div_ceil(SHARE))?,
            candidates: cuda.room(TRIED)?,
            totals: cuda.room(TRIED)?,
            result: cuda.room(4)?,
            batch: None,
            settled: false,
            massed: false,
            empty: None,
            graph: None,
        })
    }

    /// Labels or distances are about to change by other means than an assignment.
    pub(super) fn unsettle(&mut self) {
        self.settled = false;
        self.massed = false;
    }

    /// Reads what passes left, and so waits for them.
    pub(super) fn found(&self, cuda: &mut Cuda) -> Result<Found, CudaError> {
        let mut found = [0; 4];
        cuda.read(&self.result, &mut found)?;
        let [inertia, changed, empty, number] = found;
        Ok(Found {
            inertia,
            changed,
            empty,
            number,
        })
    }
}
