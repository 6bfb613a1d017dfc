//! Sums over all devices: each device adds up the sums of its own clusters, moves their centroids, and sends these to
//! the others.

use std::ops::Range;

use super::{CudasClusters, Shard};
use crate::engine::cluster::points::{THREADS, count};
use crate::engine::cluster::steps::{faded, moved};
use crate::engine::{Argument, Cuda, CudaError, DeviceBuffer, Graph, LaunchGrid};

/// The kernel that adds devices' tables.
const ADD: (&str, &str) = ("reduce", "reduce_sum");

/// The sums and counts of a device's own clusters over all devices.
#[derive(Debug)]
pub(super) struct Totals {
    /// Its clusters; the last devices may have fewer, or none.
    pub(super) clusters: Range<usize>,
    /// The largest number of clusters of any device: the same for all, as NCCL requires.
    pub(super) room: usize,
    /// Sums of its clusters, with room for `room`.
    pub(super) sums: DeviceBuffer<i64>,
    pub(super) counts: DeviceBuffer<u64>,
    /// Sums of its clusters on the other devices, one after another.
    pub(super) other_sums: DeviceBuffer<i64>,
    pub(super) other_counts: DeviceBuffer<u64>,
    /// The work of a step on sums that were exchanged by copies.
    step: Recorded,
}

/// A part of a step, recorded from its second time on.
#[derive(Debug)]
enum Recorded {
    Never,
    /// It ran once, so a second time is likely.
    Once,
    Graph(Graph),
}

impl Totals {
    /// Returns zeros, for the device `at` of `devices`.
    pub(super) fn new(
        cuda: &mut Cuda,
        (at, devices): (usize, usize),
        k: usize,
        dims: usize,
    ) -> Result<Self, CudaError> {
        let room = k.div_ceil(devices);
        let start = |at: usize| (at * room).min(k);
        // NCCL needs room for one table, copies for those of all others.
        let others = room * (devices - 1);
        Ok(Self {
            clusters: start(at)..start(at + 1),
            room,
            sums: cuda.zeros(room * dims)?,
            counts: cuda.zeros(room)?,
            other_sums: cuda.room(others * dims)?,
            other_counts: cuda.room(others)?,
            step: Recorded::Never,
        })
    }
}

impl Shard<'_> {
    /// Loads the kernels that are launched after NCCL's: loading may wait for the device, and NCCL's kernels may wait
    /// for a lost device.
    pub(super) fn prepare(&mut self) -> Result<(), CudaError> {
        let (module, kernel) = ADD;
        self.clusters.prepare_ends()?;
        self.clusters.cuda.prepare(module, kernel, 0)
    }

    /// Adds this device's sums and counts of its clusters and those of `parts` others; with `running`, adds to the
    /// existing totals.
    fn add(&mut self, parts: usize, running: bool) -> Result<(), CudaError> {
        let first = self.totals.clusters.start;
        let dims = self.clusters.points.get().dims;
        let Self {
            clusters, totals, ..
        } = self;
        let (state, cuda) = (&clusters.state, &mut *clusters.cuda);
        let own = (state.sums.at(first * dims), state.counts.at(first));
        add(cuda, totals, dims, own, (parts, running))
    }

    /// Adds the sums of NCCL to the earlier totals.
    fn run_on(&mut self) -> Result<(), CudaError> {
        let dims = self.clusters.points.get().dims;
        let totals = &self.totals;
        let summed = (
            Argument::from(&totals.other_sums),
            Argument::from(&totals.other_counts),
        );
        add(self.clusters.cuda, totals, dims, summed, (0, true))
    }

    /// Moves the centroids of this device's clusters, and stores the lowest empty one.
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

    /// Adds up the sums that were exchanged by copies and moves the centroids: recorded from the second time on.
    fn add_and_move(&mut self, parts: usize) -> Result<(), CudaError> {
        let graph = match std::mem::replace(&mut self.totals.step, Recorded::Never) {
            Recorded::Never => {
                self.add(parts, false)?;
                self.move_own()?;
                self.totals.step = Recorded::Once;
                return Ok(());
            }
            Recorded::Graph(graph) => graph,
            // The first time loaded the kernels.
            Recorded::Once => {
                self.clusters.cuda.begin_capture()?;
                let recorded = self.add(parts, false).and_then(|()| self.move_own());
                self.clusters.cuda.end_capture(recorded)?
            }
        };
        // SAFETY: the graph is of this shard's buffers, which live as long and are never replaced; what it reads has
        // been written as it had when it was recorded.
        let replayed = unsafe { self.clusters.cuda.replay(&graph) };
        self.totals.step = Recorded::Graph(graph);
        replayed
    }

    fn fade(&mut self, cap: u32) -> Result<(), CudaError> {
        let clusters = (self.totals.clusters.len(), self.clusters.points.get().dims);
        let sums = (&mut self.totals.sums, &mut self.totals.counts);
        faded(self.clusters.cuda, clusters, cap, sums)
    }
}

/// Adds `own` sums and counts and those of `parts` others into the totals.
fn add(
    cuda: &mut Cuda,
    totals: &Totals,
    dims: usize,
    own: (Argument<'_>, Argument<'_>),
    (parts, running): (usize, bool),
) -> Result<(), CudaError> {
    let len = totals.clusters.len();
    let tables = [
        (
            own.0,
            Argument::from(&totals.other_sums),
            len * dims,
            Argument::from(&totals.sums),
        ),
        (
            own.1,
            Argument::from(&totals.other_counts),
            len,
            Argument::from(&totals.counts),
        ),
    ];
    let (module, kernel) = ADD;
    for (own, others, cells, out) in tables {
        let arguments = [
            own,
            others,
            count(parts),
            cells.into(),
            u32::from(running).into(),
            out,
        ];
        let grid = LaunchGrid::strided(cells, 256, THREADS, 1 << 16);
        // SAFETY: there are as many cells from where `own` points on, in each of the other devices' parts, and in what
        // is written, which nothing else uses.
        unsafe { cuda.launch(module, kernel, grid, &arguments) }?;
    }
    Ok(())
}

impl CudasClusters<'_> {
    /// Calls `queue` for every device in turn; it queues work and does not wait.
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

    /// Adds up the devices' sums and counts. With `running`, adds them to the existing totals.
    pub(super) fn add_up(&mut self, running: bool) -> Result<(), CudaError> {
        let parts = self.shards.len() - 1;
        match self.cross_sums(running)? {
            true if running => self.queue(|shard| shard.run_on()),
            true => Ok(()),
            false => self.queue(|shard| shard.add(parts, running)),
        }
    }

    /// Computes the totals of the labels, if they are missing.
    pub(super) fn total(&mut self) -> Result<(), CudaError> {
        if !self.totalled {
            self.add_up(false)?;
            self.totalled = true;
        }
        Ok(())
    }

    /// Halves the counts that reach the cap, and their sums.
    pub(super) fn fade(&mut self, cap: u32) -> Result<(), CudaError> {
        self.queue(|shard| shard.fade(cap))
    }

    /// Does the end of a step of Lloyd's loop: computes the totals of the labels, and moves every centroid to the
    /// position that they give.
    pub(super) fn total_and_move(&mut self) -> Result<(), CudaError> {
        let parts = self.shards.len() - 1;
        if self.cross_sums(false)? {
            self.queue(|shard| shard.move_own())?;
        } else {
            self.queue(|shard| shard.add_and_move(parts))?;
        }
        self.totalled = true;
        self.cross_centroids()
    }

    /// Moves every centroid to the position that its total gives, and sends it to all devices.
    pub(super) fn move_centroids(&mut self) -> Result<(), CudaError> {
        self.queue(|shard| shard.move_own())?;
        self.cross_centroids()
    }
}
