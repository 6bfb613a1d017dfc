//! The clustering problem over several devices, for the drivers.

use tercet_core::cluster::ClusterError;
use tercet_core::engine::{Assigned, ClusterProblem, Farthest, Shape};

use super::{CudasClusters, Shard};
use crate::engine::CudaError;
use crate::engine::cluster::problem::{farthest_of, index, length, ranked};
use crate::engine::cluster::state::TRIED;

impl ClusterProblem for CudasClusters<'_> {
    type Error = CudaError;

    fn shape(&self) -> Shape {
        Shape {
            points: self.whole.len,
            dims: self.whole.dims,
            clusters: self.k,
            weight: self.whole.weight,
            heaviest: self.whole.heaviest,
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
        index(point, self.whole.len)?;
        self.masses = None;
        let (row, weight) = self.row(point)?;
        self.placed(&row, cluster, point, true)?;
        let owner = self
            .shards
            .iter_mut()
            .find(|shard| shard.range.contains(&point));
        if let Some(owner) = owner {
            owner.clusters.state.settled = false;
        }
        Ok(weight)
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
            index(candidate, self.whole.len)?;
        }
        for (candidates, totals) in candidates.chunks(TRIED).zip(totals.chunks_mut(TRIED)) {
            let mut rows = Vec::with_capacity(candidates.len() * self.whole.dims);
            for &candidate in candidates {
                rows.extend(self.row(candidate)?.0);
            }
            self.queue(|Shard { clusters, .. }| {
                // Every device has them as guests, including their own device.
                let points = clusters.points.get();
                let first = points.len as u32;
                clusters.cuda.invite(points, &rows)?;
                clusters.potentials_queued((first..).take(candidates.len()))
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
        self.together(|all| {
            all.total()?;
            all.queue(|shard| shard.clusters.clear_result())?;
            all.move_centroids()
        })
    }

    fn assign_update(&mut self) -> Result<Assigned, CudaError> {
        self.assign_queued()?;
        self.together(Self::total_and_move)?;
        let mut all = Assigned::default();
        let mut empty = None;
        let found = self.found()?;
        for (shard, found) in self.shards.iter().zip(found) {
            all.merge(&Assigned {
                inertia: found.inertia,
                changed: found.changed,
            });
            // The value is the end of the device's clusters less the lowest empty one of them, or 0.
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
                // The point after the last of all, in the numbering of this device's points.
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
        index(point, self.whole.len)?;
        let (row, _) = self.row(point)?;
        self.placed(&row, cluster, point, false)
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
            index(point as usize, self.whole.len)?;
        }
        // Before the first batch the totals are those of the labels.
        self.together(Self::total)?;
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
                // Only this batch; earlier batches are in the totals.
                clusters.cuda.clear(&mut clusters.state.sums)?;
                clusters.cuda.clear(&mut clusters.state.counts)?;
                clusters.clear_result()?;
                if own.is_empty() {
                    return Ok(());
                }
                clusters.batch_sums(&own)
            },
        )?;
        self.together(|all| {
            all.add_up(true)?;
            all.fade(cap)?;
            all.move_centroids()
        })
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
        self.together(Self::total)?;
        let dims = self.whole.dims;
        for Shard {
            clusters, totals, ..
        } in &mut self.shards
        {
            let range = totals.clusters.clone();
            let sums = &mut sums[range.start * dims..range.end * dims];
            let cuda = &mut *clusters.cuda;
            let read = cuda.read_at(&totals.counts, 0, &mut counts[range]);
            let read = read.and_then(|()| cuda.read_at(&totals.sums, 0, sums));
            cuda.named(read)?;
        }
        Ok(())
    }
}
