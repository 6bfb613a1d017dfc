//! Clustering on rayon's threads.

mod assign;
mod batch;
mod prune;
mod seed;
mod share;

use tercet_core::cluster::{self, ClusterError, Points, Update};
use tercet_core::engine::{Assigned, Buffers, ClusterEngine, ClusterProblem, Farthest, Shape};
use tercet_core::scalar::{self, cluster as reference};

use self::assign::{Assignment, Summed, ThreadState, few, lengths, points_of};
use self::prune::{CLUSTERS, Moved, Pruned};
use self::seed::mass;
use self::share::{jobs, work};
use super::Threads;
use super::each::{chunks, chunks_mut};
use crate::simd::Backend;
use crate::simd::cluster::{Cluster, Packed};

/// If the clusters have more coordinates than this, jobs have no sums of their own: 20 MiB per job.
const TABLE: usize = 1 << 21;

/// Points and their clusters in the caller's slices, as for [`scalar::Clusters`]; threads share the passes over all
/// points in tiles.
///
/// Beside the caller's memory it takes 4 bytes per point, for squared lengths that every step needs; 2 to 5 bytes per
/// coordinate of the clusters, for centroids in the order of the backend's products; and, for each working thread, a
/// tile of 64 points and 10 bytes per coordinate of the clusters (none above 2²¹ coordinates). All of it is kept from
/// step to step.
///
/// Once fewer than a third of the points change their label, a step sums only these, away from the old cluster and to
/// the new one: sums are integers, so this is exact. With fewer than 32 clusters and without weights,
/// [`ClusterProblem::assign_update`] leaves distances unchanged unless no label changed; functions that need them, such
/// as [`ClusterProblem::read_distances`], compute them first. With 32 clusters or more, once at most a third of the
/// centroids moved since the last assignment, points whose own centroid did not move are compared only with those that
/// did: this is exact too, and costs a copy of the centroids.
#[derive(Debug)]
pub struct Clusters<'a> {
    inner: scalar::Clusters<'a>,
    kernels: &'static Cluster,
    /// Points per job at a time.
    share: usize,
    /// Maximum number of jobs at once.
    threads: usize,
    /// Inputs for the kernels' distances, one per point.
    lengths: Vec<u32>,
    /// Their sum, as i32, once it was needed.
    total: Option<i64>,
    packed: Packed,
    /// Candidates for a seed.
    candidates: Packed,
    jobs: Vec<ThreadState>,
    /// Σ w·D² of each share of points, or empty if distances changed since.
    masses: Vec<u64>,
    /// The centroids of the labels and distances; empty if there are none.
    known: Vec<i8>,
    /// True if distances must still be computed from labels and the known centroids.
    late: bool,
    moved: Moved,
    /// Number of labels that the last assignment changed, if sums and counts are those of the labels.
    settled: Option<u64>,
}

impl ClusterEngine for Threads {
    type Error = ClusterError;
    type Clusters<'a> = Clusters<'a>;

    fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
        update: Update,
        buffers: Buffers<'a>,
    ) -> Result<Clusters<'a>, ClusterError> {
        let inner = scalar::Clusters::new(points, k, update, buffers)?;
        let kernels = if k < Packed::MOST {
            self.backend().cluster()
        } else {
            Backend::SCALAR.cluster()
        };
        let share = points_of(self.task(), points.dims());
        let threads = self.threads();
        Ok(Clusters {
            inner,
            kernels,
            share,
            threads,
            lengths: lengths(kernels, &points, share, threads),
            total: None,
            packed: kernels.packed(),
            candidates: kernels.packed(),
            jobs: Vec::new(),
            masses: Vec::new(),
            known: Vec::new(),
            late: false,
            moved: Moved::default(),
            settled: None,
        })
    }

    /// All centroids in one pass, any number of them.
    fn nearest(
        &mut self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), ClusterError> {
        if few(points.len(), points.dims(), centroids.len() / points.dims()) {
            cluster::predict(&points, centroids, labels, distances)?;
            return Ok(());
        }
        cluster::check_nearest(&points, centroids, labels.len(), distances.len())?;
        self.nearest_of(points, centroids, labels, distances);
        Ok(())
    }
}

impl Clusters<'_> {
    /// Prepares as many jobs as a [`work`] is worth, and returns their number.
    fn ready(&mut self, work: usize) -> usize {
        let count = jobs(work, self.threads);
        if self.jobs.len() < count {
            self.jobs.resize_with(count, ThreadState::default);
        }
        count
    }

    /// Computes labels of all points, distances unless they are `late`, and the sums that `summed` says.
    fn assigned(&mut self, summed: Summed, late: bool) -> Assigned {
        self.masses.clear();
        self.late = late;
        let Shape {
            points: n,
            dims,
            clusters: k,
            ..
        } = self.shape();
        let count = self.ready(work(n, dims, k));
        let jobs = &mut self.jobs[..count];
        if summed != Summed::Nothing {
            for job in jobs.iter_mut() {
                job.sums.reset(k, dims);
            }
        }
        let (points, buffers) = self.inner.parts();
        self.kernels.pack(&mut self.packed, buffers.centroids, dims);
        let assignment = Assignment {
            kernels: self.kernels,
            points,
            lengths: &self.lengths,
            packed: &self.packed,
            summed,
            share: self.share,
        };
        let pruned = summed != Summed::All
            && !self.known.is_empty()
            && self.moved.find(&self.known, buffers.centroids, dims);
        self.known.clear();
        self.known.extend_from_slice(buffers.centroids);
        if late {
            let mut assigned = assignment.run(jobs, buffers.labels, &mut []);
            let lengths = self.total.get_or_insert_with(|| {
                // At most 2³¹ in magnitude each.
                let lengths = chunks(&self.lengths, self.share);
                let sum = |_, part: &[u32]| {
                    let lengths = part.iter().map(|&length| i64::from(length as i32));
                    lengths.sum::<i64>()
                };
                lengths.reduce(sum, |a, b| a + b).unwrap_or(0)
            });
            assigned.inertia = assigned.inertia.wrapping_add_signed(*lengths);
            return assigned;
        }
        if !pruned {
            return assignment.run(jobs, buffers.labels, buffers.distances);
        }
        self.kernels
            .pack(&mut self.candidates, self.moved.rows(), dims);
        let pruned = Pruned {
            all: assignment,
            moved: &self.moved,
            packed: &self.candidates,
        };
        pruned.run(jobs, buffers.labels, buffers.distances)
    }

    /// Does [`ClusterProblem::assign`], with distances as for [`Clusters::assigned`].
    fn step(&mut self, late: bool) -> Assigned {
        let Shape {
            points,
            dims,
            clusters,
            ..
        } = self.shape();
        let summed = if clusters * dims > TABLE {
            Summed::Nothing
        } else if self
            .settled
            .take()
            .is_some_and(|changed| changed < points as u64 / 3)
        {
            Summed::Changes
        } else {
            Summed::All
        };
        let assigned = self.assigned(summed, late);
        if summed == Summed::Nothing {
            self.sum_by_cluster();
            return assigned;
        }
        let (_, buffers) = self.inner.parts();
        if summed == Summed::All {
            buffers.sums.fill(0);
            buffers.counts.fill(0);
        }
        for job in &mut self.jobs {
            self.kernels
                .drain(&mut job.sums, buffers.sums, buffers.counts);
        }
        self.settled = Some(assigned.changed);
        assigned
    }

    /// Computes the late distances.
    fn catch_up(&mut self) {
        if !self.late {
            return;
        }
        let Shape {
            points: n,
            dims,
            clusters: k,
            ..
        } = self.shape();
        self.late = false;
        let count = self.ready(work(n, dims, k));
        let (points, buffers) = self.inner.parts();
        self.kernels.pack(&mut self.packed, &self.known, dims);
        let assignment = Assignment {
            kernels: self.kernels,
            points,
            lengths: &self.lengths,
            packed: &self.packed,
            summed: Summed::Nothing,
            share: self.share,
        };
        // The labels do not change.
        assignment.run(&mut self.jobs[..count], buffers.labels, buffers.distances);
    }

    /// Labels or distances are about to change: then they belong to no centroids, and the sums do not match them.
    fn forget(&mut self) {
        self.known.clear();
        self.settled = None;
    }

    /// Computes sums and counts of all points, cluster by cluster, without a table per job.
    fn sum_by_cluster(&mut self) {
        let (points, buffers) = self.inner.parts();
        let (dims, labels) = (points.dims(), &*buffers.labels);
        let share = buffers.counts.len().div_ceil(self.threads);
        buffers.sums.fill(0);
        buffers.counts.fill(0);
        chunks_mut(buffers.sums, share * dims)
            .zip(chunks_mut(buffers.counts, share))
            .each(|part, (sums, counts)| {
                let first = (part * share) as u32;
                for ((row, weight), label) in points.rows().zip(labels) {
                    // Labels of other parts are beyond the slices.
                    let label = label.wrapping_sub(first);
                    reference::accumulate(row, weight, label, sums, counts);
                }
            });
    }
}

/// Returns at most `count` points from `first` on, which exists.
fn part<'a>(points: Points<'a>, first: usize, count: usize) -> Points<'a> {
    points
        .part(first, count)
        .expect("tiles begin at points that exist")
}

impl ClusterProblem for Clusters<'_> {
    type Error = ClusterError;

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn fill(&mut self, distance: u32) -> Result<(), ClusterError> {
        self.late = false;
        self.forget();
        self.masses.clear();
        self.inner.fill(distance)
    }

    fn pick(&mut self, r: u64) -> Result<Option<usize>, ClusterError> {
        self.catch_up();
        Ok(self.picked(r))
    }

    fn lowest_unlabelled(&mut self) -> Result<Option<usize>, ClusterError> {
        self.inner.lowest_unlabelled()
    }

    fn seed(&mut self, cluster: usize, point: usize) -> Result<u32, ClusterError> {
        self.catch_up();
        self.forget();
        self.forget_mass(point);
        self.inner.seed(cluster, point)
    }

    fn shorten(&mut self, cluster: usize) -> Result<u64, ClusterError> {
        let Shape { clusters, dims, .. } = self.shape();
        if cluster >= clusters {
            return self.inner.shorten(cluster);
        }
        self.catch_up();
        self.forget();
        let (_, buffers) = self.inner.parts();
        let centroid = &buffers.centroids[cluster * dims..][..dims];
        self.kernels.pack(&mut self.candidates, centroid, dims);
        Ok(self.shortened())
    }

    fn potentials(&mut self, candidates: &[usize], totals: &mut [u64]) -> Result<(), ClusterError> {
        if totals.len() != candidates.len() {
            return Err(ClusterError::Length {
                expected: candidates.len(),
                found: totals.len(),
            });
        }
        let (points, _) = self.inner.parts();
        let count = points.len();
        if let Some(&index) = candidates.iter().find(|&&index| index >= count) {
            return Err(ClusterError::Index { index, count });
        }
        self.catch_up();
        let (points, _) = self.inner.parts();
        if !candidates.is_empty() {
            let rows: Vec<&[i8]> = candidates.iter().map(|&index| points.row(index)).collect();
            self.kernels
                .pack(&mut self.candidates, &rows.concat(), points.dims());
            self.potential(totals);
        }
        Ok(())
    }

    fn set_centroids(&mut self, centroids: &[i8]) -> Result<(), ClusterError> {
        // They belong to the centroids before, which are about to be forgotten.
        self.catch_up();
        self.forget();
        self.inner.set_centroids(centroids)
    }

    fn measure(&mut self) -> Result<Assigned, ClusterError> {
        self.settled = None;
        Ok(self.assigned(Summed::Nothing, false))
    }

    fn assign(&mut self) -> Result<Assigned, ClusterError> {
        Ok(self.step(false))
    }

    fn assign_update(&mut self) -> Result<Assigned, ClusterError> {
        let (points, _) = self.inner.parts();
        let late = self.shape().clusters < CLUSTERS && points.weights().is_none();
        let assigned = self.step(late);
        if assigned.changed == 0 {
            // A driver may stop here.
            self.catch_up();
        }
        self.update()?;
        Ok(assigned)
    }

    fn update(&mut self) -> Result<(), ClusterError> {
        let Shape { dims, update, .. } = self.shape();
        let (_, buffers) = self.inner.parts();
        // The kernel's limit.
        if update != Update::Mean || buffers.counts.iter().any(|&count| count >> 44 != 0) {
            return self.inner.update();
        }
        self.kernels
            .means(buffers.sums, buffers.counts, dims, buffers.centroids);
        Ok(())
    }

    fn next_empty(&mut self, first: usize) -> Result<Option<usize>, ClusterError> {
        self.inner.next_empty(first)
    }

    fn farthest(&mut self, last: Option<Farthest>) -> Result<Option<Farthest>, ClusterError> {
        self.catch_up();
        Ok(self.next_farthest(last))
    }

    fn place(&mut self, cluster: usize, point: usize) -> Result<(), ClusterError> {
        self.inner.place(cluster, point)
    }

    fn start_batches(&mut self) -> Result<(), ClusterError> {
        self.settled = None;
        self.inner.start_batches()
    }

    fn batch(&mut self, points: &[u32], cap: u32) -> Result<(), ClusterError> {
        self.settled = None;
        let (all, _) = self.inner.parts();
        let count = all.len();
        if let Some(&index) = points.iter().find(|&&index| index as usize >= count) {
            let index = index as usize;
            return Err(ClusterError::Index { index, count });
        }
        self.batched(points);
        let dims = self.shape().dims;
        let (_, buffers) = self.inner.parts();
        reference::fade(dims, cap, buffers.sums, buffers.counts);
        self.update()
    }

    fn keep(&mut self) -> Result<(), ClusterError> {
        self.inner.keep()
    }

    fn restore(&mut self) -> Result<(), ClusterError> {
        self.inner.restore()
    }

    fn read_centroids(&mut self, out: &mut [i8]) -> Result<(), ClusterError> {
        self.inner.read_centroids(out)
    }

    fn read_labels(&mut self, out: &mut [u32]) -> Result<(), ClusterError> {
        self.inner.read_labels(out)
    }

    fn read_distances(&mut self, out: &mut [u32]) -> Result<(), ClusterError> {
        self.catch_up();
        self.inner.read_distances(out)
    }

    fn read_sums(&mut self, sums: &mut [i64], counts: &mut [u64]) -> Result<(), ClusterError> {
        self.inner.read_sums(sums, counts)
    }
}
