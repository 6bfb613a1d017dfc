//! The state of a clustering on the device.

use tercet_core::cluster::{ClusterError, MAX_SPHERE_WEIGHT, Update};
use tercet_core::scalar::cluster::Accumulator;

use super::points::DevicePoints;
use crate::engine::{Cuda, CudaError, DeviceBuffer, Graph};

/// A label that means none; there are fewer clusters.
pub(super) const UNLABELLED: u32 = u32::MAX;

/// Number of points whose w·D² are summed together; as in `kernels/cuda/seed.cu`.
pub(super) const SHARE: usize = 1024;

/// Candidates that one pass over the points tries; as in `kernels/cuda/seed.cu`.
pub(super) const TRIED: usize = 8;

/// The results of passes, in the order of `kernels/include/tercet/cluster.cuh`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PassResult {
    pub(super) inertia: u64,
    pub(super) changed: u64,
    /// k less the lowest empty cluster; 0 for none.
    pub(super) empty: u64,
    pub(super) number: u64,
}

/// The device buffers of a clustering, and their state.
#[derive(Debug)]
pub(super) struct State {
    /// n: each point's cluster.
    pub(super) labels: DeviceBuffer<u32>,
    /// n: the labels before the last assignment.
    pub(super) previous: DeviceBuffer<u32>,
    /// n: squared distances.
    pub(super) distances: DeviceBuffer<u32>,
    /// k rows, as long as those of points. Like sums and counts, with room for more if devices share them in equal
    /// parts.
    pub(super) centroids: DeviceBuffer<i8>,
    /// As `centroids`, once a clustering was kept.
    pub(super) kept: Option<DeviceBuffer<i8>>,
    /// k: squared lengths of the centroids.
    pub(super) norms: DeviceBuffer<u32>,
    /// k · d.
    pub(super) sums: DeviceBuffer<i64>,
    /// k.
    pub(super) counts: DeviceBuffer<u64>,
    /// Σ w·D² of each share of points.
    pub(super) masses: DeviceBuffer<u64>,
    /// Candidates for a seed, and the potential that each would leave.
    pub(super) candidates: DeviceBuffer<u32>,
    pub(super) totals: DeviceBuffer<u64>,
    /// Four numbers, as [`PassResult`].
    pub(super) result: DeviceBuffer<u64>,
    /// The points of a mini-batch and their clusters.
    pub(super) batch: Option<(DeviceBuffer<u32>, DeviceBuffer<u32>)>,
    /// True if sums and counts match the labels, so that a step only moves the points with a changed label.
    pub(super) settled: bool,
    /// True if `masses` match the distances.
    pub(super) massed: bool,
    /// The lowest empty cluster, if known.
    pub(super) empty: Option<Option<usize>>,
    /// A step of Lloyd's loop with settled sums; for one of several devices, the assignment of it.
    pub(super) graph: Option<Graph>,
}

/// Refuses more weight than the sums of a rule can hold.
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
    /// Returns a state without centroids (all zeros) and without labels, for `k` clusters. The tables of centroids and
    /// sums have room for `room` of them, at least `k`.
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

    /// Records that labels or distances are about to change by other means than an assignment.
    pub(super) fn unsettle(&mut self) {
        self.settled = false;
        self.massed = false;
    }

    /// Reads the results of passes, and so waits for them.
    pub(super) fn found(&self, cuda: &mut Cuda) -> Result<PassResult, CudaError> {
        let mut found = [0; 4];
        cuda.read(&self.result, &mut found)?;
        let [inertia, changed, empty, number] = found;
        Ok(PassResult {
            inertia,
            changed,
            empty,
            number,
        })
    }
}
