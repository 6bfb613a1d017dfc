//! The clustering problem on the device, for the drivers.

use tercet_core::cluster::{ClusterError, Points, Update};
use tercet_core::engine::{Assigned, Buffers, ClusterEngine, ClusterProblem, Farthest, Shape};

use super::assigner::Assigner;
use super::nearest::nearest;
use super::points::DevicePoints;
use super::state::{State, TRIED, UNLABELLED, check_weight};
use crate::engine::{Cuda, CudaError};

/// Points copied for one clustering, or resident ones.
#[derive(Debug)]
pub(super) enum PointsHandle<'a> {
    Own(DevicePoints),
    Resident(&'a DevicePoints),
}

impl PointsHandle<'_> {
    pub(super) const fn get(&self) -> &DevicePoints {
        match self {
            Self::Own(points) => points,
            Self::Resident(points) => points,
        }
    }
}

/// A clustering on a CUDA device, with its whole state there.
///
/// Beside the points it takes 12 bytes per point, and 9 bytes per coordinate of the clusters (10 if centroids are
/// kept). From the second call on, [`ClusterProblem::assign_update`] is one recorded graph, and adds up only the points
/// whose label changed.
#[derive(Debug)]
pub struct DeviceClusters<'a> {
    pub(super) cuda: &'a mut Cuda,
    pub(super) points: PointsHandle<'a>,
    pub(super) state: State,
    pub(super) k: usize,
    pub(super) update: Update,
    pub(super) assigner: Assigner,
}

impl ClusterEngine for Cuda {
    type Error = CudaError;
    type Clusters<'a> = DeviceClusters<'a>;

    /// Copies the points to the device. The caller's buffers stay unchanged and may be empty.
    fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
        update: Update,
        _buffers: Buffers<'a>,
    ) -> Result<DeviceClusters<'a>, CudaError> {
        points.check_clusters(k)?;
        let points = PointsHandle::Own(self.points(&points)?);
        DeviceClusters::new(self, points, k, update)
    }

    /// They are on the device.
    fn needs_buffers(&self) -> bool {
        false
    }

    fn nearest(
        &mut self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), CudaError> {
        nearest(self, points, centroids, labels, distances)
    }
}

impl Cuda {
    /// Starts a clustering of resident points into `k` clusters, as [`ClusterEngine::clusters`] does.
    ///
    /// # Errors
    /// [`ClusterError::Clusters`], [`ClusterError::Weight`]; [`CudaError::Length`] for points of another engine;
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn clusters_of<'a>(
        &'a mut self,
        points: &'a DevicePoints,
        k: usize,
        update: Update,
    ) -> Result<DeviceClusters<'a>, CudaError> {
        points.rows.check(&self.pool, points.rows.len())?;
        DeviceClusters::new(self, PointsHandle::Resident(points), k, update)
    }
}

impl<'a> DeviceClusters<'a> {
    fn new(
        cuda: &'a mut Cuda,
        points: PointsHandle<'a>,
        k: usize,
        update: Update,
    ) -> Result<Self, CudaError> {
        points.get().check_clusters(k)?;
        check_weight(points.get().weight, update)?;
        Self::unchecked(cuda, points, (k, k), update)
    }

    /// The points may be a part of a set with at least `k` points; tables get room for `room` clusters.
    pub(super) fn unchecked(
        cuda: &'a mut Cuda,
        points: PointsHandle<'a>,
        (k, room): (usize, usize),
        update: Update,
    ) -> Result<Self, CudaError> {
        let assigner = Assigner::choose(cuda, points.get().stride, k)?;
        Self::by(cuda, points, (k, room), update, assigner)
    }

    /// As [`DeviceClusters::unchecked`], with a kernel that the device has and that accepts such points.
    pub(super) fn by(
        cuda: &'a mut Cuda,
        points: PointsHandle<'a>,
        (k, room): (usize, usize),
        update: Update,
        assigner: Assigner,
    ) -> Result<Self, CudaError> {
        let state = State::new(cuda, points.get(), k, room)?;
        Ok(Self {
            cuda,
            points,
            state,
            k,
            update,
            assigner,
        })
    }

    /// Returns the number that the last pass found. Waits for it.
    pub(super) fn number(&mut self) -> Result<u64, CudaError> {
        Ok(self.state.found(self.cuda)?.number)
    }

    pub(super) fn forget(&mut self) -> Result<(), CudaError> {
        self.state.unsettle();
        self.cuda.fill(&mut self.state.labels, UNLABELLED)
    }

    /// Returns the number of coordinates of all clusters.
    fn table(&self) -> usize {
        self.k * self.points.get().dims
    }
}

pub(super) const fn index(index: usize, count: usize) -> Result<(), ClusterError> {
    if index < count {
        Ok(())
    } else {
        Err(ClusterError::Index { index, count })
    }
}

pub(super) const fn length(expected: usize, found: usize) -> Result<(), ClusterError> {
    if expected == found {
        Ok(())
    } else {
        Err(ClusterError::Length { expected, found })
    }
}

/// Returns rows of `dims` coordinates with zeros up to `stride`.
pub(super) fn padded(values: &[i8], dims: usize, stride: usize) -> Vec<i8> {
    let mut rows = vec![0; values.len() / dims * stride];
    let out = rows.chunks_exact_mut(stride);
    for (row, values) in out.zip(values.chunks_exact(dims)) {
        row[..dims].copy_from_slice(values);
    }
    rows
}

/// Returns a number that rises with the distance and falls with the index. There are fewer than 2³² − 1 points, so
/// indices and their complements fit.
pub(super) fn ranked(point: Farthest) -> u64 {
    u64::from(point.distance) << 32 | u64::from(u32::MAX - point.index as u32)
}

/// Returns the point of such a number; 0 is none.
pub(super) fn farthest_of(rank: u64) -> Option<Farthest> {
    (rank > 0).then(|| Farthest {
        distance: (rank >> 32) as u32,
        index: (u32::MAX - rank as u32) as usize,
    })
}

impl ClusterProblem for DeviceClusters<'_> {
    type Error = CudaError;

    fn shape(&self) -> Shape {
        let points = self.points.get();
        Shape {
            points: points.len,
            dims: points.dims,
            clusters: self.k,
            weight: points.weight,
            heaviest: points.heaviest,
            update: self.update,
        }
    }

    fn fill(&mut self, distance: u32) -> Result<(), CudaError> {
        self.forget()?;
        self.cuda.fill(&mut self.state.distances, distance)
    }

    fn pick(&mut self, r: u64) -> Result<Option<usize>, CudaError> {
        self.pick_queued(r)?;
        // The index plus one.
        Ok(self.number()?.checked_sub(1).map(|index| index as usize))
    }

    fn lowest_unlabelled(&mut self) -> Result<Option<usize>, CudaError> {
        self.unlabelled_queued()?;
        // n less the index, or 0.
        let found = self.number()? as usize;
        Ok((found > 0).then(|| self.points.get().len - found))
    }

    fn seed(&mut self, cluster: usize, point: usize) -> Result<u32, CudaError> {
        index(cluster, self.k)?;
        index(point, self.points.get().len)?;
        self.state.settled = false;
        self.clear_result()?;
        self.placed(cluster, point, true)?;
        Ok(self.number()? as u32)
    }

    fn shorten(&mut self, cluster: usize) -> Result<u64, CudaError> {
        index(cluster, self.k)?;
        self.shorten_queued(cluster)?;
        self.number()
    }

    fn potentials(&mut self, candidates: &[usize], totals: &mut [u64]) -> Result<(), CudaError> {
        length(candidates.len(), totals.len())?;
        for &candidate in candidates {
            index(candidate, self.points.get().len)?;
        }
        for (candidates, totals) in candidates.chunks(TRIED).zip(totals.chunks_mut(TRIED)) {
            // There are fewer than 2³² points.
            let indices = candidates.iter().map(|&candidate| candidate as u32);
            self.potentials_queued(indices)?;
            let mut found = [0; TRIED];
            self.cuda.read(&self.state.totals, &mut found)?;
            totals.copy_from_slice(&found[..totals.len()]);
        }
        Ok(())
    }

    fn set_centroids(&mut self, centroids: &[i8]) -> Result<(), CudaError> {
        length(self.table(), centroids.len())?;
        let points = self.points.get();
        let rows = padded(centroids, points.dims, points.stride);
        self.cuda.write_at(&rows, &mut self.state.centroids, 0)?;
        self.forget()
    }

    fn measure(&mut self) -> Result<Assigned, CudaError> {
        self.state.unsettle();
        self.clear_result()?;
        self.label()?;
        let found = self.state.found(self.cuda)?;
        Ok(Assigned {
            inertia: found.inertia,
            changed: found.changed,
        })
    }

    fn assign(&mut self) -> Result<Assigned, CudaError> {
        self.state.massed = false;
        self.state.empty = None;
        let queued = self.assigned();
        // After a partly queued step, the sums match neither these labels nor the labels before.
        self.state.settled = queued.is_ok();
        queued?;
        let found = self.state.found(self.cuda)?;
        Ok(Assigned {
            inertia: found.inertia,
            changed: found.changed,
        })
    }

    fn update(&mut self) -> Result<(), CudaError> {
        self.clear_result()?;
        self.move_centroids()
    }

    fn assign_update(&mut self) -> Result<Assigned, CudaError> {
        self.state.massed = false;
        self.state.empty = None;
        let queued = self.stepped();
        self.state.settled = queued.is_ok();
        queued?;
        let found = self.state.found(self.cuda)?;
        self.state.empty = Some(self.lowest(found.empty));
        Ok(Assigned {
            inertia: found.inertia,
            changed: found.changed,
        })
    }

    fn next_empty(&mut self, first: usize) -> Result<Option<usize>, CudaError> {
        if first >= self.k {
            return Ok(None);
        }
        match self.state.empty {
            // The lowest of all is also the lowest from here on, unless it is below.
            Some(None) => Ok(None),
            Some(Some(lowest)) if lowest >= first => Ok(Some(lowest)),
            _ => self.find_empty(first),
        }
    }

    fn farthest(&mut self, last: Option<Farthest>) -> Result<Option<Farthest>, CudaError> {
        self.farthest_queued(last.map_or(u64::MAX, ranked))?;
        Ok(farthest_of(self.number()?))
    }

    fn place(&mut self, cluster: usize, point: usize) -> Result<(), CudaError> {
        index(cluster, self.k)?;
        index(point, self.points.get().len)?;
        self.placed(cluster, point, false)
    }

    fn start_batches(&mut self) -> Result<(), CudaError> {
        self.state.settled = false;
        self.state.empty = None;
        self.cuda.clear(&mut self.state.sums)?;
        self.cuda.clear(&mut self.state.counts)
    }

    fn batch(&mut self, points: &[u32], cap: u32) -> Result<(), CudaError> {
        for &point in points {
            index(point as usize, self.points.get().len)?;
        }
        self.state.settled = false;
        self.state.empty = None;
        self.batch_step(points, cap)
    }

    fn keep(&mut self) -> Result<(), CudaError> {
        let mut kept = match self.state.kept.take() {
            Some(kept) => kept,
            None => self.cuda.room(self.state.centroids.len())?,
        };
        self.cuda.copy(&self.state.centroids, &mut kept)?;
        self.state.kept = Some(kept);
        Ok(())
    }

    fn restore(&mut self) -> Result<(), CudaError> {
        match &self.state.kept {
            Some(kept) => self.cuda.copy(kept, &mut self.state.centroids),
            None => Ok(length(self.table(), 0)?),
        }
    }

    fn read_centroids(&mut self, out: &mut [i8]) -> Result<(), CudaError> {
        length(self.table(), out.len())?;
        let (dims, stride) = (self.points.get().dims, self.points.get().stride);
        let mut rows = vec![0; self.k * stride];
        self.cuda.read_at(&self.state.centroids, 0, &mut rows)?;
        for (out, row) in out.chunks_exact_mut(dims).zip(rows.chunks_exact(stride)) {
            out.copy_from_slice(&row[..dims]);
        }
        Ok(())
    }

    fn read_labels(&mut self, out: &mut [u32]) -> Result<(), CudaError> {
        length(self.points.get().len, out.len())?;
        self.cuda.read(&self.state.labels, out)
    }

    fn read_distances(&mut self, out: &mut [u32]) -> Result<(), CudaError> {
        length(self.points.get().len, out.len())?;
        self.cuda.read(&self.state.distances, out)
    }

    fn read_sums(&mut self, sums: &mut [i64], counts: &mut [u64]) -> Result<(), CudaError> {
        length(self.k, counts.len())?;
        length(self.table(), sums.len())?;
        self.cuda.read(&self.state.counts, counts)?;
        self.cuda.read(&self.state.sums, sums)
    }
}
