//! Assignment of points, tile by tile, with results that a job gathers on the way.

use tercet_core::cluster::Points;
use tercet_core::engine::Assigned;
use tracing::trace_span;

use super::super::each::{chunks, chunks_mut};
use super::super::{TILE as VALUES, Threads};
use super::share::{jobs, share, work};
use crate::simd::cluster::{Change, Cluster, Packed, Scratch, Sums, TILE};

/// State of a job from step to step, in cache lines (and pairs of them, which some processors fetch together) that no
/// other job writes to.
#[derive(Clone, Debug, Default)]
#[repr(align(128))]
pub(super) struct ThreadState {
    pub(super) scratch: Scratch,
    pub(super) sums: Sums,
    pub(super) assigned: Assigned,
    /// Squared distances of a tile to candidates.
    pub(super) found: Vec<u32>,
    /// Σ w·D² for each candidate.
    pub(super) totals: Vec<u64>,
    /// The coordinates of points that are not adjacent.
    pub(super) rows: Vec<i8>,
}

/// The sums that are computed while points are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Summed {
    /// Nothing.
    Nothing,
    /// All points.
    All,
    /// Points with a changed label: away from the old label's sums, to the new one's.
    Changes,
}

/// Points to assign, and the centroids.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assignment<'a> {
    pub(super) kernels: &'static Cluster,
    pub(super) points: Points<'a>,
    /// [`Cluster::lengths`] of the points, or empty if they are computed on the way.
    pub(super) lengths: &'a [u32],
    pub(super) packed: &'a Packed,
    pub(super) summed: Summed,
    /// Points per job at a time.
    pub(super) share: usize,
}

impl Assignment<'_> {
    /// Assigns all points; the jobs have the gathered results.
    ///
    /// No distances are written if `distances` is empty and points have no weights; then the inertia is too small by
    /// the sum of [`Cluster::lengths`], as i32, modulo 2⁶⁴.
    pub(super) fn run(
        &self,
        jobs: &mut [ThreadState],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Assigned {
        let _span = trace_span!("assign").entered();
        for job in jobs.iter_mut() {
            job.assigned = Assigned::default();
        }
        let run =
            |job: &mut ThreadState, index: usize, labels: &mut [u32], distances: &mut [u32]| {
                let span = self.kernels.span;
                let mut distances = distances.chunks_mut(span);
                for (part, labels) in labels.chunks_mut(span).enumerate() {
                    let first = index * self.share + part * span;
                    let assigned =
                        self.span(job, first, labels, distances.next().unwrap_or_default());
                    // Modulo 2⁶⁴ if distances are not written.
                    job.assigned.inertia = job.assigned.inertia.wrapping_add(assigned.inertia);
                    job.assigned.changed += assigned.changed;
                }
            };
        let parts = chunks_mut(labels, self.share);
        if distances.is_empty() {
            share(jobs, parts, &|job, index, labels| {
                run(job, index, labels, &mut []);
            });
        } else {
            let parts = parts.zip(chunks_mut(distances, self.share));
            share(jobs, parts, &|job, index, (labels, distances)| {
                run(job, index, labels, distances);
            });
        }
        let mut all = Assigned::default();
        for ThreadState { assigned, .. } in jobs {
            all.inertia = all.inertia.wrapping_add(assigned.inertia);
            all.changed += assigned.changed;
        }
        all
    }

    /// Assigns the points from `first` on, at most a span of the kernels.
    fn span(
        &self,
        job: &mut ThreadState,
        first: usize,
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Assigned {
        let (dims, count) = (self.points.dims(), labels.len());
        let rows = &self.points.values()[first * dims..];
        let ThreadState {
            scratch,
            sums,
            found,
            ..
        } = job;
        let lengths = if distances.is_empty() {
            &[]
        } else if self.lengths.is_empty() {
            found.resize(count, 0);
            self.kernels.lengths(rows, dims, found);
            &found[..]
        } else {
            &self.lengths[first..][..count]
        };
        let inertia = self
            .kernels
            .assign(rows, lengths, self.packed, scratch, labels, distances);
        let weights = self.points.weights();
        let weights = weights.map(|weights| &weights[first..][..count]);
        let mut assigned = Assigned {
            inertia,
            ..Assigned::default()
        };
        if let Some(weights) = weights {
            assigned.inertia = super::mass(Some(weights), distances);
        }
        for (tile, (changed, before)) in scratch.moved().enumerate() {
            let first = tile * TILE;
            let labels = &labels[first..][..before.len()];
            let weights = weights.map(|weights| &weights[first..][..before.len()]);
            assigned.changed += match weights {
                None => changed.count_ones().into(),
                Some(weights) => {
                    let bits = weights.iter().enumerate();
                    bits.map(|(bit, &weight)| u64::from(weight > 0) & changed >> bit)
                        .sum::<u64>()
                }
            };
            if self.summed != Summed::Nothing {
                let change = Change {
                    rows: &rows[first * dims..],
                    weights,
                    labels,
                    moved: (self.summed == Summed::Changes).then_some((changed, before)),
                };
                self.kernels.sum(sums, change);
            }
        }
        assigned
    }
}

/// Returns the number of points with `values` coordinates: whole tiles, if that is at least one.
pub(super) fn points_of(values: usize, dims: usize) -> usize {
    let points = (values / dims).max(1);
    if points > TILE {
        points - points % TILE
    } else {
        points
    }
}

/// Computes [`Cluster::lengths`] of all points.
pub(super) fn lengths(
    kernels: &Cluster,
    points: &Points<'_>,
    share_of: usize,
    threads: usize,
) -> Vec<u32> {
    let _span = trace_span!("lengths").entered();
    let mut lengths = vec![0; points.len()];
    let parts = chunks(points.values(), share_of * points.dims());
    let parts = parts.zip(chunks_mut(&mut lengths, share_of));
    let mut threads = vec![(); jobs(work(points.len(), points.dims(), 0), threads)];
    share(&mut threads, parts, &|(), _, (rows, lengths)| {
        kernels.lengths(rows, points.dims(), lengths);
    });
    lengths
}

/// True if so few distances are needed that core's loop computes them before centroids would be in the order of the
/// kernels.
///
/// The unit is a ninth of a nanosecond, measured with AVX-512: per pair the loop takes 18 plus 1 per coordinate;
/// kernels take 3,600 to start and 4 per coordinate of the centroids.
pub(super) const fn few(points: usize, dims: usize, centroids: usize) -> bool {
    let pairs = points.saturating_mul(centroids);
    let table = centroids.saturating_mul(dims);
    pairs.saturating_mul(dims.saturating_add(18)) < table.saturating_mul(4).saturating_add(3600)
}

impl Threads {
    /// Does [`ClusterEngine::nearest`](tercet_core::engine::ClusterEngine::nearest) with checked arguments.
    pub(super) fn nearest_of(
        &self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) {
        let (n, dims) = (points.len(), points.dims());
        let kernels = self.backend().cluster();
        let mut packed = kernels.packed();
        kernels.pack(&mut packed, centroids, dims);
        let assignment = Assignment {
            kernels,
            points,
            lengths: &[],
            packed: &packed,
            summed: Summed::Nothing,
            share: points_of(if self.alone { usize::MAX } else { VALUES }, dims),
        };
        let work = work(n, dims, centroids.len() / dims);
        let mut jobs = vec![ThreadState::default(); jobs(work, self.threads())];
        assignment.run(&mut jobs, labels, distances);
    }
}
