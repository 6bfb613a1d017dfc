//! The exchange between devices in a step of k-means: sums go to the device that adds them up, centroids to all
//! devices. Uses NCCL or copies.

use std::sync::Arc;
use std::thread;

use super::{CudasClusters, Shard};
use crate::engine::CudaError;
use crate::engine::cudas::{across, meet};
use crate::engine::stream::Stream;

/// Returns the stream of each device.
fn streams(shards: &[Shard<'_>]) -> Vec<Arc<Stream>> {
    let stream = |shard: &Shard<'_>| Arc::clone(&shard.clusters.cuda.stream);
    shards.iter().map(stream).collect()
}

impl CudasClusters<'_> {
    /// Queues an exchange between devices. With NCCL it then waits until all of it is done: the kernels of other
    /// devices wait for the part of a lost device, so nobody may simply wait for them.
    pub(super) fn together(
        &mut self,
        queue: impl FnOnce(&mut Self) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let done = queue(self).and_then(|()| self.wait_for_nccl());
        done.map_err(|error| {
            self.link.abort();
            self.totalled = false;
            self.cause(error)
        })
    }

    /// Replaces an error of NCCL by that of a lost device, if one is lost: that is the cause to report.
    fn cause(&self, error: CudaError) -> CudaError {
        if !matches!(error.cause(), CudaError::Nccl { .. }) {
            return error;
        }
        let mut devices = self.shards.iter().map(|shard| &shard.clusters.cuda);
        let lost = devices.find_map(|cuda| cuda.named(cuda.stream.is_done()).err());
        lost.unwrap_or(error)
    }

    /// Polls until every device is done, or one of them or NCCL has failed.
    fn wait_for_nccl(&mut self) -> Result<(), CudaError> {
        let Some(nccl) = self.link.nccl() else {
            return Ok(());
        };
        loop {
            let mut done = true;
            for Shard { clusters, .. } in &self.shards {
                done &= clusters.cuda.named(clusters.cuda.stream.is_done())?;
            }
            nccl.check()?;
            if done {
                return Ok(());
            }
            thread::yield_now();
        }
    }

    /// Makes the streams of all devices wait for each other.
    fn meet(&self) -> Result<(), CudaError> {
        let devices: Vec<_> = self
            .shards
            .iter()
            .map(|shard| &*shard.clusters.cuda)
            .collect();
        meet(&devices)
    }

    /// Copies something from every device to every other, between two meetings. After the second, the source is no
    /// longer read.
    fn exchange_by_copies(
        &mut self,
        copy: impl Fn(bool, &mut Shard<'_>, &mut Shard<'_>, usize) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        if self.shards.len() == 1 {
            return Ok(());
        }
        self.meet()?;
        let copied = self.copy_all(copy).and_then(|()| self.meet());
        if copied.is_err() {
            // Copies that were begun read the buffers of the others, which may change or be freed after the error.
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
                    copy(self.link.straight(to, from), from_shard, to_shard, part)?;
                }
            }
        }
        Ok(())
    }

    /// Copies to every device the others' sums and counts of its clusters. NCCL also adds them: into the totals, or if
    /// these continue, into the place for the others' sums. Returns true if it did.
    pub(super) fn cross_sums(&mut self, running: bool) -> Result<bool, CudaError> {
        let Some(nccl) = self.link.nccl() else {
            return self.copy_sums().map(|()| false);
        };
        let shards = &mut self.shards;
        let streams = streams(shards);
        // The sums and counts of all clusters.
        let bytes = shards.first().map_or(0, |shard| {
            let state = &shard.clusters.state;
            state.sums.bytes() + state.counts.bytes()
        });
        nccl.group(&streams, ("reduce scatter", bytes), |nccl| {
            for (
                rank,
                Shard {
                    clusters, totals, ..
                },
            ) in shards.iter_mut().enumerate()
            {
                let (room, dims) = (totals.room, clusters.points.get().dims);
                let (sums, counts) = if running {
                    (&mut totals.other_sums, &mut totals.other_counts)
                } else {
                    (&mut totals.sums, &mut totals.counts)
                };
                let (state, stream) = (&clusters.state, &clusters.cuda.stream);
                // SAFETY: the buffers are of this device, all written before on its stream, and live until it is done
                // with them: what gives them back is queued there, and a failure ends NCCL's part first. Every rank is
                // called, with as many clusters.
                let called = unsafe {
                    nccl.reduce_scatter(rank, stream, &state.sums, (sums, room * dims))
                        .and_then(|()| {
                            nccl.reduce_scatter(rank, stream, &state.counts, (counts, room))
                        })
                };
                clusters.cuda.named(called)?;
            }
            Ok(())
        })?;
        Ok(true)
    }

    fn copy_sums(&mut self) -> Result<(), CudaError> {
        self.exchange_by_copies(|reaches, from, to, part| {
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
        })
    }

    /// Sends every device's centroids to all devices.
    pub(super) fn cross_centroids(&mut self) -> Result<(), CudaError> {
        let Some(nccl) = self.link.nccl() else {
            return self.copy_centroids();
        };
        let shards = &mut self.shards;
        let streams = streams(shards);
        // Its own part of the centroids.
        let bytes = shards.first().map_or(0, |shard| {
            shard.totals.room * shard.clusters.points.get().stride
        });
        nccl.group(&streams, ("all gather", bytes), |nccl| {
            for (
                rank,
                Shard {
                    clusters, totals, ..
                },
            ) in shards.iter_mut().enumerate()
            {
                let len = totals.room * clusters.points.get().stride;
                let table = &mut clusters.state.centroids;
                // SAFETY: as in `cross_sums`; the table has room for as many centroids of every device.
                let called = unsafe { nccl.all_gather(rank, &clusters.cuda.stream, table, len) };
                clusters.cuda.named(called)?;
            }
            Ok(())
        })
    }

    fn copy_centroids(&mut self) -> Result<(), CudaError> {
        self.exchange_by_copies(|reaches, from, to, _| {
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
