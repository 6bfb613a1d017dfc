//! Points over several devices, as drivers see them.

use tercet_core::cluster::ClusterError;
use tercet_core::engine::{Assigned, ClusterProblem, Farthest, Shape};
use tercet_core::scalar;

use super::{CudasClusters, Shard};
use crate::engine::CudaError;
use crate::engine::cluster::problem::{farthest_of, index, length, padded, ranked};
use crate::engine::cluster::state::{Found, TRIED};
use crate::engine::cudas::cut;

impl CudasClusters<'_> {
    /// Coordinates of all clusters.
    fn table(&self) -> usize {
        self.k * self.points.dims()
    }

    /// What the last pass found on every device. Waits for all.
    fn found(&mut self) -> Result<Vec<Found>, CudaError> {
        let found = self.shards.iter_mut().map(|shard| {
            let clusters = &mut shard.clusters;
            let found = clusters.state.found(clusters.cuda);
            clusters.cuda.named(found)
        });
        found.collect()
    }

    /// A pass that finds a number on each device: queued on all, then waited for.
    fn numbers(
        &mut self,
        pass: impl FnMut(&mut Shard<'_>) -> Result<(), CudaError>,
    ) -> Result<Vec<u64>, CudaError> {
        self.queue(pass)?;
        let found = self.found()?;
        Ok(found.into_iter().map(|found| found.number).collect())
    }

    fn assigned(&mut self) -> Result<Assigned, CudaError> {
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
    fn assign_queued(&mut self) -> Result<(), CudaError> {
        self.masses = None;
        self.empty = None;
        self.totalled = false;
        self.queue(|shard| {
            let clusters = &mut shard.clusters;
            clusters.state.massed = false;
            let queued = clusters.assigned();
            // As on one device.
            clusters.state.settled = queued.is_ok();
            queued
        })
    }

    /// Gives a centroid a point's coordinates on every device; on the point's own, with `seed`, the point the label and D² = 0.
    fn placed(&mut self, cluster: usize, point: usize, seed: bool) -> Result<(), CudaError> {
        let row = self.points.row(point);
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

    /// Σ w·D² of each device's points.
    fn weigh(&mut self) -> Result<Vec<u64>, CudaError> {
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

    /// Reads something of each device's points into its part of `out`.
    fn read_points(
        &mut self,
        out: &mut [u32],
        read: impl Fn(&mut Shard<'_>, &mut [u32]) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        length(self.points.len(), out.len())?;
        let parts = cut(out, self.shards.iter().map(|shard| shard.range.len()));
        for (shard, part) in self.shards.iter_mut().zip(parts) {
            let done = read(shard, part);
            shard.clusters.cuda.named(done)?;
        }
        Ok(())
    }
}

impl ClusterProblem for CudasClusters<'_> {
    type Error = CudaError;

    fn shape(&self) -> Shape {
        Shape {
            points: self.points.len(),
            dims: self.points.dims(),
            clusters: self.k,
            weight: self.points.weight(),
            heaviest: self.points.heaviest(),
            update: self.update,
        }
    }

    fn fill(&mut self, distance: u32) -> Result<(), CudaError> {
        self.masses = None;
        self.queue(|shard| shard.clusters.fill(distance))
    }

    fn pick(&mut self, mut r: u64) -> Result<Option<usize>, CudaError> {
        let masses = self.weigh()?;
        for (shard, mass) in self.shards.iter_mut().zip(masses) {
            if r < mass {
                let picked = shard.clusters.pick(r);
                let picked = shard.clusters.cuda.named(picked)?;
                return Ok(picked.map(|point| shard.range.start + point));
            }
            r -= mass;
        }
        Ok(None)
    }

    fn lowest_unlabelled(&mut self) -> Result<Option<usize>, CudaError> {
        let found = self.numbers(|shard| shard.clusters.unlabelled_queued())?;
        let mut shards = self.shards.iter().zip(found);
        // The number of points less the index, or 0.
        let first = shards.find(|&(_, found)| found > 0);
        Ok(first.map(|(shard, found)| shard.range.end - found as usize))
    }

    fn seed(&mut self, cluster: usize, point: usize) -> Result<u32, CudaError> {
        index(cluster, self.k)?;
        index(point, self.points.len())?;
        self.masses = None;
        self.placed(cluster, point, true)?;
        let weights = self.points.weights();
        let owner = self
            .shards
            .iter_mut()
            .find(|shard| shard.range.contains(&point));
        if let Some(owner) = owner {
            owner.clusters.state.settled = false;
        }
        Ok(weights.map_or(1, |weights| weights[point]))
    }

    fn shorten(&mut self, cluster: usize) -> Result<u64, CudaError> {
        index(cluster, self.k)?;
        self.masses = None;
        let masses = self.numbers(|shard| shard.clusters.shorten_queued(cluster))?;
        let total = masses.iter().sum();
        self.masses = Some(masses);
        Ok(total)
    }

    fn potentials(&mut self, candidates: &[usize], totals: &mut [u64]) -> Result<(), CudaError> {
        length(candidates.len(), totals.len())?;
        for &candidate in candidates {
            index(candidate, self.points.len())?;
        }
        for (candidates, totals) in candidates.chunks(TRIED).zip(totals.chunks_mut(TRIED)) {
            let rows = candidates
                .iter()
                .map(|&candidate| self.points.row(candidate));
            let lengths: Vec<_> = rows.clone().map(scalar::norm).collect();
            let (rows, dims) = (rows.collect::<Vec<_>>().concat(), self.points.dims());
            self.queue(|Shard { clusters, .. }| {
                // They are guests of every device, also of their own.
                let first = clusters.points.get().len;
                clusters.invite(&padded(&rows, dims, clusters.points.get().stride), &lengths)?;
                clusters.potentials_queued((first as u32..).take(lengths.len()))
            })?;
            totals.fill(0);
            for Shard { clusters, .. } in &mut self.shards {
                let mut found = [0; TRIED];
                let read = clusters.cuda.read(&clusters.state.totals, &mut found);
                clusters.cuda.named(read)?;
                for (total, found) in totals.iter_mut().zip(found) {
                    *total += found;
                }
            }
        }
        Ok(())
    }

    fn set_centroids(&mut self, centroids: &[i8]) -> Result<(), CudaError> {
        length(self.table(), centroids.len())?;
        self.queue(|shard| shard.clusters.set_centroids(centroids))
    }

    fn measure(&mut self) -> Result<Assigned, CudaError> {
        self.masses = None;
        self.queue(|Shard { clusters, .. }| {
            clusters.state.unsettle();
            clusters.clear_result()?;
            clusters.label()
        })?;
        self.assigned()
    }

    fn assign(&mut self) -> Result<Assigned, CudaError> {
        self.assign_queued()?;
        self.assigned()
    }

    fn update(&mut self) -> Result<(), CudaError> {
        self.total()?;
        self.queue(|shard| shard.clusters.clear_result())?;
        self.move_centroids()
    }

    fn assign_update(&mut self) -> Result<Assigned, CudaError> {
        self.assign_queued()?;
        self.total()?;
        self.move_centroids()?;
        let mut all = Assigned::default();
        let mut empty = None;
        let found = self.found()?;
        for (shard, found) in self.shards.iter().zip(found) {
            all.merge(&Assigned {
                inertia: found.inertia,
                changed: found.changed,
            });
            // The end of the device's clusters less the lowest empty one of them, or 0.
            if found.empty > 0 && empty.is_none() {
                empty = Some(shard.totals.clusters.end - found.empty as usize);
            }
        }
        self.empty = Some(empty);
        Ok(all)
    }

    fn next_empty(&mut self, first: usize) -> Result<Option<usize>, CudaError> {
        if first >= self.k {
            return Ok(None);
        }
        match self.empty {
            Some(None) => Ok(None),
            Some(Some(lowest)) if lowest >= first => Ok(Some(lowest)),
            _ => {
                let (mut sums, mut counts) = (vec![0; self.table()], vec![0; self.k]);
                self.read_sums(&mut sums, &mut counts)?;
                Ok((first..self.k).find(|&cluster| counts[cluster] == 0))
            }
        }
    }

    fn farthest(&mut self, last: Option<Farthest>) -> Result<Option<Farthest>, CudaError> {
        let found = self.numbers(
            |Shard {
                 clusters, range, ..
             }| {
                // What comes after the last of all, by the numbers of this device's points.
                let below = match last {
                    None => u64::MAX,
                    Some(last) if last.index < range.start => (u64::from(last.distance) + 1) << 32,
                    Some(last) => ranked(Farthest {
                        index: (last.index - range.start).min(u32::MAX as usize),
                        ..last
                    }),
                };
                clusters.farthest_queued(below)
            },
        )?;
        let mut best: Option<Farthest> = None;
        for (shard, rank) in self.shards.iter().zip(found) {
            let Some(mut found) = farthest_of(rank) else {
                continue;
            };
            found.index += shard.range.start;
            if best.is_none_or(|best| found.before(&best)) {
                best = Some(found);
            }
        }
        Ok(best)
    }

    fn place(&mut self, cluster: usize, point: usize) -> Result<(), CudaError> {
        index(cluster, self.k)?;
        index(point, self.points.len())?;
        self.placed(cluster, point, false)
    }

    fn start_batches(&mut self) -> Result<(), CudaError> {
        self.empty = None;
        self.totalled = true;
        self.queue(
            |Shard {
                 clusters, totals, ..
             }| {
                clusters.state.settled = false;
                clusters.cuda.clear(&mut totals.sums)?;
                clusters.cuda.clear(&mut totals.counts)
            },
        )
    }

    fn batch(&mut self, points: &[u32], cap: u32) -> Result<(), CudaError> {
        for &point in points {
            index(point as usize, self.points.len())?;
        }
        // Before the first batch the totals are those of the labels.
        self.total()?;
        self.empty = None;
        self.queue(
            |Shard {
                 clusters, range, ..
             }| {
                let own = points.iter().map(|&point| point as usize);
                let own = own.filter(|point| range.contains(point));
                // Below the number of the device's points.
                let own: Vec<_> = own.map(|point| (point - range.start) as u32).collect();
                clusters.state.settled = false;
                // Only this batch; what came before is in the totals.
                clusters.cuda.clear(&mut clusters.state.sums)?;
                clusters.cuda.clear(&mut clusters.state.counts)?;
                clusters.clear_result()?;
                if own.is_empty() {
                    return Ok(());
                }
                clusters.batch_sums(&own)
            },
        )?;
        self.add_up(true)?;
        self.fade(cap)?;
        self.move_centroids()
    }

    fn keep(&mut self) -> Result<(), CudaError> {
        self.queue(|shard| shard.clusters.keep())
    }

    fn restore(&mut self) -> Result<(), CudaError> {
        self.queue(|shard| shard.clusters.restore())
    }

    /// They are the same on every device.
    fn read_centroids(&mut self, out: &mut [i8]) -> Result<(), CudaError> {
        length(self.table(), out.len())?;
        match self.shards.first_mut() {
            Some(Shard { clusters, .. }) => {
                let read = clusters.read_centroids(out);
                clusters.cuda.named(read)
            }
            None => Err(ClusterError::Empty.into()),
        }
    }

    fn read_labels(&mut self, out: &mut [u32]) -> Result<(), CudaError> {
        self.read_points(out, |shard, out| shard.clusters.read_labels(out))
    }

    fn read_distances(&mut self, out: &mut [u32]) -> Result<(), CudaError> {
        self.read_points(out, |shard, out| shard.clusters.read_distances(out))
    }

    fn read_sums(&mut self, sums: &mut [i64], counts: &mut [u64]) -> Result<(), CudaError> {
        length(self.k, counts.len())?;
        length(self.table(), sums.len())?;
        self.total()?;
        let dims = self.points.dims();
        for Shard {
            clusters, totals, ..
        } in &mut self.shards
        {
            let range = totals.clusters.clone();
            let sums = &mut sums[range.start * dims..range.end * dims];
            let read = clusters.cuda.read(&totals.counts, &mut counts[range]);
            let read = read.and_then(|()| clusters.cuda.read(&totals.sums, sums));
            clusters.cuda.named(read)?;
        }
        Ok(())
    }
}
