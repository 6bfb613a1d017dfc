//! Sums over all devices: each adds up those of its own clusters, moves their centroids, and sends these to the others.

use std::ops::Range;

use super::{CudasClusters, Shard};
use crate::engine::cluster::points::{THREADS, count};
use crate::engine::cluster::steps::{faded, moved};
use crate::engine::cudas::{across, meet};
use crate::engine::{Argument, Cuda, CudaError, DeviceBuffer, Grid};

/// The sums and counts of a device's own clusters over all devices.
#[derive(Debug)]
pub(super) struct Totals {
    /// Its clusters; none where there are fewer than devices.
    pub(super) clusters: Range<usize>,
    pub(super) sums: DeviceBuffer<i64>,
    pub(super) counts: DeviceBuffer<u64>,
    /// What the other devices have of them, one after another.
    other_sums: DeviceBuffer<i64>,
    other_counts: DeviceBuffer<u64>,
}

impl Totals {
    /// All zeros, for the device `at` of `devices`.
    pub(super) fn new(
        cuda: &mut Cuda,
        (at, devices): (usize, usize),
        k: usize,
        dims: usize,
    ) -> Result<Self, CudaError> {
        let start = |at: usize| at * (k / devices) + at.min(k % devices);
        let clusters = start(at)..start(at + 1);
        let (own, others) = (clusters.len(), clusters.len() * (devices - 1));
        Ok(Self {
            clusters,
            sums: cuda.zeros(own * dims)?,
            counts: cuda.zeros(own)?,
            other_sums: cuda.room(others * dims)?,
            other_counts: cuda.room(others)?,
        })
    }
}

impl Shard<'_> {
    /// Adds the sums and counts of this device's clusters here and of the others; `running` to what they were before.
    fn add(&mut self, parts: usize, running: bool) -> Result<(), CudaError> {
        let Totals {
            clusters,
            sums,
            counts,
            other_sums,
            other_counts,
        } = &self.totals;
        let (first, len) = (clusters.start, clusters.len());
        let (state, cuda) = (&self.clusters.state, &mut *self.clusters.cuda);
        let dims = self.clusters.points.get().dims;
        let tables = [
            (
                state.sums.at(first * dims),
                Argument::from(other_sums),
                len * dims,
                Argument::from(sums),
            ),
            (
                state.counts.at(first),
                Argument::from(other_counts),
                len,
                Argument::from(counts),
            ),
        ];
        for (own, others, cells, out) in tables {
            let arguments = [
                own,
                others,
                count(parts),
                cells.into(),
                u32::from(running).into(),
                out,
            ];
            let grid = Grid::strided(cells, 256, THREADS, 1 << 16);
            // SAFETY: there are as many cells from the first cluster on, in each of the other devices' parts, and in what is written, which
            // nothing else uses.
            unsafe { cuda.launch("reduce", "reduce_sum", grid, &arguments) }?;
        }
        Ok(())
    }

    /// Moves the centroids of this device's clusters, and notes the lowest empty one.
    fn move_own(&mut self) -> Result<(), CudaError> {
        let clusters = &mut self.clusters;
        let range = &self.totals.clusters;
        let state = &clusters.state;
        moved(
            clusters.cuda,
            clusters.points.get(),
            clusters.update,
            (range.start, range.len()),
            (&self.totals.sums, &self.totals.counts),
            (&state.centroids, &state.result),
        )
    }

    fn fade(&mut self, cap: u32) -> Result<(), CudaError> {
        let clusters = (self.totals.clusters.len(), self.clusters.points.get().dims);
        let sums = (&mut self.totals.sums, &mut self.totals.counts);
        faded(self.clusters.cuda, clusters, cap, sums)
    }
}

impl CudasClusters<'_> {
    /// Does something on every device in turn, which queues it and does not wait.
    pub(super) fn queue(
        &mut self,
        mut work: impl FnMut(&mut Shard<'_>) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        for shard in &mut self.shards {
            let done = work(shard);
            shard.clusters.cuda.named(done)?;
        }
        Ok(())
    }

    /// Has the streams of all devices wait for each other.
    fn meet(&self) -> Result<(), CudaError> {
        let devices: Vec<_> = self
            .shards
            .iter()
            .map(|shard| &*shard.clusters.cuda)
            .collect();
        meet(&devices)
    }

    /// Copies something from every device to every other: between two meetings, after which it is no longer read.
    fn exchange(
        &mut self,
        copy: impl Fn(bool, &mut Shard<'_>, &mut Shard<'_>, usize) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        if self.shards.len() == 1 {
            return Ok(());
        }
        self.meet()?;
        let copied = self.copy_all(copy).and_then(|()| self.meet());
        if copied.is_err() {
            // Copies that were begun read the others' buffers, which may change or go now.
            for shard in &self.shards {
                shard.clusters.cuda.stream.settle();
            }
        }
        copied
    }

    fn copy_all(
        &mut self,
        copy: impl Fn(bool, &mut Shard<'_>, &mut Shard<'_>, usize) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        for to in 0..self.shards.len() {
            let others = (0..self.shards.len()).filter(|&from| from != to);
            for (part, from) in others.enumerate() {
                if let Ok([from_shard, to_shard]) = self.shards.get_disjoint_mut([from, to]) {
                    copy(self.reaches[to][from], from_shard, to_shard, part)?;
                }
            }
        }
        Ok(())
    }

    /// Adds up the devices' sums and counts. `running` adds them to the totals that there are.
    pub(super) fn add_up(&mut self, running: bool) -> Result<(), CudaError> {
        let parts = self.shards.len() - 1;
        self.exchange(|reaches, from, to, part| {
            let dims = to.clusters.points.get().dims;
            let (first, len) = (to.totals.clusters.start, to.totals.clusters.len());
            let (here, there) = (&mut to.clusters, &mut from.clusters);
            across(
                reaches,
                (&mut *there.cuda, &there.state.sums, first * dims),
                (
                    &mut *here.cuda,
                    &mut to.totals.other_sums,
                    part * len * dims,
                ),
                len * dims,
            )?;
            across(
                reaches,
                (&mut *there.cuda, &there.state.counts, first),
                (&mut *here.cuda, &mut to.totals.other_counts, part * len),
                len,
            )
        })?;
        self.queue(|shard| shard.add(parts, running))
    }

    /// The totals of the labels, where they are not there.
    pub(super) fn total(&mut self) -> Result<(), CudaError> {
        if !self.totalled {
            self.add_up(false)?;
            self.totalled = true;
        }
        Ok(())
    }

    /// Halves the counts that reach the cap, and sums with them.
    pub(super) fn fade(&mut self, cap: u32) -> Result<(), CudaError> {
        self.queue(|shard| shard.fade(cap))
    }

    /// Moves every centroid to where its total says, and sends it to all devices.
    pub(super) fn move_centroids(&mut self) -> Result<(), CudaError> {
        self.queue(|shard| shard.move_own())?;
        self.exchange(|reaches, from, to, _| {
            let stride = to.clusters.points.get().stride;
            let (first, len) = (from.totals.clusters.start, from.totals.clusters.len());
            let (here, there) = (&mut to.clusters, &mut from.clusters);
            across(
                reaches,
                (&mut *there.cuda, &there.state.centroids, first * stride),
                (&mut *here.cuda, &mut here.state.centroids, first * stride),
                len * stride,
            )
        })
    }
}
